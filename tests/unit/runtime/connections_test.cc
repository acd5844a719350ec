// One suite over every kind of connection: the same plans, the same bytes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "connection_cases.h"
#include "hand_plans.h"
#include "ranks_in_memory.h"
#include "run.h"
#include "support/ip_version6.h"
#include "tcp_transport.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// The transports of all ranks over loopback, connected along the edges of the plan only.
class TcpEnds {
 public:
  explicit TcpEnds(const RanksInMemory& ranks, const TcpOptions& options = {}) {
    for (int32_t rank = 0; rank < ranks.num_ranks(); ++rank)
      transports_.push_back(TcpTransport::Listen(rank, options).value());
    std::vector<Endpoint> endpoints;
    for (const auto& transport : transports_) endpoints.push_back(transport->endpoint());
    for (const auto& transport : transports_) transport->SetPeers(endpoints);
  }
  std::vector<StreamEnds> Of(const RanksInMemory& ranks, int32_t rank) {
    return PeerEnds(ranks.program(), rank, at(rank));
  }
  TcpTransport& at(int32_t rank) { return *transports_[static_cast<size_t>(rank)]; }
  bool PollAll(int wait_ms = 0) {
    bool any = false;
    for (const auto& transport : transports_) any = transport->Poll(wait_ms) || any;
    return any;
  }

 private:
  std::vector<std::unique_ptr<TcpTransport>> transports_;
};

template <class Ends>
std::deque<Interpreter> MakeInterpreters(RanksInMemory& ranks, Ends& ends) {
  std::deque<Interpreter> interpreters;
  for (int32_t r = 0; r < ranks.num_ranks(); ++r)
    interpreters.push_back(ranks.MakeInterpreter(r, ends.Of(ranks, r)));
  return interpreters;
}

void ExpectOver(std::deque<Interpreter>& interpreters, RanksInMemory& ranks, TcpEnds& ends,
                Random& random, int64_t max_budget, int breaks) {
  ranks.Fill();
  const auto draw = [&] {
    return 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(max_budget)));
  };
  const auto between = [&] {
    if (breaks > 0 && random.Below(20) == 0) {
      --breaks;
      ends.at(static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks.num_ranks())))).Break();
    }
    for (const Interpreter& rank : interpreters)
      if (const Status health = rank.health(); !health) {
        ADD_FAILURE() << health.error().message;
        return false;
      }
    return ends.PollAll() || ends.PollAll(1);
  };
  ASSERT_TRUE(RunInTurns(interpreters, draw, between));
  ASSERT_EQ(ranks.CountWrong(), 0);
}

TEST(ConnectionsTest, EveryPlanOverSharedMemoryAndTcp) {
  for (const ConnectionCase& each : ConnectionCases()) {
    SCOPED_TRACE(testing::Message()
                 << Name(each.plan.collective.kind()) << " " << each.options.count << " "
                 << Name(each.options.type) << " " << Name(each.options.op));
    RanksInMemory shared(each.plan, each.options);
    SharedEnds shared_ends(shared);
    std::deque<Interpreter> over_memory = MakeInterpreters(shared, shared_ends);
    shared.Fill();
    ASSERT_TRUE(RunInTurns(
        over_memory, [] { return kNoBudget; }, [] { return false; }));
    ASSERT_EQ(shared.CountWrong(), 0);
    Random random(1);
    RanksInMemory ranks(each.plan, each.options);
    TcpEnds ends(ranks);
    std::deque<Interpreter> over_tcp = MakeInterpreters(ranks, ends);
    for (int run = 0; run < 2; ++run)
      ExpectOver(over_tcp, ranks, ends, random, run == 0 ? kNoBudget - 2 : 5000, 0);
    EXPECT_EQ(ranks.Results(), shared.Results());
  }
}

// Connections that are cut anywhere go on at the byte where they were; sums take no byte twice.
TEST(ConnectionsTest, BrokenConnectionsResume) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Plan plan = seed % 3 == 0   ? RingAllGather(3)
                      : seed % 3 == 1 ? RingAllReduce(3)
                                      : ExchangeAllReduce(4);
    RanksInMemory ranks(plan, {.count = 30'011,
                               .type = seed % 2 == 0 ? DataType::kFloat64 : DataType::kBfloat16,
                               .in_place = seed % 4 < 2,
                               .piece_bytes = 20'000});
    TcpEnds ends(ranks);
    std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
    for (int run = 0; run < 2; ++run) ExpectOver(interpreters, ranks, ends, random, 3000, 6);
  }
}

