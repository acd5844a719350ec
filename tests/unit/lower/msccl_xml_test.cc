#include "tutti/lower/msccl_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "schedules.h"
#include "support/text.h"

namespace tutti {
namespace {

using test_support::ReadFile;

using test_support::Replaced;

using namespace testing_lower;  // NOLINT: test helpers
using testing::HasSubstr;

constexpr MscclDialect kDialects[] = {MscclDialect::kMsccl, MscclDialect::kExecutorNccl,
                                      MscclDialect::kRccl};

std::string AllFaults(const std::string& xml, MscclDialect dialect) {
  const Result<std::vector<PlanFault>> faults = CheckMscclXml(xml, dialect);
  if (!faults) return "error: " + faults.error().message;
  std::string text;
  for (const PlanFault& fault : *faults) text += fault.message + "\n";
  return text;
}

std::string MustWriteXml(const Topology& topology, const Schedule& schedule,
                         const MscclOptions& options = {}) {
  const Result<std::string> xml = ToMscclXml(topology, schedule, options);
  EXPECT_TRUE(xml.has_value()) << xml.error().message;
  return xml.value_or("");
}

void ExpectXmlCorrect(const Topology& topology, const Schedule& schedule) {
  for (const MscclDialect dialect : kDialects)
    for (const bool in_place : {false, true}) {
      if (in_place && schedule.collective.kind() == CollectiveKind::kAllToAll) continue;
      MscclOptions options;
      options.dialect = dialect;
      options.in_place = in_place;
      const std::string xml = MustWriteXml(topology, schedule, options);
      EXPECT_EQ(AllFaults(xml, dialect), "") << xml;
    }
}

// --- What we write ------------------------------------------------------------------------------

TEST(MscclXmlTest, AllGatherOfTwoCopiesFirstAndNamesTheSamePlaceAtBothEnds) {
  const Topology ring = UniRing(2);
  EXPECT_EQ(
      MustWriteXml(ring, RingAllGather(ring)),
      R"(<algo name="tutti_all_gather_by_hand_2" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="0" outofplace="1" minBytes="0" maxBytes="0">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="2" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="2" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="0" chan="0">
      <step s="0" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
</algo>
)");
}

// Rank 0 sends its input 1 to output 0 of rank 1, and both ends say so.
TEST(MscclXmlTest, BothEndsOfAnAllToAllNameTheSamePlaces) {
  const Topology pair = Complete(2);
  const std::string xml =
      MustWriteXml(pair, DirectAllToAll(pair, MustMake(CollectiveKind::kAllToAll, 2)));
  for (const char* type : {"s", "r"})
    for (const char* places : {R"(srcbuf="i" srcoff="1" dstbuf="o" dstoff="0")",
                               R"(srcbuf="i" srcoff="0" dstbuf="o" dstoff="1")"})
      EXPECT_THAT(xml, HasSubstr(std::string("type=\"") + type + "\" " + places));
}

TEST(MscclXmlTest, RingsAndAllToAllAreCorrectInEachDialect) {
  for (int32_t n = 2; n <= 8; ++n) {
    SCOPED_TRACE(n);
    const Topology ring = UniRing(n), complete = Complete(n);
    ExpectXmlCorrect(ring, RingAllGather(ring));
    ExpectXmlCorrect(ring, RingAllGather(ring, 100));  // more than 71 chunks a message
    ExpectXmlCorrect(ring, RingReduceScatter(ring));
    ExpectXmlCorrect(ring, RingAllReduce(ring));
    ExpectXmlCorrect(complete, DirectAllToAll(complete, MustMake(CollectiveKind::kAllToAll, n)));
  }
}

TEST(MscclXmlTest, RootedCollectivesAreCorrectWhereTheReaderKnowsThem) {
  const Topology path = Path(3);
  Schedule broadcast = Empty(path, MustMake(CollectiveKind::kBroadcast, 3));
  Add(broadcast, 0, 0, LinkOf(path, 0, 1));
  Add(broadcast, 1, 0, LinkOf(path, 1, 2));
  ExpectXmlCorrect(path, broadcast);
  Schedule reduce = Empty(path, MustMake(CollectiveKind::kReduce, 3));
  Add(reduce, 0, 0, LinkOf(path, 2, 1), TransferOp::kReduce);
  Add(reduce, 1, 0, LinkOf(path, 1, 0), TransferOp::kReduce);
  ExpectXmlCorrect(path, reduce);
  Schedule gather = Empty(path, MustMake(CollectiveKind::kGather, 3));
  Add(gather, 0, 2, LinkOf(path, 2, 1));
  Add(gather, 1, 1, LinkOf(path, 1, 0));
  Add(gather, 1, 2, LinkOf(path, 1, 0));
  MscclOptions options;
  options.dialect = MscclDialect::kRccl;
  EXPECT_EQ(AllFaults(MustWriteXml(path, gather, options), options.dialect), "");
  options.dialect = MscclDialect::kMsccl;
  const Result<std::string> refused = ToMscclXml(path, gather, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "msccl has no collective gather");
}

TEST(MscclXmlTest, EachDialectHasItsOwnWords) {
  const Topology ring = UniRing(2);
  MscclOptions options;
  options.dialect = MscclDialect::kMsccl;
  const std::string m = MustWriteXml(ring, RingReduceScatter(ring), options);
  EXPECT_THAT(m, HasSubstr("coll=\"reduce_scatter\""));
  EXPECT_THAT(m, HasSubstr("maxBytes=\"134217728\""));  // 0 would mean never
  options.in_place = true;
  EXPECT_THAT(MustWriteXml(ring, RingReduceScatter(ring), options),
              HasSubstr("inplace=\"1\" outofplace=\"0\""));
  options.dialect = MscclDialect::kRccl;
  const std::string r = MustWriteXml(ring, RingReduceScatter(ring), options);
  EXPECT_THAT(r, HasSubstr("coll=\"reducescatter\""));
  EXPECT_THAT(r, HasSubstr("inplace=\"1\" outofplace=\"1\""));
  EXPECT_THAT(r, HasSubstr("maxBytes=\"0\""));
}

TEST(MscclXmlTest, SeveralDependenciesBecomeAChainOfNops) {
  // Rank 2 gets shards 0 and 1 over two links and passes both on as one message.
  Topology::Builder builder(4);
  for (const auto& [a, b] : std::vector<std::pair<int32_t, int32_t>>{{0, 2}, {1, 2}, {2, 3}})
    builder.AddDuplex(NodeId{a}, NodeId{b}, {});
  const Topology star = MustBuild(std::move(builder));
  Schedule schedule = Empty(star, MustMake(CollectiveKind::kAllGather, 4));
  Add(schedule, 0, 0, LinkOf(star, 0, 2));
  Add(schedule, 0, 1, LinkOf(star, 1, 2));
  Add(schedule, 0, 3, LinkOf(star, 3, 2));
  for (int32_t shard = 0; shard < 4; ++shard)
    for (const int32_t to : {0, 1, 3})
      if (shard != to) Add(schedule, 1, shard, LinkOf(star, 2, to));
  ExpectXmlCorrect(star, schedule);
  const std::string xml = MustWriteXml(star, schedule);
  EXPECT_THAT(xml, HasSubstr("type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" "
                             "cnt=\"0\" depid=\"3\" deps=\"0\""));
  // Without the dependency of the step that ends the chain the readers refuse it.
  const size_t nop = xml.find("type=\"nop\"");
  const size_t step = xml.find("type=\"s\"", nop);
  const size_t depid = xml.find("depid=", step);
  std::string broken = xml;
  broken.replace(depid, xml.find(" hasdep", depid) - depid, "depid=\"-1\" deps=\"-1\"");
  EXPECT_THAT(AllFaults(broken, MscclDialect::kExecutorNccl),
              HasSubstr("follows a nop with a dependency and has none itself"));
}

// --- Limits
// ---------------------------------------------------------------------------------------

TEST(MscclXmlTest, TooManyStepsAThreadBlockGoOverMoreChannels) {
  const int32_t n = 80;  // 79 messages a connection, executor-nccl takes 64
  const Topology ring = UniRing(n);
  const std::string xml = MustWriteXml(ring, RingAllGather(ring));
  EXPECT_NE(xml.find("nchannels=\"2\""), std::string::npos);
  EXPECT_EQ(AllFaults(xml, MscclDialect::kExecutorNccl), "");
  MscclOptions options;
  options.dialect = MscclDialect::kMsccl;
  EXPECT_NE(MustWriteXml(ring, RingAllGather(ring), options).find("nchannels=\"1\""),
            std::string::npos);
}

TEST(MscclXmlTest, TooManyThreadBlocksShareSendAndReceive) {
  const int32_t n = 40;  // 39 peers: 78 thread blocks and one for copies, rccl takes 64
  const Topology complete = Complete(n);
  Schedule schedule = Empty(complete, MustMake(CollectiveKind::kAllGather, n));
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b)
      if (a != b) Add(schedule, 0, a, LinkOf(complete, a, b));
  MscclOptions options;
  options.dialect = MscclDialect::kRccl;
  const std::string xml = MustWriteXml(complete, schedule, options);
  EXPECT_NE(xml.find("<tb id=\"39\""), std::string::npos);
  EXPECT_EQ(xml.find("<tb id=\"40\""), std::string::npos);
  EXPECT_NE(xml.find("nchannels=\"2\""), std::string::npos);  // at most 32 peers a channel
  EXPECT_EQ(AllFaults(xml, options.dialect), "");
}

TEST(MscclXmlTest, WhatNoSplittingCanHelpIsRefusedWithTheLimit) {
  const Topology ring = UniRing(4);
  struct Row {
    Schedule schedule;
    MscclOptions options;
    ErrorCode code;
    const char* message;
  };
  MscclOptions in_place, protocol, sizes;
  in_place.in_place = true;
  protocol.protocol = "simple";
  sizes.min_bytes = 10;
  sizes.max_bytes = 5;
  MscclOptions tiny;
  tiny.max_bytes = 3;
  Collective::Options demand;
  demand.demand = {0, 1, 1, 0};
  const Topology pair = Complete(2);
  const std::vector<Row> table{
      {RingAllGather(ring, 10000), {}, ErrorCode::kInfeasible, "16-bit offsets"},
      {RingAllGather(ring), protocol, ErrorCode::kInvalidArgument, "unknown protocol 'simple'"},
      {RingAllGather(ring), sizes, ErrorCode::kInvalidArgument, "from 10 to 5"},
      {RingAllGather(ring), tiny, ErrorCode::kInvalidArgument,
       "calls of at most 3 bytes cannot be cut into the 4 chunks"},
      {DirectAllToAll(pair, MustMake(CollectiveKind::kAllToAllV, 2, demand)),
       {},
       ErrorCode::kInfeasible,
       "all-to-allv"},
      {DirectAllToAll(pair, MustMake(CollectiveKind::kAllToAll, 2)), in_place,
       ErrorCode::kInfeasible, "no in-place form"}};
  for (const Row& row : table) {
    const Topology& topology = row.schedule.collective.num_ranks() == 2 ? pair : ring;
    const Result<std::string> xml = ToMscclXml(topology, row.schedule, row.options);
    ASSERT_FALSE(xml.has_value()) << row.message;
    EXPECT_EQ(xml.error().code, row.code) << row.message;
    EXPECT_THAT(xml.error().message, HasSubstr(row.message));
  }
}

TEST(MscclXmlTest, ParseMscclDialectListsTheNames) {
  EXPECT_EQ(ParseMscclDialect("rccl").value(), MscclDialect::kRccl);
  EXPECT_EQ(ParseMscclDialect("nccl").error().message,
            "unknown dialect 'nccl'; accepted are msccl, executor-nccl, rccl");
}

// --- The checker against files that are not ours
// ----------------------------------------------------

TEST(CheckMscclXmlTest, TheExampleOfAnotherCheckerIsCorrect) {
  const std::string xml = ReadFile("tests/data/msccl_ring_allgather_4.xml");
  EXPECT_EQ(AllFaults(xml, MscclDialect::kExecutorNccl), "");
  EXPECT_EQ(AllFaults(xml, MscclDialect::kRccl), "");
  EXPECT_EQ(AllFaults(xml, MscclDialect::kMsccl), "");
}

struct XmlMutant {
  const char* name;
  const char* from;
  const char* to;
  const char* says;
};

TEST(CheckMscclXmlTest, EveryMutantOfTheExampleIsCaught) {
  const std::string correct = ReadFile("tests/data/msccl_ring_allgather_4.xml");
  const std::vector<XmlMutant> table{
      {"MissingDependency", "depid=\"1\" deps=\"0\" hasdep=\"0\"",
       "depid=\"-1\" deps=\"-1\" hasdep=\"0\"", "gpu 0 tb 0 step 0"},
      {"HasdepZero", "hasdep=\"1\"", "hasdep=\"0\"",
       "gpu 0 tb 0 step 0: waits for ever for gpu 0 tb 1 step 0, whose hasdep is 0"},
      {"WrongOffset", "dstbuf=\"o\" dstoff=\"3\"", "dstbuf=\"o\" dstoff=\"2\"", "gpu 0"},
      {"OffsetOutside", "dstbuf=\"o\" dstoff=\"3\"", "dstbuf=\"o\" dstoff=\"4\"",
       "gpu 0 tb 0 step 1: destination o[4, 5) is outside the buffer of 4 chunks"},
      {"CountOutside", "dstoff=\"3\" cnt=\"1\"", "dstoff=\"3\" cnt=\"2\"", "o[3, 5)"},
      {"DroppedReceive",
       "      <step s=\"3\" type=\"r\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" "
       "cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
       "", "gpu 3 tb 0 step 2: rank 0 never receives it"},
      {"Count72", "cnt=\"1\"", "cnt=\"72\"", "cnt=\"72\" is outside [1, 71]"},
      {"Count0", "cnt=\"1\"", "cnt=\"0\"", "cnt=\"0\" is outside [1, 71]"},
      {"SwappedForwards", "type=\"rcs\" srcbuf=\"o\" srcoff=\"3\" dstbuf=\"o\" dstoff=\"3\"",
       "type=\"rcs\" srcbuf=\"o\" srcoff=\"2\" dstbuf=\"o\" dstoff=\"2\"", "should end with"},
      {"Deadlock", "depid=\"-1\" deps=\"-1\" hasdep=\"1\"", "depid=\"0\" deps=\"0\" hasdep=\"1\"",
       "hasdep is 0"},
      {"UnknownType", "type=\"rcs\"", "type=\"sr\"", "type \"sr\" is none of"},
      {"NoSendPeer", "send=\"1\"", "send=\"-1\"",
       "gpu 1 tb 0: receives from gpu 0, which has no thread block that sends to it"},
      {"SelfPeer", "send=\"1\"", "send=\"0\"", "gpu 0"},
      {"PeerOutside", "send=\"1\"", "send=\"4\"", "send=\"4\" is outside [-1, 3]"},
      {"ChannelOutside", "chan=\"0\"", "chan=\"1\"", "chan=\"1\" is outside [0, 0]"},
      {"TooManyChannels", "nchannels=\"1\"", "nchannels=\"33\"",
       "nchannels=\"33\" is outside [1, 32]"},
      {"GapInThreadBlocks", "tb id=\"1\"", "tb id=\"2\"", "gpu 0 tb 2: ids must be 0 to 1"},
      {"GapInSteps", "step s=\"1\"", "step s=\"2\"", "gpu 0 tb 0 step 1: s=\"2\""},
      {"TwoGpus", "gpu id=\"1\"", "gpu id=\"0\"", "gpu 0: is there twice"},
      {"NoOutofplace", "outofplace=\"1\" ", "", "algo: attribute outofplace is missing"},
      {"NeverUsed", "outofplace=\"1\" ", "outofplace=\"0\" ", "never used"},
      {"WrongColl", "allgather\"", "reduce_scatter\"", "coll=\"reduce_scatter\""},
      {"WrongChunks", "i_chunks=\"1\"", "i_chunks=\"2\"", "gpu 0: i_chunks is 2"},
      {"NotANumber", "ngpus=\"4\"", "ngpus=\"four\"", "ngpus=\"four\" is not an integer"},
      {"Protocol", "Simple", "simple", "proto=\"simple\""},
      {"Declaration", "<algo", "<?xml version=\"1.0\"?><algo", "first thing in it"},
      {"NoSuchStep", "deps=\"0\"", "deps=\"5\"", "waits for tb 1 step 5, which does not exist"},
      {"HalfDependency", "deps=\"0\"", "deps=\"-1\"", "both given or both -1"},
      {"Truncated", "</algo>", "", "not XML at byte"},
      {"OtherSourceAtTheReceiver", "type=\"r\" srcbuf=\"o\" srcoff=\"1\"",
       "type=\"r\" srcbuf=\"o\" srcoff=\"0\"",
       "gpu 3 tb 0 step 2: sends with the source o[1], and gpu 0 tb 0 step 3 receives it with the "
       "source o[0]"},
      {"OtherDestinationAtTheSender", "srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\"",
       "srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\"",
       "gpu 0 tb 0 step 0: sends with the destination o[1], and gpu 1 tb 0 step 1 receives it with "
       "the destination o[0]"},
      {"Sum", "coll=\"allgather\"", "coll=\"allreduce\"", "i_chunks is 1"}};
  for (const XmlMutant& mutant : table) {
    const std::string faults =
        AllFaults(Replaced(correct, mutant.from, mutant.to), MscclDialect::kExecutorNccl);
    EXPECT_THAT(faults, HasSubstr(mutant.says)) << mutant.name;
  }
}

TEST(CheckMscclXmlTest, ReductionsCountEachContributionOnce) {
  const Topology ring = UniRing(4);
  const std::string correct = MustWriteXml(ring, RingAllReduce(ring));
  ASSERT_EQ(AllFaults(correct, MscclDialect::kExecutorNccl), "");
  // A reduction that only copies, a copy that reduces, one that reduces what it wrote before.
  EXPECT_THAT(
      AllFaults(Replaced(correct, "type=\"rrc\"", "type=\"r\""), MscclDialect::kExecutorNccl),
      HasSubstr("without the contribution of gpu"));
  EXPECT_THAT(
      AllFaults(Replaced(correct, "type=\"r\"", "type=\"rrc\""), MscclDialect::kExecutorNccl),
      HasSubstr("gpu 0 tb 1 step 3"));
  EXPECT_THAT(AllFaults(Replaced(correct, "s=\"3\" type=\"r\" srcbuf=\"o\"",
                                 "s=\"3\" type=\"rrc\" srcbuf=\"i\""),
                        MscclDialect::kExecutorNccl),
              HasSubstr("twice"));
}

// Two gpus, all-reduce of one chunk, with each of the fused steps.
std::string TwoGpus(const std::string& first, const std::string& second, int chunks = 1,
                    int scratch = 0) {
  const auto gpu = [&](int id, const std::string& steps) {
    const std::string n = std::to_string(chunks), peer = std::to_string(1 - id);
    return "<gpu id=\"" + std::to_string(id) + "\" i_chunks=\"" + n + "\" o_chunks=\"" + n +
           "\" s_chunks=\"" + std::to_string(scratch) + "\"><tb id=\"0\" send=\"" + peer +
           "\" recv=\"" + peer + "\" chan=\"0\">" + steps + "</tb></gpu>";
  };
  return "<algo name=\"x\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"" +
         std::to_string(chunks) +
         "\" ngpus=\"2\" coll=\"allreduce\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" "
         "maxBytes=\"0\">" +
         gpu(0, first) + gpu(1, second) + "</algo>";
}

std::string Step(int s, const std::string& type, const std::string& src, const std::string& dst,
                 int cnt = 1) {
  const auto place = [](const std::string& name, const std::string& text) {
    return name + "buf=\"" + text.substr(0, 1) + "\" " + name + "off=\"" + text.substr(1) + "\" ";
  };
  return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" " + place("src", src) +
         place("dst", dst) + "cnt=\"" + std::to_string(cnt) +
         "\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>";
}

TEST(CheckMscclXmlTest, FusedReductionsAreFollowed) {
  const auto judge = [](const std::string& xml) {
    return AllFaults(xml, MscclDialect::kExecutorNccl);
  };
  EXPECT_EQ(judge(TwoGpus(Step(0, "s", "i0", "o0") + Step(1, "r", "o0", "o0"),
                          Step(0, "rrcs", "i0", "o0"))),
            "");
  EXPECT_EQ(judge(TwoGpus(Step(0, "s", "i0", "o0") + Step(1, "rcs", "o0", "o0"),
                          Step(0, "rrs", "i0", "o0") + Step(1, "r", "o0", "o0"))),
            "");
  EXPECT_EQ(judge(TwoGpus(Step(0, "s", "i0", "s0") + Step(1, "r", "i0", "s0") +
                              Step(2, "cpy", "i0", "o0") + Step(3, "re", "s0", "o0"),
                          Step(0, "s", "i0", "s0") + Step(1, "r", "i0", "s0") +
                              Step(2, "cpy", "i0", "o0") + Step(3, "re", "s0", "o0"),
                          1, 1)),
            "");
  EXPECT_THAT(judge(TwoGpus(Step(0, "s", "i0", "o0") + Step(1, "rrc", "i0", "o0"),
                            Step(0, "rrcs", "i0", "o0"))),
              HasSubstr("counts the contribution of gpu 0 to chunk 0 of shard 0 twice"));
}

TEST(CheckMscclXmlTest, AQueueOfTwoMessagesIsNotOfThree) {
  // Both gpus send k chunks before they receive any: two fit into the connection, as one step or
  // as several, since a reader may move a step chunk by chunk.
  const auto exchange = [](int k, bool one_step) {
    std::string steps;
    int s = 0;
    if (one_step) {
      steps = Step(0, "s", "i0", "o0", k) + Step(1, "rrc", "i0", "o0", k);
    } else {
      for (int c = 0; c < k; ++c)
        steps += Step(s++, "s", "i" + std::to_string(c), "o" + std::to_string(c));
      for (int c = 0; c < k; ++c)
        steps += Step(s++, "rrc", "i" + std::to_string(c), "o" + std::to_string(c));
    }
    return AllFaults(TwoGpus(steps, steps, k), MscclDialect::kRccl);
  };
  EXPECT_EQ(exchange(2, false), "");
  EXPECT_EQ(exchange(2, true), "");
  EXPECT_THAT(exchange(3, false), HasSubstr("deadlock: gpu 0 tb 0 step 2 waits for room"));
  EXPECT_THAT(exchange(3, true), HasSubstr("deadlock: gpu 0 tb 0 step 0 waits for room"));
}

// --- Files that are made to hurt

TEST(CheckMscclXmlTest, DocumentTypesAreRefusedAndNestingIsNotFollowed) {
  std::string bomb = "<!DOCTYPE a [<!ENTITY a0 \"x\">";
  for (int i = 1; i < 40; ++i) {
    const std::string last = "&a" + std::to_string(i - 1) + ";";
    bomb += "<!ENTITY a" + std::to_string(i) + " \"" + last + last + last + last + "\">";
  }
  const std::string correct = ReadFile("tests/data/msccl_ring_allgather_4.xml");
  EXPECT_THAT(
      AllFaults(bomb + "]>" + Replaced(correct, "allgather", "&a39;"), MscclDialect::kMsccl),
      HasSubstr("a document type at byte 0"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<gpu>";
  EXPECT_THAT(AllFaults("<algo>" + deep, MscclDialect::kMsccl), HasSubstr("not XML at byte"));
}

TEST(CheckMscclXmlTest, StepsBeyondTheLimitAreNamedAndNotRead) {
  std::string steps;
  for (int i = 0; i < 100'000; ++i) steps += "<step/>";
  const std::string xml = TwoGpus(Step(0, "s", "i0", "o0"), steps);
  EXPECT_EQ(AllFaults(xml, MscclDialect::kRccl),
            "gpu 1 tb 0: rccl takes at most 64 steps a thread block, got 100000\n");
}

TEST(CheckMscclXmlSlow, TenMillionStepsAreRefused) {
  std::string steps;
  for (int i = 0; i < 10'000'000; ++i) steps += "<step s=\"0\"/>";
  EXPECT_EQ(AllFaults(TwoGpus(Step(0, "s", "i0", "o0"), steps), MscclDialect::kMsccl),
            "gpu 1 tb 0: msccl takes at most 256 steps a thread block, got 10000000\n");
}

}  // namespace
}  // namespace tutti
