// Generalized Kautz digraphs with their self-loops rewired to one cycle: no rank has an idle port.
// What the new links shorten follows no intervals (genkautz.h), so each is built and measured.
#include <fmt/format.h>

#include <utility>

#include "base.h"
#include "own_base.h"
#include "tutti/topo/expression.h"

namespace tutti::design {
namespace {

// Measuring looks at all pairs. Larger ones are left out: the d shortcuts at most change less and
// less there, and the frontiers of all sizes up to 2000 would take minutes instead of seconds.
constexpr int32_t kMaxRanks = 512;
constexpr int64_t kMaxPorts = 2048;

bool IsSmall(int32_t ranks, int32_t degree) {
  return ranks <= kMaxRanks && int64_t{ranks} * degree <= kMaxPorts;
}

}  // namespace

void ListGenkautzMod(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  // With d + 1 | m no rank has a self-loop: genkautz itself.
  if (degree < 2 || ranks <= degree || ranks % (degree + 1) == 0) return;
  if (!IsSmall(ranks, degree)) return;
  const Result<Topology> topology =
      ParseTopology(fmt::format("genkautz_mod({},{})", degree, ranks));
  if (!topology) return;
  Result<BaseEntry> entry = MeasureBase(*topology);
  if (entry) entries.push_back(*std::move(entry));
}

}  // namespace tutti::design
