// Symmetric BFB: written out it is a proven schedule of exactly the cost that BFB has.
#include "tutti/synth/symmetric_bfb.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bfb_testing.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"
#include "tutti/verify/symmetric.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

constexpr Kind kSymmetricKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce};

Translations MustFind(const Topology& topology) {
  Result<Translations> found = FindTranslations(topology);
  EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().message);
  return *std::move(found);
}

// By the judge of symmetric schedules.
SymmetricSchedule MustMake(const Topology& topology, const Translations& translations, Kind kind,
                           const SynthOptions& options = {}) {
  const Collective collective = MustCollective(kind, topology.num_ranks());
  Result<SymmetricSchedule> made = MakeSymmetricBfb(topology, translations, collective, options);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  const VerifyReport report = VerifySymmetric(topology, collective, *made);
  EXPECT_TRUE(report.verified()) << report.violations.front().message;
  EXPECT_EQ(report.deliveries, CountTransfers(*made));
  return *std::move(made);
}

Transfer At(const Topology& topology, int32_t tail, int32_t head, int32_t begin, int32_t end,
            int32_t step, TransferOp op = TransferOp::kCopy) {
  for (LinkId link : topology.OutLinks(NodeId{tail}))
    if (topology.head(link) == NodeId{head}) return {ShardId{0}, link, begin, end, step, op};
  ADD_FAILURE() << tail << " -> " << head;
  return {};
}

// Both neighbours of a rank send their shards in step 0; in step 1 each hands half of the shard of
// the rank opposite on: TB = (1 + 1/2) / 4 * 2 = 3/4.
TEST(SymmetricBfb, RingOfFourByHand) {
  const Topology ring = Parse("ring(4)");
  const Translations translations = MustFind(ring);
  const SymmetricSchedule made = MustMake(ring, translations, Kind::kAllGather);
  EXPECT_EQ(made.root.units_per_shard, 2);
  EXPECT_EQ(made.root.num_steps, 2);
  const std::vector<Transfer> all{At(ring, 0, 3, 0, 2, 0), At(ring, 0, 1, 0, 2, 0),
                                  At(ring, 1, 2, 0, 1, 1), At(ring, 3, 2, 1, 2, 1)};
  ASSERT_EQ(made.root.transfers.size(), all.size());
  EXPECT_EQ(made.generators.size(), 1u);
  for (const Transfer& transfer : made.root.transfers)
    EXPECT_EQ(ring.tail(transfer.link).value == 0, transfer.step == 0);
  const StepCost cost = AnalyticCost(ring, FoldOntoRank0(translations, made));
  EXPECT_EQ(cost.tl, 2);
  EXPECT_EQ(cost.tb, Rational(3, 4));
}

// Three ranks in a row by one cable each, twice: rank 0 has links to 1, 2 and 3.
TEST(SymmetricBfb, SmallTorusByHand) {
  const Topology torus = Parse("torus(2,3)");
  const Translations translations = MustFind(torus);
  EXPECT_EQ(translations.num_classes(), 3);
  const SymmetricSchedule made = MustMake(torus, translations, Kind::kAllGather);
  // Step 0 brings 3 shards over 3 links, step 1 two shards (ranks 4 and 5, each over two of them)
  // over 3: 5/6 in all.
  EXPECT_EQ(made.root.units_per_shard, 3);
  const StepCost cost = AnalyticCost(torus, FoldOntoRank0(translations, made));
  EXPECT_EQ(cost.tl, 2);
  EXPECT_EQ(cost.tb, Rational(5, 6));
}

