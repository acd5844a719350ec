// The judge of MSCCL++ plans: samples written by the format's rules, a table of faults, and seeded
// mutants of good plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "schedules.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers
using Json = nlohmann::ordered_json;
using testing::HasSubstr;

constexpr const char* kSamples[] = {
    "allgather_2_port", "allgather_2_slices", "allreduce_2_packets", "allreduce_2_pipeline",
    "allreduce_2_read", "allreduce_4_switch", "alltoall_3_get",      "broadcast_3_chain"};

std::string Sample(const std::string& name) {
  std::ifstream file("tests/data/mscclpp/" + name + ".json", std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Json& Operation(Json& plan, size_t gpu, size_t tb, size_t op) {
  return plan["gpus"][gpu]["threadblocks"][tb]["ops"][op];
}
void Drop(Json& plan, size_t gpu, size_t tb, size_t op) {
  plan["gpus"][gpu]["threadblocks"][tb]["ops"].erase(op);
}

TEST(CheckMscclppTest, TheSamplesAreCorrect) {
  for (const char* name : kSamples) {
    SCOPED_TRACE(name);
    EXPECT_EQ(MscclppFaults(Sample(name)), "");
  }
  const Result<MscclppVerdict> verdict = CheckMscclpp(Sample("allreduce_2_pipeline"));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->collective, "allreduce");
  EXPECT_EQ(verdict->ranks, 2);
  EXPECT_EQ(verdict->thread_blocks, 4);
  EXPECT_EQ(verdict->operations, 2 * (2 + 6 + 3));
}

// --- One row a rule, each row one fault away from a sample

struct Row {
  const char* name;
  const char* sample;
  std::function<void(Json&)> spoil;
  const char* says;
};

const Row kRows[] = {
    {"NoSignal", "allreduce_2_read", [](Json& p) { Drop(p, 0, 0, 7); },
     "deadlock: gpu 1 tb 0 op 8 (wait) waits for a signal of gpu 0"},
    {"AlignedToNothing", "allreduce_2_read", [](Json& p) { p["buffer_alignment"] = 0; },
     "plan: 'buffer_alignment' is 0"},
    {"NoThreads", "allreduce_2_read", [](Json& p) { p["num_threads_per_block"] = 0; },
     "plan: 'num_threads_per_block' is 0"},
    {"NoSizeFits", "allreduce_2_read",
     [](Json& p) {
       p["min_message_size"] = 10;
       p["max_message_size"] = 5;
     },
     "plan: takes calls from 10 to 5 bytes, which none is"},
    {"NoWait", "allreduce_2_read", [](Json& p) { Drop(p, 0, 0, 8); }, "are never waited for"},
    {"NoNopBeforeSignal", "allreduce_2_read", [](Json& p) { Drop(p, 0, 0, 6); },
     "may not have arrived"},
    {"NoNopBetweenDependentOperations", "allreduce_2_read", [](Json& p) { Drop(p, 0, 0, 4); },
     "gpu 0 tb 0 op 3 (rre) and gpu 0 tb 0 op 4 (put) touch i[0] of gpu 0 in no certain order"},
    {"NoReduction", "allreduce_2_read", [](Json& p) { Drop(p, 1, 0, 3); },
     "without the contribution of gpu 0"},
    {"TwiceReduced", "allreduce_2_read",
     [](Json& p) {
       Operation(p, 0, 0, 3)["src_buff"][1] = Operation(p, 0, 0, 3)["src_buff"][0];
       Operation(p, 0, 0, 3)["name"] = "re";
     },
     "counts the contribution of gpu 0 to chunk 0 twice"},
    {"OtherChunk", "allreduce_2_read",
     [](Json& p) { Operation(p, 0, 0, 3)["src_buff"][1]["index"] = 1; },
     "reduces chunk 0 of gpu 0 with chunk 1 of "},
    {"OutOfBounds", "allreduce_2_read",
     [](Json& p) { Operation(p, 0, 0, 5)["dst_buff"][0]["index"] = 2; },
     "gpu 0 tb 0 op 5 dst_buff[0]: i[2, 3) is outside the buffer of 2 chunks of gpu 1"},
    {"TooLong", "allreduce_2_read",
     [](Json& p) {
       for (const char* side : {"src_buff", "dst_buff"}) Operation(p, 1, 0, 5)[side][0]["size"] = 2;
     },
     "is outside the buffer"},
    {"DifferentSizes", "allreduce_2_packets",
     [](Json& p) { Operation(p, 0, 0, 0)["dst_buff"][0]["size"] = 1; }, "differ in size"},
    {"NoSuchChannel", "allreduce_2_read",
     [](Json& p) { Operation(p, 0, 0, 7)["channel_ids"][0] = 1; }, "channel 1 of 1"},
    {"ItsOwnPeer", "allreduce_2_read",
     [](Json& p) { p["gpus"][0]["channels"][0]["connected_to"][0] = 0; }, "gpu 0 is its own peer"},
    {"NoSuchPeer", "allreduce_2_read",
     [](Json& p) { p["gpus"][0]["remote_buffers"][0]["rank"] = 5; }, "there is no gpu 5"},
    {"WrongPeerOfAChannel", "alltoall_3_get",
     [](Json& p) { p["gpus"][0]["channels"][0]["connected_to"][0] = 2; },
     "gpu 2 has no such channel back"},
    {"WrongPeerOfABuffer", "alltoall_3_get",
     [](Json& p) { p["gpus"][0]["remote_buffers"][0]["rank"] = 2; },
     "output chunk 1 should end with chunk 3 of gpu 1"},
    {"PutOverAnotherChannel", "broadcast_3_chain",
     [](Json& p) { Operation(p, 1, 0, 2)["channel_ids"][0] = 0; },
     "puts into a buffer of gpu 2 over a channel to gpu 0"},
    {"ForwardedTooEarly", "broadcast_3_chain", [](Json& p) { Drop(p, 1, 0, 1); },
     "in no certain order"},
    {"OverwrittenUnflushed", "broadcast_3_chain",
     [](Json& p) {
       p["gpus"][1]["scratch_chunks"] = 1;
       Json& ops = p["gpus"][1]["threadblocks"][0]["ops"];
       ops.insert(ops.begin(), Json{{"name", "copy"},
                                    {"src_buff", {{{"type", "i"}, {"index", 0}, {"size", 1}}}},
                                    {"dst_buff", {{{"type", "o"}, {"index", 0}, {"size", 1}}}}});
     },
     "in no certain order"},
    {"NoRelease", "allreduce_2_pipeline", [](Json& p) { Operation(p, 0, 0, 0)["ops"].erase(5); },
     "waits for a release"},
    {"NoAcquire", "allreduce_2_pipeline", [](Json& p) { Operation(p, 0, 1, 0)["ops"].erase(0); },
     "which nothing has written"},
    {"ReleasedTooEarly", "allreduce_2_pipeline",
     [](Json& p) { std::swap(Operation(p, 0, 0, 0)["ops"][4], Operation(p, 0, 0, 0)["ops"][5]); },
     "in no certain order"},
    {"SemaphoreStartsTooHigh", "allreduce_2_pipeline",
     [](Json& p) { p["gpus"][0]["semaphores"][0]["init_value"] = 1; }, "which nothing has written"},
    {"PacketsUnread", "allreduce_2_packets", [](Json& p) { Operation(p, 0, 0, 1)["name"] = "re"; },
     "gpu 0 tb 0 op 1 (re)"},
    {"PacketsNeverSent", "allreduce_2_packets", [](Json& p) { Drop(p, 0, 0, 0); },
     "gpu 1 tb 0 op 1 (repkt) waits for packets"},
    {"BarrierOfThree", "allgather_2_slices",
     [](Json& p) {
       for (size_t t = 0; t < 2; ++t) Operation(p, 0, t, 5)["num_threadblocks"] = 3;
     },
     "waits for others at barrier 0"},
    {"BarriersDisagree", "allgather_2_slices",
     [](Json& p) { Operation(p, 0, 0, 5)["num_threadblocks"] = 3; }, "barrier 0 is of"},
    {"OneSliceTwice", "allgather_2_slices",
     [](Json& p) { Operation(p, 0, 1, 0)["tbg_info"]["tb_id"] = 0; }, "in no certain order"},
    {"SwitchWithoutHandshake", "allreduce_4_switch", [](Json& p) { Drop(p, 2, 0, 4); },
     "may not have arrived"},
    {"SwitchTwice", "allreduce_4_switch",
     [](Json& p) {
       for (const char* side : {"src_buff", "dst_buff"})
         Operation(p, 2, 0, 3)[side][0]["index"] = 3;
     },
     "touch i[3]"},
    {"UnknownOperation", "allreduce_2_read",
     [](Json& p) { Operation(p, 0, 0, 5)["name"] = "push"; },
     "error: gpu 0 tb 0 op 5: unknown operation 'push'"},
    {"UnknownCollective", "allreduce_2_read", [](Json& p) { p["collective"] = "sendrecv"; },
     "collective 'sendrecv' is none whose result is defined"},
    {"OtherCollective", "alltoall_3_get", [](Json& p) { p["collective"] = "allreduce"; },
     "output chunk 0 should end with"},
    {"WrongChunks", "alltoall_3_get", [](Json& p) { p["gpus"][1]["input_chunks"] = 4; },
     "gpu 1: input_chunks is 4"},
    {"GpusOutOfOrder", "alltoall_3_get", [](Json& p) { std::swap(p["gpus"][0], p["gpus"][1]); },
     "the k-th gpu must be gpu k"},
    {"SixtyFiveOperations", "allreduce_2_read",
     [](Json& p) {
       for (int i = 0; i < 56; ++i)
         p["gpus"][0]["threadblocks"][0]["ops"].push_back({{"name", "nop"}});
     },
     "65 operations; MSCCL++ takes at most 64"},
    {"NegativeIndex", "allreduce_2_read",
     [](Json& p) { Operation(p, 0, 0, 5)["src_buff"][0]["index"] = -1; },
     "error: gpu 0 tb 0 op 5 src_buff[0]: 'index': must be a whole number"},
    {"NoOperations", "allreduce_2_read",
     [](Json& p) { p["gpus"][0]["threadblocks"][0].erase("ops"); },
     "error: gpu 0 tb 0: has no key 'ops'"},
    {"NoGpus", "allreduce_2_read", [](Json& p) { p["gpus"] = Json::array(); },
     "error: plan: 'gpus' is empty"},
};

TEST(CheckMscclppTest, EachFaultIsNamed) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Json plan = Json::parse(Sample(row.sample));
    row.spoil(plan);
    EXPECT_THAT(MscclppFaults(plan.dump()), HasSubstr(row.says));
  }
}

