// Ranks that share nothing with each other, here as threads: a coordinator, ranks over TCP, and what
// becomes of a job when somebody fails.
#include "tutti/runtime/remote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "control_link.h"
#include "hand_plans.h"
#include "remote_job.h"
#include "support/ip_version6.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/plan_file.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr JobSecret kSecret{0x1234, 0x5678};

Status Fine() { return {}; }

CoordinatorOptions JobOf(int32_t ranks, double patience_s = 60,
                         const std::string& host = "127.0.0.1") {
  return {.host = host, .num_ranks = ranks, .secret = kSecret, .patience_s = patience_s};
}

RemoteRankOptions RankOf(uint16_t port, int32_t rank, int32_t ranks,
                         const std::string& host = "127.0.0.1") {
  return {.host = host,
          .port = port,
          .rank = rank,
          .num_ranks = ranks,
          .secret = kSecret,
          .patience_s = 60};
}

// A coordinator, and a thread for each rank that serve() is called for.
class Fleet {
 public:
  explicit Fleet(int32_t ranks, double patience_s = 60, const std::string& host = "127.0.0.1")
      : ranks_(ranks),
        served_(static_cast<size_t>(ranks)),
        coordinator_(Coordinator::Listen(JobOf(ranks, patience_s, host)).value()) {}
  ~Fleet() { Join(); }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  void Serve(int32_t rank, const std::string& host = "127.0.0.1") {
    threads_.emplace_back([this, rank, host, port = coordinator_->port()] {
      served_[static_cast<size_t>(rank)] = ServeRank(RankOf(port, rank, ranks_, host));
    });
  }
  void ServeAll() {
    for (int32_t rank = 0; rank < ranks_; ++rank) Serve(rank);
  }
  // Ends the job.
  void Join() {
    coordinator_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  Status GatherAround(const Plan& plan) {
    Status all_here = coordinator_->Gather(Fine);
    return all_here ? coordinator_->SetPlan(plan) : all_here;
  }
  Coordinator& coordinator() { return *coordinator_; }
  const Status& served(int32_t rank) const { return served_[static_cast<size_t>(rank)]; }

 private:
  int32_t ranks_;
  std::vector<Status> served_;
  std::optional<Coordinator> coordinator_;
  std::vector<std::thread> threads_;
};

// A rank that is played by hand.
class FakeRank {
 public:
  FakeRank(uint16_t port, int32_t rank, int32_t ranks, uint64_t secret = kSecret[1],
           uint64_t magic = remote::kMagic)
      : link_(ControlLink::Connect("127.0.0.1", port, 60).value()) {
    EXPECT_TRUE(link_.Send(FrameType::kHello,
                           {static_cast<int64_t>(magic), static_cast<int64_t>(kSecret[0]),
                            static_cast<int64_t>(secret), rank, ranks}));
  }
  ControlLink& link() { return link_; }
  Frame Next() {
    for (int i = 0; i < 200; ++i) {
      Result<std::optional<Frame>> frame = link_.Receive(1 << 20, 100);
      if (!frame) return {FrameType::kFailed, frame.error().message};
      if (*frame) return **frame;
    }
    return {FrameType::kFailed, "nothing came"};
  }

