#include "exchange/run.h"

#include <cstdint>

#include "exchange/direct.h"
#include "exchange/padded_bruck.h"
#include "exchange/tuna.h"
#include "hierarchy/run.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

}  // namespace

int RadixOrDefault(int radix, int size) {
  if (radix != 0) return radix;
  int root = 2;
  while (std::int64_t{root} * root < size) ++root;
  return root;
}

bool CanRunExchange(Method method) {
  return IsDirect(method) || method == Method::kTuna || method == Method::kTwoPhaseBruck ||
         method == Method::kPaddedBruck || IsHierarchical(method);
}

int RunExchange(CommunicatorState& state, const BlockExchange& exchange, const Algorithm& algorithm,
                Trace* trace) {
  switch (algorithm.method) {
    case Method::kTuna: {
      const int radix = RadixOrDefault(algorithm.radix, exchange.size);
      // Nothing is forwarded then: all messages at once, none for an empty block.
      if (radix >= exchange.size) {
        return RunDirect({.blocks = exchange}, {.method = Method::kSpreadOut}, trace);
      }
      return TunaExchange(exchange, {.radix = radix}, trace);
    }
    case Method::kTwoPhaseBruck:
      return TunaExchange(exchange, {.radix = 2, .as_published = true}, trace);
    case Method::kPaddedBruck:
      return PaddedBruckExchange(exchange, trace);
    case Method::kCoalesced:
    case Method::kStaggered:
    case Method::kMultilevel:
    case Method::kShared:
    case Method::kSharedCoalesced:
      return RunHierarchical(state, exchange, algorithm, trace);
    default:
      return RunDirect({.blocks = exchange}, algorithm, trace);
  }
}

}  // namespace tutti::mpi
