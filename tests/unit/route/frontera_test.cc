// The sub-tori of Frontera: what their hosts can take in makes all-reduce about as fast on 18 ranks
// as on 54, as the direct-connect paper measured.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/json.h"
#include "unit/synth/bfb_testing.h"

namespace tutti {
namespace {

// Bytes a second that an all-reduce of 1 GiB by BFB passes.
double AllReduceSpeed(const Topology& topology) {
  constexpr int64_t kSize = int64_t{1} << 30;
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks());
  const Result<Schedule> schedule =
      RunSynthesizer(**FindSynthesizer("bfb"), topology, *collective, {});
  EXPECT_TRUE(schedule.has_value()) << (schedule ? "" : schedule.error().message);
  return static_cast<double>(kSize) / PredictedSeconds(topology, *schedule, kSize).ToDouble();
}

TEST(Frontera, AllReduceIsAboutAsFastOn54RanksAsOn18) {
  // [direct-connect] 8.5.2: "the algbw of BFB at large M hardly changes from 18-node to 54-node".
  // The hosts allow 100 Gbit/s: 12.5 GB/s / 2 x N / (N - 1).
  std::map<std::string, double> speed;
  for (const char* dims : {"3x3x2", "3x3x3", "3x3x3x2"}) {
    const Result<Topology> topology =
        ReadTopologyFile(std::string("examples/topologies/tacc_torus_") + dims + ".topo.json");
    ASSERT_TRUE(topology.has_value());
    speed[dims] = AllReduceSpeed(*topology);
    const double ranks = topology->num_ranks();
    const double most = 6.25e9 * ranks / (ranks - 1);
    EXPECT_LE(speed[dims], most) << dims;
    EXPECT_GE(speed[dims], 0.85 * most) << dims;
  }
  EXPECT_NEAR(speed["3x3x3x2"] / speed["3x3x2"], 1, 0.1);
  // Links alone would make the larger torus, of one more dimension, faster.
  EXPECT_GE(AllReduceSpeed(Parse("torus(3,3,3,2,bw=25Gbit/s)")),
            1.2 * AllReduceSpeed(Parse("torus(3,3,2,bw=25Gbit/s)")));
}

}  // namespace
}  // namespace tutti