 private:
  ControlLink link_;
};

TEST(Remote, RunsEveryCollective) {
  const Topology torus = *ParseTopology("torus(2,2)");
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
        CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kGather,
        CollectiveKind::kScatter, CollectiveKind::kAllToAll}) {
    SCOPED_TRACE(Name(kind));
    const Result<Schedule> schedule = RunSynthesizer(
        **FindSynthesizer("direct"), torus, MakeCollective(kind, 4, {.root = 2}), SynthOptions());
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    const Result<Plan> plan = Lower(torus, *schedule);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    Fleet fleet(4);
    fleet.ServeAll();
    const Status gathered = fleet.GatherAround(*plan);
    ASSERT_TRUE(gathered.has_value()) << gathered.error().message;
    for (const int64_t size : {4, 1000, 300'000})
      for (const bool in_place : {false, HasInPlaceForm(plan->collective)}) {
        const Result<RunReport> report = fleet.coordinator().Run(
            {.size_bytes = size, .in_place = in_place, .warmup = 1, .iterations = 2});
        ASSERT_TRUE(report.has_value()) << report.error().message;
        EXPECT_EQ(report->wrong, 0);
        EXPECT_EQ(report->size_bytes,
                  SizeThatRunsRemotely(*plan, {.size_bytes = size, .in_place = in_place}));
        EXPECT_GT(report->time_s, 0);
      }
    fleet.Join();
    for (int32_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(fleet.served(rank).has_value());
  }
}

TEST(Remote, AFixedOrderGivesTheDigestOfRanksHere) {
  const Topology ring = *ParseTopology("ring(4)");
  const Schedule schedule = *RunSynthesizer(**FindSynthesizer("bfb"), ring,
                                            MakeCollective(CollectiveKind::kAllReduce, 4), {});
  const Plan plan = *Lower(ring, schedule);
  Fleet fleet(4);
  fleet.ServeAll();
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  const RunOptions options{.size_bytes = 3'000'000, .fixed_order = true, .iterations = 1};
  const Result<RunReport> here = RunPlan(plan, options),
                          elsewhere = fleet.coordinator().Run(options);
  ASSERT_TRUE(here.has_value() && elsewhere.has_value());
  EXPECT_EQ(elsewhere->wrong, 0);
  EXPECT_NE(here->digest, 0u);
  EXPECT_EQ(elsewhere->digest, here->digest);
}

TEST(Remote, TracesAreOnOneClock) {
  const Plan plan = RingAllReduce(3);
  Fleet fleet(3);
  fleet.ServeAll();
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  const Result<RunReport> report = fleet.coordinator().Run(
      {.size_bytes = 4'000'000, .warmup = 1, .iterations = 2, .record_trace = true});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->wrong, 0);
  EXPECT_GT(report->clock_error_s, 0);
  std::map<std::tuple<int32_t, size_t, size_t>, std::vector<RunEvent>> events;
  for (const RunEvent& event : report->trace) {
    EXPECT_GE(event.start_s, 0);
    EXPECT_LE(event.start_s, event.end_s);
    events[{event.rank, static_cast<size_t>(event.stream), static_cast<size_t>(event.instruction)}]
        .push_back(event);
  }
  // Every instruction of the plan is there, each as often as the others (once a tile), and no message
  // ends before its sender has begun it, but for what the reading of clocks may be wrong by.
  const size_t tiles = events.begin()->second.size();
  EXPECT_GT(tiles, 1u);
  size_t messages = 0;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const auto& streams = plan.ranks[static_cast<size_t>(rank)].streams;
    for (size_t s = 0; s < streams.size(); ++s) {
      size_t received = 0;
      for (size_t i = 0; i < streams[s].instructions.size(); ++i) {
        const std::vector<RunEvent>& mine = events[{rank, s, i}];
        ASSERT_EQ(mine.size(), tiles);
        const OpCode op = streams[s].instructions[i].op;
        if (op != OpCode::kRecv && op != OpCode::kRecvReduce) continue;
        // The stream of the peer that sends to this one, and its send of the same number.
        const int32_t peer = streams[s].recv_peer;
        const auto& of_peer = plan.ranks[static_cast<size_t>(peer)].streams;
        for (size_t p = 0; p < of_peer.size(); ++p) {
          if (of_peer[p].send_peer != rank || of_peer[p].channel != streams[s].channel) continue;
          size_t sent = 0;
          for (size_t j = 0; j < of_peer[p].instructions.size(); ++j) {
            if (of_peer[p].instructions[j].op != OpCode::kSend || sent++ != received) continue;
            ++messages;
            const std::vector<RunEvent>& theirs = events[{peer, p, j}];
            for (size_t tile = 0; tile < tiles; ++tile)
              EXPECT_GE(mine[tile].end_s, theirs[tile].start_s - 2 * report->clock_error_s);
          }
        }
        ++received;
      }
    }
  }
  EXPECT_EQ(messages, 12u);  // of each rank 2 for each half
  EXPECT_TRUE(FromChromeTrace(ToChromeTrace(plan, *report), plan).has_value());
}

