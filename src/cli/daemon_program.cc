#include "daemon_program.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>

#include "common.h"

namespace tutti::cli {
namespace {

int Run(const DaemonProgram& program, int argc, char** argv,
        const std::function<void(Command root)>& describe) {
  CommandLine line(program.name, program.summary,
                   fmt::format("{} {}", program.name, TUTTI_VERSION));
  line.NeedsNoCommand();
  describe(line.root());
  const Result<std::string> text = line.Parse(argc, argv);
  if (!text) return FailDaemon(program, text.error().message);
  if (!text->empty()) {
    fmt::print("{}", *text);
    return kDone;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt(program.name));
  spdlog::set_pattern(fmt::format("%Y-%m-%dT%H:%M:%S.%e {}: %v", program.name));
  return line.action()();
}

}  // namespace

int RunDaemonProgram(const DaemonProgram& program, int argc, char** argv,
                     const std::function<void(Command root)>& describe) {
  try {
    return Run(program, argc, argv, describe);
  } catch (const std::exception& error) {
    return FailDaemon(program, error.what());
  }
}

int FailDaemon(const DaemonProgram& program, const std::string& what) {
  fmt::print(stderr, "{}: error: {}\n", program.name, what);
  return kBadInput;
}

}  // namespace tutti::cli