const std::vector<std::string>& Networks() {
  static const std::vector<std::string> kNetworks{"ring(1)",
                                                  "ring(2)",
                                                  "ring(3)",
                                                  "ring(8)",
                                                  "biring(4,5)",
                                                  "uniring(1,6)",
                                                  "uniring(3,4)",
                                                  "torus(4,3,2)",
                                                  "torus(3,3,3)",
                                                  "torus(5,2)",
                                                  "hypercube(5)",
                                                  "complete(6)",
                                                  "bipartite(4)",
                                                  "hamming(2,4)",
                                                  "circulant(16,1,6)",
                                                  "circulant(12,2,3,6)",
                                                  "circulant(25,3,4)",
                                                  "dircirculant(5)",
                                                  "twisted_torus(6,3)",
                                                  "twisted_torus(3,3,6)",
                                                  "product(ring(3),bipartite(2),complete(3))",
                                                  "power(bipartite(2),2)",
                                                  "product(uniring(1,3),uniring(1,4))",
                                                  "transpose(dircirculant(3))",
                                                  "bidirectional(uniring(1,5))",
                                                  "degree(ring(5),3)",
                                                  "torus(3,3,parallel=2)",
                                                  "cayley(8,4,3,5,0,4,1,1,3,2,0)",
                                                  "cayley(7,3,2,1,0,0,1)",
                                                  "product(cayley(7,3,2,1,0,0,1),ring(3))",
                                                  "product(transpose(uniring(2,3)),ring(4))"};
  return kNetworks;
}

TEST(SymmetricBfb, WrittenOutIsProvenAndCostsWhatBfbCosts) {
  for (const std::string& expression : Networks()) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Translations translations = MustFind(topology);
    const SynthOptions options;
    for (Kind kind : kSymmetricKinds) {
      const Collective collective = MustCollective(kind, topology.num_ranks());
      const SymmetricSchedule made = MustMake(topology, translations, kind, options);
      const Result<Schedule> whole = Expand(translations, topology, made, kMaxExpandedTransfers);
      ASSERT_TRUE(whole.has_value());
      const VerifyReport report = Verify(topology, collective, *whole);
      ASSERT_TRUE(report.verified()) << report.violations.front().message;
      EXPECT_EQ(static_cast<int64_t>(whole->transfers.size()), CountTransfers(made));

      const Schedule folded = FoldOntoRank0(translations, made);
      const StepCost cost = AnalyticCost(topology, *whole);
      EXPECT_EQ(AnalyticCost(topology, folded).tl, cost.tl);
      EXPECT_EQ(AnalyticCost(topology, folded).tb, cost.tb);
      EXPECT_EQ(AnalyticCost(topology, folded).alpha_s, cost.alpha_s);
      EXPECT_EQ(AnalyticSeconds(topology, folded, 1 << 20),
                AnalyticSeconds(topology, *whole, 1 << 20));
      if (topology.num_ranks() > 1) {
        const StepCost bfb = AnalyticCost(topology, MustSynthesize(topology, collective, options));
        EXPECT_EQ(cost.tl, bfb.tl) << Name(kind);
        EXPECT_EQ(cost.tb, bfb.tb) << Name(kind);
      }
      if (kind == Kind::kAllGather) {
        const Result<BfbCost> bfb = ComputeBfbCost(topology, collective, options);
        ASSERT_TRUE(bfb.has_value());
        EXPECT_EQ(cost.tl, bfb->tl);
        EXPECT_EQ(cost.tb, *bfb->tb);
        EXPECT_EQ(made.root.units_per_shard, bfb->units_per_shard);
        EXPECT_EQ(cost.tl, ComputeTransitiveBounds(topology, collective)->steps);
      }
    }
  }
}

// Links that differ from dimension to dimension, and a number of chunks that is given.
TEST(SymmetricBfb, UnequalLinksAndGivenChunks) {
  for (const char* expression :
       {"torus(3,4,bw=[1,2]GB/s)", "torus(3,4,bw=[1,2]GB/s,alpha=[1,9]us)",
        "product(uniring(1,3),uniring(1,4),bw=[1,2]GB/s)", "hypercube(3)", "torus(4,3)"})
    for (int32_t chunks : {0, 1, 4}) {
      SCOPED_TRACE(testing::Message() << expression << " chunks " << chunks);
      const Topology topology = Parse(expression);
      const Translations translations = MustFind(topology);
      SynthOptions options;
      options.chunks = chunks;
      const Collective collective = MustCollective(Kind::kAllGather, topology.num_ranks());
      const SymmetricSchedule made = MustMake(topology, translations, Kind::kAllGather, options);
      const Result<BfbCost> bfb = ComputeBfbCost(topology, collective, options);
      ASSERT_TRUE(bfb.has_value());
      EXPECT_EQ(made.root.units_per_shard, bfb->units_per_shard);
      EXPECT_EQ(AnalyticSeconds(topology, FoldOntoRank0(translations, made), options.size_bytes),
                bfb->seconds);
      const Result<Schedule> whole = Expand(translations, topology, made, kMaxExpandedTransfers);
      ASSERT_TRUE(whole.has_value());
      EXPECT_TRUE(Verify(topology, collective, *whole).verified());
    }
}

