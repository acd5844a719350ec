// Interruption of long work. The command line sets the flag from SIGINT; loops that may run for
// seconds look at it and return CancelledError().
#pragma once

#include "tutti/base/result.h"

namespace tutti {

void RequestCancel();  // async-signal-safe
bool CancelRequested();
void ResetCancel();  // for tests
Error CancelledError();

// While one lives, its thread waits for input of a pipe or device, which may never come: no loop looks at the flag meanwhile,
// and nothing is lost by ending the process at once.
class InputWait {
 public:
  InputWait();
  ~InputWait();
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;
};
bool InputIsAwaited();  // async-signal-safe

}  // namespace tutti
