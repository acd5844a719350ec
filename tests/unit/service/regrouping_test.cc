#include "regrouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "door.h"
#include "tutti/base/clock.h"

namespace tutti::service {
namespace {

constexpr std::array<uint64_t, 2> kShrinkSecret = {21, 22};
constexpr int64_t kLongFromNow = 60'000'000'000;

// One daemon's part, the others' are played by the test: each has the rank of its number.
class RegroupingTest : public LoopTest {
 protected:
  Regrouping::Party PartyOf(size_t self, const Endpoint& other) const {
    return {.secret = kShrinkSecret,
            .self = self,
            .daemons = {{other, {0}}, {other, {1}}},
            .num_ranks = 2};
  }
  static PeerFrame FrameOf(PeerKind kind, int64_t rank) {
    return {.kind = kind,
            .words = {static_cast<int64_t>(kShrinkSecret[0]),
                      static_cast<int64_t>(kShrinkSecret[1]), rank}};
  }
  std::unique_ptr<Regrouping> Make(size_t self, const Endpoint& other) {
    auto made = std::make_unique<Regrouping>(
        *loop_, PartyOf(self, other), [] { return Result<UniqueId>(UniqueId{}); },
        [](const UniqueId&, const std::vector<Regrouping::Awaited>&) {});
    made->Ask(static_cast<int32_t>(self), {}, NowNs() + kLongFromNow,
              [this](const Result<Regrouped>& become) {
                answer_ = become ? std::to_string(become->rank) + " of " +
                                       std::to_string(become->num_ranks)
                                 : become.error().message;
              });
    return made;
  }

  std::optional<std::string> answer_;
};

// The first daemon of the ring is there, but its only rank has gone: it leads nobody, as nobody asks it to.
TEST_F(RegroupingTest, ADaemonWithoutARankThatIsLeftDoesNotLead) {
  HeardLink guest;
  Door first(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame&) {
    guest.Keep(std::move(link));
    PeerFrame gone = FrameOf(PeerKind::kRegroupGone, 0);
    gone.words.push_back(0);
    guest.link->Send(gone);
  });
  const auto second = Make(1, first.endpoint());
  Until([&] { return answer_.has_value(); }, [&] { second->Advance(NowNs()); });
  EXPECT_EQ(answer_.value_or(""), "0 of 1");
}

// The first daemon was cut off for so long that this one had begun to lead; then its answer comes.
TEST_F(RegroupingTest, AnAnswerThatComesLateCountsStill) {
  HeardLink guest, third;
  Door first(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame&) {
    guest.Keep(std::move(link));
    Regrouped become;
    become.rank = 1;
    become.num_ranks = 3;
    guest.link->Send({.kind = PeerKind::kRegrouped, .words = {1}, .texts = {Encode(become)}});
  });
  Door last(*loop_, links_,
            [&](std::unique_ptr<PeerLink> link, const PeerFrame&) { third.Keep(std::move(link)); });
  Regrouping second(
      *loop_,
      {.secret = kShrinkSecret,
       .self = 1,
       .daemons = {{first.endpoint(), {0}}, {{}, {1}}, {last.endpoint(), {2}}},
       .num_ranks = 3},
      [] { return Result<UniqueId>(UniqueId{}); },
      [](const UniqueId&, const std::vector<Regrouping::Awaited>&) {});
  const int64_t now_ns = NowNs();
  second.Ask(1, {}, now_ns + kLongFromNow, [this](const Result<Regrouped>& become) {
    answer_ = become ? std::to_string(become->rank) + " of " + std::to_string(become->num_ranks)
                     : become.error().message;
  });
  second.Advance(now_ns);
  second.Advance(now_ns + Regrouping::kSilenceNs + 1);  // it leads, and waits for the third
  EXPECT_FALSE(answer_.has_value());
  Until([&] { return answer_.has_value(); });
  EXPECT_EQ(answer_.value_or(""), "1 of 3");
}

// A leader that goes with its answer on the way would be taken for one that died.
TEST_F(RegroupingTest, TheLeaderStaysUntilTheOthersHaveHeardItsAnswer) {
  std::unique_ptr<Regrouping> leader;
  bool has_come = false;
  Door first(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame& frame) {
    leader->Accept(std::move(link), frame);
    has_come = true;
  });
  leader = Make(0, first.endpoint());
  HeardLink second;
  second.Connect(*loop_, first.endpoint());
  PeerFrame ask = FrameOf(PeerKind::kRegroup, 1);
  ask.texts.push_back(Encode(RegroupAsk{}));
  second.link->Send(ask);
  Until([&] { return has_come; });
  Settle();
  // The answer is made in this call, so that nobody can have heard it.
  EXPECT_FALSE(leader->Advance(NowNs()));
  EXPECT_TRUE(leader->is_over());
  EXPECT_FALSE(leader->is_quiet());
  Until([&] { return leader->Advance(NowNs()); });
  EXPECT_EQ(second.Count(PeerKind::kRegrouped), 1u);
  EXPECT_EQ(answer_.value_or(""), "0 of 2");
}

}  // namespace
}  // namespace tutti::service
