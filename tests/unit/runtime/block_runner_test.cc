// Files of other systems, run: ours by every writer, samples of others, and what is refused.
#include "tutti/runtime/block_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/text.h"
#include "tutti/base/parallel.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "unit/lower/schedules.h"

namespace tutti {
namespace {

using test_support::ReadFile;

using namespace testing_lower;  // NOLINT: test helpers
using testing::HasSubstr;

RunOptions Small(DataType type = DataType::kFloat32, ReduceOp op = ReduceOp::kSum) {
  RunOptions options;
  options.size_bytes = 4096;
  options.type = type;
  options.op = op;
  options.warmup = 1;
  options.iterations = 2;
  options.hang_timeout_s = 20;
  return options;
}

// Runs every way that a file is for; the number of ways.
size_t ExpectRight(const Result<std::vector<BlockProgram>>& programs, const RunOptions& options) {
  EXPECT_TRUE(programs.has_value()) << programs.error().message;
  if (!programs) return 0;
  for (const BlockProgram& program : *programs) {
    const Result<RunReport> report = RunBlocks(program, options);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    if (!report) continue;
    EXPECT_EQ(report->wrong, 0) << program.name << " in place " << program.in_place;
  }
  return programs->size();
}

// "torus(2,3) bfb all-gather"
struct Made {
  Topology topology;
  Schedule schedule;
};
Made Synthesize(const std::string& name) {
  std::istringstream words(name);
  std::string expression, algorithm, collective;
  words >> expression >> algorithm >> collective;
  const Result<Topology> topology = ParseTopology(expression);
  EXPECT_TRUE(topology.has_value());
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  EXPECT_TRUE(synthesizer.has_value());
  Result<Schedule> schedule =
      (*synthesizer)
          ->synthesize(*topology, MustMake(*ParseCollectiveKind(collective), topology->num_ranks()),
                       {});
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  return {*topology, std::move(*schedule)};
}

const char* const kSynthesized[] = {
    "torus(2,3) bfb all-gather",     "complete(4) direct all-to-all", "ring(4) ring all-reduce",
    "hypercube(3) rhd all-reduce",   "ring(5) bfb reduce-scatter",    "switch(4) ring all-gather",
    "torus(3,3) bfb reduce-scatter", "ring(6) ring broadcast",        "ring(3) ring reduce"};

// --- What others wrote

TEST(BlockRunnerTest, TheXmlOfAnotherCheckerGathersInEachDialect) {
  const std::string xml = ReadFile("tests/data/msccl_ring_allgather_4.xml");
  for (const MscclDialect dialect :
       {MscclDialect::kMsccl, MscclDialect::kExecutorNccl, MscclDialect::kRccl})
    EXPECT_EQ(ExpectRight(BlockProgramsOfMsccl(xml, dialect), Small()), 1U);
}

// Puts, gets, reads that reduce, packets, slices of thread blocks, pipelines, multicast.
TEST(BlockRunnerTest, EverySampleOfAnMscclppPlanRuns) {
  for (const char* name :
       {"allgather_2_port", "allgather_2_slices", "allreduce_2_packets", "allreduce_2_pipeline",
        "allreduce_2_read", "allreduce_4_switch", "alltoall_3_get", "broadcast_3_chain"}) {
    SCOPED_TRACE(name);
    const std::string json = ReadFile(std::string("tests/data/mscclpp/") + name + ".json");
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAvg})
      EXPECT_EQ(ExpectRight(BlockProgramsOfMscclpp(json), Small(DataType::kFloat32, op)), 1U);
  }
}

std::string XmlStep(int s, const std::string& type, const std::string& src, const std::string& dst,
                    int cnt, const std::string& after = R"(depid="-1" deps="-1")") {
  const auto place = [](const std::string& name, const std::string& text) {
    return name + "buf=\"" + text.substr(0, 1) + "\" " + name + "off=\"" + text.substr(1) + "\" ";
  };
  return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" " + place("src", src) +
         place("dst", dst) + "cnt=\"" + std::to_string(cnt) + "\" " + after + " hasdep=\"1\"/>";
}

// All-reduce of two chunks over two gpus.
std::string TwoGpus(const std::string& first, const std::string& second, int scratch) {
  const auto gpu = [&](int id, const std::string& steps) {
    const std::string peer = std::to_string(1 - id);
    return "<gpu id=\"" + std::to_string(id) + "\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"" +
           std::to_string(scratch) + "\"><tb id=\"0\" send=\"" + peer + "\" recv=\"" + peer +
           "\" chan=\"0\">" + steps + "</tb></gpu>";
  };
  return R"(<algo name="x" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" )"
         R"(coll="allreduce" inplace="0" outofplace="1" minBytes="0" maxBytes="0">)" +
         gpu(0, first) + gpu(1, second) + "</algo>";
}

