#include "tutti/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tutti/base/cancel.h"

namespace tutti {
namespace {

tl::unexpected<Error> IoError(const std::string& path, const char* what) {
  return MakeError(ErrorCode::kIo, path + ": cannot " + what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  struct stat info {};
  std::optional<InputWait> wait;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) wait.emplace();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError(path, "open for reading");
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      auto error = IoError(path, "read");
      ::close(fd);
      return error;
    }
    if (got == 0) break;
    contents.append(buffer, static_cast<size_t>(got));
  }
  ::close(fd);
  return contents;
}

Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  if (const Status written = file->Write(contents); !written) return written;
  return file->Commit();
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat info {};
  // Renaming over /dev/stdout would replace it.
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  static std::atomic<uint64_t> serial{0};
  std::string target = special ? path
                               : path + ".tmp." + std::to_string(::getpid()) + "." +
                                     std::to_string(serial.fetch_add(1));
  std::optional<TemporaryName> temporary;
  if (!special) temporary.emplace(target);
  const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return IoError(path, "open for writing");
  return AtomicFile(path, std::move(target), std::move(temporary), fd);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  if (!in_place()) ::unlink(target_.c_str());
  temporary_.reset();
}

Status AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return IoError(path_, "write");
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Status AtomicFile::Commit() {
  const auto fail = [this](const char* what) -> Status {
    auto error = IoError(path_, what);
    Discard();
    return error;
  };
  if (!in_place() && ::fsync(fd_) != 0) return fail("write");
  if (!in_place() && CancelRequested()) {
    Discard();
    return tl::unexpected(CancelledError());
  }
  if (!in_place() && ::rename(target_.c_str(), path_.c_str()) != 0) return fail("rename to");
  temporary_.reset();
  if (::close(std::exchange(fd_, -1)) != 0) return IoError(path_, "write");
  return {};
}

std::optional<uint64_t> AtomicFile::FreeBytes() const {
  struct statvfs info {};
  if (in_place() || ::fstatvfs(fd_, &info) != 0) return std::nullopt;
  return uint64_t{info.f_bavail} * info.f_frsize;
}

}  // namespace tutti
