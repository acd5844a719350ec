// What must not stay behind when the process is ended in the middle of its work: temporary files
// and the programs it started. Their owners register them; the command line's handler of a signal
// that the work does not listen to calls RemoveLeftovers() and exits.
//
// Limits      256 at a time. One more is not registered: it is cleaned up by its owner as always,
//             only not after a signal.
// Threads     Registering is safe from any thread.
#pragma once

#include <sys/types.h>

#include <string>

namespace tutti {

// A file that is to be removed, from construction (before the file is made) to destruction.
class TemporaryName {
 public:
  explicit TemporaryName(const std::string& path);
  ~TemporaryName();
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;

 private:
  int slot_;  // -1: none
};

// A program that is to be killed; negative: the process group -pid.
class StartedProgram {
 public:
  explicit StartedProgram(pid_t pid);
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

 private:
  int slot_;  // -1: none
};

// Removes and kills what is registered now. Async-signal-safe.
void RemoveLeftovers();

}  // namespace tutti
