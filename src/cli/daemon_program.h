// What programs that serve until they are told to stop, tuttid and tutti-controller, share as programs.
#pragma once

#include <functional>
#include <string>

#include "flags.h"

namespace tutti::cli {

struct DaemonProgram {
  const char* name;     // "tuttid"
  const char* summary;  // for --help
};

// Parses the command line that `describe` gives its flags and its action, has the log go to stderr, and runs it. The
// exit code; an exception is a fault that is printed.
int RunDaemonProgram(const DaemonProgram& program, int argc, char** argv,
                     const std::function<void(Command root)>& describe);

// "tuttid: error: ..."; the exit code of bad input.
int FailDaemon(const DaemonProgram& program, const std::string& what);

}  // namespace tutti::cli