TEST(Remote, ManyRunsOfManyTypes) {
  const Plan plan = RingAllReduce(3);
  Fleet fleet(3);
  fleet.ServeAll();
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  for (int type = 0; type < 7; ++type)
    for (int op = 0; op < 5; ++op) {
      const Result<RunReport> report = fleet.coordinator().Run({.size_bytes = 12'345,
                                                                .type = static_cast<DataType>(type),
                                                                .op = static_cast<ReduceOp>(op),
                                                                .iterations = 1});
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(report->wrong, 0) << type << " " << op;
    }
}

TEST(Remote, StrangersAreClosedAndDisturbNobody) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  FakeRank wrong_secret(fleet.coordinator().port(), 0, 2, 0xbad);
  ControlLink garbage = ControlLink::Connect("127.0.0.1", fleet.coordinator().port(), 60).value();
  Random random(1);
  std::string bytes(1000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  ASSERT_GT(send(garbage.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  ControlLink silent = ControlLink::Connect("127.0.0.1", fleet.coordinator().port(), 60).value();
  fleet.ServeAll();
  const Status gathered = fleet.GatherAround(plan);
  ASSERT_TRUE(gathered.has_value()) << gathered.error().message;
  EXPECT_EQ(fleet.coordinator().Run({.size_bytes = 100, .iterations = 1})->wrong, 0);
  EXPECT_EQ(wrong_secret.Next().type, FrameType::kFailed);  // closed, without a word
}

TEST(Remote, ARankOfAnotherVersionIsNamed) {
  Fleet fleet(2);
  FakeRank older(fleet.coordinator().port(), 1, 2, kSecret[1],
                 remote::kMagic - (uint64_t{1} << 48));
  const Status gathered = fleet.coordinator().Gather([] { return Status(); });
  ASSERT_FALSE(gathered.has_value());
  EXPECT_EQ(gathered.error().message,
            "a rank comes from 127.0.0.1: version 2 of Tutti's protocol meets version 3: all hosts "
            "need the same version of Tutti");
}

TEST(Remote, NamesTheRanksThatAreMissing) {
  const Plan plan = RingAllGather(4);
  Fleet fleet(4, 3);  // enough for the one that is there to come
  fleet.Serve(1);
  const Status gathered = fleet.GatherAround(plan);
  ASSERT_FALSE(gathered.has_value());
  EXPECT_EQ(gathered.error().code, ErrorCode::kPeerFailed);
  EXPECT_EQ(gathered.error().message, "after 3 s these ranks are not there: 0, 2, 3");
  fleet.Join();
  ASSERT_FALSE(fleet.served(1).has_value());
  EXPECT_EQ(fleet.served(1).error().code, ErrorCode::kCancelled);
  EXPECT_THAT(fleet.served(1).error().message, HasSubstr("are not there: 0, 2, 3"));
}

TEST(Remote, NamesRanksThatComeTwiceOrToAnotherJob) {
  const Plan plan = RingAllGather(2);
  {
    Fleet fleet(2);
    FakeRank first(fleet.coordinator().port(), 0, 2), second(fleet.coordinator().port(), 0, 2);
    const Status gathered = fleet.GatherAround(plan);
    ASSERT_FALSE(gathered.has_value());
    EXPECT_THAT(gathered.error().message, HasSubstr("rank 0 comes twice"));
  }
  Fleet fleet(2);
  FakeRank other(fleet.coordinator().port(), 5, 8);
  const Status gathered = fleet.GatherAround(plan);
  ASSERT_FALSE(gathered.has_value());
  EXPECT_THAT(gathered.error().message, HasSubstr("comes rank 5 of 8 to a job of 2 ranks"));
}

TEST(Remote, EndsWhereStartingFails) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  const Status gathered = fleet.coordinator().Gather(
      [] { return Status(MakeError(ErrorCode::kPeerFailed, "host h1: no")); });
  ASSERT_FALSE(gathered.has_value());
  EXPECT_EQ(gathered.error().message, "host h1: no");
}

TEST(Remote, ARankThatEndedIsReportedInItsPlace) {
  const Plan plan = RingAllGather(3);
  Fleet fleet(3);  // rank 2 never comes
  fleet.Serve(0);
  ReportEndOfRank(RankOf(fleet.coordinator().port(), 1, 3), "signal 9");
  const Status gathered = fleet.GatherAround(plan);
  ASSERT_FALSE(gathered.has_value());
  EXPECT_EQ(gathered.error().message, "rank 1 (127.0.0.1): signal 9");
}

TEST(Remote, AllThatEndAtOnceAreNamed) {
  const Plan plan = RingAllGather(4);
  Fleet fleet(4);
  std::vector<FakeRank> ranks;
  for (int32_t rank = 0; rank < 4; ++rank) ranks.emplace_back(fleet.coordinator().port(), rank, 4);
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  ASSERT_TRUE(ranks[2].link().Send(FrameType::kFailed, "rank 3 is gone"));
  for (const size_t rank : {size_t{2}, size_t{3}, size_t{1}})
    shutdown(ranks[rank].link().fd(), SHUT_RDWR);
  const Result<RunReport> report = fleet.coordinator().Run({.size_bytes = 100});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message,
            "rank 1 (127.0.0.1) ended: it closed the connection; rank 3 (127.0.0.1) ended, too");
}

