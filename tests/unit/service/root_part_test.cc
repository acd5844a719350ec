#include "root_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "control_link.h"
#include "door.h"

namespace tutti::service {
namespace {

using testing::HasSubstr;

constexpr std::array<uint64_t, 2> kRootSecret = {11, 12};

// A root, and daemons of it of a rank each, which say what the test says.
class RootPartTest : public LoopTest {
 protected:
  HeardLink& AddDaemon() {
    HeardLink& daemon = daemons_.emplace_back();
    daemon.Connect(*loop_, door_.endpoint());
    return daemon;
  }
  static PeerFrame JoinOf(int64_t rank, int64_t ranks) {
    return {.kind = PeerKind::kJoin,
            .words = {static_cast<int64_t>(kRootSecret[0]), static_cast<int64_t>(kRootSecret[1]),
                      ranks, rank, INADDR_LOOPBACK, 7'000 + rank},
            .texts = {"tenant", "host" + std::to_string(rank)}};
  }
  void Join(int64_t ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      AddDaemon().link->Send(JoinOf(rank, ranks));
      Settle();
    }
    for (HeardLink& daemon : daemons_) ASSERT_EQ(daemon.Count(PeerKind::kMembers), 1u);
    SayOpened(0, 0);
    for (HeardLink& daemon : daemons_) ASSERT_EQ(daemon.Count(PeerKind::kPeers), 1u);
  }
  void SayOpened(int64_t epoch, int64_t attempt) {
    for (size_t rank = 0; rank < daemons_.size(); ++rank)
      daemons_[rank].link->Send(
          {.kind = PeerKind::kOpened,
           .words = {epoch, attempt, 1, static_cast<int64_t>(rank), INADDR_LOOPBACK, 8'000}});
    Settle();
  }
  void SendAll(const PeerFrame& frame) {
    for (HeardLink& daemon : daemons_) daemon.link->Send(frame);
    Settle();
  }
  void AskForAChange() {
    root_.Reconfigure({}, [this](const Result<int64_t>& hold_ns) {
      answer_ = hold_ns ? "done" : hold_ns.error().message;
    });
    Settle();
  }

  RootPart root_{*loop_, kRootSecret};
  Door door_{*loop_, links_, [this](std::unique_ptr<PeerLink> link, const PeerFrame& join) {
               root_.Accept(std::move(link), join);
             }};
  std::deque<HeardLink> daemons_;
  std::optional<std::string> answer_;
};

TEST_F(RootPartTest, WhoComesTooLateHearsWhyItFailed) {
  HeardLink& first = AddDaemon();
  first.link->Send(JoinOf(0, 2));
  first.link->Send({.kind = PeerKind::kFailed, .words = {1}, .texts = {"rank 0: out of paper"}});
  Settle();
  HeardLink& second = AddDaemon();
  second.link->Send(JoinOf(1, 2));
  Settle();
  EXPECT_THAT(second.Last(PeerKind::kRefused).texts, testing::ElementsAre("rank 0: out of paper"));
}

TEST_F(RootPartTest, ARequestIsAnsweredWhereAllRanksLeave) {
  Join(2);
  AskForAChange();
  ASSERT_FALSE(answer_.has_value());
  for (size_t rank = 0; rank < 2; ++rank)
    daemons_[rank].link->Send(
        {.kind = PeerKind::kLeft, .words = {static_cast<int64_t>(rank), 3}, .texts = {"it left"}});
  Settle();
  EXPECT_TRUE(root_.is_over());
  EXPECT_EQ(answer_.value_or("no answer"), "all its ranks have left");
}

// What a rank had sent when it left may be lost with its daemon: nobody is to wait for it.
TEST_F(RootPartTest, NothingOfARankThatLeftIsReliedOnWhenItsDaemonHasGone) {
  Join(2);
  daemons_[1].link->Send({.kind = PeerKind::kLeft, .words = {1, 5}, .texts = {"it left"}});
  Settle();
  EXPECT_THAT(daemons_[0].Last(PeerKind::kLeft).words, testing::ElementsAre(1, 5));
  daemons_[1].link.reset();
  Settle();
  ASSERT_EQ(daemons_[0].Count(PeerKind::kLeft), 2u);
  EXPECT_THAT(daemons_[0].Last(PeerKind::kLeft).words, testing::ElementsAre(1, 0));
  EXPECT_THAT(daemons_[0].Last(PeerKind::kLeft).texts[0], HasSubstr("its daemon (host1) has gone"));
  EXPECT_EQ(daemons_[0].Count(PeerKind::kFailed), 0u);  // rank 0 may go on
}

TEST_F(RootPartTest, AnEpochIsClosedWhenAllDaemonsArePastIt) {
  Join(3);
  AskForAChange();
  SayOpened(1, 1);
  SendAll({.kind = PeerKind::kPrepared, .words = {1, 1}});
  for (size_t rank = 0; rank < 3; ++rank) {
    for (HeardLink& daemon : daemons_) EXPECT_EQ(daemon.Count(PeerKind::kClosed), 0u) << rank;
    daemons_[rank].link->Send(
        {.kind = PeerKind::kSwitched, .words = {1, static_cast<int64_t>(rank)}});
    Settle();
  }
  for (HeardLink& daemon : daemons_)
    EXPECT_THAT(daemon.Last(PeerKind::kClosed).words, testing::ElementsAre(1));
  EXPECT_EQ(answer_.value_or("no answer"), "done");
}

// A root that has nothing to say hears by its beat, which nobody acknowledges, that a host fell silent.
TEST_F(RootPartTest, BeatsToItsDaemonsWhereItHasNothingToSay) {
  auto link = ControlLink::Connect("127.0.0.1", door_.endpoint().port, 10);
  ASSERT_TRUE(link) << link.error().message;
  ASSERT_TRUE(link->Send(FrameType::kDaemon, Encode(JoinOf(0, 2))));
  Until([&] { return root_.num_ranks() == 2; });
  // What it says to the frame itself.
  Result<std::optional<Frame>> heard = link->Receive(PeerLink::kMostBytes, 10'000);
  ASSERT_TRUE(heard && *heard);
  EXPECT_EQ(Decode((*heard)->body)->kind, PeerKind::kHeard);
  pollfd more{.fd = link->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&more, 1, 0), 0);
  root_.Tick(1'000'000'000);
  EXPECT_EQ(poll(&more, 1, 5'000), 1);
}

}  // namespace
}  // namespace tutti::service
