#include "exchange/run.h"

#include "exchange/direct.h"

namespace tutti::mpi {

bool CanRunExchange(alltoallv::Method method) { return IsDirect(method); }

int RunExchange(CommunicatorState& /*state*/, const BlockExchange& exchange,
                const alltoallv::Algorithm& algorithm, Trace* trace) {
  return RunDirect({.blocks = exchange}, algorithm, trace);
}

}  // namespace tutti::mpi
