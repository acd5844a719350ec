#include "meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap.h"
#include "control_link.h"
#include "endpoint.h"
#include "meeting_door.h"
#include "support/quiet_fork.h"
#include "tutti/base/deadline.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// --- Meetings ------------------------------------------------------------------------------------

// Four ranks of which rank 0 led and ended: it had told some that 0, 1 and 2 go on. Rank 3 was not there.
class MeetingTest : public testing::Test {
 protected:
  static constexpr int32_t kRanks = 4;
  static constexpr IpAddress kLoopback = IpAddress(INADDR_LOOPBACK);

  MeetingTest() {
    for (int32_t rank = 0; rank < kRanks; ++rank)
      meetings_.push_back(Meeting::Open(kLoopback).value());
    for (const auto& meeting : meetings_) old_.meetings.push_back(meeting->place());
    meetings_[0].reset();
    old_.secret = {11, 12};
    decision_.id = bootstrap::Encode({{kLoopback, 1}, {21, 22}});
  }
  // As who did not hear of it.
  Result<Regrouped> RegroupOld(int32_t rank) {
    Meeting::Party party = old_;
    party.rank = rank;
    return Regroup(rank, party);
  }
  // As who did.
  Result<Regrouped> RegroupNew(int32_t rank) {
    return Regroup(rank, Meeting::Descend(old_, *decision_.For(rank)).value());
  }

  Regrouped decision_{.id = {}, .num_ranks = 3, .rank = 0, .survivors = {0, 1, 2}};

  Result<Regrouped> Regroup(int32_t rank, const Meeting::Party& party) {
    const std::atomic<bool> never = false;
    const std::function<Result<UniqueId>()> make_id = [] {
      return Result<UniqueId>(bootstrap::Encode({{kLoopback, 2}, {31, 32}}));
    };
    return meetings_[static_cast<size_t>(rank)]->Regroup(party, {}, make_id, Deadline(60), never);
  }

  std::vector<std::shared_ptr<Meeting>> meetings_;
  Meeting::Party old_;
};

TEST_F(MeetingTest, WhoLeadsAndDidNotHearADecisionLearnsIt) {
  std::thread told([this] {
    const auto both = RegroupNew(2);
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ(both->rank, 1);
    EXPECT_EQ(both->survivors, (std::vector<int32_t>{1, 2}));  // of the three
  });
  const auto learned = RegroupOld(1);
  ASSERT_TRUE(learned) << learned.error().message;
  EXPECT_EQ(learned->rank, 1);
  EXPECT_EQ(learned->id.bytes, decision_.id.bytes);
  EXPECT_EQ(learned->survivors, decision_.survivors);
  const auto both = RegroupNew(1);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->rank, 0);
  EXPECT_EQ(both->num_ranks, 2);
  told.join();
}

TEST_F(MeetingTest, WhoFollowsAndDidNotHearADecisionLearnsIt) {
  std::thread told([this] {
    const auto both = RegroupNew(1);
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ(both->rank, 0);
    EXPECT_EQ(both->survivors, (std::vector<int32_t>{1, 2}));
  });
  Result<Regrouped> learned = RegroupOld(2);
  ASSERT_TRUE(learned) << learned.error().message;
  EXPECT_EQ(learned->rank, 2);
  EXPECT_EQ(learned->survivors, decision_.survivors);
  learned = RegroupNew(2);
  ASSERT_TRUE(learned) << learned.error().message;
  EXPECT_EQ(learned->rank, 1);
  told.join();
}

TEST_F(MeetingTest, WhoIsNotNamedByTheDecisionIsSentAway) {
  std::thread leads([this] { EXPECT_TRUE(RegroupNew(1)); });
  EXPECT_EQ(RegroupOld(3).error().message, "the other ranks have gone on without this one");
  EXPECT_TRUE(RegroupNew(2));
  leads.join();
}