TEST(Remote, WhyAProcessEndedIsSaidOfItsRank) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  FakeRank first(fleet.coordinator().port(), 0, 2), second(fleet.coordinator().port(), 1, 2);
  bool has_ended = false;
  const Status gathered = fleet.coordinator().Gather([&has_ended] {
    return has_ended ? Status(MakeError(ErrorCode::kPeerFailed, "host h0: signal 9")) : Status();
  });
  ASSERT_TRUE(gathered.has_value());
  has_ended = true;
  shutdown(first.link().fd(), SHUT_RDWR);
  // Its end is found where it is told something, or where it is heard.
  Status told;
  for (int i = 0; i < 1000 && told; ++i) told = fleet.coordinator().SetPlan(plan);
  ASSERT_FALSE(told.has_value());
  EXPECT_THAT(told.error().message, HasSubstr("rank 0 (127.0.0.1) ended: "));
  EXPECT_THAT(told.error().message, HasSubstr("; host h0: signal 9"));
}

TEST(Remote, WhatARankSaidBeforeItEndedIsWhyItCannotBeTold) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  FakeRank first(fleet.coordinator().port(), 0, 2), second(fleet.coordinator().port(), 1, 2);
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  ASSERT_TRUE(second.link().Send(FrameType::kFailed, "no memory"));
  shutdown(second.link().fd(), SHUT_RDWR);
  Status told;
  for (int i = 0; i < 1000 && told; ++i) told = fleet.coordinator().SetPlan(plan);
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(told.error().message, "rank 1 (127.0.0.1): no memory");
}

TEST(Remote, ARankThatIsToldOfTheEndWaitsUntilItIsReported) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  std::atomic<bool> is_back{false};
  std::thread rank([&is_back, port = fleet.coordinator().port()] {
    static_cast<void>(ServeRank(RankOf(port, 0, 2)));
    is_back = true;
  });
  std::optional<FakeRank> other(std::in_place, fleet.coordinator().port(), 1, 2);
  const Status gathered = fleet.GatherAround(plan);
  other.reset();
  const Result<RunReport> report = fleet.coordinator().Run({.size_bytes = 100});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const bool was_back = is_back;
  fleet.Join();
  rank.join();
  ASSERT_TRUE(gathered.has_value());
  ASSERT_FALSE(report.has_value());
  EXPECT_FALSE(was_back);
}

