// The `tutti` command: flags in, rooms called, text or JSON out.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"

namespace tutti::cli {
namespace {

extern "C" void OnInterrupt(int) {
  // A second Ctrl-C ends the program at once, whatever it is doing.
  if (CancelRequested()) _exit(130);
  RequestCancel();
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
      if (tenths < 10 || tenths % 5 != 0 || now.task == nullptr || now.total <= 0) continue;
      fmt::print(stderr, "\r\x1b[K{}: {:.1f} %", now.task,
                 100.0 * static_cast<double>(now.done) / static_cast<double>(now.total));
      std::fflush(stderr);
      shown = true;
    }
    if (shown) fmt::print(stderr, "\r\x1b[K");
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// CLI11 says only that a subcommand is missing; people want to know that theirs is misspelt.
std::string FaultOfCommandName(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return {};
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return fmt::format("unknown command '{}'; accepted are {}", argv[1], names);
}

int ReportOutputFault() {
  fmt::print(stderr, "tutti: error: cannot write to standard output\n");
  return kBadInput;
}

int Main(int argc, char** argv) {
  Program program;
  AddTopo(program);
  AddSynth(program);
  AddVerify(program);
  AddCost(program);
  AddSim(program);
  AddCompare(program);
  AddFlow(program);
  AddLower(program);
  AddRun(program);
  AddDesign(program);
  AddTrain(program);
  AddMpi(program);
  AddBench(program);
  AddDocs(program);
  if (const std::string fault = FaultOfCommandName(program.app, argc, argv); !fault.empty())
    return Report({ErrorCode::kInvalidArgument, fault});
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.app.exit(error);  // --help, --version
    fmt::print(stderr, "tutti: error: {}\nsee 'tutti --help' or 'tutti COMMAND --help'\n",
               error.what());
    return kBadInput;
  }
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tutti"));
  // On a terminal a log line takes the place of the progress line.
  spdlog::set_pattern(isatty(STDERR_FILENO) != 0 ? "\r\x1b[K[%H:%M:%S.%e] %v" : "[%H:%M:%S.%e] %v");
  spdlog::set_level(program.verbose ? spdlog::level::debug : spdlog::level::warn);
  if (program.threads > 0) SetNumThreads(program.threads);
  const int code = [&program] {
    const ProgressLine progress;
    return program.action();
  }();
  spdlog::debug("peak memory {} MiB", PeakRssBytes() >> 20);
  return std::fflush(stdout) == 0 ? code : ReportOutputFault();
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  try {
    return tutti::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tutti: error: out of memory\n");
  } catch (const std::exception& error) {
    // Text that did not fit into the buffer of stdout is written, and refused, before its end.
    if (std::ferror(stdout) != 0) return tutti::cli::ReportOutputFault();
    fmt::print(stderr, "tutti: internal error: {}\n", error.what());
  }
  return tutti::cli::kBadInput;
}
