// RunProcess: one program, run to its end, what it prints handed over line by line. FindProgram:
// where the programs are that Tutti installs for itself.
//
// Model       The program is found by PATH and gets a process group of its own, so that all it
//             starts can be ended with it. Its standard input is options.input (empty: nothing), not
//             the terminal's. Where work is cancelled the group is told to end (SIGTERM) and killed
//             a second later; where this process is ended from outside it is killed at once
//             (leftovers.h).
// Threads     From any thread, several at a time.
// Errors      kNotFound: no such program, with the package to install where options.package says
//             one. kIo: it could not be started. kCancelled. That it failed is no error: see the
//             answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

struct ProcessOptions {
  std::string input = {};
  std::string package = {};      // of Debian, for the error
  bool own_error_stream = true;  // its standard error is handed over; otherwise it is ours
};

struct ProcessEnd {
  int status = 0;  // exit status
  int signal = 0;  // that ended it, or 0
  bool ok() const { return status == 0 && signal == 0; }
  std::string ToText() const;  // "status 2", "signal 9"
};

enum class ProcessStream : bool { kOutput, kError };
// `line` has no newline; the last need not have had one.
using OnProcessLine = std::function<void(std::string_view line, ProcessStream stream)>;

// `words`: the program and its arguments.
Result<ProcessEnd> RunProcess(const std::vector<std::string>& words, const OnProcessLine& on_line,
                              const ProcessOptions& options = {});

// The path of `name`, beside the running program or where such programs are installed. kNotFound,
// with `remedy`.
Result<std::string> FindProgram(std::string_view name, std::string_view remedy);

}  // namespace tutti
