// Ways that fell silent, over sockets of this host whose listener drops what comes from some source ports; the clock is the
// test's.
#include "path_watch.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "endpoint.h"

namespace tutti::service {
namespace {

constexpr int64_t kTickNs = 50'000'000;

class Target {
 public:
  Target() : socket_(ListenAt(endpoint_)) { EXPECT_TRUE(socket_.is_open()); }
  const Endpoint& endpoint() const { return endpoint_; }
  // Drops what comes from ports of which these bits are set, as where a switch sends it by a link that is cut.
  void Drop(uint32_t bits) {
    std::array<sock_filter, 4> program = {{
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    ASSERT_EQ(setsockopt(socket_.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
  }

 private:
  Endpoint endpoint_{INADDR_LOOPBACK, 0};
  ipc::Descriptor socket_;
};

LostWay WayTo(const Target& target, uint16_t first_port, uint16_t ports) {
  return {.peer = 1,
          .channel = 0,
          .to = target.endpoint(),
          .address = INADDR_LOOPBACK,
          .ports = {first_port, ports},
          .silent_s = 0.02};
}

void TickUntil(PathWatch& watch, int64_t& now_ns, int64_t end_ns) {
  for (; now_ns < end_ns; now_ns += kTickNs) watch.Tick(now_ns);
}

TEST(PathWatchTest, AWayThatAnswersIsForgottenAtOnce) {
  Target target;
  PathWatch watch;
  watch.Add(0, WayTo(target, 29'000, 64), 0);
  ASSERT_EQ(watch.lost().size(), 1u);
  EXPECT_FALSE(watch.lost()[0].is_cut);
  int64_t now_ns = 0;
  TickUntil(watch, now_ns, PathWatch::kDecideNs);
  EXPECT_TRUE(watch.lost().empty());
  EXPECT_EQ(watch.total(), 1);
}

// Answers are hashed over two ways, of which another one is cut: half of what is asked by this way stays without one.
TEST(PathWatchTest, AWayWhoseAnswersGetLostHalfTheTimeIsNotCut) {
  Target target;
  target.Drop(1);
  PathWatch watch;
  watch.Add(0, WayTo(target, 29'100, 64), 0);
  int64_t now_ns = 0;
  TickUntil(watch, now_ns, PathWatch::kDecideNs);
  EXPECT_TRUE(watch.lost().empty());
}

TEST(PathWatchTest, AWayIsCutWhereNothingAnswersAndForgottenWhenItDoesAgain) {
  Target target;
  target.Drop(UINT16_MAX);
  PathWatch watch;
  watch.Add(3, WayTo(target, 29'200, 4), 0);  // fewer ports than probes
  int64_t now_ns = 0;
  TickUntil(watch, now_ns, PathWatch::kDecideNs);
  ASSERT_EQ(watch.lost().size(), 1u);
  EXPECT_FALSE(watch.lost()[0].is_cut) << "too early";
  TickUntil(watch, now_ns, 5 * PathWatch::kBetweenNs);
  ASSERT_EQ(watch.lost().size(), 1u);
  EXPECT_TRUE(watch.lost()[0].is_cut);
  EXPECT_EQ(watch.lost()[0].from, 3);
  // Lost once more, it stays known to be.
  watch.Add(3, WayTo(target, 29'200, 4), now_ns);
  ASSERT_EQ(watch.lost().size(), 1u);
  EXPECT_TRUE(watch.lost()[0].is_cut);
  target.Drop(0);
  TickUntil(watch, now_ns, 7 * PathWatch::kBetweenNs);
  EXPECT_TRUE(watch.lost().empty());
}

TEST(PathWatchTest, WhereNobodyListensTheWayLeadsThere) {
  Endpoint closed;
  {
    const Target target;
    closed = target.endpoint();
  }
  PathWatch watch;
  watch.Add(0,
            {.peer = 1,
             .channel = 0,
             .to = closed,
             .address = INADDR_LOOPBACK,
             .ports = {29'300, 64},
             .silent_s = 0.02},
            0);
  int64_t now_ns = 0;
  TickUntil(watch, now_ns, PathWatch::kDecideNs);
  EXPECT_TRUE(watch.lost().empty());
}

TEST(PathWatchTest, ARouteIsSuspectForAWhileAlsoWhereItAnswersAgain) {
  const Target target;
  PathWatch watch;
  constexpr int64_t kNow = 1'000'000'000;
  const TcpPorts left{41'000, 8}, other{41'100, 8};
  EXPECT_FALSE(watch.Suspects(left, kNow));
  watch.Add(0, WayTo(target, left.first, left.count), kNow);
  watch.Tick(kNow);
  EXPECT_TRUE(watch.Suspects(left, kNow + PathWatch::kSuspectNs - 1));
  EXPECT_FALSE(watch.Suspects(other, kNow));
  EXPECT_FALSE(watch.Suspects(left, kNow + PathWatch::kSuspectNs));
}

TEST(PathWatchTest, WaysWithoutPortsAreForgottenAfterAWhile) {
  const Target target;
  PathWatch watch;
  watch.Add(0, WayTo(target, 0, 0), 0);
  watch.Tick(PathWatch::kUnknownNs);
  EXPECT_EQ(watch.lost().size(), 1u);
  watch.Tick(PathWatch::kUnknownNs + 1);
  EXPECT_TRUE(watch.lost().empty());
}

}  // namespace
}  // namespace tutti::service
