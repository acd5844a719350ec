// Every synthesizer's schedules, lowered both ways and judged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
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
      if (verdict->too_large) {
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

struct MachineCase {
  const char* expression;
  CollectiveKind kind;
  int32_t box_ranks, thread_blocks;  // at most so many a rank
};

void ExpectForestLowered(const MachineCase& machine) {
  SCOPED_TRACE(machine.expression);
  const Result<Topology> topology = ParseTopology(machine.expression);
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  SynthOptions synth;
  synth.size_bytes = int64_t{1} << 30;
  const Result<Schedule> schedule =
      (*FindSynthesizer("forest"))
          ->synthesize(*topology, testing_lower::MustMake(machine.kind, topology->num_ranks()),
                       synth);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  for (const int32_t box : {0, machine.box_ranks}) {
    SCOPED_TRACE(box);
    MscclppOptions options;
    options.in_place = box == 0;
    options.box_ranks = box;
    const Result<std::string> json = ToMscclpp(*topology, *schedule, options);
    ASSERT_TRUE(json.has_value()) << json.error().message;
    const Result<MscclppVerdict> verdict = CheckMscclpp(*json);
    ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
    EXPECT_EQ(verdict->ranks, topology->num_ranks());
    EXPECT_LE(verdict->thread_blocks, int64_t{machine.thread_blocks} * topology->num_ranks());
    EXPECT_TRUE(verdict->faults.empty()) << verdict->faults[0].message;
  }
}

TEST(SynthesizedTest, ForestsOfSeveralBoxesFitMscclpp) {
  for (const MachineCase& machine : {MachineCase{"dgx_h100(4)", CollectiveKind::kAllReduce, 8, 16},
                                     MachineCase{"dgx_h100(8)", CollectiveKind::kAllReduce, 8, 32}})
    ExpectForestLowered(machine);
}

TEST(SynthesizedSlow, ForestsOfUnevenTreesFitMscclpp) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather})
    ExpectForestLowered({"mi250(2)", kind, 16, 256});
}

// Each layer of thread blocks hears of itself only: what one of them does to another's data is seen.
TEST(SynthesizedTest, ThousandsOfThreadBlocksAreJudged) {
  const Result<Topology> topology = ParseTopology("dgx_h100(4)");
  ASSERT_TRUE(topology.has_value());
  SynthOptions synth;
  synth.size_bytes = int64_t{1} << 30;
  const Result<Schedule> schedule =
      (*FindSynthesizer("forest"))
          ->synthesize(*topology, testing_lower::MustMake(CollectiveKind::kAllReduce, 32), synth);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  MscclppOptions options;
  options.thread_blocks = 256;
  const Result<std::string> json = ToMscclpp(*topology, *schedule, options);
  ASSERT_TRUE(json.has_value()) << json.error().message;
  EXPECT_EQ(testing_lower::MscclppFaults(*json), "");
  EXPECT_EQ(CheckMscclpp(*json)->thread_blocks, 32 * 256);
  nlohmann::ordered_json plan = nlohmann::ordered_json::parse(*json);
  int mutants = 0;
  for (const size_t block : {size_t{3}, size_t{200}}) {
    nlohmann::ordered_json mutant = plan;
    for (auto& operation : mutant["gpus"][5]["threadblocks"][block]["ops"])
      if (operation["name"] == "put") {
        auto& into = operation["dst_buff"][0]["index"];
        into = into.get<int>() == 0 ? 1 : into.get<int>() - 1;
        ++mutants;
        break;
      }
    EXPECT_THAT(testing_lower::MscclppFaults(mutant.dump()),
                testing::HasSubstr("in no certain order"));
  }
  EXPECT_EQ(mutants, 2);
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
