// --chunks auto of ten: the search among numbers of chunks.
#include <gtest/gtest.h>

#include <string>

#include "bfb_testing.h"
#include "tutti/base/parallel.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

Schedule MustTen(const Topology& topology, Kind kind, const SynthOptions& options) {
  const Result<Schedule> made = RunSynthesizer(**FindSynthesizer("ten"), topology,
                                               MustCollective(kind, topology.num_ranks()), options);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return *made;
}

double EfficiencyOf(const Topology& topology, const Schedule& schedule, int64_t size) {
  const Bounds bounds = *BoundsOf(topology, schedule.collective);
  return (bounds.Limit(size) / PredictedSeconds(topology, schedule, size)).ToDouble();
}

struct KnownCount {
  const char* network;
  Kind kind;
  int32_t chunks;  // with which so much was reached by hand
};

// Where fewer, or two more numbers, save nothing, and others do.
TEST(TenChunkCountSlow, AutoIsAtLeastAsGoodAsTheNumbersFoundByHand) {
  constexpr int64_t kSize = int64_t{1} << 30;
  for (const KnownCount& known : {KnownCount{"genkautz(2,57)", Kind::kAllGather, 12},
                                  KnownCount{"circulant(15,1,4,5)", Kind::kAllGather, 6},
                                  KnownCount{"mesh(4,4)", Kind::kAllGather, 24}}) {
    SCOPED_TRACE(known.network);
    const Topology topology = Parse(known.network);
    const Schedule chosen =
        MustTen(topology, known.kind, {.size_bytes = kSize, .auto_chunks = true});
    const Schedule by_hand =
        MustTen(topology, known.kind, {.chunks = known.chunks, .size_bytes = kSize});
    EXPECT_LE(PredictedSeconds(topology, chosen, kSize),
              PredictedSeconds(topology, by_hand, kSize));
  }
  EXPECT_GE(EfficiencyOf(Parse("genkautz(2,57)"),
                         MustTen(Parse("genkautz(2,57)"), Kind::kAllGather,
                                 {.size_bytes = kSize, .auto_chunks = true}),
                         kSize),
            0.970);
  EXPECT_GE(EfficiencyOf(Parse("circulant(15,1,4,5)"),
                         MustTen(Parse("circulant(15,1,4,5)"), Kind::kAllGather,
                                 {.size_bytes = kSize, .auto_chunks = true}),
                         kSize),
            0.997);
}

TEST(TenChunkCountTest, ChunksAreElementsAtLeastAndTheSameOnAnyNumberOfThreads) {
  const Topology topology = Parse("mesh(3,4,bw=[20,50]GB/s)");
  const SynthOptions options{.size_bytes = 12 * 64, .element_bytes = 4, .auto_chunks = true};
  const Schedule made = MustTen(topology, Kind::kAllGather, options);
  EXPECT_LE(made.units_per_shard, 16);
  SetNumThreads(1);
  EXPECT_EQ(MustTen(topology, Kind::kAllGather, options), made);
  SetNumThreads(0);
}

}  // namespace
}  // namespace tutti