TEST(Remote, RanksThatComeAfterAFailureAreToldOfIt) {
  CoordinatorOptions options = JobOf(2);
  options.late_ranks_s = 60;
  std::optional<Coordinator> coordinator = Coordinator::Listen(options).value();
  std::vector<Status> served(2);
  std::vector<std::thread> ranks;
  const Status gathered = coordinator->Gather([&] {
    for (int32_t rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&served, rank, port = coordinator->port()] {
        served[static_cast<size_t>(rank)] = ServeRank(RankOf(port, rank, 2));
      });
    return Status(MakeError(ErrorCode::kPeerFailed, "host h1: no"));
  });
  coordinator.reset();
  for (std::thread& rank : ranks) rank.join();
  ASSERT_FALSE(gathered.has_value());
  EXPECT_EQ(gathered.error().message, "host h1: no");
  for (const Status& of_rank : served) {
    ASSERT_FALSE(of_rank.has_value());
    EXPECT_EQ(of_rank.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(of_rank.error().message, "host h1: no");
  }
}

TEST(Remote, RunsOverBothVersionsOfIp) {
  if (!HasIpVersion6()) GTEST_SKIP() << "no IP version 6 here: " << std::strerror(errno);
  const Plan plan = RingAllReduce(3);
  struct Row {
    const char* listens;
    std::vector<std::string> ranks;  // by which host they reach the coordinator
  };
  for (const Row& row : std::vector<Row>{{"::1", {"::1", "::1", "::1"}},
                                         {"::", {"::1", "127.0.0.1", "localhost"}},
                                         {Coordinator::AnyHost(), {"127.0.0.1", "::1", "::1"}}}) {
    SCOPED_TRACE(row.listens);
    Fleet fleet(3, 60, row.listens);
    for (int32_t rank = 0; rank < 3; ++rank)
      fleet.Serve(rank, row.ranks[static_cast<size_t>(rank)]);
    ASSERT_TRUE(fleet.GatherAround(plan).has_value());
    const Result<RunReport> report = fleet.coordinator().Run({.size_bytes = 100'000});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->wrong, 0);
    fleet.Join();
    for (int32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(fleet.served(rank).has_value());
  }
  RemoteRankOptions nobody = RankOf(1, 0, 1, "::1");
  nobody.patience_s = 0.1;
  EXPECT_THAT(ServeRank(nobody).error().message,
              HasSubstr("nobody could be reached at [::1]:1 within 0.1 s: Connection refused"));
}

// What the second of two ranks does wrong, and what the coordinator says of it.
struct Misdeed {
  const char* name;
  std::function<void(FakeRank&)> commit;
  const char* message;
};

TEST(Remote, ARankThatFailsIsNamedAndEndsTheOthers) {
  const std::vector<Misdeed> table{
      {"Leaves", [](FakeRank& rank) { shutdown(rank.link().fd(), SHUT_RDWR); },
       "rank 1 (127.0.0.1) ended: it closed the connection"},
      {"Says", [](FakeRank& rank) { EXPECT_TRUE(rank.link().Send(FrameType::kFailed, "no disk")); },
       "rank 1 (127.0.0.1): no disk"},
      {"Arrives", [](FakeRank& rank) { EXPECT_TRUE(rank.link().Send(FrameType::kArrived, {1})); },
       "rank 1 (127.0.0.1) sends a frame of type 3 at the wrong time"},
      {"Short", [](FakeRank& rank) { EXPECT_TRUE(rank.link().Send(FrameType::kReady, {1})); },
       "rank 1 (127.0.0.1) sends a frame of type 2 at the wrong time"},
      {"Large",
       [](FakeRank& rank) {
         EXPECT_TRUE(rank.link().Send(FrameType::kFailed, std::string(5000, 'x')));
       },
       "rank 1 (127.0.0.1) ended: a frame of type 6 and 5000 bytes"}};
  const Plan plan = RingAllGather(2);
  for (const Misdeed& misdeed : table) {
    SCOPED_TRACE(misdeed.name);
    Fleet fleet(2);
    fleet.Serve(0);
    FakeRank fake(fleet.coordinator().port(), 1, 2);
    ASSERT_TRUE(fleet.GatherAround(plan).has_value());
    ASSERT_EQ(fake.Next().type, FrameType::kPlan);
    misdeed.commit(fake);
    const Result<RunReport> report = fleet.coordinator().Run({.size_bytes = 100});
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kPeerFailed);
    EXPECT_EQ(report.error().message, misdeed.message);
    fleet.Join();
    ASSERT_FALSE(fleet.served(0).has_value());
    EXPECT_EQ(fleet.served(0).error().message, misdeed.message);
  }
}

TEST(Remote, ARunInWhichNobodyGetsOnEnds) {
  const Plan plan = RingAllGather(2);
  Fleet fleet(2);
  fleet.Serve(0);
  FakeRank fake(fleet.coordinator().port(), 1, 2);
  ASSERT_TRUE(fleet.GatherAround(plan).has_value());
  const Result<RunReport> report =
      fleet.coordinator().Run({.size_bytes = 100, .hang_timeout_s = 0.5});
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message,
              testing::ContainsRegex("no rank has got on for [0-9]+[.][0-9] s"));
  EXPECT_THAT(report.error().message, HasSubstr("rank 1 (127.0.0.1) is setting up"));
}

TEST(Remote, ARankJudgesWhatTheCoordinatorSends) {
  const Plan plan = RingAllGather(3);
  const std::string other_ranks = PlanToFile(plan).value();
  remote::Call call{.number = 0, .options = {.size_bytes = 100}};
  std::string wrong_type = remote::ToBody(call);
  wrong_type[16] = 99;
  const std::vector<std::tuple<FrameType, std::string, std::string>> table{
      {FrameType::kPlan, "nonsense", "plan"},
      {FrameType::kPlan, other_ranks, "the plan is for 3 ranks, the job has 1"},
      {FrameType::kCall, "short", "a call of 5 bytes, wanted 88"},
      {FrameType::kCall, wrong_type, "out of its range"},
      {FrameType::kCall, remote::ToBody(call), "before there is a plan"},
      {FrameType::kGo, "", "a frame of type 10 here"}};
  for (const auto& [type, body, message] : table) {
    SCOPED_TRACE(message);
    Endpoint at;
    const int listener = ListenAt(at);
    ASSERT_GE(listener, 0);
    Status served;
    std::thread rank([&] { served = ServeRank(RankOf(at.port, 0, 1)); });
    pollfd comes{.fd = listener, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&comes, 1, 60'000), 1);
    std::optional<ControlLink> link(accept(listener, nullptr, nullptr));
    EXPECT_TRUE(link->Send(type, body));
    std::optional<Frame> said;
    for (int i = 0; i < 100 && (!said || said->type != FrameType::kFailed); ++i) {
      Result<std::optional<Frame>> frame = link->Receive(5000, 100);
      ASSERT_TRUE(frame.has_value()) << frame.error().message;
      said = *std::move(frame);
    }
    link.reset();
    rank.join();
    close(listener);
    ASSERT_TRUE(said.has_value());
    EXPECT_THAT(said->body, HasSubstr(message));
    ASSERT_FALSE(served.has_value());
    EXPECT_EQ(served.error().message, said->body);
  }
}

TEST(Remote, NobodyThere) {
  RemoteRankOptions options = RankOf(1, 0, 1);
  options.patience_s = 0.1;
  const Status served = ServeRank(options);
  ASSERT_FALSE(served.has_value());
  EXPECT_THAT(served.error().message,
              HasSubstr("rank 0: nobody could be reached at 127.0.0.1:1 within 0.1 s"));
  const Result<Coordinator> nowhere = Coordinator::Listen({.host = "here", .secret = kSecret});
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().message, "'here' is no IP address");
}

TEST(Remote, SecretsAsText) {
  const JobSecret secret = DrawSecret();
  EXPECT_EQ(ParseSecret(ToText(secret)), secret);
  EXPECT_NE(secret, DrawSecret());
  for (const std::string text :
       {"", "12", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcdeg",
        "0123456789abcdef0123456789abcdef0"})
    EXPECT_FALSE(ParseSecret(text).has_value()) << text;
}

}  // namespace
}  // namespace tutti
