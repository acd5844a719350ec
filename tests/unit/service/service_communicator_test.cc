#include "service_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core.h"
#include "door.h"
#include "prompt_worker.h"
#include "root_part.h"
#include "tutti/base/clock.h"

namespace tutti::service {
namespace {

using testing::HasSubstr;

constexpr CommunicatorId kNoRootId{.secret = {31, 32}, .root = {}};

// A rank's process, as its communicator sees it.
struct PlayedRank final : RankOwner {
  bool has_joined = false;
  std::string refused, failed;
  uint64_t completed = 0;

  void Joined(uint32_t) override { has_joined = true; }
  void JoinRefused(uint32_t, const Error& why) override { refused = why.message; }
  void Completed(uint32_t, uint64_t now, uint32_t) override { completed = now; }
  void Failed(uint32_t, const Error& why) override { failed = why.message; }
};

// One daemon's part of a communicator, with a rank.
struct PlayedDaemon {
  PlayedDaemon(EventLoop& loop, PeerLinks& links, Worker& planner, const Endpoint& root,
               int32_t num_ranks)
      : door(loop, links,
             [this](std::unique_ptr<PeerLink> link, const PeerFrame& frame) {
               if (frame.kind == PeerKind::kRing) communicator.AcceptRing(std::move(link));
             }),
        communicator(DaemonParts{.loop = loop,
                                 .planner = planner,
                                 .control = door.endpoint(),
                                 .host = "H",
                                 .nics = {},
                                 .make_id = [](const Tenant&) { return Result<UniqueId>({}); },
                                 .await = [](const UniqueId&, const auto&) {}},
                     tenant, {kNoRootId.secret, root}, num_ranks) {}

  void Join(int32_t rank, int32_t num_ranks) {
    const Status joins = communicator.Join(rank, num_ranks, process, 0);
    ASSERT_TRUE(joins) << joins.error().message;
  }
  void Leave() {
    const uint32_t line = 0;
    communicator.Leave({&line, 1}, process, "it left");
  }
  // An all-reduce of a word, of itself.
  void Issue() {
    Command command;
    command.call = {.kind = CollectiveKind::kAllReduce,
                    .input = &word,
                    .output = &sum,
                    .count = 1,
                    .type = DataType::kInt32};
    communicator.Issue(0, process, std::move(command));
  }
  // To the root, or to others: one word, sent or taken.
  void Exchange(int32_t peer, bool sends) {
    Command command;
    command.is_exchange = true;
    command.messages.push_back(
        {.peer = peer, .data = sends ? &word : &sum, .bytes = sizeof(word), .is_send = sends});
    communicator.Issue(0, process, std::move(command));
  }

  int32_t word = 1, sum = 0;
  PlayedRank process;
  Tenant tenant{.options = {.name = "tenant"}};
  Door door;
  ServiceCommunicator communicator;
};

class ServiceCommunicatorTest : public LoopTest {
 protected:
  // The daemon of rank 1, and what it says to a root that the test plays, which is the daemon of rank 0, too.
  void Start(int32_t num_ranks = 2) {
    daemon_.emplace(*loop_, links_, planner_, played_.endpoint(), num_ranks);
  }
  // The ring leads from the daemon to `ring`, or else to the test.
  void Activate(const Endpoint* ring = nullptr) {
    Start();
    daemon_->Join(1, 2);
    Until([&] { return root_.Count(PeerKind::kJoin) == 1; });
    const int64_t port = (ring != nullptr ? *ring : played_.endpoint()).port,
                  own = daemon_->door.endpoint().port;
    root_.link->Send({.kind = PeerKind::kMembers,
                      .words = {1, 5, 6, 0, 1, INADDR_LOOPBACK, port, INADDR_LOOPBACK, own},
                      .texts = {"H0", "H1"}});
    Until([&] { return root_.Count(PeerKind::kOpened) == 1; });
    root_.link->Send({.kind = PeerKind::kPeers,
                      .words = {0, 0, INADDR_LOOPBACK, rank_0_.port, INADDR_LOOPBACK, own}});
    Until([&] { return daemon_->process.has_joined; });
  }

