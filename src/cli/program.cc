// What surrounds a command: standard streams, signals, the progress line, exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/leftovers.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"

namespace tutti::cli {
namespace {

constexpr int kSignalled = 128;  // and the signal's number: as a shell reports it
// How long work that is told to end may take to do so. What does not look at CancelRequested(), or
// sits in a library that cannot, is then ended from outside.
constexpr timeval kGrace{.tv_sec = 1, .tv_usec = 500'000};

std::atomic<int> signal_got{0};
bool stderr_is_terminal = false;

extern "C" void EndNow(int) {
  RemoveLeftovers();
  constexpr std::string_view kSaid = "\ntutti: error: interrupted\n";
  const std::string_view said = stderr_is_terminal ? kSaid : kSaid.substr(1);
  // Nothing is left to do where even this cannot be written.
  if (!PrintedError() && !InterruptionIsLeftToOthers() &&
      ::write(STDERR_FILENO, said.data(), said.size()) < 0) {
  }
  _exit(kSignalled + signal_got.load());
}

extern "C" void OnInterrupt(int signal) {
  // A second Ctrl-C ends the program at once, whatever it is doing.
  if (CancelRequested()) EndNow(signal);
  signal_got = signal;
  if (InputIsAwaited()) EndNow(signal);
  RequestCancel();
  const itimerval once{.it_interval = {}, .it_value = kGrace};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void CatchSignals() {
  stderr_is_terminal = isatty(STDERR_FILENO) != 0;
  std::signal(SIGALRM, EndNow);
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  // nohup has the hang-up ignored, and means it.
  if (std::signal(SIGHUP, OnInterrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  // These become errors of the writes that meet them.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

// The code of a command that has ended, whether or not it knows that it was interrupted.
int CodeAfterSignals(int code) {
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  if (signal_got == 0) return code;
  if (code != kInterrupted) PrintInterrupted();
  return kSignalled + signal_got;
}

// With a standard stream closed, the next file opened would take its number and get what is meant
// for the stream. A closed output stays one that refuses to be written.
void HoldStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      if (open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) _exit(kBadInput);
}

// Shows how far the work is, on a terminal only, once it has taken a second.
class ProgressLine {
 public:
  ProgressLine() {
    if (isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { Run(); });
  }
  ~ProgressLine() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void Run() {
    bool shown = false;
    for (int tenths = 1; !stop_; ++tenths) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const ProgressSnapshot now = CurrentProgress();
      if (tenths < 10 || tenths % 5 != 0 || now.task == nullptr) continue;
      fmt::print(stderr, "\r\x1b[K{}: {:.1f} %", now.task, 100.0 * now.part);
      std::fflush(stderr);
      shown = true;
    }
    if (shown) fmt::print(stderr, "\r\x1b[K");
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Where writing to standard output failed, for the reason `fault` (an errno). A reader that has
// seen enough (head) is no error worth a word.
int ReportOutputFault(int fault) {
  if (fault == EPIPE) return kReaderGone;
  PrintError(fmt::format("cannot write to standard output: {}",
                         std::generic_category().message(fault == 0 ? EIO : fault)));
  return kBadInput;
}

int FlushOutput(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return ReportOutputFault(errno);
}

Status CheckWritable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    const Result<AtomicFile> file = AtomicFile::Create(path);  // is gone when not committed
    return file ? Status() : tl::unexpected(file.error());
  }
  // To open a pipe would tell its reader that all has been written.
  if (::access(path.c_str(), W_OK) == 0) return {};
  return MakeError(ErrorCode::kIo,
                   path + ": cannot open for writing: " + std::generic_category().message(errno));
}

// Says before long work what could not be written after it.
Status CheckOutputs(const Command& command) {
  for (const char* name : {"--output", "--trace", "--cables"})
    if (const std::optional<std::string> path = command.ValueOf(name))
      if (Status writable = CheckWritable(*path); !writable) return writable;
  return {};
}

int Main(int argc, char** argv, void (*add_commands)(Program&)) {
  HoldStandardStreams();
  CatchSignals();
  Program program;
  program.arguments.assign(argv, argv + argc);
  add_commands(program);
  const Result<std::string> text = program.line.Parse(argc, argv);
  if (!text) return Report(text.error());
  if (!text->empty()) {
    fmt::print("{}", *text);
    return FlushOutput(kDone);
  }
  SetColor(program.color);
  if (const Status writable = CheckOutputs(program.line.Innermost()); !writable)
    return Report(writable.error());
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tutti"));
  // On a terminal a log line takes the place of the progress line.
  spdlog::set_pattern(stderr_is_terminal ? "\r\x1b[K[%H:%M:%S.%e] %v" : "[%H:%M:%S.%e] %v");
  spdlog::set_level(program.verbose ? spdlog::level::debug : spdlog::level::warn);
  if (program.threads > 0) SetNumThreads(program.threads);
  const int code = [&program] {
    const ProgressLine progress;
    return program.line.action()();
  }();
  spdlog::debug("peak memory {} MiB", PeakRssBytes() >> 20);
  return CodeAfterSignals(FlushOutput(code));
}

}  // namespace

int RunProgram(int argc, char** argv, void (*add_commands)(Program&)) {
  try {
    return Main(argc, argv, add_commands);
  } catch (const std::bad_alloc&) {
    PrintError("out of memory");
  } catch (const std::system_error& error) {
    // Text that did not fit into the buffer of stdout is written, and refused, before its end.
    if (std::ferror(stdout) != 0) return ReportOutputFault(error.code().value());
    PrintError(fmt::format("internal error: {}", error.what()));
  } catch (const std::exception& error) {
    PrintError(fmt::format("internal error: {}", error.what()));
  }
  return kBadInput;
}

}  // namespace tutti::cli
