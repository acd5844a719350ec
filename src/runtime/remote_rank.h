// A rank of a job (tutti/runtime/remote.h) whose messages go another way than over TCP: for rooms that bring
// a transport of their own.
#pragma once

#include "control_link.h"
#include "session.h"
#include "tutti/base/result.h"
#include "tutti/runtime/remote.h"

namespace tutti {

// Connects to the coordinator and says which rank this is. From then on the coordinator names it where it ends, and the link ends
// where the coordinator does, whatever this rank does until it serves.
Result<ControlLink> GreetCoordinator(const RemoteRankOptions& options);

// The rest of ServeRank(), with a transport that `make` makes for each run.
Status ServeRankOver(ControlLink link, const RemoteRankOptions& options,
                     const Session::MakeTransport& make);

}  // namespace tutti
