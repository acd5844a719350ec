// Ways that end without a word, by a filter in the kernel (TcpTransport::Cut): connections go on another way, and every byte
// comes once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hand_plans.h"
#include "ranks_in_memory.h"
#include "run.h"
#include "tcp_transport.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using testing::MatchesRegex;

// Routes by source ports, as a switch would choose them; each test has its own part of them.
constexpr uint16_t kRoutePorts = 300;

struct Routes {
  uint16_t first = 0;
  TcpSource Source() const {
    return {.first_port = first,
            .num_ports = kRoutePorts,
            .others = {{static_cast<uint16_t>(first + kRoutePorts), kRoutePorts}}};
  }
  void Cut(TcpTransport& at, int route) const {
    const auto begin = static_cast<uint16_t>(first + route * kRoutePorts);
    at.Cut(begin, static_cast<uint16_t>(begin + kRoutePorts - 1));
  }
};

// One all-reduce after the other over connections between ranks of one thread.
class RingOfRanks {
 public:
  RingOfRanks(Plan plan, const CallOptions& call, const TcpOptions& options)
      : plan_(std::move(plan)), ranks_(plan_, call) {
    for (int32_t rank = 0; rank < ranks_.num_ranks(); ++rank)
      transports_.push_back(TcpTransport::Listen(rank, options).value());
    std::vector<Endpoint> endpoints;
    for (const auto& transport : transports_) endpoints.push_back(transport->endpoint());
    for (int32_t rank = 0; rank < ranks_.num_ranks(); ++rank) {
      at(rank).SetPeers(endpoints);
      interpreters_.push_back(
          ranks_.MakeInterpreter(rank, PeerEnds(ranks_.program(), rank, at(rank))));
    }
  }
  TcpTransport& at(int32_t rank) { return *transports_[static_cast<size_t>(rank)]; }
  int32_t num_ranks() const { return ranks_.num_ranks(); }
  int64_t resumptions() const {
    int64_t count = 0;
    for (const auto& transport : transports_) count += transport->resumptions();
    return count;
  }
  // The longest time in which no rank got or reduced a byte, in a run and since it was forgotten.
  Clock::duration longest_gap() const { return longest_gap_; }
  Clock::time_point last_moved() const { return last_moved_; }
  void ForgetGaps() { longest_gap_ = {}; }
  // `between` is called all the time while it runs; for `alone` only rank 0 does, then `after_alone` is called. The first
  // failure, if any.
  template <class Between>
  Status Run(
      Between between, std::chrono::milliseconds alone = {},
      const std::function<void()>& after_alone = [] {}) {
    ranks_.Fill();
    for (Interpreter& rank : interpreters_) rank.Start();
    last_moved_ = Clock::now();
    for (const auto end = Clock::now() + alone; Clock::now() < end;) {
      interpreters_[0].Poll(int64_t{16} << 10);
      at(0).Poll(1);
      at(1).Poll(0);
    }
    after_alone();
    for (size_t over = 0, stuck = 0; over < interpreters_.size();) {
      bool moved = false;
      over = 0;
      for (Interpreter& rank : interpreters_) {
        const Interpreter::Outcome outcome = rank.Poll(int64_t{16} << 10);
        over += outcome == Interpreter::Outcome::kOver;
        moved = moved || outcome == Interpreter::Outcome::kMoved;
        if (Status health = rank.health(); !health) return health;
        if (stuck > 2) rank.SaveWanted();
      }
      if (moved) {
        const Clock::time_point now = Clock::now();
        longest_gap_ = std::max(longest_gap_, now - last_moved_);
        last_moved_ = now;
      }
      between();
      for (const auto& transport : transports_) moved = transport->Poll(0) || moved;
      stuck = moved ? 0 : stuck + 1;
      if (stuck > 2) at(0).Poll(1);
    }
    for (const auto& transport : transports_) transport->Poll(0);
    if (ranks_.CountWrong() != 0) return MakeError(ErrorCode::kCorrupt, "wrong bytes");
    return {};
  }

 private:
  Plan plan_;
  RanksInMemory ranks_;
  std::vector<std::unique_ptr<TcpTransport>> transports_;
  std::deque<Interpreter> interpreters_;
  Clock::time_point last_moved_;
  Clock::duration longest_gap_{};
};

