#include "tutti/lower/mscclpp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "schedules.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers
using testing::HasSubstr;

std::string MustWriteMscclpp(const Topology& topology, const Schedule& schedule,
                             const MscclppOptions& options = {}) {
  const Result<std::string> json = ToMscclpp(topology, schedule, options);
  EXPECT_TRUE(json.has_value()) << json.error().message;
  return json.value_or("");
}

void ExpectMscclppCorrect(const Topology& topology, const Schedule& schedule) {
  for (const bool in_place : {false, true})
    for (const int32_t box : {0, 1, 2})
      for (const int32_t blocks : {1, 3, 8}) {
        if (in_place && schedule.collective.kind() == CollectiveKind::kAllToAll) continue;
        MscclppOptions options;
        options.in_place = in_place;
        options.box_ranks = box;
        options.thread_blocks = blocks;
        const Result<std::string> json = ToMscclpp(topology, schedule, options);
        ASSERT_TRUE(json.has_value()) << json.error().message;
        EXPECT_EQ(MscclppFaults(*json), "") << *json;
      }
}

// --- What we write

TEST(MscclppTest, AllGatherOfTwoIsOnePutOneSignalAndOneCopy) {
  const Topology ring = UniRing(2);
  MscclppOptions options;
  options.thread_blocks = 1;
  EXPECT_EQ(
      MustWriteMscclpp(ring, RingAllGather(ring), options),
      R"({"name":"tutti_allgather_by_hand_2","collective":"allgather","protocol":"Simple","inplace":false,
"reuse_resources":false,"use_double_scratch_buffer":false,"buffer_alignment":16,"num_threads_per_block":1024,
"min_message_size":0,"max_message_size":18446744073709551615,
"gpus":[
{"id":0,"input_chunks":1,"output_chunks":2,"scratch_chunks":0,
 "threadblocks":[
  {"id":0,"channels":[{"channel_type":"memory","channel_ids":[0]}],"remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}],
   "ops":[
    {"name":"rlxsignal","channel_type":"memory","channel_ids":[0]},
    {"name":"rlxwait","channel_type":"memory","channel_ids":[0]},
    {"name":"nop"},
    {"name":"put","channel_type":"memory","channel_ids":[0],"src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"buffer_id":0,"index":0,"size":1}]},
    {"name":"nop"},
    {"name":"signal","channel_type":"memory","channel_ids":[0]},
    {"name":"wait","channel_type":"memory","channel_ids":[0]},
    {"name":"nop"},
    {"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"type":"o","index":0,"size":1}]}]}],
 "channels":[{"channel_type":"memory","connected_to":[1]}],
 "remote_buffers":[{"rank":1,"type":"o","access_channel_types":["memory"]}]},
{"id":1,"input_chunks":1,"output_chunks":2,"scratch_chunks":0,
 "threadblocks":[
  {"id":0,"channels":[{"channel_type":"memory","channel_ids":[0]}],"remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}],
   "ops":[
    {"name":"rlxsignal","channel_type":"memory","channel_ids":[0]},
    {"name":"rlxwait","channel_type":"memory","channel_ids":[0]},
    {"name":"nop"},
    {"name":"put","channel_type":"memory","channel_ids":[0],"src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"buffer_id":0,"index":1,"size":1}]},
    {"name":"nop"},
    {"name":"signal","channel_type":"memory","channel_ids":[0]},
    {"name":"wait","channel_type":"memory","channel_ids":[0]},
    {"name":"nop"},
    {"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"type":"o","index":1,"size":1}]}]}],
 "channels":[{"channel_type":"memory","connected_to":[0]}],
 "remote_buffers":[{"rank":0,"type":"o","access_channel_types":["memory"]}]}
]}
)");
}

TEST(MscclppTest, RingsAndAllToAllAreCorrect) {
  for (const int32_t n : {2, 3, 5, 6}) {
    SCOPED_TRACE(n);
    const Topology ring = UniRing(n), complete = Complete(n);
    ExpectMscclppCorrect(ring, RingAllGather(ring));
    ExpectMscclppCorrect(ring, RingAllGather(ring, 100));
    ExpectMscclppCorrect(ring, RingReduceScatter(ring));
    ExpectMscclppCorrect(ring, RingAllReduce(ring));
    ExpectMscclppCorrect(complete,
                         DirectAllToAll(complete, MustMake(CollectiveKind::kAllToAll, n)));
  }
}

TEST(MscclppTest, WhatCutsChunksOnlyFinerIsTakenTogether) {
  const Topology ring = UniRing(4);
  EXPECT_EQ(MustWriteMscclpp(ring, RingAllGather(ring, 100)),
            MustWriteMscclpp(ring, RingAllGather(ring)));
}

TEST(MscclppTest, RootedCollectivesAreCorrect) {
  const Topology path = Path(3);
  Schedule broadcast = Empty(path, MustMake(CollectiveKind::kBroadcast, 3));
  Add(broadcast, 0, 0, LinkOf(path, 0, 1));
  Add(broadcast, 1, 0, LinkOf(path, 1, 2));
  ExpectMscclppCorrect(path, broadcast);
  Schedule reduce = Empty(path, MustMake(CollectiveKind::kReduce, 3));
  Add(reduce, 0, 0, LinkOf(path, 2, 1), TransferOp::kReduce);
  Add(reduce, 1, 0, LinkOf(path, 1, 0), TransferOp::kReduce);
  ExpectMscclppCorrect(path, reduce);
}

TEST(MscclppTest, BetweenBoxesGoPortChannels) {
  const Topology ring = UniRing(4);
  MscclppOptions options;
  options.box_ranks = 2;
  const std::string json = MustWriteMscclpp(ring, RingAllGather(ring), options);
  EXPECT_THAT(json, HasSubstr("\"channel_type\":\"memory\""));
  EXPECT_THAT(json, HasSubstr("\"channel_type\":\"port\""));
  EXPECT_EQ(MustWriteMscclpp(ring, RingAllGather(ring)).find("port"), std::string::npos);
}

// The names of the operations of a thread block.
std::vector<std::string> NamesOf(const std::string& json, size_t gpu, size_t block) {
  const nlohmann::json plan = nlohmann::json::parse(json);
  std::vector<std::string> names;
  for (const auto& operation : plan["gpus"][gpu]["threadblocks"][block]["ops"])
    names.push_back(operation["name"]);
  return names;
}

TEST(MscclppTest, WhatIsAddedToOneSumArrivesAtOnce) {
  const Topology complete = Complete(5);
  Schedule star = Empty(complete, MustMake(CollectiveKind::kReduce, 5));
  for (int32_t r = 1; r < 5; ++r) Add(star, 0, 0, LinkOf(complete, r, 0), TransferOp::kReduce);
  EXPECT_EQ(NamesOf(MustWriteMscclpp(complete, star), 0, 0),
            (std::vector<std::string>{"rlxsignal", "wait", "nop", "re", "nop", "re", "nop", "re",
                                      "nop", "re"}));
  ExpectMscclppCorrect(complete, star);
}

TEST(MscclppTest, SumsOfDifferentPlacesNeedNoNopBetween) {
  // Both halves of each shard go straight to its rank, as messages of their own.
  const Topology complete = Complete(3);
  Schedule direct = Empty(complete, MustMake(CollectiveKind::kReduceScatter, 3), 3);
  for (const int32_t step : {0, 1})
    for (int32_t to = 0; to < 3; ++to)
      for (const auto& [begin, end, first] : {std::tuple(0, 1, 1), std::tuple(1, 3, 2)}) {
        const int32_t from = (to + (step == 0 ? first : 3 - first)) % 3;
        direct.transfers.push_back(
            {ShardId{to}, LinkOf(complete, from, to), begin, end, step, TransferOp::kReduce});
      }
  direct.num_steps = 2;
  MscclppOptions options;
  options.thread_blocks = 1;
  EXPECT_EQ(NamesOf(MustWriteMscclpp(complete, direct, options), 0, 0),
            (std::vector<std::string>{"rlxsignal", "rlxwait", "nop", "put", "nop", "signal", "wait",
                                      "nop", "re", "re", "nop", "re", "re"}));
  ExpectMscclppCorrect(complete, direct);
}

TEST(MscclppTest, LongRingsTakeMoreThreadBlocks) {
  const Topology ring = UniRing(80);
  MscclppOptions options;
  options.thread_blocks = 1;
  EXPECT_EQ(MscclppFaults(MustWriteMscclpp(ring, RingAllGather(ring), options)), "");
  EXPECT_EQ(MscclppFaults(MustWriteMscclpp(ring, RingAllReduce(ring), options)), "");
}

TEST(MscclppTest, WhatTheFormatCannotCarryIsRefused) {
  const Topology complete = Complete(24);
  // One rank reduces 23 contributions to one chunk, in one thread block.
  Schedule star = Empty(complete, MustMake(CollectiveKind::kReduce, 24));
  for (int32_t r = 1; r < 24; ++r) Add(star, 0, 0, LinkOf(complete, r, 0), TransferOp::kReduce);
  const Result<std::string> refused = ToMscclpp(complete, star);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(refused.error().message, HasSubstr("at most 16 memory channels a thread block"));
  EXPECT_THAT(refused.error().message, HasSubstr("fewer chunks may fit (synth --chunks N"));
  const Topology path = Path(2);
  EXPECT_THAT(ToMscclpp(path, Empty(path, MustMake(CollectiveKind::kGather, 2))).error().message,
              HasSubstr("cannot express gather"));
  MscclppOptions options;
  options.in_place = true;
  EXPECT_THAT(
      ToMscclpp(path, Empty(path, MustMake(CollectiveKind::kAllToAll, 2)), options).error().message,
      HasSubstr("no in-place form"));
  options = {};
  options.min_bytes = 2;
  options.max_bytes = 1;
  EXPECT_EQ(ToMscclpp(path, RingAllGather(UniRing(2)), options).error().message,
            "sizes from 2 to 1 bytes are no range");
}

}  // namespace
}  // namespace tutti