// s r rcs rrs rrc rrcs cpy re: forwards, reductions into scratch, local ones; chunks of two shards
// lie at odd places of the scratch.
TEST(BlockRunnerTest, EachStepOfTheXmlDoesWhatItSays) {
  const std::string scratch = XmlStep(0, "s", "i0", "s1", 2) + XmlStep(1, "r", "i0", "s1", 2) +
                              XmlStep(2, "cpy", "i0", "o0", 2) + XmlStep(3, "re", "s1", "o0", 2);
  for (const std::string& xml :
       {TwoGpus(XmlStep(0, "s", "i0", "o0", 2) + XmlStep(1, "r", "o0", "o0", 2),
                XmlStep(0, "rrcs", "i0", "o0", 2), 0),
        TwoGpus(XmlStep(0, "s", "i0", "o0", 2) + XmlStep(1, "rcs", "o0", "o0", 2),
                XmlStep(0, "rrs", "i0", "o0", 2) + XmlStep(1, "r", "o0", "o0", 2), 0),
        TwoGpus(XmlStep(0, "s", "i0", "o0", 2) + XmlStep(1, "rrc", "i0", "o0", 2),
                XmlStep(0, "s", "i0", "o0", 2) + XmlStep(1, "rrc", "i0", "o0", 2), 0),
        TwoGpus(scratch, scratch, 3)})
    for (const DataType type :
         {DataType::kFloat32, DataType::kBfloat16, DataType::kUint8, DataType::kInt64})
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kAvg})
        ExpectRight(BlockProgramsOfMsccl(xml, MscclDialect::kRccl), Small(type, op));
}

// --- What our writers write, which the other executor runs too

TEST(BlockRunnerTest, WhatIsLoweredToXmlRunsInPlaceAndOutOfPlace) {
  for (const char* name : kSynthesized) {
    SCOPED_TRACE(name);
    const Made made = Synthesize(name);
    for (const bool in_place : {false, true}) {
      const bool exchanges = made.schedule.collective.kind() == CollectiveKind::kAllToAll;
      if (in_place && exchanges) continue;
      MscclOptions options;
      options.in_place = in_place;
      const Result<std::string> xml = ToMscclXml(made.topology, made.schedule, options);
      ASSERT_TRUE(xml.has_value()) << xml.error().message;
      EXPECT_EQ(ExpectRight(BlockProgramsOfMsccl(*xml, options.dialect), Small()),
                in_place ? 2U : 1U);
    }
  }
}

TEST(BlockRunnerTest, WhatIsLoweredToMscclppRunsOverMemoryAndPorts) {
  for (const char* name : kSynthesized) {
    SCOPED_TRACE(name);
    const Made made = Synthesize(name);
    for (const int32_t box_ranks : {0, 2})
      for (const bool in_place : {false, true}) {
        const bool exchanges = made.schedule.collective.kind() == CollectiveKind::kAllToAll;
        if (in_place && exchanges) continue;
        MscclppOptions options;
        options.in_place = in_place;
        options.box_ranks = made.topology.num_ranks() % 2 == 0 ? box_ranks : 0;
        const Result<std::string> json = ToMscclpp(made.topology, made.schedule, options);
        ASSERT_TRUE(json.has_value()) << json.error().message;
        EXPECT_EQ(ExpectRight(BlockProgramsOfMscclpp(*json), Small()), 1U);
      }
  }
}

TEST(BlockRunnerTest, OneWorkerOrManyAreRight) {
  const Made made = Synthesize("hypercube(3) rhd all-reduce");
  const Result<std::string> json = ToMscclpp(made.topology, made.schedule, {});
  ASSERT_TRUE(json.has_value());
  for (const int threads : {1, 2, 3, 8, 64}) {
    SetNumThreads(threads);
    ExpectRight(BlockProgramsOfMscclpp(*json), Small());
  }
  SetNumThreads(0);
}

