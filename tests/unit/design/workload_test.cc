#include "tutti/design/workload.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tutti/base/units.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

Design Of(int32_t tl, Rational tb) {
  Design design;
  design.ranks = 1024;
  design.degree = 4;
  design.tl = tl;
  design.tb = tb;
  design.reduce_scatter = {tl, std::move(tb)};
  return design;
}

double SecondsOf(const Design& design, const Workload& workload,
                 std::optional<Rational> flow = {}) {
  const Result<Rational> seconds = ExpectedSeconds(design, workload, std::move(flow));
  EXPECT_TRUE(seconds);
  return seconds ? seconds->ToDouble() : 0;
}

// Table 4: line(circulant(16,3,4),3) at alpha = 10 us, 1 MiB and 100 Gbit/s.
TEST(Workload, Table4) {
  Workload workload;
  workload.link = {.bandwidth = 3'125'000'000, .alpha_ps = 10'000'000};
  workload.sizes = {{1 << 20, 1}};
  const Design design = Of(6, Rational(1044, 1024));
  EXPECT_NEAR(SecondsOf(design, workload), 291.0e-6, 0.1e-6);
  workload.collective = CollectiveKind::kAllGather;
  EXPECT_NEAR(SecondsOf(design, workload), 145.5e-6, 0.05e-6);
  workload.collective = CollectiveKind::kAllToAll;
  EXPECT_NEAR(SecondsOf(design, workload, *Rational::Parse("8.12e-4")), 403.5e-6, 0.3e-6);
  EXPECT_FALSE(ExpectedSeconds(design, workload));
  workload.collective = CollectiveKind::kBroadcast;
  EXPECT_FALSE(ExpectedSeconds(design, workload));
}

// A reduce-scatter of its own cost: 3 alpha + 2 M/B; the all-reduce adds 1 alpha + 1 M/B.
TEST(Workload, EachHalfOfAnAllReduceCountsItsOwnCost) {
  Design design = Of(1, Rational(1));
  design.reduce_scatter = {3, Rational(2)};
  Workload workload;
  workload.link = {.bandwidth = 1'000'000, .alpha_ps = kPicosecondsPerSecond};
  workload.sizes = {{4'000'000, 1}};
  workload.collective = CollectiveKind::kAllGather;
  EXPECT_EQ(*ExpectedSeconds(design, workload), Rational(2));
  workload.collective = CollectiveKind::kReduceScatter;
  EXPECT_EQ(*ExpectedSeconds(design, workload), Rational(5));
  workload.collective = CollectiveKind::kAllReduce;
  EXPECT_EQ(*ExpectedSeconds(design, workload), Rational(7));
}

TEST(Workload, SizesMayBeADistribution) {
  Workload workload;
  workload.link = {.bandwidth = 250'000, .alpha_ps = 0};
  workload.sizes = *ParseSizeDistribution("1MB:0.75,5MB:0.25");
  EXPECT_DOUBLE_EQ(SecondsOf(Of(1, Rational(1)), workload), 4);
  workload.sizes = *ParseSizeDistribution("1MB,5MB");
  EXPECT_DOUBLE_EQ(SecondsOf(Of(1, Rational(1)), workload), 6);
}

// Links of the recipe give way to those asked for, also where an expression cannot say them.
TEST(Workload, NetworksGetTheLinksAskedFor) {
  const LinkSpec link{.bandwidth = 123'456'789, .alpha_ps = 7'654'321};
  for (const char* recipe :
       {"diamond", "line(diamond)", "genkautz(2,5)", "line(circulant(8,1,3,bw=7GB/s),2)",
        "product(uniring(1,3),torus(3,3))", "transpose(cayley(19,3,7,10,2,18,0))"}) {
    const Result<Topology> named = ParseTopology(recipe);
    const Result<Topology> topology = NetworkWithLinks(recipe, link);
    ASSERT_TRUE(named) << recipe;
    ASSERT_TRUE(topology) << recipe << " " << topology.error().message;
    EXPECT_TRUE(topology->is_homogeneous()) << recipe;
    EXPECT_EQ(topology->spec(LinkId{0}), link) << recipe;
    ASSERT_EQ(topology->num_links(), named->num_links()) << recipe;
    for (LinkId id : named->Links()) {
      EXPECT_EQ(topology->tail(id), named->tail(id)) << recipe;
      EXPECT_EQ(topology->head(id), named->head(id)) << recipe;
    }
  }
}

TEST(Workload, RefusesWhatIsNoDistribution) {
  for (const char* text : {"", "1MiB:", "1MiB:0", "1MiB:-1", "1MiB:x", "0", "1MiB,,2MiB", "1MiB,"})
    EXPECT_FALSE(ParseSizeDistribution(text)) << text;
}

}  // namespace
}  // namespace tutti