TEST(ConnectionsTest, RanksInThreadsWithChosenSourcePorts) {
  const Plan plan = RingAllReduce(3);
  RanksInMemory ranks(plan, {.count = 100'003, .in_place = true, .piece_bytes = 10'000});
  TcpEnds ends(ranks, {.source = {.first_port = 42'000, .num_ports = 100}});
  std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
  ranks.Fill();
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      const Status ran = RunToEnd(interpreters[static_cast<size_t>(r)], ends.at(r), Deadline(30));
      EXPECT_TRUE(ran.has_value()) << ran.error().message;
      ++over;
      while (over < 3) ends.at(r).Poll(1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ranks.CountWrong(), 0);
}

TEST(ConnectionsTest, ProcessesOfARunExchangeMessagesOverTcp) {
  for (const Plan& plan : {RingAllGather(3), RingAllReduce(4), ExchangeAllReduce(4)})
    for (const bool in_place : {false, true}) {
      RunOptions options;
      options.size_bytes = 100'000;
      options.iterations = 3;
      options.in_place = in_place;
      options.transport = Transport::kTcp;
      const Result<RunReport> report = RunPlan(plan, options);
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(report->wrong, 0);
    }
}

// --- Fixed order --------------------------------------------------------------------------------

// Units of a shard go both ways round, and meet the other contributions in other orders.
Plan TwoWayAllReduce(const char* network) {
  const Topology topology = ParseTopology(network).value();
  const Collective collective =
      Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks()).value();
  const Schedule schedule =
      RunSynthesizer(*FindSynthesizer("bfb").value(), topology, collective, {}).value();
  Plan plan = Lower(topology, schedule).value();
  EXPECT_GT(plan.units_per_shard, 1);
  return plan;
}

template <class RunAll>
std::vector<std::byte> ResultsOf(const Plan& plan, const CallOptions& options, RunAll run_all) {
  RanksInMemory ranks(plan, options);
  run_all(ranks);
  EXPECT_EQ(ranks.CountWrong(), 0) << "tiles of " << options.piece_bytes;
  return ranks.Results();
}

std::vector<std::byte> SharedResults(const Plan& plan, const CallOptions& options) {
  return ResultsOf(plan, options, [](RanksInMemory& ranks) {
    SharedEnds ends(ranks);
    std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
    ranks.Fill();
    ASSERT_TRUE(RunInTurns(
        interpreters, [] { return kNoBudget; }, [] { return false; }));
  });
}

std::vector<std::byte> TcpResults(const Plan& plan, const CallOptions& options) {
  return ResultsOf(plan, options, [](RanksInMemory& ranks) {
    TcpEnds ends(ranks);
    std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
    Random random(1);
    ExpectOver(interpreters, ranks, ends, random, 5000, 2);
  });
}

TEST(FixedOrderTest, TheSameBitsForAllTilesAndConnections) {
  for (const char* network : {"ring(4)", "torus(3,2)", "ring(6)"})
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBfloat16})
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << network << " " << Name(type) << " " << in_place);
        const Plan plan = TwoWayAllReduce(network);
        CallOptions options{.count = 4003,
                            .type = type,
                            .in_place = in_place,
                            .piece_bytes = 1 << 20,
                            .tiles_of = TilesOf::kUnits,
                            .values = Pattern::Values::kRough};
        const std::vector<std::byte> one_tile = SharedResults(plan, options);
        for (const int64_t piece_bytes : {64, 999}) {
          options.piece_bytes = piece_bytes;
          EXPECT_TRUE(SharedResults(plan, options) == one_tile) << piece_bytes;
          EXPECT_TRUE(TcpResults(plan, options) == one_tile) << piece_bytes;
        }
        // Else units are of tiles, and most elements are in another one.
        options.tiles_of = TilesOf::kSlots;
        options.piece_bytes = 64;
        EXPECT_FALSE(SharedResults(plan, options) == one_tile);
      }
}