TEST(BlockRunnerTest, SizesAreWholeElementsOfEveryChunk) {
  const auto programs =
      BlockProgramsOfMsccl(ReadFile("tests/data/msccl_ring_allgather_4.xml"), MscclDialect::kRccl);
  ASSERT_TRUE(programs.has_value());
  RunOptions options = Small();
  for (const auto& [asked, real] : {std::pair<int64_t, int64_t>{0, 16}, {16, 16}, {47, 32}}) {
    options.size_bytes = asked;
    EXPECT_EQ(SizeThatRuns(programs->front(), options), real);
    EXPECT_EQ(RunBlocks(programs->front(), options)->count, real / 16);
  }
  options.size_bytes = int64_t{1} << 62;
  EXPECT_EQ(SizeThatRuns(programs->front(), options).error().code, ErrorCode::kResourceExhausted);
  options.size_bytes = -1;
  EXPECT_EQ(SizeThatRuns(programs->front(), options).error().code, ErrorCode::kInvalidArgument);
}

// --- What is not run, and faults that the run itself sees

TEST(BlockRunnerTest, WhatIsNotCorrectIsNotRun) {
  std::string xml = ReadFile("tests/data/msccl_ring_allgather_4.xml");
  xml.replace(xml.find("dstoff=\"3\""), 10, "dstoff=\"2\"");
  const auto refused = BlockProgramsOfMsccl(xml, MscclDialect::kRccl);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(refused.error().message, HasSubstr("is not run, since it is not correct: out of"));
  EXPECT_EQ(BlockProgramsOfMsccl("<algo", MscclDialect::kRccl).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(BlockProgramsOfMscclpp("[]").error().code, ErrorCode::kInvalidArgument);
}

// One attribute of one step changed: what the judge lets pass does no harm.
TEST(BlockRunnerProperty, MutantsThatTheJudgeLetsPassRunRight) {
  std::mt19937 random(7);
  int mutants = 0, passed = 0;
  for (const char* name : {"ring(4) ring all-reduce", "torus(2,3) bfb all-gather",
                           "ring(5) bfb reduce-scatter", "complete(4) direct all-to-all"}) {
    SCOPED_TRACE(name);
    const Made made = Synthesize(name);
    const std::string xml = *ToMscclXml(made.topology, made.schedule, {});
    for (int i = 0; i < 150; ++i) {
      std::string mutant = xml;
      // A quoted value of a step, and another that stands there somewhere.
      const auto value = [&](size_t from) {
        const size_t step = mutant.find("<step", from % (mutant.size() - 400));
        size_t at = step;
        for (auto k = random() % 9 + 1; k > 0; --k) at = mutant.find("=\"", at) + 2;
        return std::pair(at, mutant.find('"', at) - at);
      };
      if (mutant.find("<step", mutant.size() - 400) == std::string::npos) continue;
      const auto [at, size] = value(random());
      const auto [other, other_size] = value(random());
      const std::string taken = mutant.substr(other, other_size);
      if (taken == mutant.substr(at, size)) continue;
      mutant.replace(at, size, taken);
      ++mutants;
      const auto programs = BlockProgramsOfMsccl(mutant, MscclDialect::kExecutorNccl);
      if (!programs) continue;
      ++passed;
      EXPECT_GE(ExpectRight(programs, Small()), 1U) << mutant.substr(at - 60, 120);
    }
  }
  EXPECT_GT(mutants, 300);
  EXPECT_LT(passed, mutants / 2);
}

// A program that the judge has not seen: each spoilt step gives wrong elements or stands still.
TEST(BlockRunnerProperty, SpoiltStepsAreNoticed) {
  const Made made = Synthesize("ring(4) ring all-reduce");
  const Result<std::string> xml = ToMscclXml(made.topology, made.schedule, {});
  const auto programs = BlockProgramsOfMsccl(*xml, MscclDialect::kExecutorNccl);
  ASSERT_TRUE(programs.has_value());
  RunOptions options = Small();
  options.warmup = 0;
  options.iterations = 1;
  SetNumThreads(1);  // alone, a worker knows at once that nothing will move
  int spoilt = 0;
  for (size_t b = 0; b < programs->front().blocks.size(); ++b)
    for (size_t s = 0; s < programs->front().blocks[b].steps.size(); ++s) {
      BlockProgram program = programs->front();
      BlockStep& step = program.blocks[b].steps[s];
      if (step.action == BlockAction::kReduce) {
        step.num_targets = 0;  // what it makes is lost
      } else if (step.action == BlockAction::kTake) {
        program.counters[static_cast<size_t>(step.counter)] = -100;
      } else {
        continue;
      }
      ++spoilt;
      const Result<RunReport> report = RunBlocks(program, options);
      if (report) {
        EXPECT_GT(report->wrong, 0) << "block " << b << " step " << s;
      } else {
        EXPECT_THAT(report.error().message, HasSubstr("nothing moves: gpu"));
      }
    }
  SetNumThreads(0);
  EXPECT_GT(spoilt, 50);
}

}  // namespace
}  // namespace tutti