// One of the new party could not join, though its process lives: the first one, which waits for it there, hears of that.
TEST_F(MeetingTest, WhoRegroupsAlreadyEndsTheJoiningOfTheFirst) {
  Meeting::Party party = Meeting::Descend(old_, *decision_.For(1)).value();
  party.rank = 0;  // as if the first had been the one that leads
  party.meetings = {meetings_[1]->place(), meetings_[2]->place()};
  MeetingWatch watch(meetings_[1], party.secret, {{1, party.meetings[1]}});
  MeetingWatch of_another(meetings_[1], {5, 6}, {{1, party.meetings[1]}});
  EXPECT_TRUE(watch.Look());
  std::thread again([&] {
    Meeting::Party same = party;
    same.rank = 1;
    const auto both = Regroup(2, same);
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ(both->rank, 1);
  });
  Status seen;
  for (const Deadline deadline(60); seen && !deadline.HasPassed();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    seen = watch.Look();
  }
  EXPECT_EQ(seen ? "nobody" : seen.error().message, "rank 1 could not join");
  EXPECT_TRUE(of_another.Look());
  // What it has asked is heard by the one that leads.
  const auto both = Regroup(1, party);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->num_ranks, 2);
  again.join();
}

// --- Greetings -----------------------------------------------------------------------------------

// Others listen where rank 0, which has ended, was met. Nobody has a deadline: whoever took a stranger for the rank would wait
// for it for ever.
class MeetingStrangerTest : public MeetingTest {
 protected:
  static Result<Regrouped> RegroupForEver(Meeting& meeting, const Meeting::Party& party) {
    const std::atomic<bool> never = false;
    return meeting.Regroup(
        party, {},
        [] {
          return Result<UniqueId>(bootstrap::Encode({{kLoopback, 2}, {31, 32}}));
        },
        Deadline(0), never);
  }
  void TheOthersGoOnWithout0() {
    std::vector<std::thread> others;
    for (int32_t rank = 1; rank < kRanks; ++rank)
      others.emplace_back([this, rank] {
        Meeting::Party party = old_;
        party.rank = rank;
        const auto left = RegroupForEver(*meetings_[static_cast<size_t>(rank)], party);
        ASSERT_TRUE(left) << left.error().message;
        EXPECT_EQ(left->rank, rank - 1);
        EXPECT_EQ(left->survivors, (std::vector<int32_t>{1, 2, 3}));
      });
    for (std::thread& other : others) other.join();
  }
  // The higher of two ranks where that is heard in place of the lower one: it goes on alone only where that has gone.
  static Result<Regrouped> TheLastOfTwo(const MeetingPlace& of_first) {
    const auto meeting = Meeting::Open(kLoopback).value();
    return RegroupForEver(
        *meeting, {.rank = 1, .meetings = {of_first, meeting->place()}, .secret = {11, 12}});
  }
  MeetingPlace Rank0At(const Endpoint& endpoint) const {
    return {endpoint, old_.meetings[0].greeting};
  }
};

TEST_F(MeetingStrangerTest, AnotherRankAtThePortProvesThatItHasEnded) {
  const auto stranger = Meeting::Open(kLoopback).value();
  old_.meetings[0] = Rank0At(stranger->place().endpoint);
  TheOthersGoOnWithout0();
  const auto last = TheLastOfTwo(old_.meetings[0]);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->survivors, std::vector<int32_t>{1});
}

// Listens, says that to all who come, and hangs up.
class Stranger {
 public:
  explicit Stranger(std::string says) : says_(std::move(says)), listener_(ListenAt(endpoint_)) {}
  ~Stranger() {
    ends_ = true;
    thread_.join();
    close(listener_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  const Endpoint& endpoint() const { return endpoint_; }
  int visits() const { return visits_; }

 private:
  void Run() {
    while (!ends_) {
      pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 5) <= 0) continue;
      const int visitor = accept(listener_, nullptr, nullptr);
      ++visits_;
      static_cast<void>(send(visitor, says_.data(), says_.size(), MSG_NOSIGNAL));
      shutdown(visitor, SHUT_WR);
      close(visitor);
    }
  }
  std::string says_;
  Endpoint endpoint_{IpAddress(INADDR_LOOPBACK), 0};
  int listener_;
  std::atomic<bool> ends_ = false;
  std::atomic<int> visits_ = 0;
  std::thread thread_{[this] { Run(); }};
};

TEST_F(MeetingStrangerTest, AnotherProgramAtThePortProvesThatItHasEnded) {
  const std::string greeting = old_.meetings[0].Greeting();
  const std::string almost =
      greeting.substr(0, greeting.size() - 1) + static_cast<char>(greeting.back() ^ 1);
  for (const std::string& says : {std::string("SSH-2.0-OpenSSH_9.2p1\r\n"), almost}) {
    const Stranger stranger(says);
    const auto last = TheLastOfTwo(Rank0At(stranger.endpoint()));
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ(last->survivors, std::vector<int32_t>{1});
  }
}

