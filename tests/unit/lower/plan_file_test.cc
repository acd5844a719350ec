#include "tutti/lower/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tutti/base/hash.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// An all-reduce of two ranks with a slot of scratch, a stream, and three instructions.
Plan SmallPlan() {
  Plan plan{Collective::Make(CollectiveKind::kAllReduce, 2).value(), 1, 1, "by-hand", {}};
  plan.ranks.resize(2);
  for (RankPlan& rank : plan.ranks) rank.input_slots = rank.output_slots = 2;
  plan.ranks[0].scratch_slots = 1;
  plan.ranks[0].scratch_shards = {1};
  Stream stream{1, -1, 0, {}};
  stream.instructions.push_back({OpCode::kSend, {Buffer::kInput, 1}, {}, 1, {}, 0});
  stream.instructions.push_back(
      {OpCode::kCopy, {Buffer::kInput, 0}, {Buffer::kScratch, 0}, 1, {{1, 0}}, 300});
  plan.ranks[0].streams = {stream, {-1, 1, 2, {}}};
  plan.ranks[0].streams[1].instructions.push_back(
      {OpCode::kRecvReduce, {Buffer::kInput, 0}, {Buffer::kOutput, 0}, 1, {}, 1});
  return plan;
}

void ExpectSame(const Plan& a, const Plan& b) {
  EXPECT_EQ(PlanToText(a), PlanToText(b));
  EXPECT_EQ(a.collective, b.collective);
  for (size_t r = 0; r < a.ranks.size(); ++r)
    EXPECT_EQ(a.ranks[r].scratch_shards, b.ranks[r].scratch_shards);
}

// Body, with a header that is right for it.
std::string Seal(const std::string& body, uint64_t version = 1) {
  std::string bytes(kPlanFileMagic);
  Fnv1a hash;
  hash.AddBytes(body);
  for (const uint64_t word : {version, uint64_t{body.size()}, hash.value()})
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  return bytes + body;
}

TEST(PlanFileTest, TheBytesOfASmallPlan) {
  Plan plan{Collective::Make(CollectiveKind::kBroadcast, 1).value(), 300, 1, "x", {}};
  plan.ranks.resize(1);
  plan.ranks[0].input_slots = plan.ranks[0].output_slots = 1;
  plan.ranks[0].streams = {{-1, -1, 0, {}}};
  plan.ranks[0].streams[0].instructions.push_back(
      {OpCode::kCopy, {}, {Buffer::kOutput, 0}, 300, {}, 0});
  const std::string body(
      "\x03\x01\x00\xac\x02\x01\x01x"          // broadcast, 1 rank, root 0, 300 units, 1 channel
      "\x01\x01\x00\x00\x00\x00\x00\x01"       // slots, no weights, no shards, 1 stream
      "\x00\x00\x00\x01"                       // no peers, channel 0, 1 instruction
      "\x03\x00\x00\x01\x00\xac\x02\x00\x00",  // copy input 0 to output 0, 300 units, step 0
      29);
  EXPECT_EQ(PlanToFile(plan).value(), Seal(body));
  ExpectSame(PlanFromFile(Seal(body)).value(), plan);
}

TEST(PlanFileTest, PlansSurvive) {
  ExpectSame(PlanFromFile(PlanToFile(SmallPlan()).value()).value(), SmallPlan());
  for (const char* network : {"ring(4)", "torus(3,2)", "switch(3)"}) {
    const Topology topology = ParseTopology(network).value();
    for (const Synthesizer& synthesizer : Synthesizers())
      for (const CollectiveKind kind : synthesizer.collectives) {
        if (synthesizer.on_request_only) continue;
        Collective::Options options;
        options.all_reduce_shards = synthesizer.one_shard_all_reduce ? 1 : 0;
        options.root = 1;
        const int32_t n = topology.num_ranks();
        if (kind == CollectiveKind::kAllToAllV) {
          options.demand.assign(static_cast<size_t>(n * n), 1000);
          options.demand[1] = 0;
        }
        const auto schedule = synthesizer.synthesize(
            topology, Collective::Make(kind, n, std::move(options)).value(), SynthOptions());
        if (!schedule) continue;
        const Result<Plan> plan = Lower(topology, *schedule);
        if (!plan) continue;
        SCOPED_TRACE(testing::Message() << network << " " << synthesizer.name << " " << Name(kind));
        const std::string bytes = PlanToFile(*plan).value();
        const Result<Plan> read = PlanFromFile(bytes);
        ASSERT_TRUE(read.has_value()) << read.error().message;
        ExpectSame(*read, *plan);
        EXPECT_EQ(PlanToFile(*read).value(), bytes);
        EXPECT_TRUE(CheckPlan(*read).empty());
      }
  }
}

TEST(PlanFileTest, EveryTruncationAndFlippedBitIsFound) {
  const std::string bytes = PlanToFile(SmallPlan()).value();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(PlanFromFile(std::string_view(bytes).substr(0, length)).has_value()) << length;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Result<Plan> read = PlanFromFile(damaged);
    ASSERT_FALSE(read.has_value()) << bit;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

// Where the checksum is right: an error, or a plan whose bytes these are.
TEST(PlanFileTest, WhatIsReadHasOneForm) {
  const std::string body = PlanToFile(SmallPlan()).value().substr(32);
  Random random(5);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = body;
    for (uint64_t k = 1 + random.Below(3); k > 0; --k)
      changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    if (random.Below(4) == 0) changed.resize(random.Below(changed.size()));
    const Result<Plan> plan = PlanFromFile(Seal(changed));
    if (!plan) continue;
    ++read;
    ASSERT_EQ(PlanToFile(*plan).value(), Seal(changed));
  }
  EXPECT_GT(read, 100);
}

struct Fault {
  const char* name;
  std::string bytes;
  const char* message;
};
class PlanFileRejects : public testing::TestWithParam<Fault> {};

TEST_P(PlanFileRejects, NamesTheFault) {
  const Result<Plan> read = PlanFromFile(GetParam().bytes);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr(GetParam().message));
}

std::string Body(std::string_view text) { return Seal(std::string(text)); }

INSTANTIATE_TEST_SUITE_P(
    All, PlanFileRejects,
    testing::Values(
        Fault{"Empty", "", "ends after 0 bytes"},
        Fault{"Text", "plan all-reduce ranks=2", "does not begin as one"},
        Fault{"Version", Seal("", 2), "version 2; this program reads version 1"},
        Fault{"Longer", Seal("") + "x", "1 bytes follow its header, which says 0"},
        Fault{"Collective", Body("\x09"),
              "byte 33: the collective is 9; accepted is 0 to 8, of groups 16 to 24"},
        Fault{"NoRanks", Body(std::string_view("\x00\x00        ", 10)),
              "the number of ranks is 0"},
        Fault{"ManyRanks", Body(std::string_view("\x00\xff\xff\xff\x7f        ", 13)),
              "accepted is 1 to 1"},
        Fault{"Root", Body("\x03\x01\x01          "), "the root is 1; accepted is 0 to 0"},
        Fault{"Padded", Body(std::string_view("\x00\x81\x00         ", 12)),
              "the number of ranks is longer than it needs to be"},
        Fault{"Endless", Body("\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
              "the number of ranks is longer than it needs to be"},
        Fault{"Demand", Seal("\x08\x09" + std::string(73, ' ')), "it ends in the demand"}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace tutti
