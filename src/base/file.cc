#include "tutti/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

tl::unexpected<Error> IoError(const std::string& path, const char* what) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
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
  struct stat info {};
  // A device or a pipe is written in place: renaming over /dev/stdout would replace it.
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const std::string target = special ? path : fmt::format("{}.tmp.{}", path, ::getpid());
  const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return IoError(path, "open for writing");
  const auto fail = [&](const char* what) -> Status {
    auto error = IoError(path, what);
    ::close(fd);
    if (!special) ::unlink(target.c_str());
    return error;
  };
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t put = ::write(fd, contents.data() + done, contents.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail("write");
    done += static_cast<size_t>(put);
  }
  if (!special && ::fsync(fd) != 0) return fail("write");
  if (::close(fd) != 0) return IoError(path, "write");
  if (!special && ::rename(target.c_str(), path.c_str()) != 0) {
    auto error = IoError(path, "rename to");
    ::unlink(target.c_str());
    return error;
  }
  return {};
}

}  // namespace tutti
