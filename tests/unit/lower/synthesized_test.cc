// Every synthesizer's schedules, lowered both ways and judged.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedules.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduce,    CollectiveKind::kGather,
                                     CollectiveKind::kScatter,   CollectiveKind::kAllToAll};

struct LoweredTally {
  int plans = 0, files = 0, mscclpp = 0, refused = 0;
};

void JudgePlan(const Topology& topology, const Schedule& schedule, LoweredTally& tally) {
  const Result<Plan> plan = Lower(topology, schedule);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ++tally.plans;
  for (const bool in_place : {false, true})
    for (const int32_t depth : {0, 2}) {
      CheckOptions options;
      options.in_place = in_place;
      options.fifo_depth = depth;
      const std::vector<PlanFault> faults = CheckPlan(*plan, options);
      EXPECT_TRUE(faults.empty()) << "in place " << in_place << " depth " << depth << ": "
                                  << faults[0].message;
    }
}

void JudgeXml(const Topology& topology, const Schedule& schedule, LoweredTally& tally) {
  for (const MscclDialect dialect :
       {MscclDialect::kMsccl, MscclDialect::kExecutorNccl, MscclDialect::kRccl})
    for (const bool in_place : {false, true}) {
      MscclOptions options;
      options.dialect = dialect;
      options.in_place = in_place;
      const Result<std::string> xml = ToMscclXml(topology, schedule, options);
      if (!xml) {
        EXPECT_EQ(xml.error().code, ErrorCode::kInfeasible) << xml.error().message;
        continue;
      }
      ++tally.files;
      const Result<std::vector<PlanFault>> faults = CheckMscclXml(*xml, dialect);
      ASSERT_TRUE(faults.has_value()) << faults.error().message;
      EXPECT_TRUE(faults->empty()) << (*faults)[0].message;
    }
}

void JudgeMscclpp(const Topology& topology, const Schedule& schedule, LoweredTally& tally) {
  for (const bool in_place : {false, true})
    for (const int32_t box : {0, 2}) {
      MscclppOptions options;
      options.in_place = in_place;
      options.box_ranks = box;
      const Result<std::string> json = ToMscclpp(topology, schedule, options);
      if (!json) {
        EXPECT_EQ(json.error().code, ErrorCode::kInfeasible) << json.error().message;
        ++tally.refused;
        continue;
      }
      const Result<MscclppVerdict> verdict = CheckMscclpp(*json);
      ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
      if (!verdict->faults.empty() &&
          verdict->faults[0].message.find("too large to judge") != std::string::npos) {
        ++tally.refused;
        continue;
      }
      ++tally.mscclpp;
      EXPECT_TRUE(verdict->faults.empty())
          << "in place " << in_place << " boxes " << box << ": " << verdict->faults[0].message;
    }
}

LoweredTally JudgeAll(const std::vector<std::string>& expressions) {
  LoweredTally tally;
  for (const std::string& expression : expressions) {
    const Result<Topology> topology = ParseTopology(expression);
    EXPECT_TRUE(topology.has_value()) << topology.error().message;
    if (!topology) continue;
    for (const Synthesizer& synthesizer : Synthesizers())
      for (const CollectiveKind kind : synthesizer.collectives) {
        if (synthesizer.on_request_only) continue;  // may take minutes
        if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) continue;
        SCOPED_TRACE(expression + " " + std::string(synthesizer.name) + " " +
                     std::string(Name(kind)));
        Collective::Options options;
        options.root = topology->num_ranks() - 1;
        options.all_reduce_shards =
            kind == CollectiveKind::kAllReduce && synthesizer.one_shard_all_reduce ? 1 : 0;
        const Collective collective = testing_lower::MustMake(kind, topology->num_ranks(), options);
        SynthOptions synth;
        synth.size_bytes = 1 << 20;
        const Result<Schedule> schedule = synthesizer.synthesize(*topology, collective, synth);
        if (!schedule) continue;  // not for this network; the room of synthesizers tests which
        JudgePlan(*topology, *schedule, tally);
        JudgeXml(*topology, *schedule, tally);
        JudgeMscclpp(*topology, *schedule, tally);
      }
  }
  return tally;
}

TEST(SynthesizedTest, PlansAndFilesOfSmallNetworksAreCorrect) {
  const LoweredTally tally =
      JudgeAll({"complete(2)", "uniring(1,3)", "ring(5)", "torus(2,3)", "hypercube(3)", "mesh(2,3)",
                "biring(4,4)", "complete(5)", "without(torus(3,3),links=2,seed=3)", "switch(4)",
                "switch2d(2,3)", "rfs(2,2,2)"});
  EXPECT_GT(tally.plans, 50);
  RecordProperty("mscclpp", tally.mscclpp);
  RecordProperty("refused", tally.refused);
  EXPECT_GT(tally.files, 200);
  EXPECT_GT(tally.mscclpp, 200);
}

TEST(SynthesizedSlow, PlansAndFilesOfLargerNetworksAreCorrect) {
  const LoweredTally tally =
      JudgeAll({"dgx1", "torus(4,4)", "torus(3,3,3)", "genkautz(2,12)", "hypercube(5)",
                "complete(24)", "without(torus(3,3,3),links=5,seed=1)"});
  EXPECT_GT(tally.plans, 40);
  EXPECT_GT(tally.mscclpp, 0);
}

}  // namespace
}  // namespace tutti
