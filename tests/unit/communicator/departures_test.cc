#include "departures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

// A collective where it has no messages.
using Call = std::vector<Message>;
CallOfRank Of(const Call& call) { return {.is_of_all = call.empty(), .messages = call}; }
Call SendTo(int32_t peer) { return {{.peer = peer, .is_send = true}}; }
Call ReceiveFrom(int32_t peer) { return {{.peer = peer}}; }

RankProgress After(const std::vector<Call>& calls) {
  RankProgress progress;
  for (const Call& call : calls) progress.Add(Of(call));
  return progress;
}

// Rank 2 has left after two collectives, one message that it sent to rank 0 and two of rank 0's.
class DeparturesTest : public testing::Test {
 protected:
  DeparturesTest() {
    left_.Add(2, After({{}, SendTo(0), ReceiveFrom(0), {}, ReceiveFrom(0)}), "it left");
  }
  std::optional<std::string> WhyNever(const std::vector<Call>& completed, const Call& next) {
    return left_.WhyNever(0, After(completed), Of(next));
  }
  Departures left_;
};

TEST_F(DeparturesTest, CollectivesEndThatAllHaveCalled) {
  EXPECT_EQ(WhyNever({{}}, {}), std::nullopt);
  EXPECT_THAT(
      WhyNever({{}, {}}, {}),
      Optional(
          Eq("rank 0 calls its collective 3; rank 2 completed 2 and is no longer there: it left")));
}

// As many as there may be: the others' collectives have the same numbers.
TEST_F(DeparturesTest, MessagesBetweenOthersCountForNothing) {
  EXPECT_EQ(WhyNever({{}, SendTo(1), ReceiveFrom(1), SendTo(1)}, {}), std::nullopt);
  EXPECT_EQ(WhyNever({{}, {}}, SendTo(1)), std::nullopt);
  EXPECT_EQ(WhyNever({{}, {}}, {{.peer = 0, .is_send = true}, {.peer = 0}}), std::nullopt);
}

TEST_F(DeparturesTest, MessagesEndThatBothHaveCalled) {
  EXPECT_EQ(WhyNever({}, ReceiveFrom(2)), std::nullopt);
  EXPECT_THAT(WhyNever({ReceiveFrom(2)}, ReceiveFrom(2)),
              Optional(Eq("rank 0 waits for message 2 of rank 2, which sent 1 and is no longer "
                          "there: it left")));
  EXPECT_EQ(WhyNever({SendTo(2)}, SendTo(2)), std::nullopt);
  const Call three = {{.peer = 2, .is_send = true},
                      {.peer = 1, .is_send = true},
                      {.peer = 2, .is_send = true},
                      {.peer = 2, .is_send = true}};
  EXPECT_THAT(WhyNever({}, three),
              Optional(Eq("rank 0 sends its message 3 to rank 2, which received 2 and is no longer "
                          "there: it left")));
}

TEST_F(DeparturesTest, NothingCanBeReliedOnWhereTheDaemonHasGone) {
  EXPECT_FALSE(left_.Add(2, After({{}, {}, SendTo(0)}), "again"));
  EXPECT_TRUE(left_.Add(2, {}, "its daemon has gone"));
  EXPECT_EQ(left_.size(), 1u);
  EXPECT_NE(WhyNever({}, {}), std::nullopt);
  EXPECT_NE(WhyNever({}, SendTo(2)), std::nullopt);
  EXPECT_EQ(WhyNever({}, SendTo(1)), std::nullopt);
  // Messages alone are lost, too.
  Departures messages;
  messages.Add(1, After({SendTo(0)}), "it left");
  EXPECT_EQ(messages.WhyNever(0, {}, Of(ReceiveFrom(1))), std::nullopt);
  EXPECT_TRUE(messages.Add(1, {}, "its daemon has gone"));
  EXPECT_NE(messages.WhyNever(0, {}, Of(ReceiveFrom(1))), std::nullopt);
}

// However many ranks leave because another one did.
TEST_F(DeparturesTest, WhoLeftFirstIsNamedToAll) {
  std::string why = "it left";
  for (int32_t rank = 2; rank < 40; ++rank) {
    Departures left;
    left.Add(rank, {}, why);
    const std::string told = left.WhyNever(rank + 1, {}, Of(SendTo(rank))).value();
    EXPECT_THAT(told,
                testing::HasSubstr("to rank 2, which received 0 and is no longer there: it left"));
    EXPECT_LT(told.size(), 200u);
    why = Departures::FirstCause(told);
  }
}

TEST_F(DeparturesTest, ProgressTravelsInWords) {
  const RankProgress progress = After({{}, SendTo(7), ReceiveFrom(3), SendTo(7)});
  std::vector<int64_t> words;
  progress.AppendTo(words);
  EXPECT_THAT(words, ElementsAre(1, 3, 0, 1, 7, 2, 0));
  EXPECT_THAT(RankProgress::FromWords(words), Optional(progress));
  for (const size_t wrong : {0u, 2u, 3u, 5u})
    EXPECT_EQ(RankProgress::FromWords(std::vector<int64_t>(wrong, 1)), std::nullopt);
}

}  // namespace
}  // namespace tutti