// A group that does not commute, on which left and right are different things: S3 as a prism that
// turns one way (tests/unit/topo/translations_test.cc).
TEST(SymmetricBfb, GroupThatDoesNotCommute) {
  Topology::Builder builder(6);
  for (int32_t i = 0; i < 3; ++i) {
    builder.AddLink(NodeId{i}, NodeId{(i + 1) % 3}, {});
    builder.AddLink(NodeId{3 + (i + 1) % 3}, NodeId{3 + i}, {});
    builder.AddDuplex(NodeId{i}, NodeId{i + 3}, {});
  }
  const Topology prism = *std::move(builder).Build();
  const auto images = [](const std::vector<int32_t>& values) {
    NodePermutation result;
    for (int32_t value : values) result.push_back(NodeId{value});
    return result;
  };
  const Result<Translations> translations =
      Translations::Make(prism, {images({1, 2, 0, 4, 5, 3}), images({3, 5, 4, 0, 2, 1})});
  ASSERT_TRUE(translations.has_value());
  for (Kind kind : kSymmetricKinds) {
    const Collective collective = MustCollective(kind, 6);
    const SymmetricSchedule made = MustMake(prism, *translations, kind);
    const Result<Schedule> whole = Expand(*translations, prism, made, 1000);
    ASSERT_TRUE(whole.has_value());
    EXPECT_TRUE(Verify(prism, collective, *whole).verified());
    EXPECT_EQ(AnalyticCost(prism, *whole).tb,
              AnalyticCost(prism, MustSynthesize(prism, collective)).tb);
  }
}

TEST(SymmetricBfb, Refuses) {
  const Topology ring = Parse("ring(4)");
  const Translations translations = MustFind(ring);
  const auto code_of = [&](const Collective& collective, int32_t chunks = 0) {
    SynthOptions options;
    options.chunks = chunks;
    const Result<SymmetricSchedule> made =
        MakeSymmetricBfb(ring, translations, collective, options);
    EXPECT_FALSE(made.has_value());
    return made ? ErrorCode::kIo : made.error().code;
  };
  EXPECT_EQ(code_of(MustCollective(Kind::kBroadcast, 4)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(MustCollective(Kind::kAllGather, 5)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(MustCollective(Kind::kAllGather, 4), -1), ErrorCode::kInvalidArgument);
  Collective::Options one_shard;
  one_shard.all_reduce_shards = 1;
  EXPECT_EQ(code_of(*Collective::Make(Kind::kAllReduce, 4, one_shard)),
            ErrorCode::kInvalidArgument);
  const SymmetricSchedule made = MustMake(ring, translations, Kind::kAllGather);
  const Result<Schedule> whole = Expand(translations, ring, made, CountTransfers(made) - 1);
  ASSERT_FALSE(whole.has_value());
  EXPECT_EQ(whole.error().code, ErrorCode::kResourceExhausted);
}

// 27,000 ranks: 729 million transfers, from those of one.
TEST(SymmetricBfbSlow, LargeToriAreProvenBandwidthOptimal) {
  for (const char* expression : {"torus(30,30,30)", "torus(7,200,11)", "hypercube(14)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Translations translations = MustFind(topology);
    const int64_t n = topology.num_ranks();
    for (Kind kind : kSymmetricKinds) {
      const SymmetricSchedule made = MustMake(topology, translations, kind);
      const StepCost cost = AnalyticCost(topology, FoldOntoRank0(translations, made));
      const int64_t halves = kind == Kind::kAllReduce ? 2 : 1;
      EXPECT_EQ(cost.tb, Rational(halves * (n - 1), n));
      const Collective collective = MustCollective(kind, topology.num_ranks());
      EXPECT_EQ(cost.tb, ComputeTransitiveBounds(topology, collective)->tb);
    }
  }
}

}  // namespace
}  // namespace tutti
