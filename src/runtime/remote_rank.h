// A rank of a job (tutti/runtime/remote.h) whose messages go another way than over TCP: for rooms that bring
// a transport of their own.
#pragma once

#include "session.h"
#include "tutti/base/result.h"
#include "tutti/runtime/remote.h"

namespace tutti {

// ServeRank(), with a transport that `make` makes for each run.
Status ServeRankOver(const RemoteRankOptions& options, const Session::MakeTransport& make);

}  // namespace tutti
