#include "tutti/advise/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "tutti/advise/unwinding.h"
#include "tutti/advise/wiring.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/design/finder.h"
#include "tutti/design/workload.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/auto.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

Status TakeBest(const Topology& topology, const std::string& expression,
                const Collective& collective, Expectation& expected) {
  SynthOptions options{.size_bytes = expected.size_bytes, .notes = nullptr};
  const Topology* network = &topology;
  std::optional<AutoChoice> found;
  if (topology.num_ranks() <= kMaxRanksToUnwind && TriesUnwindings(topology, collective.kind())) {
    const auto make = [&collective](const Topology& /*topology*/,
                                    bool /*one_shard*/) -> Result<Collective> {
      return collective;
    };
    Result<Unwound> unwound = UnwindBest(expression, nullptr, {collective.kind(), make}, options);
    if (!unwound) return tl::unexpected(unwound.error());
    found = std::move(unwound->choice);
    if (unwound->degree > 0) {
      expected.unwound = std::move(unwound->topology);
      network = &*expected.unwound;
    }
  }
  Result<AutoChoice> choice =
      found ? Result<AutoChoice>(*std::move(found))
            : ChooseSynthesizer(*network, collective, options, kExpectBudgetNs);
  if (!choice) return tl::unexpected(choice.error());
  expected.algorithm = choice->schedule.algorithm;
  expected.best_s = PredictedSeconds(*network, choice->schedule, expected.size_bytes);
  expected.schedule = std::move(choice->schedule);
  return {};
}

Status TakeRing(const Topology& topology, const Boxes& boxes, const Collective& collective,
                Expectation& expected) {
  if (topology.has_switches()) {
    expected.ring_is_estimate = true;
    expected.ring_s = EstimateRing(topology, boxes)
                          .Seconds(collective.kind(), topology.num_ranks(), expected.size_bytes);
    return {};
  }
  const Result<const Synthesizer*> ring = FindSynthesizer("ring");
  if (!ring) return tl::unexpected(ring.error());
  const Result<Schedule> schedule =
      RunSynthesizer(**ring, topology, collective, {.size_bytes = expected.size_bytes});
  if (schedule)
    expected.ring_s = PredictedSeconds(topology, *schedule, expected.size_bytes);
  else if (schedule.error().code == ErrorCode::kCancelled)
    return tl::unexpected(schedule.error());
  return {};
}

}  // namespace

Result<Expectation> Expect(const Topology& topology, const std::string& expression,
                           const Boxes& boxes, CollectiveKind kind, int64_t size_bytes) {
  const Result<Collective> collective = Collective::Make(kind, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  const Result<Bounds> bounds = BoundsOf(topology, *collective);
  if (!bounds) return tl::unexpected(bounds.error());
  Expectation expected{.collective = kind,
                       .size_bytes = size_bytes,
                       .bus_factor = collective->BusFactor(),
                       .limit_s = bounds->Limit(size_bytes)};
  if (const Status best = TakeBest(topology, expression, *collective, expected); !best) {
    if (best.error().code == ErrorCode::kCancelled) return tl::unexpected(best.error());
    expected.reason = best.error().message;
  }
  if (const Status ring = TakeRing(topology, boxes, *collective, expected); !ring)
    return tl::unexpected(ring.error());
  return expected;
}

Result<std::vector<OtherWiring>> OtherWirings(const Topology& topology) {
  const auto none = [](std::string why) {
    return MakeError(ErrorCode::kInfeasible, std::move(why));
  };
  if (topology.has_switches()) return none("switches join the machines");
  const int32_t ranks = topology.num_ranks();
  if (ranks < 3) return none("there is one way to join two ranks");
  if (ranks > kMaxRanksToRewire)
    return none(
        fmt::format("{} ranks; wirings are compared of at most {}", ranks, kMaxRanksToRewire));
  int32_t ports = 0;
  const LinkSpec link = topology.spec(LinkId{0});
  for (LinkId one : topology.Links())
    if (topology.spec(one) != link) return none("its links are not alike");
  for (NodeId rank : topology.Ranks()) ports = std::max(ports, topology.out_degree(rank));
  std::set<std::string> recipes;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
    const Result<std::vector<Design>> frontier = FindFrontier({.ranks = ranks,
                                                               .degree = ports,
                                                               .bidirectional_only = true,
                                                               .collective = kind,
                                                               .bases = {}});
    if (!frontier) return tl::unexpected(frontier.error());
    for (const Design& design : *frontier) recipes.insert(design.recipe);
  }
  std::vector<OtherWiring> others;
  for (const std::string& recipe : recipes) {
    Result<Topology> made = NetworkWithLinks(recipe, link);
    if (!made) return tl::unexpected(made.error());
    const bool is_same =
        FindIsomorphism(topology, *made).outcome == IsomorphismSearch::Outcome::kFound;
    if (!is_same) others.push_back({recipe, *std::move(made)});
  }
  return others;
}

}  // namespace tutti
