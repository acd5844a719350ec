// Interruption of long work. The command line sets the flag from SIGINT; loops that may run for
// seconds look at it and return CancelledError().
#pragma once

#include "tutti/base/result.h"

namespace tutti {

void RequestCancel();  // async-signal-safe
bool CancelRequested();
void ResetCancel();  // for tests
Error CancelledError();

}  // namespace tutti
