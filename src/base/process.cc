#include "tutti/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/leftovers.h"

extern char** environ;

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTimeToEnd = std::chrono::seconds(1);
constexpr int kLookAgainMs = 100;  // whether work was cancelled

// An open file that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

Error IoError(const std::string& what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno))};
}

// A file in memory that holds `text`, to be read from its begin.
Result<Descriptor> FileWith(const std::string& text) {
  Descriptor file(text.empty() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC)
                               : ::memfd_create("input", MFD_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(IoError("standard input of a program"));
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return tl::unexpected(IoError("standard input of a program"));
    done += static_cast<size_t>(written);
  }
  if (!text.empty()) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// What one stream of the program says, cut into lines.
class Lines {
 public:
  Lines(ProcessStream stream, Descriptor from) : stream_(stream), from_(std::move(from)) {}
  int fd() const { return from_.get(); }
  bool is_open() const { return from_.is_open(); }

  void Read(const OnProcessLine& on_line) {
    std::array<char, 1 << 14> buffer;
    const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      if (!pending_.empty()) on_line(pending_, stream_);
      from_.Close();
      return;
    }
    pending_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1)
      on_line(std::string_view(pending_).substr(begin, end - begin), stream_);
    pending_.erase(0, begin);
  }

 private:
  ProcessStream stream_;
  Descriptor from_;
  std::string pending_;
};

// The read end; the write end goes to `to`.
Result<Descriptor> MakePipe(Descriptor& to) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tl::unexpected(IoError("pipe"));
  to = Descriptor(ends[1]);
  return Descriptor(ends[0]);
}

Result<pid_t> Spawn(const std::vector<std::string>& words, const ProcessOptions& options,
                    const Descriptor& input, const Descriptor& output, const Descriptor& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  if (errors.is_open()) posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int fault =
      ::posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (fault == 0) return child;
  if (fault == ENOENT && !options.package.empty())
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("{} is not on the PATH (Debian: apt-get install {})", words[0],
                                 options.package));
  return MakeError(fault == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                   fmt::format("{} could not be run: {}", words[0], std::strerror(fault)));
}

int WaitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string ProcessEnd::ToText() const {
  return signal != 0 ? fmt::format("signal {}", signal) : fmt::format("status {}", status);
}

Result<ProcessEnd> RunProcess(const std::vector<std::string>& words, const OnProcessLine& on_line,
                              const ProcessOptions& options) {
  const Result<Descriptor> input = FileWith(options.input);
  if (!input) return tl::unexpected(input.error());
  Descriptor to_output, to_errors, errors;
  Result<Descriptor> output = MakePipe(to_output);
  if (!output) return tl::unexpected(output.error());
  if (options.own_error_stream) {
    Result<Descriptor> made = MakePipe(to_errors);
    if (!made) return tl::unexpected(made.error());
    errors = *std::move(made);
  }
  const Result<pid_t> child = Spawn(words, options, *input, to_output, to_errors);
  if (!child) return tl::unexpected(child.error());
  to_output.Close();
  to_errors.Close();
  const StartedProgram started(-*child);
  std::array<Lines, 2> streams = {Lines(ProcessStream::kOutput, *std::move(output)),
                                  Lines(ProcessStream::kError, std::move(errors))};
  std::optional<Clock::time_point> told_to_end;
  while (streams[0].is_open() || streams[1].is_open()) {
    if (CancelRequested()) {
      if (!told_to_end) {
        told_to_end = Clock::now();
        ::kill(-*child, SIGTERM);
      } else if (Clock::now() - *told_to_end > kTimeToEnd) {
        break;
      }
    }
    // A closed stream is -1, which poll leaves out.
    std::array<pollfd, 2> waiting = {{{streams[0].fd(), POLLIN, 0}, {streams[1].fd(), POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), kLookAgainMs) <= 0) continue;
    for (size_t i = 0; i < streams.size(); ++i)
      if (waiting[i].revents != 0) streams[i].Read(on_line);
  }
  if (told_to_end) ::kill(-*child, SIGKILL);
  const int status = WaitFor(*child);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (WIFEXITED(status)) return ProcessEnd{WEXITSTATUS(status), 0};
  return ProcessEnd{0, WTERMSIG(status)};
}

Result<std::string> FindProgram(std::string_view name, std::string_view remedy) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return MakeError(ErrorCode::kIo, "/proc/self/exe: " + error.message());
  const fs::path folder = self.parent_path();
  for (const fs::path& place : {folder / name, folder / TUTTI_LIBEXEC_FROM_BIN / name})
    if (fs::exists(place, error)) return place.string();
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("no program '{}' beside {} or in {}: {}", name, self.string(),
                               TUTTI_LIBEXEC_FROM_BIN, remedy));
}

}  // namespace tutti
