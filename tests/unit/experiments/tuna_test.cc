#include "tuna/tuna.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tuna/platform.h"

namespace tutti::tuna {
namespace {

double FloorOf(const Machine& machine, int64_t size) {
  const Result<double> floor = DirectFloor(machine, size);
  EXPECT_TRUE(floor.has_value()) << floor.error().message;
  return floor.value_or(0);
}

bool Says(const Machine& machine, const char* text) {
  const Result<std::string> platform = PlatformText(machine);
  EXPECT_TRUE(platform.has_value()) << platform.error().message;
  return platform && platform->find(text) != std::string::npos;
}

// Two of three blocks of up to 16 bytes are not empty, and they have 8 bytes on average. On Polaris
// a message between nodes takes 2 x 0.3 us and 0.68 ns a byte, inside a node 2 x 0.1 us and
// 2 x 0.167 ns a byte.
TEST(TunaTest, TheDirectFloorChargesLocalAndRemoteMessages) {
  const double remote = 2.0 / 3 * 0.6e-6 + 8 * 0.68e-9;
  const double local = 2.0 / 3 * 0.2e-6 + 8 * 2 * 0.167e-9;
  // Eight ranks on four nodes: one other rank is on the same node, six are not.
  EXPECT_NEAR(FloorOf({.platform = "polaris", .ranks = 8}, 16), 6 * remote + local, 1e-15);
  // All on one.
  EXPECT_NEAR(FloorOf({.platform = "polaris", .ranks = 8, .ranks_per_node = 8}, 16), 7 * local,
              1e-15);
  // Five ranks, two a node: four have one beside them, the fifth has none.
  EXPECT_NEAR(FloorOf({.platform = "polaris", .ranks = 5, .ranks_per_node = 2}, 16),
              4.0 / 5 * local + (4 - 4.0 / 5) * remote, 1e-15);
}

TEST(TunaTest, MessagesInsideANodeHaveThreePrices) {
  const Machine as_remote{.platform = "polaris", .ranks = 8, .local = LocalMessages::kAsRemote};
  EXPECT_NEAR(FloorOf(as_remote, 16), 7 * (2.0 / 3 * 0.6e-6 + 8 * 0.68e-9), 1e-15);
  const Machine cheap{
      .platform = "polaris", .ranks = 8, .ranks_per_node = 8, .local = LocalMessages::kCheap};
  EXPECT_NEAR(FloorOf(cheap, 16), 7 * (2.0 / 3 * 0.1e-6 + 8 * 0.2e-9), 1e-15);
  EXPECT_TRUE(Says(cheap, "tutti_local_seconds\" value=\"50e-9\""));
  EXPECT_TRUE(Says(cheap, "tutti_local_byte_seconds\" value=\"0.1e-9\""));
  EXPECT_FALSE(Says({.platform = "fugaku", .ranks = 8}, "50e-9\""));
}

// The copies of a message inside a node are as fast as all copies of the platform.
TEST(TunaTest, CopiesOfLocalMessagesAreThoseOfThePlatform) {
  EXPECT_TRUE(Says({.platform = "fugaku", .ranks = 8}, "tutti_copy_bandwidth\" value=\"8e9\""));
  EXPECT_TRUE(
      Says({.platform = "fugaku", .ranks = 8}, "tutti_local_byte_seconds\" value=\"0.125e-9\""));
}

TEST(TunaTest, AnUnknownPlatformIsNamed) {
  const Result<std::string> platform = PlatformText({.platform = "summit", .ranks = 8});
  ASSERT_FALSE(platform.has_value());
  EXPECT_NE(platform.error().message.find("'summit'"), std::string::npos);
}

TEST(TunaTest, RanksPerNodeAreThoseAskedFor) {
  EXPECT_EQ((Machine{.platform = "fugaku", .ranks = 256}.RanksPerNode()), 32);
  EXPECT_EQ((Machine{.platform = "fugaku", .ranks = 64}.RanksPerNode()), 16);
  EXPECT_EQ((Machine{.platform = "fugaku", .ranks = 256, .ranks_per_node = 8}.Nodes()), 32);
}

}  // namespace
}  // namespace tutti::tuna