TEST(SilenceTest, AnotherRouteIsTakenAndEveryByteComesOnce) {
  const Routes routes{23'000};
  std::vector<LostWay> lost;
  RingOfRanks ring(
      RingAllReduce(2), {.count = 2'000'000, .in_place = true, .piece_bytes = 1 << 20},
      {.source = routes.Source(), .on_lost = [&](const LostWay& way) { lost.push_back(way); }});
  ASSERT_TRUE(ring.Run([] {}));
  EXPECT_EQ(ring.resumptions(), 0);
  int polls = 0;
  ASSERT_TRUE(ring.Run([&] {
    if (++polls == 20) routes.Cut(ring.at(1), 0);
  }));
  ASSERT_GE(lost.size(), 1u);
  EXPECT_EQ(lost[0].peer, 1);
  EXPECT_EQ(lost[0].ports.first, routes.first);
  EXPECT_GE(ring.resumptions(), 1);
  // The other one, which goes on to be used after the cut is mended.
  ring.at(1).Mend();
  const int64_t before = ring.resumptions();
  ASSERT_TRUE(ring.Run([] {}));
  EXPECT_EQ(ring.resumptions(), before);
}

// Only what comes by its port is lost, as where answers to it come back by a link that is cut.
TEST(SilenceTest, BytesAreCountedByTheRouteThatTheyTake) {
  const Routes routes{28'000};
  std::map<TcpPorts, int64_t> sent;
  RingOfRanks ring(RingAllReduce(2), {.count = 25'000, .in_place = true, .piece_bytes = 1 << 20},
                   {.source = routes.Source(),
                    .silence_s = 0.02,
                    .counter_of = [&](const TcpPorts& ports) { return &sent[ports]; }});
  const TcpPorts first{routes.first, kRoutePorts}, second = routes.Source().others[0];
  ASSERT_TRUE(ring.Run([] {}));
  // Each of two ranks sends half of it twice, and 16 bytes before each message.
  const int64_t alone = sent[first];
  EXPECT_GE(alone, 200'000);
  EXPECT_LT(alone, 210'000);
  EXPECT_EQ(sent.count(second), 0u);
  for (int32_t rank = 0; rank < 2; ++rank) routes.Cut(ring.at(rank), 0);
  ASSERT_TRUE(ring.Run([] {}));
  EXPECT_GE(sent[second], 200'000);
}

TEST(SilenceTest, TheSameRouteIsTriedFirst) {
  const Routes routes{22'600};
  std::vector<LostWay> lost;
  RingOfRanks ring(
      RingAllReduce(2), {.count = 2'000'000, .in_place = true, .piece_bytes = 1 << 20},
      {.source = routes.Source(), .on_lost = [&](const LostWay& way) { lost.push_back(way); }});
  int polls = 0;
  ASSERT_TRUE(ring.Run([&] {
    if (++polls == 20) ring.at(1).Cut(routes.first, routes.first);
  }));
  EXPECT_GE(ring.resumptions(), 1);
  EXPECT_TRUE(lost.empty());
  // The whole route is: also what goes on over it.
  ASSERT_TRUE(ring.Run([&] {
    if (lost.empty()) routes.Cut(ring.at(1), 0);
  }));
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(lost[0].ports.first, routes.first);
}

// Whoever asks for nothing is not taken for a network that is cut: the receiver's kernel answers for it.
TEST(SilenceTest, AReceiverThatDoesNotComeIsNoAlarm) {
  for (const int64_t count : {1, 4'000'000}) {  // a segment; more than the sockets hold
    RingOfRanks ring(RingAllGather(2), {.count = count}, {.max_failures = 1});
    const Status done = ring.Run([] {}, std::chrono::milliseconds(400));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(ring.resumptions(), 0);
  }
}

// A route that is dead from the start.
TEST(SilenceTest, ConnectionsAreMadeByTheRouteThatAnswers) {
  const Routes routes{24'000};
  RingOfRanks ring(RingAllReduce(3), {.count = 10'000, .in_place = true},
                   {.source = routes.Source()});
  for (int32_t rank = 0; rank < 3; ++rank) routes.Cut(ring.at(rank), 0);
  ASSERT_TRUE(ring.Run([] {}));
}

// The answers to some ports come back by a way that is cut, and the other route is.
TEST(SilenceTest, SeveralPortsAreTriedWhereTheFirstDoesNotAnswer) {
  const Routes routes{21'400};
  const auto own = static_cast<uint16_t>(routes.first + kRoutePorts);
  std::vector<LostWay> lost;
  RingOfRanks ring(RingAllReduce(2), {.count = 10'000, .in_place = true},
                   {.source = {.first_port = own,
                               .num_ports = kRoutePorts,
                               .others = {{routes.first, kRoutePorts}}},
                    .on_lost = [&](const LostWay& way) { lost.push_back(way); }});
  ring.at(1).Cut(routes.first, static_cast<uint16_t>(own + 2));
  ASSERT_TRUE(ring.Run([] {}));
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(ring.resumptions(), 0);
}

// Way after way is left, each after some bytes: on a slow machine, acknowledgements that come late look like that.
TEST(SilenceTest, WhoseBytesMoveIsNotLostHoweverOftenItFallsSilent) {
  const Routes routes{25'000};
  std::vector<LostWay> lost;
  RingOfRanks ring(RingAllReduce(2), {.count = 4'000'000, .in_place = true, .piece_bytes = 1 << 20},
                   {.source = routes.Source(),
                    .max_failures = 1,
                    .on_lost = [&](const LostWay& way) { lost.push_back(way); }});
  while (lost.size() < 5) {
    size_t seen = lost.size();
    int polls = 0;
    const Status ran = ring.Run([&] {
      if (lost.size() > seen) {
        seen = lost.size();
        ring.at(1).Mend();
        polls = 0;
      }
      if (++polls != 10 || lost.size() >= 5) return;
      // The one that it goes on by.
      routes.Cut(ring.at(1), !lost.empty() && lost.back().ports.first == routes.first ? 1 : 0);
    });
    ASSERT_TRUE(ran) << ran.error().message;
    ring.at(1).Mend();
  }
}

TEST(SilenceTest, WhoIsHeardByNoWayFailsAndIsNamed) {
  RingOfRanks ring(RingAllReduce(2), {.count = 4'000'000, .in_place = true, .piece_bytes = 1 << 20},
                   {.source = Routes{22'000}.Source(), .max_failures = 3, .in_vain_s = 0.3});
  int polls = 0;
  const Status ran = ring.Run([&] {
    if (++polls == 10) ring.at(1).Cut();
  });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
  EXPECT_THAT(ran.error().message,
              MatchesRegex(
                  "connection 0 -> 1 channel 0: nothing came back for [0-9.]+ s, by whatever way"));
}

// Who closes often does so because it has failed, and says why by another way: that is to come first.
TEST(SilenceTest, WhoIsClosedTooOftenFailsOnlyAfterOthersCouldSayWhy) {
  RingOfRanks ring(RingAllReduce(2), {.count = 4'000'000, .in_place = true, .piece_bytes = 1 << 20},
                   {.max_failures = 1});
  int polls = 0;
  Clock::time_point closed;
  const Status ran = ring.Run([&] {
    if (++polls != 10) return;
    ring.at(1).Break();
    closed = Clock::now();
  });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
  EXPECT_THAT(
      ran.error().message,
      MatchesRegex("connection 0 -> 1 channel 0: was lost 1 times within 10 s, last because "
                   "it was (closed|reset)"));
  EXPECT_GE(Clock::now() - closed, std::chrono::milliseconds(250));
}

// A way is cut in one direction before the receiver has read what came: the sender's kernel cannot acknowledge its answers, so
// that its kernel repeats them again and again. That is not heard of a receiver that has no room.
TEST(SilenceTest, RepetitionsOfTheOtherEndAreNoAnswers) {
  constexpr std::chrono::milliseconds kAlone{20};
  constexpr std::chrono::seconds kLong{20};
  for (int n = 0; n < 10; ++n) {
    const Routes routes{21'400};
    RingOfRanks ring(RingAllReduce(2), {.count = 300'011, .in_place = true, .piece_bytes = 100'000},
                     {.source = routes.Source()});
    ASSERT_TRUE(ring.Run([] {}));
    int polls = 0;
    const auto begin = Clock::now();
    const auto between = [&] {
      if (++polls == 1 + n) routes.Cut(ring.at(1), 0);
      if (ring.resumptions() > 0 || Clock::now() - begin < kLong) return;
      if (!HasFailure()) ADD_FAILURE() << "not found";
      ring.at(1).Mend();
    };
    ASSERT_TRUE(ring.Run(between, kAlone));
    if (HasFailure()) return;
  }
}

// All that was sent is there when the way back is cut: the sender's kernel has nothing left by which it could notice.
TEST(SilenceTest, AnAnswerThatIsLostIsAskedFor) {
  constexpr std::chrono::milliseconds kAlone{100};
  constexpr std::chrono::seconds kLong{20};
  RingOfRanks ring(RingAllGather(2), {.count = 1}, {.source = Routes{21'400}.Source()});
  ASSERT_TRUE(ring.Run([] {}));
  const auto begin = Clock::now();
  const auto between = [&] {
    if (ring.resumptions() > 0 || Clock::now() - begin < kLong) return;
    if (!HasFailure()) ADD_FAILURE() << "waits for ever";
    ring.at(0).Break();
  };
  ASSERT_TRUE(ring.Run(between, kAlone, [&] { ring.at(0).CutAnswers(); }));
  EXPECT_GE(ring.resumptions(), 1);
}

// Of both directions, of all plans, at any moment: routes are cut and mended while collectives run.
void CutAtRandom(uint64_t first_seed, uint64_t seeds, uint16_t ports, int64_t wanted_cuts) {
  const Routes routes{ports};
  int64_t cuts = 0, resumptions = 0;
  std::vector<double> silent_ms, gap_ms;  // of each way that was left
  for (uint64_t seed = first_seed; seed < first_seed + seeds && cuts < wanted_cuts; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Plan plan = seed % 3 == 0   ? RingAllReduce(3)
                      : seed % 3 == 1 ? ExchangeAllReduce(4)
                                      : RingAllGather(3);
    RingOfRanks ring(plan,
                     {.count = 300'011,
                      .type = seed % 2 == 0 ? DataType::kFloat64 : DataType::kBfloat16,
                      .in_place = seed % 4 < 2,
                      .piece_bytes = 100'000},
                     {.source = routes.Source(), .on_lost = [&silent_ms](const LostWay& way) {
                        silent_ms.push_back(1e3 * way.silent_s);
                      }});
    int32_t cut_at = -1;
    const bool measures = seed % 2 == 0;                // one cut, over connections that stand
    Clock::time_point left = Clock::time_point::max();  // when another way had been taken
    for (int run = 0; run < 4; ++run) {
      int64_t seen = ring.resumptions();
      ASSERT_TRUE(ring.Run([&] {
        if (cut_at < 0) {
          if ((measures && (run == 0 || ring.resumptions() > 0)) || random.Below(30) != 0) return;
          cut_at = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ring.num_ranks())));
          routes.Cut(ring.at(cut_at), measures ? 0 : static_cast<int>(random.Below(2)));
          ++cuts;
          ring.ForgetGaps();
          return;
        }
        if (ring.resumptions() > seen) left = std::min(left, Clock::now());
        seen = ring.resumptions();
        const bool has_left = left != Clock::time_point::max();
        if (has_left && ring.last_moved() <= left) return;
        if (!has_left && random.Below(4000) != 0) return;
        if (has_left && measures)
          gap_ms.push_back(std::chrono::duration<double, std::milli>(ring.longest_gap()).count());
        ring.at(cut_at).Mend();
        cut_at = -1;
        left = Clock::time_point::max();
      }));
    }
    resumptions += ring.resumptions();
  }
  for (std::vector<double>* each : {&silent_ms, &gap_ms}) {
    std::sort(each->begin(), each->end());
    ASSERT_FALSE(each->empty());
  }
  const auto quantile = [](const std::vector<double>& sorted, size_t percent) {
    return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
  };
  std::printf(
      "%d cuts, %zu ways left: silent for %.1f ms (median), %.1f (p99); %zu gaps of %.1f ms "
      "(median), %.1f (p99)\n",
      static_cast<int>(cuts), silent_ms.size(), quantile(silent_ms, 50), quantile(silent_ms, 99),
      gap_ms.size(), quantile(gap_ms, 50), quantile(gap_ms, 99));
  std::fflush(stdout);  // Or processes that later tests fork print it again.
  EXPECT_GE(cuts, wanted_cuts);
  EXPECT_GT(resumptions, cuts / 10);
}

TEST(SilenceTest, RandomCuts) { CutAtRandom(0, 100, 26'000, 20); }

TEST(SilenceSlow, TwoHundredRandomCuts) { CutAtRandom(1000, 1000, 27'000, 200); }

}  // namespace
}  // namespace tutti
