// Any bytes as a demand matrix: an error, or numbers that collectives, makers and cost can take.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/coll/demand.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace {

constexpr int32_t kMostRanks = 5;

// The number of ranks of a matrix of so many entries; 0: none.
int32_t RanksOf(size_t entries) {
  for (int32_t ranks = 2; ranks <= kMostRanks; ++ranks)
    if (static_cast<size_t>(ranks) * static_cast<size_t>(ranks) == entries) return ranks;
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto demand = tutti::ParseDemandText({reinterpret_cast<const char*>(data), size}, "demand.csv");
  if (!demand) {
    TUTTI_CHECK(demand.error().message.starts_with("demand.csv:"));
    return 0;
  }
  const int32_t ranks = RanksOf(demand->size());
  if (ranks == 0) return 0;
  const auto collective = tutti::Collective::Make(tutti::CollectiveKind::kAllToAllV, ranks,
                                                  {.demand = *std::move(demand)});
  if (!collective) {
    TUTTI_CHECK(!collective.error().message.empty());
    return 0;
  }
  static const auto* const direct = *tutti::FindSynthesizer("direct");
  const auto topology = tutti::ParseTopology("ring(" + std::to_string(ranks) + ")");
  const auto schedule = tutti::RunSynthesizer(*direct, *topology, *collective, {});
  if (!schedule) {
    TUTTI_CHECK(!schedule.error().message.empty());
    return 0;
  }
  TUTTI_CHECK(!schedule->transfers.empty());
  TUTTI_CHECK(tutti::PredictedSeconds(*topology, *schedule, int64_t{1} << 20) > tutti::Rational(0));
  return 0;
}
