// Where the best algorithm changes: against the cost at every size around the change.
#include "tutti/advise/best_by_size.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

std::vector<HeldSchedule> AllGathers(const Topology& topology,
                                     const std::vector<std::string>& algorithms) {
  std::vector<HeldSchedule> held;
  for (const std::string& algorithm : algorithms) {
    Result<Schedule> made =
        RunSynthesizer(**FindSynthesizer(algorithm), topology,
                       *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()), {});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    held.push_back({algorithm, &topology, *std::move(made)});
  }
  return held;
}

const HeldSchedule& Of(const std::vector<HeldSchedule>& held, const std::string& algorithm) {
  for (const HeldSchedule& one : held)
    if (one.algorithm == algorithm) return one;
  ADD_FAILURE() << algorithm;
  return held.front();
}

// By hand, ring(4) with 1 us and 1 GB/s a link: uniring takes 3 steps of M/4, bfb 2 steps and
// 3/8 M. It is better at every size. On uniring(4) both are the same schedule.
TEST(BestBySizeTest, OneIsBestEverywhere) {
  const Topology ring = *ParseTopology("ring(4,bw=1GB/s,alpha=1us)");
  const Result<std::vector<BestRange>> best = BestByCost(AllGathers(ring, {"uniring", "bfb"}));
  ASSERT_TRUE(best.has_value());
  ASSERT_EQ(best->size(), 1U);
  EXPECT_EQ(best->front().algorithm, "bfb");
  EXPECT_EQ(best->front().from_bytes, 1);
}

TEST(BestBySizeTest, RangesNameTheLeastAtTheirEnds) {
  int changes = 0;
  for (const std::string expression : {"hypercube(4)", "torus(3,5)", "complete(6)"}) {
    const Topology topology = *ParseTopology(expression);
    const std::vector<HeldSchedule> held = AllGathers(topology, {"uniring", "ring", "direct"});
    const Result<std::vector<BestRange>> best = BestByCost(held);
    ASSERT_TRUE(best.has_value()) << best.error().message;
    const auto seconds = [&](const std::string& algorithm, int64_t size) {
      return SecondsAt(AnalyticCurve(topology, Of(held, algorithm).schedule), size);
    };
    for (size_t k = 0; k < best->size(); ++k) {
      const BestRange& range = (*best)[k];
      const int64_t last = k + 1 < best->size() ? (*best)[k + 1].from_bytes - 1 : int64_t{1} << 40;
      for (const int64_t size : {range.from_bytes, last})
        for (const HeldSchedule& other : held)
          EXPECT_LE(seconds(range.algorithm, size), seconds(other.algorithm, size))
              << expression << ": " << other.algorithm << " at " << size;
    }
    changes += static_cast<int>(best->size()) - 1;
    const Result<std::vector<BestRange>> simulated = BestBySimulation(held, {});
    ASSERT_TRUE(simulated.has_value()) << simulated.error().message;
    EXPECT_EQ(simulated->front().from_bytes, 1);
    for (size_t k = 1; k < simulated->size(); ++k) {
      EXPECT_LT((*simulated)[k - 1].from_bytes, (*simulated)[k].from_bytes);
      EXPECT_NE((*simulated)[k - 1].algorithm, (*simulated)[k].algorithm);
    }
  }
  EXPECT_GT(changes, 0);
}

}  // namespace
}  // namespace tutti
