#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bfb_testing.h"

namespace tutti {
namespace {

TEST(RegistryTest, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Synthesizer& synthesizer : Synthesizers()) {
    EXPECT_TRUE(names.insert(synthesizer.name).second) << synthesizer.name;
    EXPECT_FALSE(synthesizer.description.empty());
    EXPECT_FALSE(synthesizer.collectives.empty());
    EXPECT_NE(synthesizer.synthesize, nullptr);
    const Result<const Synthesizer*> found = FindSynthesizer(synthesizer.name);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, &synthesizer);
  }
  EXPECT_TRUE(names.contains("bfb"));
}

TEST(RegistryTest, UnknownNameListsTheAccepted) {
  const Result<const Synthesizer*> found = FindSynthesizer("bbf");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_NE(found.error().message.find("'bbf'; accepted are "), std::string::npos);
  EXPECT_NE(found.error().message.find("bfb"), std::string::npos);
}

TEST(RegistryTest, ACollectiveThatIsNotMadeIsRefusedByName) {
  const Topology topology = Parse("ring(4)");
  const Result<Schedule> schedule = RunSynthesizer(
      **FindSynthesizer("bfb"), topology, MustCollective(CollectiveKind::kAllToAll, 4), {});
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(schedule.error().message.find("makes no all-to-all"), std::string::npos);
}

TEST(RegistryTest, ACollectiveOfAnotherSizeIsRefused) {
  const Result<Schedule> schedule =
      RunSynthesizer(**FindSynthesizer("bfb"), Parse("ring(4)"),
                     MustCollective(CollectiveKind::kAllGather, 5), {});
  ASSERT_FALSE(schedule.has_value());
  EXPECT_NE(schedule.error().message.find("5 ranks, the network has 4"), std::string::npos);
}

TEST(RegistryTest, OneRankNeedsNothing) {
  const Topology topology = *Topology::Builder(1).Build();
  for (const Synthesizer& synthesizer : Synthesizers()) {
    const Collective collective = MustCollective(synthesizer.collectives.front(), 1);
    const Result<Schedule> schedule = RunSynthesizer(synthesizer, topology, collective, {});
    ASSERT_TRUE(schedule.has_value()) << synthesizer.name;
    EXPECT_TRUE(schedule->transfers.empty());
  }
}

}  // namespace
}  // namespace tutti