  PromptWorker planner_;
  // Where rank 0 would take messages.
  Endpoint rank_0_;
  ipc::Descriptor nobody_accepts_{ListenAt(rank_0_)};
  HeardLink root_, ring_, regrouping_;
  Door played_{*loop_, links_, [this](std::unique_ptr<PeerLink> link, const PeerFrame& first) {
                 HeardLink& kept = first.kind == PeerKind::kJoin   ? root_
                                   : first.kind == PeerKind::kRing ? ring_
                                                                   : regrouping_;
                 kept.Keep(std::move(link));
                 kept.heard.push_back(first);
               }};
  std::optional<PlayedDaemon> daemon_;
};

TEST_F(ServiceCommunicatorTest, ARefusalThatComesWhenItsRankHasLeftIsForNobody) {
  Start();
  daemon_->Join(1, 2);
  Until([&] { return root_.Count(PeerKind::kJoin) == 1; });
  daemon_->Leave();
  EXPECT_EQ(daemon_->tenant.ranks, 0);
  root_.link->Send({.kind = PeerKind::kRefused, .words = {1, 1}, .texts = {"too late"}});
  Until([&] { return root_.Count(PeerKind::kFailed) == 1; });
  Settle();
  EXPECT_EQ(daemon_->tenant.ranks, 0);
  EXPECT_EQ(daemon_->process.refused, "rank 1: it left");
}

// Its last word, that its rank has left, may be on its way: a link that is closed with it would say that its daemon has gone.
TEST_F(ServiceCommunicatorTest, StaysUntilTheRootHasHeardThatItsRankLeft) {
  Activate();
  root_.link->Send({.kind = PeerKind::kLeft, .words = {0, 0}, .texts = {"it left"}});
  Settle();
  EXPECT_FALSE(daemon_->communicator.may_go());
  daemon_->Leave();
  EXPECT_TRUE(daemon_->communicator.is_over());
  EXPECT_FALSE(daemon_->communicator.may_go());
  Until([&] { return daemon_->communicator.may_go(); });
  EXPECT_EQ(root_.Count(PeerKind::kLeft), 1u);
}

TEST_F(ServiceCommunicatorTest, DoesNotWaitForARankThatLeftAndWhoseDaemonHasGone) {
  Activate();
  root_.link->Send({.kind = PeerKind::kLeft, .words = {0, 3}, .texts = {"it left"}});
  Settle();
  daemon_->Issue();
  Settle([&] { daemon_->communicator.PollNext(1 << 20); });
  EXPECT_EQ(daemon_->process.failed, "");  // rank 0 has completed it, and what it sent may come
  root_.link->Send({.kind = PeerKind::kLeft, .words = {0, 0}, .texts = {"its daemon has gone"}});
  Settle();
  EXPECT_THAT(daemon_->process.failed, HasSubstr("its daemon has gone"));
}

// A rank that has asked to go on is promised to what it will become, although its answer is on its way.
TEST_F(ServiceCommunicatorTest, ARankThatAsksIsNotAbsent) {
  Activate();
  constexpr std::array<uint64_t, 2> kNext = {41, 42};
  EXPECT_FALSE(daemon_->communicator.Promises(kNext, 0));
  const Status asked = daemon_->communicator.Regroup(
      0, daemon_->process, {}, NowNs() + 60'000'000'000, [](const Result<Regrouped>&) {});
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_TRUE(daemon_->communicator.Promises(kNext, 0));
}

// While it joins, too, it looks for another way to a root that does not answer.
TEST_F(ServiceCommunicatorTest, ASilentRootIsSoughtWhileRanksJoin) {
  Start(3);
  daemon_->Join(1, 3);
  Until([&] { return root_.Count(PeerKind::kJoin) == 1; });
  ASSERT_EQ(played_.accepted().size(), 1u);
  const sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog drop{1, const_cast<sock_filter*>(&nothing)};
  setsockopt(played_.accepted()[0], SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop));
  PlayedRank other;
  ASSERT_TRUE(daemon_->communicator.Join(2, 3, other, 1));
  int64_t now_ns = 0;
  Until([&] { return root_.Count(PeerKind::kJoin) == 2; },
        [&] { daemon_->communicator.Tick(now_ns += 100'000'000); });
  EXPECT_GE(played_.accepted().size(), 2u);
}

// Two daemons with a root, as they are, in one thread.
TEST_F(ServiceCommunicatorTest, ADrainedEpochIsOpenUntilAllDaemonsArePastIt) {
  RootPart root(*loop_, kNoRootId.secret);
  Door at_root(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame& join) {
    root.Accept(std::move(link), join);
  });
  PlayedDaemon first(*loop_, links_, planner_, at_root.endpoint(), 2),
      second(*loop_, links_, planner_, at_root.endpoint(), 2);
  first.Join(0, 2);
  second.Join(1, 2);
  const auto plan = [&] { planner_.RunFinished(); };
  const auto run = [&] {
    plan();
    first.communicator.PollNext(1 << 20);
    second.communicator.PollNext(1 << 20);
  };
  Until([&] { return first.process.has_joined && second.process.has_joined; }, plan);
  first.Issue();
  second.Issue();
  Until([&] { return first.process.completed == 1 && second.process.completed == 1; }, run);
  EXPECT_EQ(first.sum, 2);
  EXPECT_EQ(first.communicator.connections(), 1u);
  EXPECT_EQ(second.communicator.connections(), 1u);
  // The second is one operation ahead, which it waits in for the first.
  second.Exchange(0, true);
  Settle([&] { second.communicator.PollNext(1 << 20); });
  std::string answer;
  root.Reconfigure({}, [&](const Result<int64_t>& hold_ns) {
    answer = hold_ns ? "done" : hold_ns.error().message;
  });
  Until([&] { return first.communicator.phase() == "switching"; }, plan);
  first.Exchange(1, false);
  // Only the first one is polled: it has all it needs, and is past the epoch. The second one's operation is not over.
  Until([&] { return first.process.completed == 2; },
        [&] { first.communicator.PollNext(1 << 20); });
  EXPECT_EQ(first.communicator.epoch(), 1u);
  EXPECT_EQ(answer, "");
  EXPECT_EQ(first.communicator.connections(), 1u);
  Until([&] { return answer == "done"; }, run);
  Settle();
  EXPECT_EQ(first.communicator.connections(), 0u);
  EXPECT_EQ(second.communicator.connections(), 0u);
}

// Both daemons live, and the connection between them that a change needs is lost before, or in it.
TEST_F(ServiceCommunicatorTest, ALostLinkOfTheRingIsMadeAgain) {
  RootPart root(*loop_, kNoRootId.secret);
  Door at_root(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame& join) {
    root.Accept(std::move(link), join);
  });
  PlayedDaemon first(*loop_, links_, planner_, at_root.endpoint(), 2),
      second(*loop_, links_, planner_, at_root.endpoint(), 2);
  first.Join(0, 2);
  second.Join(1, 2);
  int64_t now_ns = NowNs();
  const auto run = [&] {
    planner_.RunFinished();
    for (PlayedDaemon* daemon : {&first, &second}) {
      daemon->communicator.PollNext(1 << 20);
      daemon->communicator.Tick(now_ns);
    }
    now_ns += 100'000'000;
  };
  Until([&] { return first.process.has_joined && second.process.has_joined; }, run);
  const auto ring_is_there = [&] {
    return !first.door.accepted().empty() && !second.door.accepted().empty();
  };
  Until(ring_is_there, run);
  const auto cut = [](const PlayedDaemon& daemon) {
    shutdown(daemon.door.accepted().back(), SHUT_RDWR);
  };
  for (uint64_t change = 1; change <= 3; ++change) {
    // Idle, where it is found again without a change; and with one that comes at once.
    const size_t connections = first.door.accepted().size();
    cut(first);
    if (change == 1) Until([&] { return first.door.accepted().size() == connections + 1; }, run);
    cut(second);
    std::string answer;
    root.Reconfigure({}, [&](const Result<int64_t>& hold_ns) {
      answer = hold_ns ? "done" : hold_ns.error().message;
    });
    if (change == 3) cut(second);
    first.Issue();
    second.Issue();
    Until(
        [&] {
          return !answer.empty() && first.process.completed == change &&
                 second.process.completed == change;
        },
        run);
    EXPECT_EQ(answer, "done");
    EXPECT_EQ(first.communicator.epoch(), change);
    EXPECT_EQ(second.communicator.epoch(), change);
  }
}