TEST(FixedOrderTest, ProcessesAndThreadsGiveOneDigest) {
  const Plan plan = TwoWayAllReduce("ring(4)");
  std::set<uint64_t> digests;
  for (const Transport transport : {Transport::kShared, Transport::kTcp})
    for (const bool in_threads : {false, true})
      for (const int64_t piece_bytes : {4096, 1 << 20})
        for (const bool in_place : {false, true}) {
          RunOptions options;
          options.size_bytes = 400'000;
          options.iterations = 2;
          options.in_place = in_place;
          options.fixed_order = true;
          options.transport = transport;
          RunMode mode;
          mode.tuning.piece_bytes = piece_bytes;
          mode.in_threads = in_threads;
          const Result<RunReport> report = RunPlanAs(plan, options, mode);
          ASSERT_TRUE(report.has_value()) << report.error().message;
          EXPECT_EQ(report->wrong, 0);
          digests.insert(report->digest);
        }
  EXPECT_EQ(digests.size(), 1u);
  RunOptions other;
  other.size_bytes = 400'000;
  other.fixed_order = true;
  other.op = ReduceOp::kAvg;
  digests.insert(RunPlan(plan, other).value().digest);
  EXPECT_EQ(digests.size(), 2u);
}

TEST(ConnectionsTest, MessagesGoOverIpVersion6FromChosenPortsToo) {
  if (!HasIpVersion6()) GTEST_SKIP() << "no IP version 6 here: " << std::strerror(errno);
  const Plan plan = RingAllReduce(3);
  for (const IpAddress& from : {IpAddress(), IpAddress::Loopback6()}) {
    RanksInMemory ranks(plan, {.count = 50'000});
    TcpOptions options;
    options.address = IpAddress::Loopback6();
    options.source = {.address = from, .first_port = 24'000, .num_ports = 400};
    TcpEnds ends(ranks, options);
    EXPECT_EQ(ends.at(0).endpoint().AddressText(), "::1");
    std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
    Random random(5);
    ExpectOver(interpreters, ranks, ends, random, 100'000, 0);
  }
}

// --- Faults -------------------------------------------------------------------------------------

int ConnectTo(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(ConnectionsTest, StrangersAreClosedAndDisturbNobody) {
  const Plan plan = RingAllReduce(2);
  RanksInMemory ranks(plan, {.count = 1000});
  TcpOptions options;
  options.cookie = {1, 2};
  TcpEnds ends(ranks, options);
  std::deque<Interpreter> interpreters = MakeInterpreters(ranks, ends);
  tcp::Hello hello{.cookie = {1, 3}, .sender = 1, .receiver = 0};  // a wrong cookie
  const auto wrong = tcp::Encode(hello);
  std::string garbage(64, 'x');
  std::vector<int> strangers;
  for (const void* bytes :
       {static_cast<const void*>(wrong.data()), static_cast<const void*>(garbage.data())}) {
    strangers.push_back(ConnectTo(ends.at(0).endpoint().port));
    EXPECT_EQ(send(strangers.back(), bytes, 64, 0), 64);
  }
  strangers.push_back(ConnectTo(ends.at(0).endpoint().port));  // says nothing
  Random random(3);
  ExpectOver(interpreters, ranks, ends, random, kNoBudget - 2, 0);
  while (ends.at(0).half_open() > 0) ends.PollAll(10);
  for (const int fd : strangers) {
    char byte = 0;
    EXPECT_LE(recv(fd, &byte, 1, 0), 0);  // closed
    close(fd);
  }
}

TEST(ConnectionsTest, WhoComesBeforeItIsAskedForIsKept) {
  const auto mine = TcpTransport::Listen(0, {.communicator = 7, .cookie = {1, 2}}).value();
  tcp::Hello hello{.communicator = 7, .cookie = {1, 2}, .sender = 3, .receiver = 0, .channel = 5};
  const auto greet = [&mine, &hello] {
    const auto bytes = tcp::Encode(hello);
    const int fd = ConnectTo(mine->endpoint().port);
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    do mine->Poll(10);
    while (mine->half_open() > 0);
    return fd;
  };
  std::byte byte{};
  const int early = greet();
  EXPECT_EQ(recv(early, &byte, 1, MSG_DONTWAIT), -1);  // neither closed nor answered
  EXPECT_EQ(errno, EAGAIN);
  hello.receiver = 1;
  const int of_others = greet();
  EXPECT_EQ(recv(of_others, &byte, 1, 0), 0);  // closed
  mine->ReceiveFrom(3, 5);
  std::array<std::byte, tcp::kWelcomeBytes> welcome{};
  ASSERT_EQ(recv(early, welcome.data(), welcome.size(), MSG_WAITALL),
            static_cast<ssize_t>(welcome.size()));
  EXPECT_EQ(tcp::WordAt(welcome.data()), tcp::kWelcomeMagic);
  close(early);
  close(of_others);
}

// Both ranks of a ring of two, of which each has another call.
struct DifferentCalls {
  DifferentCalls() {
    for (int32_t r = 0; r < 2; ++r)
      transports.push_back(TcpTransport::Listen(r, {.signature = r == 0 ? 0x11u : 0x22u}).value());
  }
  // Rank `r`, which sends to where `receiver` listens.
  Interpreter MakeInterpreter(int32_t r, const TcpTransport& receiver) {
    TcpTransport& mine = *transports[static_cast<size_t>(r)];
    return ranks.MakeInterpreter(r, {{mine.SendTo(1 - r, receiver.endpoint(), 0), nullptr},
                                     {nullptr, mine.ReceiveFrom(1 - r, 0)}});
  }

  const Plan plan = RingAllReduce(2);
  RanksInMemory ranks{plan, {.count = 8}};
  std::vector<std::unique_ptr<TcpTransport>> transports;
};

TEST(ConnectionsTest, RanksThatRunDifferentCallsSaySo) {
  DifferentCalls calls;
  std::deque<Interpreter> interpreters;
  for (int32_t r = 0; r < 2; ++r)
    interpreters.push_back(calls.MakeInterpreter(r, *calls.transports[static_cast<size_t>(1 - r)]));
  std::vector<std::string> messages(2);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      const Status ran = RunToEnd(interpreters[r], *calls.transports[r], Deadline(20));
      if (!ran) messages[r] = ran.error().message;
    });
  for (std::thread& thread : threads) thread.join();
  // As receiver or as sender, whichever comes first.
  EXPECT_THAT(
      messages[0],
      AnyOf("connection 1 -> 0 channel 0: got message 0 of call 0000000000000022, wanted "
            "message 0 of call 0000000000000011: the ranks do not run the same",
            "connection 0 -> 1 channel 0: the receiver wanted message 0 of call "
            "0000000000000022, not of call 0000000000000011: the ranks do not run the same"));
  EXPECT_THAT(
      messages[1],
      AnyOf("connection 0 -> 1 channel 0: got message 0 of call 0000000000000011, wanted "
            "message 0 of call 0000000000000022: the ranks do not run the same",
            "connection 1 -> 0 channel 0: the receiver wanted message 0 of call "
            "0000000000000011, not of call 0000000000000022: the ranks do not run the same"));
}

TEST(ConnectionsTest, AReceiverTellsTheSenderOfAnotherCallBeforeItEnds) {
  DifferentCalls calls;
  // Where rank 1 sends nobody answers, so that rank 0 hears of its call by the refusal alone.
  const auto idle = TcpTransport::Listen(0, {}).value();
  Interpreter sender = calls.MakeInterpreter(0, *calls.transports[1]);
  Interpreter receiver = calls.MakeInterpreter(1, *idle);
  sender.Start();
  receiver.Start();
  const Deadline deadline(20);
  while (receiver.health() && !deadline.HasPassed()) {
    sender.Poll(1 << 10);
    calls.transports[0]->Poll(0);
    receiver.Poll(1 << 10);
    calls.transports[1]->Poll(0);
  }
  ASSERT_FALSE(receiver.health().has_value());
  EXPECT_THAT(receiver.health().error().message,
              HasSubstr("wanted message 0 of call 0000000000000022"));
  calls.transports[1].reset();
  while (sender.health() && !deadline.HasPassed()) calls.transports[0]->Poll(1);
  ASSERT_FALSE(sender.health().has_value());
  EXPECT_EQ(sender.health().error().message,
            "connection 0 -> 1 channel 0: the receiver wanted message 0 of call 0000000000000022, "
            "not of call 0000000000000011: the ranks do not run the same");
}

// Where nobody listens, as long as it lives: a port that is closed may be another program's next.
class Nobody {
 public:
  Nobody() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    endpoint_ = {INADDR_LOOPBACK, ntohs(at.sin_port)};
  }
  ~Nobody() { close(fd_); }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  int fd_;
  Endpoint endpoint_;
};

// Descriptors of this process.
std::set<int> TcpSockets(std::string_view congestion) {
  std::set<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    std::array<char, 16> name{};
    socklen_t size = name.size();
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 &&
        congestion == name.data())
      found.insert(fd);
  }
  return found;
}

