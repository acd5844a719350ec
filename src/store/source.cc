#include "source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/base/file.h"

namespace tutti::binary {
namespace {

class MemorySource : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}  // must outlive the source
  explicit MemorySource(std::string bytes) : owned_(std::move(bytes)), bytes_(owned_) {}

  uint64_t size() const override { return bytes_.size(); }
  Status ReadAt(uint64_t offset, size_t count, std::string& out) override {
    if (offset > bytes_.size() || count > bytes_.size() - offset)
      return MakeError(ErrorCode::kCorrupt, fmt::format("truncated at byte {}", bytes_.size()));
    out.assign(bytes_, offset, count);
    return {};
  }

 private:
  std::string owned_;
  std::string_view bytes_;
};

class FileSource : public Source {
 public:
  FileSource(int fd, uint64_t size) : fd_(fd), size_(size) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(fd_); }

  uint64_t size() const override { return size_; }
  Status ReadAt(uint64_t offset, size_t count, std::string& out) override {
    out.resize(count);
    for (size_t done = 0; done < count;) {
      const ssize_t got =
          ::pread(fd_, out.data() + done, count - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return MakeError(ErrorCode::kIo, fmt::format("cannot read: {}", std::strerror(errno)));
      if (got == 0)
        return MakeError(ErrorCode::kCorrupt,
                         fmt::format("truncated while it was read, at byte {}", offset + done));
      done += static_cast<size_t>(got);
    }
    return {};
  }

 private:
  int fd_;
  uint64_t size_;
};

Result<std::unique_ptr<Source>> OpenRegularFile(const std::string& path) {
  const auto fail = [&path] {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot open for reading: {}", path, std::strerror(errno)));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail();
  struct stat info {};
  if (::fstat(fd, &info) == 0)
    return std::make_unique<FileSource>(fd, static_cast<uint64_t>(info.st_size));
  auto error = fail();
  ::close(fd);
  return error;
}

}  // namespace

std::unique_ptr<Source> MakeMemorySource(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

Result<std::unique_ptr<Source>> OpenPathSource(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return OpenRegularFile(path);
  Result<std::string> contents = ReadFile(path);
  if (!contents) return tl::unexpected(contents.error());
  return std::make_unique<MemorySource>(std::move(*contents));
}

}  // namespace tutti::binary