// What launches wait for does not come for ten seconds: else they would be held for ever.
TEST_F(ServiceCommunicatorTest, ARingThatStaysCutInAChangeFailsTheCommunicatorByName) {
  HeardLink ring;
  std::optional<Door> next;
  next.emplace(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame&) {
    ring.Keep(std::move(link));
  });
  const Endpoint at = next->endpoint();
  Activate(&at);
  Until([&] { return ring.link != nullptr; });
  next.reset();
  ring.link.reset();
  constexpr int64_t kLongNs = 11'000'000'000;
  // While there is no change nobody misses it.
  Settle([&] { daemon_->communicator.Tick(NowNs() + kLongNs); });
  EXPECT_EQ(daemon_->communicator.phase(), "active");
  root_.link->Send({.kind = PeerKind::kPrepare, .words = {1, 1}, .texts = {""}});
  Until([&] { return root_.Count(PeerKind::kOpened) == 2; }, [&] { planner_.RunFinished(); });
  const int64_t own = daemon_->door.endpoint().port;
  root_.link->Send({.kind = PeerKind::kPeers,
                    .words = {1, 1, INADDR_LOOPBACK, rank_0_.port, INADDR_LOOPBACK, own}});
  Until([&] { return root_.Count(PeerKind::kPrepared) == 1; });
  root_.link->Send({.kind = PeerKind::kCommit, .words = {1}});
  Until([&] { return daemon_->communicator.phase() == "holding"; });
  Settle([&] { daemon_->communicator.Tick(NowNs()); });
  EXPECT_EQ(daemon_->process.failed, "");
  Settle([&] { daemon_->communicator.Tick(NowNs() + kLongNs); });
  EXPECT_THAT(daemon_->process.failed,
              HasSubstr("the ring of daemons was cut for 10 s in a change of strategy, from H to " +
                        at.ToText()));
  EXPECT_EQ(root_.Count(PeerKind::kFailed), 1u);
}