TEST(CheckMscclppTest, WhatIsNoPlanIsAnError) {
  EXPECT_EQ(CheckMscclpp("{\"gpus\": [").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(CheckMscclpp("[1]").error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(CheckMscclpp("{\"name\":\"a\",\"name\":\"b\"}").error().message,
              HasSubstr("$: the key 'name' is twice"));
  EXPECT_THAT(CheckMscclpp(std::string(100, '[')).error().message, HasSubstr("nested deeper"));
}

TEST(CheckMscclppSlow, TenMillionOperationsAreRefused) {
  std::string json = R"({"name":"a","collective":"allreduce","protocol":"Simple","inplace":true,)"
                     R"("gpus":[{"id":0,"threadblocks":[{"id":0,"ops":[)";
  for (int i = 0; i < 10'000'000; ++i) json += R"({"name":"nop"},)";
  EXPECT_THAT(CheckMscclpp(json).error().message,
              HasSubstr("too large to judge: more than 8388608 values up to "
                        "$.gpus[0].threadblocks[0].ops[4194"));
}

TEST(CheckMscclppTest, APipelineOfTooManyRoundsIsNamed) {
  Json plan = Json::parse(Sample("allreduce_2_pipeline"));
  for (Json& gpu : plan["gpus"])
    for (Json& block : gpu["threadblocks"])
      for (Json& operation : block["ops"])
        if (operation.contains("iter_context")) operation["iter_context"]["num_chunks"] = 1 << 20;
  EXPECT_THAT(MscclppFaults(plan.dump()),
              HasSubstr("operations to run, at most 1048576, which gpu 0"));
  EXPECT_TRUE(CheckMscclpp(plan.dump())->too_large);
}

// Thread blocks of which each has `operations`, at every rank of a pair.
Json ManyBlocks(size_t blocks, const Json& operations) {
  Json plan{{"name", "many"},
            {"collective", "allreduce"},
            {"protocol", "Simple"},
            {"inplace", true},
            {"gpus", Json::array()}};
  for (int rank = 0; rank < 2; ++rank) {
    Json gpu{{"id", rank},
             {"input_chunks", 1},
             {"output_chunks", 1},
             {"scratch_chunks", 0},
             {"channels", {{{"channel_type", "memory"}, {"connected_to", {1 - rank}}}}},
             {"threadblocks", Json::array()}};
    for (size_t b = 0; b < blocks; ++b)
      gpu["threadblocks"].push_back(
          {{"id", b},
           {"channels", {{{"channel_type", "memory"}, {"channel_ids", {0}}}}},
           {"ops", operations}});
    plan["gpus"].push_back(std::move(gpu));
  }
  return plan;
}

TEST(CheckMscclppTest, OnlyWhoMayHearOfEachOtherCounts) {
  const Json meets =
      Json::array({{{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 4097}}});
  // Two ranks that each meet by themselves, and nothing is reduced.
  const Result<MscclppVerdict> apart = CheckMscclpp(ManyBlocks(4097, meets).dump());
  ASSERT_TRUE(apart.has_value()) << apart.error().message;
  EXPECT_TRUE(apart->too_large);
  ASSERT_EQ(apart->faults.size(), 1u);
  EXPECT_THAT(apart->faults[0].message,
              HasSubstr("8194 thread blocks and port channels, of which so many may hear of each "
                        "other that there are 33570818 pairs, at most 33554432"));
  // As many that never meet.
  const Result<MscclppVerdict> alone =
      CheckMscclpp(ManyBlocks(4097, Json::array({{{"name", "nop"}}})).dump());
  ASSERT_TRUE(alone.has_value()) << alone.error().message;
  EXPECT_FALSE(alone->too_large);
  ASSERT_FALSE(alone->faults.empty());
  EXPECT_THAT(alone->faults[0].message, HasSubstr("without the contribution of gpu 1"));
}

TEST(CheckMscclppSlow, SignalsThatNobodyTakesAreTooMany) {
  Json plan = ManyBlocks(
      3000, Json::array({{{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 3000}}}));
  const Json signal{
      {"name", "signal"}, {"channel_type", "memory"}, {"channel_ids", Json::array({0})}};
  plan["gpus"][0]["threadblocks"][0]["ops"].push_back(
      {{"name", "pipeline"},
       {"iter_context", {{"unit_size", 16}, {"num_chunks", 30'000}}},
       {"ops", Json::array({signal})}});
  const Result<MscclppVerdict> verdict = CheckMscclpp(plan.dump());
  ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
  EXPECT_TRUE(verdict->too_large);
  ASSERT_FALSE(verdict->faults.empty());
  EXPECT_THAT(verdict->faults.back().message,
              HasSubstr("signals on their way know of more than 67108864 phases"));
}

// --- Seeded single faults of good plans: every one is caught

struct Target {
  size_t gpu, tb, op;
};

class Mutator {
 public:
  Mutator(Json& plan, uint32_t seed) : plan_(plan), random_(seed) {}

  static constexpr int kKinds = 12;
  // False where the plan has nothing of the kind.
  bool Apply(int kind) {
    switch (kind) {
      case 0:
        return DropOne({"signal"});
      case 1:
        return DropOne({"wait", "rlxwait", "rlxsignal"});
      case 2:
        return DropOne({"put", "copy", "re"});
      case 3:
        return DuplicateOne({"signal", "wait", "rlxsignal", "rlxwait"});
      case 4:
        return DuplicateOne({"put", "re"});
      case 5:
        return DropNopBeforeSignal();
      case 6:
        return MoveOffset("src_buff");
      case 7:
        return MoveOffset("dst_buff");
      case 8:
        return OutOfBounds();
      case 9:
        return OtherPeer();
      case 10:
        return DropNopBetweenReductions();
      default:
        return SwapSources();
    }
  }

 private:
  std::vector<Target> All(const std::vector<std::string>& names) {
    std::vector<Target> found;
    for (size_t g = 0; g < plan_["gpus"].size(); ++g)
      for (size_t t = 0; t < plan_["gpus"][g]["threadblocks"].size(); ++t) {
        const Json& ops = plan_["gpus"][g]["threadblocks"][t]["ops"];
        for (size_t i = 0; i < ops.size(); ++i)
          if (std::find(names.begin(), names.end(), ops[i]["name"]) != names.end())
            found.push_back({g, t, i});
      }
    return found;
  }
  size_t Below(size_t count) { return random_() % count; }
  const Target* Pick(std::vector<Target>& from) {
    return from.empty() ? nullptr : &from[Below(from.size())];
  }
  Json& At(const Target& at) { return Operation(plan_, at.gpu, at.tb, at.op); }

  bool DropOne(const std::vector<std::string>& names) {
    std::vector<Target> all = All(names);
    const Target* at = Pick(all);
    if (at == nullptr) return false;
    Drop(plan_, at->gpu, at->tb, at->op);
    return true;
  }
  bool DuplicateOne(const std::vector<std::string>& names) {
    std::vector<Target> all = All(names);
    // A port channel puts one after the other, so the same twice does no harm.
    std::erase_if(all, [this](const Target& one) {
      return At(one)["name"] == "put" && At(one)["channel_type"] == "port";
    });
    const Target* at = Pick(all);
    if (at == nullptr) return false;
    Json& ops = plan_["gpus"][at->gpu]["threadblocks"][at->tb]["ops"];
    const Json copy = At(*at);
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at->op), copy);
    return true;
  }
  // A signal that says that data are there which another thread may still write.
  bool DropNopBeforeSignal() {
    std::vector<Target> all;
    for (const Target& at : All({"nop"})) {
      const Json& ops = plan_["gpus"][at.gpu]["threadblocks"][at.tb]["ops"];
      if (at.op > 0 && at.op + 1 < ops.size() && ops[at.op - 1]["name"] == "put" &&
          ops[at.op - 1]["channel_type"] == "memory" && ops[at.op + 1]["name"] == "signal")
        all.push_back(at);
    }
    const Target* at = Pick(all);
    if (at == nullptr) return false;
    Drop(plan_, at->gpu, at->tb, at->op);
    return true;
  }
  // Of one place, or there would be none.
  bool DropNopBetweenReductions() {
    std::vector<Target> all;
    for (const Target& at : All({"nop"})) {
      const Json& ops = plan_["gpus"][at.gpu]["threadblocks"][at.tb]["ops"];
      if (at.op > 0 && at.op + 1 < ops.size() && ops[at.op - 1]["name"] == "re" &&
          ops[at.op + 1]["name"] == "re")
        all.push_back(at);
    }
    const Target* at = Pick(all);
    if (at == nullptr) return false;
    Drop(plan_, at->gpu, at->tb, at->op);
    return true;
  }
  int64_t ChunksOf(size_t gpu, const std::string& type) {
    return plan_["gpus"][gpu][type == "i"   ? "input_chunks"
                              : type == "o" ? "output_chunks"
                                            : "scratch_chunks"]
        .get<int64_t>();
  }
  int64_t ChunksOf(const Target& at, const Json& reference) {
    if (reference.contains("type")) return ChunksOf(at.gpu, reference["type"]);
    const Json& block = plan_["gpus"][at.gpu]["threadblocks"][at.tb];
    for (const Json& refs : block["remote_buffer_refs"]) {
      if (refs["access_channel_type"] != At(at)["channel_type"]) continue;
      const size_t id = refs["remote_buffer_ids"][reference["buffer_id"].get<size_t>()];
      const Json& remote = plan_["gpus"][at.gpu]["remote_buffers"][id];
      return ChunksOf(remote["rank"].get<size_t>(), remote["type"]);
    }
    return 0;
  }
  bool MoveOffset(const char* side) {
    std::vector<Target> all = All({"put", "copy", "re"});
    for (int tries = 0; tries < 50 && !all.empty(); ++tries) {
      const Target& at = *Pick(all);
      Json& list = At(at)[side];
      Json& reference = list[Below(list.size())];
      const int64_t room = ChunksOf(at, reference) - reference["size"].get<int64_t>();
      if (room < 1) continue;
      const auto other = static_cast<int64_t>(Below(static_cast<size_t>(room)));
      reference["index"] = other + (other >= reference["index"].get<int64_t>() ? 1 : 0);
      return true;
    }
    return false;
  }
  bool OutOfBounds() {
    std::vector<Target> all = All({"put", "copy", "re"});
    const Target* at = Pick(all);
    if (at == nullptr) return false;
    Json& list = At(*at)[Below(2) == 0 ? "src_buff" : "dst_buff"];
    Json& reference = list[Below(list.size())];
    reference["index"] = ChunksOf(*at, reference) - reference["size"].get<int64_t>() + 1;
    return true;
  }
  bool OtherPeer() {
    const size_t ranks = plan_["gpus"].size();
    if (ranks < 3) return false;
    const size_t gpu = Below(ranks);
    Json& remotes = plan_["gpus"][gpu]["remote_buffers"];
    if (remotes.empty()) return false;
    Json& remote = remotes[Below(remotes.size())];
    const size_t old = remote["rank"];
    size_t other = Below(ranks);
    while (other == old || other == gpu) other = (other + 1) % ranks;
    remote["rank"] = other;
    return true;
  }
  // Of two puts of one thread block.
  bool SwapSources() {
    std::vector<Target> all = All({"put"});
    for (int tries = 0; tries < 50 && !all.empty(); ++tries) {
      const Target a = *Pick(all), b = *Pick(all);
      if (a.gpu != b.gpu || a.tb != b.tb) continue;
      Json& one = At(a)["src_buff"][0];
      Json& two = At(b)["src_buff"][0];
      if (one["index"] == two["index"] || one["size"] != two["size"] || one["type"] != two["type"])
        continue;
      std::swap(one["index"], two["index"]);
      return true;
    }
    return false;
  }

  Json& plan_;
  std::mt19937 random_;
};

struct Tally {
  int mutants = 0, missed = 0;
};

void Mutate(const std::string& good, uint32_t seeds, Tally& tally) {
  ASSERT_EQ(MscclppFaults(good), "");
  const Json plan = Json::parse(good);
  for (uint32_t seed = 0; seed < seeds; ++seed)
    for (int kind = 0; kind < Mutator::kKinds; ++kind) {
      Json mutant = plan;
      if (!Mutator(mutant, seed).Apply(kind)) continue;
      ++tally.mutants;
      if (!MscclppFaults(mutant.dump()).empty()) continue;
      ++tally.missed;
      ADD_FAILURE() << "kind " << kind << " seed " << seed << " is not caught:\n"
                    << Json::diff(plan, mutant).dump();
    }
}

TEST(CheckMscclppProperty, EverySeededMutantIsCaught) {
  Tally tally;
  for (const char* name :
       {"torus(2,3) bfb all-gather", "complete(4) direct all-to-all", "ring(4) ring all-reduce",
        "hypercube(3) rhd all-reduce", "ring(5) bfb reduce-scatter", "switch(4) ring all-gather",
        "dgx_h100(1) forest all-reduce"}) {
    SCOPED_TRACE(name);
    std::istringstream words(name);
    std::string expression, algorithm, collective;
    words >> expression >> algorithm >> collective;
    const Result<Topology> topology = ParseTopology(expression);
    ASSERT_TRUE(topology.has_value());
    const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
    ASSERT_TRUE(synthesizer.has_value());
    const Result<Schedule> schedule =
        (*synthesizer)
            ->synthesize(*topology,
                         MustMake(*ParseCollectiveKind(collective), topology->num_ranks()), {});
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    for (const int32_t blocks : {1, 4}) {
      MscclppOptions options;
      options.thread_blocks = blocks;
      options.box_ranks = blocks == 1 ? 0 : 2;
      const Result<std::string> json = ToMscclpp(*topology, *schedule, options);
      ASSERT_TRUE(json.has_value()) << json.error().message;
      Mutate(*json, 8, tally);
    }
  }
  EXPECT_GT(tally.mutants, 700);
  EXPECT_EQ(tally.missed, 0);
}

}  // namespace
}  // namespace tutti
