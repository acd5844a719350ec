#include "exchange/run.h"

#include <cstddef>

#include "exchange/direct.h"
#include "exchange/padded_bruck.h"
#include "exchange/tuna.h"
#include "hierarchy/run.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

int Direct(CommunicatorState& /*state*/, const BlockExchange& exchange, const Algorithm& algorithm,
           Trace* trace) {
  return RunDirect({.blocks = exchange}, algorithm, trace);
}

int TwoPhaseBruck(CommunicatorState& /*state*/, const BlockExchange& exchange,
                  const Algorithm& /*algorithm*/, Trace* trace) {
  return TunaExchange(exchange, {.radix = 2, .as_published = true}, trace);
}

int PaddedBruck(CommunicatorState& /*state*/, const BlockExchange& exchange,
                const Algorithm& /*algorithm*/, Trace* trace) {
  return PaddedBruckExchange(exchange, trace);
}

int TunaOfRadix(CommunicatorState& /*state*/, const BlockExchange& exchange,
                const Algorithm& algorithm, Trace* trace) {
  return TunaExchange(exchange, {.radix = algorithm.radix}, trace);
}

// The registry: an algorithm is one file or folder, a row of its traits
// (src/alltoallv/algorithm.cc) and one here.
struct Row {
  Method method;
  // Null where it is the caller's.
  int (*run)(CommunicatorState& state, const BlockExchange& exchange, const Algorithm& algorithm,
             Trace* trace);
};
constexpr Row kRows[] = {
    {Method::kAuto, nullptr},
    {Method::kMpi, nullptr},
    {Method::kLinear, Direct},
    {Method::kPairwise, Direct},
    {Method::kXor, Direct},
    {Method::kSpreadOut, Direct},
    {Method::kScattered, Direct},
    {Method::kTwoPhaseBruck, TwoPhaseBruck},
    {Method::kPaddedBruck, PaddedBruck},
    {Method::kTuna, TunaOfRadix},
    {Method::kCoalesced, RunHierarchical},
    {Method::kStaggered, RunHierarchical},
    {Method::kMultilevel, RunHierarchical},
    {Method::kShared, RunHierarchical},
    {Method::kSharedCoalesced, RunHierarchical},
};
static_assert(alltoallv::HasRowPerMethod(kRows));

const Row& RowOf(Method method) { return kRows[static_cast<size_t>(method)]; }

}  // namespace

bool CanRunExchange(Method method) { return RowOf(method).run != nullptr; }

int RunExchange(CommunicatorState& state, const BlockExchange& exchange, const Algorithm& named,
                Trace* trace) {
  const Algorithm algorithm = Resolved(named, exchange.size);
  const Row& row = RowOf(algorithm.method);
  return row.run == nullptr ? MPI_ERR_ARG : row.run(state, exchange, algorithm, trace);
}

}  // namespace tutti::mpi