TEST_F(ServiceCommunicatorTest, ChunksAreTracedForAsLongAsSomebodyAsks) {
  RootPart root(*loop_, kNoRootId.secret);
  Door at_root(*loop_, links_, [&](std::unique_ptr<PeerLink> link, const PeerFrame& join) {
    root.Accept(std::move(link), join);
  });
  PlayedDaemon first(*loop_, links_, planner_, at_root.endpoint(), 2),
      second(*loop_, links_, planner_, at_root.endpoint(), 2);
  first.Join(0, 2);
  second.Join(1, 2);
  const auto run = [&] {
    planner_.RunFinished();
    first.communicator.PollNext(1 << 20);
    second.communicator.PollNext(1 << 20);
  };
  Until([&] { return first.process.has_joined && second.process.has_joined; }, run);
  uint64_t operations = 0;
  const auto all_reduce = [&] {
    first.Issue();
    second.Issue();
    ++operations;
    Until(
        [&] {
          return first.process.completed == operations && second.process.completed == operations;
        },
        run);
  };
  all_reduce();
  const ChunkTrace& trace = first.communicator.chunks();
  EXPECT_TRUE(trace.chunks().empty());
  constexpr int64_t kLongNs = 1'000'000'000'000;
  const int64_t begun_ns = NowNs();
  int done = 0;
  EXPECT_TRUE(first.communicator.TraceChunks(begun_ns, begun_ns + kLongNs, [&] { ++done; }));
  EXPECT_FALSE(first.communicator.TraceChunks(begun_ns, begun_ns + kLongNs, [&] { ++done; }));
  all_reduce();
  first.communicator.Tick(begun_ns + kLongNs - 1);
  EXPECT_EQ(done, 0);
  first.communicator.Tick(begun_ns + kLongNs);
  EXPECT_EQ(done, 1);
  const size_t executed = trace.chunks().size();
  all_reduce();
  EXPECT_EQ(trace.chunks().size(), executed);
  // Of an all-reduce of two ranks each at least sends to the other and receives from it, in one operation and in its order.
  EXPECT_GE(executed, 2u);
  EXPECT_TRUE(second.communicator.chunks().chunks().empty());
  std::set<std::pair<bool, int32_t>> ways;  // whether it sends, and to or from whom
  std::map<int32_t, int64_t> until_ns;      // of each stream
  for (const ExecutedChunk& chunk : trace.chunks()) {
    EXPECT_EQ(chunk.rank, 0);
    EXPECT_EQ(chunk.operation, 2u);
    EXPECT_EQ(chunk.epoch, 0u);
    if (chunk.op != OpCode::kCopy) ways.emplace(chunk.op == OpCode::kSend, chunk.peer);
    int64_t& until = until_ns.try_emplace(chunk.stream, begun_ns).first->second;
    EXPECT_GE(chunk.start_ns, until);
    EXPECT_GE(chunk.end_ns, chunk.start_ns);
    until = chunk.end_ns;
  }
  EXPECT_EQ(ways, (std::set<std::pair<bool, int32_t>>{{false, 1}, {true, 1}}));
}

// The daemon that holds the root is asked before the first rank has come to it, over a link to itself.
TEST(ReportsTest, ARootThatNobodyHasReachedYetDoesNotSendToItself) {
  DaemonOptions options;
  options.socket = testing::TempDir() + "tutti-reports-" + std::to_string(getpid());
  options.admin = options.socket + "-admin";
  options.listen = "127.0.0.1";
  auto core = Daemon::Core::Start(options);
  ASSERT_TRUE(core) << core.error().message;
  Tenant& tenant = *(*core)->FindTenant(getuid(), "");
  const Result<UniqueId> id = (*core)->MakeId(tenant);
  PlayedRank rank;
  const auto joined = (*core)->JoinCommunicator(tenant, *id, 2, 0, rank, 0);
  ASSERT_TRUE(joined) << joined.error().message;
  const std::string label = (*joined)->id().Label();
  const auto ask = [&] {
    std::string answer;
    (*core)->Answer(R"({"command": "reconfigure", "communicator": ")" + label + "\"}",
                    [&](const std::string& text) { answer = text; });
    return answer;
  };
  EXPECT_THAT(ask(), HasSubstr(label + ": not all its ranks have joined"));
  const uint32_t line = 0;
  (*joined)->Leave({&line, 1}, rank, "it left");
  EXPECT_THAT(ask(), HasSubstr(label + ": its ranks have left"));
}

}  // namespace
}  // namespace tutti::service
