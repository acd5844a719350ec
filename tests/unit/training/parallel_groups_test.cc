#include "tutti/training/parallel_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/parse.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::Parse;
using testing::HasSubstr;

TEST(ParallelGroupsTest, ATorusIsCutIntoToriAtItsDimensions) {
  const ParallelGroups groups = MakeParallelGroups(Parse("torus(4,3,5)"), 15).value();
  ASSERT_TRUE(groups.tensor && groups.data);
  EXPECT_EQ(groups.tensor->Fingerprint(), Parse("torus(3,5)").Fingerprint());
  EXPECT_EQ(groups.data->Fingerprint(), Parse("torus(4)").Fingerprint());
  EXPECT_EQ(groups.tensor->grid(), (GridShape{{3, 5}, true}));
  EXPECT_EQ(groups.data->grid(), (GridShape{{4}, true}));
  EXPECT_THAT(groups.tensor->name(), HasSubstr("tensor-parallel group of torus(4,3,5)"));
}

TEST(ParallelGroupsTest, AllInOneReplicaOrARankEachIsTheNetworkItself) {
  const Topology ring = Parse("ring(6)");
  const ParallelGroups replicas = MakeParallelGroups(ring, 1).value();
  EXPECT_FALSE(replicas.tensor);
  EXPECT_EQ(replicas.data->Fingerprint(), ring.Fingerprint());
  const ParallelGroups split = MakeParallelGroups(ring, 6).value();
  EXPECT_FALSE(split.data);
  EXPECT_EQ(split.tensor->Fingerprint(), ring.Fingerprint());
  const ParallelGroups alone = MakeParallelGroups(Parse("torus(1)"), 1).value();
  EXPECT_FALSE(alone.tensor || alone.data);
}

TEST(ParallelGroupsTest, SwitchesGoToTheGroupThatTheyServeAlone) {
  // Pairs of a ring on the slow side, eight ranks and their switch on the fast side.
  const Topology rfs = Parse("rfs(2,4,8)");
  const ParallelGroups groups = MakeParallelGroups(rfs, 32).value();
  EXPECT_EQ(groups.data->num_ranks(), 2);
  EXPECT_FALSE(groups.data->has_switches());
  EXPECT_EQ(groups.data->num_links(), 2);
  EXPECT_EQ(groups.tensor->num_ranks(), 32);
  EXPECT_EQ(groups.tensor->num_nodes() - groups.tensor->num_ranks(), 4);
  EXPECT_FALSE(groups.tensor->grid());
  // Between the groups of a tree, the switches of several serve nobody's own traffic.
  const ParallelGroups hosts = MakeParallelGroups(Parse("product(ring(4),ring(2))"), 2).value();
  EXPECT_EQ(hosts.tensor->num_ranks(), 2);
  EXPECT_EQ(hosts.data->num_ranks(), 4);
}

TEST(ParallelGroupsTest, KeepsLinkParametersAndTheirDifferences) {
  const ParallelGroups groups =
      MakeParallelGroups(Parse("torus(4,4,bw=[10,20]GB/s,alpha=[1,2]us)"), 4).value();
  EXPECT_EQ(groups.tensor->spec(LinkId{0}), (LinkSpec{20'000'000'000, 2'000'000}));
  EXPECT_EQ(groups.data->spec(LinkId{0}), (LinkSpec{10'000'000'000, 1'000'000}));
}

TEST(ParallelGroupsTest, SaysWhichGroupHasNoNetworkOfItsOwn) {
  const struct {
    const char* network;
    int64_t tensor;
    const char* says;
  } faults[] = {
      {"ring(6)", 0, "0 ranks a replica; accepted are the divisors of the network's 6 ranks"},
      {"ring(6)", 4, "4 ranks a replica; accepted are the divisors"},
      {"ring(6)", 12, "12 ranks a replica"},
      {"ring(6)", 3, "the data-parallel group of ranks 0, 3 has no network of its own"},
      {"switch(8)", 4, "the tensor-parallel group of ranks 0, 1, 2, .. (4 ranks) has no network"},
      {"without(torus(4,4),links=1,seed=1)", 4, "have unlike networks"},
  };
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.says);
    const Result<ParallelGroups> groups = MakeParallelGroups(Parse(fault.network), fault.tensor);
    ASSERT_FALSE(groups.has_value());
    EXPECT_THAT(groups.error().message, HasSubstr(fault.says));
  }
}

}  // namespace
}  // namespace tutti
