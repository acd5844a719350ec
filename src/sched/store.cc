#include "tutti/sched/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "binary.h"
#include "structure.h"
#include "tutti/base/file.h"

namespace tutti {
namespace {

using binary::Source;

// JSON is parsed in memory, some four times the text: about 40 million transfers.
constexpr uint64_t kMaxJsonBytes = uint64_t{1} << 32;

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

bool IsJsonPath(const std::string& path) { return path.ends_with(".json"); }

bool IsBinary(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == binary::kMagic.front();
}

Error Prefix(const std::string& path, const Error& error) {
  return {error.code, path + ": " + error.message};
}

// A file that must be read whole, handed out piece by piece.
class WholeFileReader : public ScheduleReader {
 public:
  explicit WholeFileReader(ScheduleFile file)
      : topology_(std::move(file.topology)), header_(std::move(file.schedule)) {
    transfers_ = std::exchange(header_.transfers, {});
    start_ps_ = std::exchange(header_.start_ps, {});
  }

  const Topology& topology() const override { return topology_; }
  const Schedule& header() const override { return header_; }
  uint64_t num_transfers() const override { return transfers_.size(); }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override {
    const size_t count = std::min<size_t>(transfers_.size() - at_, binary::kBlockTransfers);
    const auto piece = [&](const auto& all, auto& out) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(at_);
      out.assign(first, first + static_cast<std::ptrdiff_t>(count));
    };
    piece(transfers_, transfers);
    start_ps.clear();
    if (!start_ps_.empty()) piece(start_ps_, start_ps);
    at_ += count;
    return count > 0;
  }

 private:
  Topology topology_;
  Schedule header_;
  std::vector<Transfer> transfers_;
  std::vector<int64_t> start_ps_;
  size_t at_ = 0;
};

// Names the file in every error of a reader.
class NamedReader : public ScheduleReader {
 public:
  NamedReader(std::string path, std::unique_ptr<ScheduleReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  const Topology& topology() const override { return reader_->topology(); }
  const Schedule& header() const override { return reader_->header(); }
  uint64_t num_transfers() const override { return reader_->num_transfers(); }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override {
    Result<bool> more = reader_->Next(transfers, start_ps);
    if (!more) return tl::unexpected(Prefix(path_, more.error()));
    return more;
  }

 private:
  std::string path_;
  std::unique_ptr<ScheduleReader> reader_;
};

// By the first byte of what is there. Errors do not name the file.
Result<std::unique_ptr<ScheduleReader>> OpenSource(std::unique_ptr<Source> source) {
  std::string text;
  if (source->size() == 0) return MakeError(ErrorCode::kCorrupt, "the file is empty");
  if (const Status read = source->ReadAt(0, 1, text); !read) return tl::unexpected(read.error());
  if (IsBinary(text)) return binary::OpenReader(std::move(source));
  if (source->size() > kMaxJsonBytes)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("{} bytes that are no binary schedule; JSON is read up to {} bytes",
                    source->size(), kMaxJsonBytes));
  if (const Status read = source->ReadAt(0, source->size(), text); !read)
    return tl::unexpected(read.error());
  Result<ScheduleFile> file = ScheduleFromJson(text);
  if (!file) return tl::unexpected(file.error());
  return std::make_unique<WholeFileReader>(std::move(*file));
}

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

// A pipe offers no way back to its trailer, so it is read whole.
Result<std::unique_ptr<Source>> OpenPath(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return OpenRegularFile(path);
  Result<std::string> contents = ReadFile(path);
  if (!contents) return tl::unexpected(contents.error());
  return std::make_unique<MemorySource>(std::move(*contents));
}

Result<ScheduleFile> ReadAll(ScheduleReader& reader) {
  ScheduleFile file{reader.topology(), reader.header()};
  Schedule& schedule = file.schedule;
  std::vector<Transfer> transfers;
  std::vector<int64_t> start_ps;
  try {
    schedule.transfers.reserve(reader.num_transfers());
    if (schedule.kind == ScheduleKind::kTimed) schedule.start_ps.reserve(reader.num_transfers());
    for (;;) {
      const Result<bool> more = reader.Next(transfers, start_ps);
      if (!more) return tl::unexpected(more.error());
      if (!*more) return file;
      schedule.transfers.insert(schedule.transfers.end(), transfers.begin(), transfers.end());
      schedule.start_ps.insert(schedule.start_ps.end(), start_ps.begin(), start_ps.end());
    }
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} transfers of {} bytes do not fit into memory",
                                 reader.num_transfers(), sizeof(Transfer)));
  }
}

}  // namespace

Status WriteScheduleFile(const std::string& path, const Topology& topology,
                         const Schedule& schedule) {
  if (IsJsonPath(path)) {
    if (const Status fine = CheckStructure(topology, schedule); !fine)
      return tl::unexpected(Prefix(path, fine.error()));
    return WriteFileAtomically(path, ScheduleToJson(topology, schedule));
  }
  auto writer = ScheduleWriter::Open(path, topology, schedule, schedule.transfers.size());
  if (!writer) return tl::unexpected(writer.error());
  if (const Status written = (*writer)->Append(schedule.transfers, schedule.start_ps); !written)
    return written;
  return (*writer)->Finish();
}

Result<std::unique_ptr<ScheduleReader>> ScheduleReader::Open(const std::string& path) {
  Result<std::unique_ptr<Source>> source = OpenPath(path);
  if (!source) return tl::unexpected(source.error());
  const uint64_t size = (*source)->size();
  try {
    Result<std::unique_ptr<ScheduleReader>> reader = OpenSource(std::move(*source));
    if (!reader) return tl::unexpected(Prefix(path, reader.error()));
    return std::make_unique<NamedReader>(path, std::move(*reader));
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{}: {} bytes do not fit into memory", path, size));
  }
}

Result<ScheduleFile> ReadScheduleFile(const std::string& path) {
  const Result<std::unique_ptr<ScheduleReader>> reader = ScheduleReader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  return ReadAll(**reader);
}

Result<ScheduleFile> ScheduleFromBinary(std::span<const std::byte> bytes) {
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<std::unique_ptr<ScheduleReader>> reader =
      binary::OpenReader(std::make_unique<MemorySource>(view));
  if (!reader) return tl::unexpected(reader.error());
  return ReadAll(**reader);
}

}  // namespace tutti