// It may be the process itself, stopped, or a child of it: as good as cut off.
TEST_F(MeetingStrangerTest, WhoSaysNothingIsMissingAndNotGone) {
  Endpoint silent{kLoopback, 0};
  const int listener = ListenAt(silent);
  ASSERT_GE(listener, 0);
  const Stranger hangs_up("");
  const std::string greeting = old_.meetings[0].Greeting();
  const Stranger says_half(greeting.substr(0, greeting.size() - 1));
  // Each takes its seconds.
  std::vector<std::thread> pairs;
  for (const Endpoint& at : {silent, hangs_up.endpoint(), says_half.endpoint()})
    pairs.emplace_back([this, at] {
      const auto last = TheLastOfTwo(Rank0At(at));
      ASSERT_FALSE(last);
      EXPECT_THAT(last.error().message, HasSubstr("1 of 2 ranks are here and 0 have gone"));
    });
  old_.meetings[0] = Rank0At(silent);
  TheOthersGoOnWithout0();
  for (std::thread& pair : pairs) pair.join();
  close(listener);
  EXPECT_GT(hangs_up.visits(), 3);
  EXPECT_LT(hangs_up.visits(), 2000) << "it is asked as often as can be";
}

// A child that was forked ends its copies; the parent is met all the same.
TEST(MeetingDoorProcessTest, AChildThatEndsClosesNothing) {
  const auto door = MeetingDoor::Open(IpAddress(INADDR_LOOPBACK)).value();
  const pid_t child = test_support::QuietFork();
  if (child == 0) {
    door->Close();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto link = ControlLink::Connect("127.0.0.1", door->place().endpoint.port, 10);
  ASSERT_TRUE(link) << link.error().message;
  const auto greeting = link->Receive(100, 10'000);
  ASSERT_TRUE(greeting) << greeting.error().message;
  ASSERT_TRUE(greeting->has_value());
  EXPECT_EQ(door->Take().size(), 1u);
  door->Close();
  EXPECT_FALSE(ControlLink::Connect("127.0.0.1", door->place().endpoint.port, 0.01));
}

// A door that is opened in a child is answered by a thread of the child's.
TEST(MeetingDoorProcessTest, AChildHasAThreadOfItsOwn) {
  const auto of_parent = MeetingDoor::Open(IpAddress(INADDR_LOOPBACK)).value();
  const pid_t child = test_support::QuietFork();
  if (child == 0) {
    alarm(60);
    const auto door = MeetingDoor::Open(IpAddress(INADDR_LOOPBACK));
    if (!door) _exit(1);
    auto link = ControlLink::Connect("127.0.0.1", (*door)->place().endpoint.port, 10);
    if (!link) _exit(2);
    const auto greeting = link->Receive(100, 10'000);
    _exit(greeting && *greeting ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Who has said something stays.
TEST(MeetingDoorTest, ThoseThatSayNothingAreTurnedAwayWhereTheyAreMany) {
  const auto door = MeetingDoor::Open(IpAddress(INADDR_LOOPBACK)).value();
  const uint16_t port = door->place().endpoint.port;
  std::vector<ControlLink> visitors;
  for (size_t i = 0; i < MeetingDoor::kMostSilent + 10; ++i) {
    auto link = ControlLink::Connect("127.0.0.1", port, 10);
    ASSERT_TRUE(link) << link.error().message;
    if (i == 0) {
      ASSERT_TRUE(link->Send(FrameType::kHello, "hello"));
    }
    ASSERT_TRUE(link->Receive(100, 10'000).value().has_value()) << i;
    visitors.push_back(std::move(*link));
  }
  const std::list<ControlLink> stay = door->Take();
  EXPECT_EQ(stay.size(), MeetingDoor::kMostSilent);
  size_t turned_away = 0;
  for (ControlLink& visitor : visitors) turned_away += visitor.TryReceive(100) ? 0 : 1;
  EXPECT_EQ(turned_away, 10u);
  EXPECT_TRUE(visitors[0].TryReceive(100)) << "it has spoken";
  EXPECT_FALSE(visitors[1].TryReceive(100)) << "it was the oldest that has not";
}

}  // namespace
}  // namespace tutti