TEST(ConnectionsTest, APeerThatIsNotThereIsNamedInTime) {
  const Plan plan = RingAllReduce(2);
  RanksInMemory ranks(plan, {.count = 8});
  const auto mine = TcpTransport::Listen(0, {.patience_s = 0.05}).value();
  const Nobody nobody;
  Interpreter interpreter = ranks.MakeInterpreter(
      0, {{mine->SendTo(1, nobody.endpoint(), 0), nullptr}, {nullptr, mine->ReceiveFrom(1, 0)}});
  const Status ran = RunToEnd(interpreter, *mine, Deadline(20));
  ASSERT_FALSE(ran.has_value());
  EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
  EXPECT_THAT(ran.error().message, HasSubstr("channel 0: "));
}

// Every kernel has reno, and lets every process take it.
TEST(ConnectionsTest, MessagesGoByTheCongestionControlThatIsWanted) {
  const std::set<int> before = TcpSockets("reno");
  const auto mine = TcpTransport::Listen(0, {.congestion = "reno"}).value();
  const auto other = TcpTransport::Listen(1, {}).value();
  mine->SendTo(1, other->endpoint(), 0);
  mine->Poll(1);
  EXPECT_EQ(TcpSockets("reno").size(), before.size() + 2);  // what listens, and what sends
  const Result<std::unique_ptr<TcpTransport>> none =
      TcpTransport::Listen(3, {.congestion = "none"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(none.error().message,
              HasSubstr("rank 3: the kernel has no TCP congestion control 'none'"));
  setenv("TUTTI_TCP_CONGESTION", "none", 1);
  EXPECT_FALSE(TcpTransport::Listen(3, {}));
  EXPECT_TRUE(TcpTransport::Listen(3, {.congestion = "reno"}));
  unsetenv("TUTTI_TCP_CONGESTION");
}

TEST(ConnectionsTest, WhyAConnectionCannotBeMadeIsSaid) {
  const auto mine = TcpTransport::Listen(0, {.patience_s = 0.5}).value();
  const Nobody nobody;
  const Connection* sender = mine->SendTo(1, nobody.endpoint(), 0);
  while (sender->health()) mine->Poll(1);
  EXPECT_EQ(sender->health().error().message,
            "connection 0 -> 1 channel 0: could not be made within 0.5 s: Connection refused");
  // No descriptor is left for a socket.
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  sender = mine->SendTo(1, nobody.endpoint(), 1);
  while (sender->health()) mine->Poll(1);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(sender->health().error().message,
            "connection 0 -> 1 channel 1: could not be made within 0.5 s: Too many open files");
  EXPECT_THAT(TcpTransport::Listen(0, {.address = 0xcb007107}).error().message,
              HasSubstr("rank 0: cannot listen at 203.0.113.7: Cannot assign requested address"));
}

// Of one that waits for its peer for ever.
TEST(ConnectionsTest, WantOfDescriptorsIsNotWaitedOutForEver) {
  constexpr double kForEver = 1e9, kInVain_s = 0.3;
  const auto mine =
      TcpTransport::Listen(0, {.patience_s = kForEver, .in_vain_s = kInVain_s}).value();
  const auto other = TcpTransport::Listen(1, {.patience_s = kForEver}).value();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  const auto poll_for = [&](std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) mine->Poll(1);
  };
  // Short for a while, then not: it is made.
  setrlimit(RLIMIT_NOFILE, &none);
  const Connection* briefly = mine->SendTo(1, other->endpoint(), 0);
  poll_for(std::chrono::milliseconds(50));
  setrlimit(RLIMIT_NOFILE, &before);
  poll_for(std::chrono::milliseconds(400));
  EXPECT_TRUE(briefly->health());
  // Nobody there is no want.
  const Nobody nobody;
  const Connection* lonely = mine->SendTo(1, nobody.endpoint(), 1);
  poll_for(std::chrono::milliseconds(400));
  EXPECT_TRUE(lonely->health());
  setrlimit(RLIMIT_NOFILE, &none);
  const Connection* starved = mine->SendTo(1, other->endpoint(), 2);
  const Deadline most(20);
  while (starved->health() && !most.HasPassed()) mine->Poll(1);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(starved->health());
  EXPECT_EQ(starved->health().error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(starved->health().error().message,
            "connection 0 -> 1 channel 2: could not be made within 0.3 s: Too many open files");
  EXPECT_TRUE(briefly->health());
}

// Its sender has connected, and waits to be welcomed for ever.
TEST(ConnectionsTest, WantOfDescriptorsToAcceptIsNotWaitedOutForEver) {
  constexpr double kForEver = 1e9, kInVain_s = 0.3;
  const auto mine = TcpTransport::Listen(0, {.patience_s = kForEver}).value();
  const auto other =
      TcpTransport::Listen(1, {.patience_s = kForEver, .in_vain_s = kInVain_s}).value();
  const Connection* accepted = other->ReceiveFrom(0, 0);
  mine->SendTo(1, other->endpoint(), 0);
  const auto poll_both_for = [&](std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
      mine->Poll(1);
      other->Poll(1);
    }
  };
  poll_both_for(std::chrono::milliseconds(50));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  // Short for a while, then not: it is accepted.
  const Connection* briefly = other->ReceiveFrom(0, 1);
  mine->SendTo(1, other->endpoint(), 1);
  mine->Poll(1);  // its socket is made
  setrlimit(RLIMIT_NOFILE, &none);
  poll_both_for(std::chrono::milliseconds(50));
  setrlimit(RLIMIT_NOFILE, &before);
  poll_both_for(std::chrono::milliseconds(400));
  const Connection* starved = other->ReceiveFrom(0, 2);
  mine->SendTo(1, other->endpoint(), 2);
  mine->Poll(1);
  setrlimit(RLIMIT_NOFILE, &none);
  const Deadline most(20);
  while (starved->health() && !most.HasPassed()) poll_both_for(std::chrono::milliseconds(2));
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(starved->health());
  EXPECT_EQ(starved->health().error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(starved->health().error().message,
            "connection 0 -> 1 channel 2: could not be accepted within 0.3 s: Too many open files");
  // Those that were made live on.
  EXPECT_TRUE(accepted->health());
  EXPECT_TRUE(briefly->health());
}

TEST(ConnectionsTest, ADeadProcessOfARunOverTcpIsNamed) {
  RunOptions options;
  options.size_bytes = 100'000;
  options.transport = Transport::kTcp;
  const Result<RunReport> report =
      RunPlanAs(RingAllReduce(3), options, {.death = {.rank = 1, .at_instruction = 5}});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kPeerFailed);
  EXPECT_THAT(report.error().message, HasSubstr("rank 1 was killed by signal 9"));
}

TEST(ConnectionsTest, TheDeadlineOfAnOperationHolds) {
  const Plan plan = RingAllReduce(2);
  RanksInMemory ranks(plan, {.count = 8});
  const auto mine = TcpTransport::Listen(0, {.patience_s = 100}).value();
  const auto idle = TcpTransport::Listen(1, {}).value();
  Interpreter interpreter = ranks.MakeInterpreter(
      0, {{mine->SendTo(1, idle->endpoint(), 0), nullptr}, {nullptr, mine->ReceiveFrom(1, 0)}});
  const Status ran = RunToEnd(interpreter, *mine, Deadline(0.05));
  ASSERT_FALSE(ran.has_value());
  EXPECT_THAT(ran.error().message, HasSubstr("by its deadline"));
}

}  // namespace
}  // namespace tutti
