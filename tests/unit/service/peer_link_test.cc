#include "peer_link.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/random.h"

namespace tutti::service {
namespace {

TEST(PeerFrameTest, ComesBackAsItWas) {
  for (const PeerFrame& frame :
       {PeerFrame{.kind = PeerKind::kJoin, .words = {1, -2, INT64_MIN}, .texts = {"a", "", "bc"}},
        PeerFrame{.kind = PeerKind::kFailed},
        PeerFrame{
            .kind = PeerKind::kPrepare, .words = {7}, .texts = {std::string(100'000, 'x')}}}) {
    const auto back = Decode(Encode(frame));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, frame.kind);
    EXPECT_EQ(back->words, frame.words);
    EXPECT_EQ(back->texts, frame.texts);
  }
}

// Cut anywhere, longer, or with any byte changed: no frame, or one that is written the same way.
TEST(PeerFrameTest, NoWrongBytesAreTaken) {
  const std::string right =
      Encode({.kind = PeerKind::kBarrier, .words = {1, 2, 3}, .texts = {"why"}});
  for (size_t size = 0; size < right.size(); ++size) EXPECT_FALSE(Decode(right.substr(0, size)));
  EXPECT_FALSE(Decode(right + "x"));
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    std::string wrong = right;
    wrong[random.Below(wrong.size())] = static_cast<char>(random.Below(256));
    const auto frame = Decode(wrong);
    EXPECT_TRUE(!frame || Encode(*frame) == wrong);
  }
}

class Links : public testing::Test {
 protected:
  void SetUp() override {
    auto made = EventLoop::Make();
    ASSERT_TRUE(made);
    loop_ = std::move(*made);
  }
  void RunUntil(const std::function<bool()>& done) {
    for (int look = 0; look < 1000 && !done(); ++look) loop_->Poll(10);
    ASSERT_TRUE(done());
  }
  std::unique_ptr<EventLoop> loop_;
};

TEST_F(Links, FramesSentBeforeItIsThereFollowAndTheEndIsTold) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  ASSERT_TRUE(listener.is_open());
  std::vector<std::string> heard;
  std::string lost;
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  ASSERT_NE(link, nullptr);
  // More than the sockets hold.
  for (int i = 0; i < 20; ++i)
    link->Send(
        {.kind = PeerKind::kFailed, .texts = {std::string(1 << 20, static_cast<char>('a' + i))}});
  std::unique_ptr<PeerLink> other;
  loop_->Add(listener.fd(), 1, [&](uint32_t) {
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
      other = std::make_unique<PeerLink>(
          *loop_, fd,
          PeerLink::Handlers{
              .frame = [&](const PeerFrame& frame) { heard.push_back(frame.texts[0]); },
              .lost = [](const std::string&) {}});
  });
  RunUntil([&] { return heard.size() == 20; });
  for (size_t i = 0; i < heard.size(); ++i)
    EXPECT_EQ(heard[i], std::string(1 << 20, static_cast<char>('a' + i)));
  other.reset();
  RunUntil([&] { return !lost.empty(); });
  EXPECT_NE(lost.find("closed the connection"), std::string::npos) << lost;
}

TEST_F(Links, NobodyThereIsTold) {
  Endpoint at;
  { const ipc::Descriptor listener(ListenAt(at)); }  // its port is free again
  std::string lost;
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  ASSERT_NE(link, nullptr);
  RunUntil([&] { return !lost.empty(); });
  EXPECT_NE(lost.find("nobody could be reached at 127.0.0.1:"), std::string::npos) << lost;
}

// What is sent is dropped on both ways of a connection: another one is made, and every frame comes once, in order.
TEST_F(Links, SilentConnectionsAreReplacedAndEveryFrameComesOnce) {
  const sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog drop{1, const_cast<sock_filter*>(&nothing)};
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  PeerLinks links;
  std::list<std::unique_ptr<PeerLink>> accepted;
  std::vector<int64_t> here, there;
  int last = -1, connections = 0;
  loop_->Add(listener.fd(), 1, [&](uint32_t) {
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    last = fd;
    ++connections;
    accepted.push_back(std::make_unique<PeerLink>(
        *loop_, fd,
        PeerLink::Handlers{
            .frame = [&](const PeerFrame& frame) { there.push_back(frame.words[0]); },
            .lost = [](const auto&) {}},
        &links));
  });
  auto link =
      PeerLink::Connect(*loop_, at,
                        {.frame = [&](const PeerFrame& frame) { here.push_back(frame.words[0]); },
                         .lost = [](const std::string& why) { ADD_FAILURE() << why; }});
  int64_t now = 0, sent = 0, answered = 0;
  const auto until_all_came = [&] {
    RunUntil([&] {
      link->Watch(now += 100'000'000);
      return static_cast<int64_t>(there.size()) == sent &&
             static_cast<int64_t>(here.size()) == answered;
    });
  };
  for (int cut = 0; cut < 5; ++cut) {
    for (int i = 0; i < 3; ++i) link->Send({.kind = PeerKind::kCommit, .words = {sent++}});
    until_all_came();
    setsockopt(last, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop));
    // One end or both have something to say.
    for (int i = 0; i < 3 && cut != 1; ++i)
      link->Send({.kind = PeerKind::kCommit, .words = {sent++}});
    for (int i = 0; i < 3 && cut != 2; ++i)
      accepted.front()->Send({.kind = PeerKind::kCommit, .words = {answered++}});
    until_all_came();
  }
  EXPECT_GE(connections, 4);
  for (const auto* each : {&here, &there})
    for (size_t i = 0; i < each->size(); ++i) ASSERT_EQ((*each)[i], static_cast<int64_t>(i));
}

// Connections are closed, by whichever end; of the first one nothing may have been heard.
TEST_F(Links, OneThatEnduresGoesOnOverOtherConnections) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  PeerLinks links;
  std::list<std::unique_ptr<PeerLink>> accepted;
  std::vector<int64_t> here, there;
  int last = -1, connections = 0;
  loop_->Add(listener.fd(), 1, [&](uint32_t) {
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    last = fd;
    if (++connections == 1) {
      close(fd);
      return;
    }
    accepted.push_back(std::make_unique<PeerLink>(
        *loop_, fd,
        PeerLink::Handlers{
            .frame = [&](const PeerFrame& frame) { there.push_back(frame.words[0]); },
            .lost = [](const auto&) {}},
        &links));
    accepted.back()->Endure();
  });
  auto link =
      PeerLink::Connect(*loop_, at,
                        {.frame = [&](const PeerFrame& frame) { here.push_back(frame.words[0]); },
                         .lost = [](const std::string& why) { ADD_FAILURE() << why; }});
  link->Endure();
  int64_t now = 0, sent = 0, answered = 0;
  for (int cut = 0; cut < 5; ++cut) {
    for (int i = 0; i < 3; ++i) link->Send({.kind = PeerKind::kCommit, .words = {sent++}});
    for (int i = 0; i < 3 && cut > 0; ++i)
      accepted.front()->Send({.kind = PeerKind::kCommit, .words = {answered++}});
    RunUntil([&] {
      link->Watch(now += 100'000'000);
      return static_cast<int64_t>(there.size()) == sent &&
             static_cast<int64_t>(here.size()) == answered && link->is_quiet();
    });
    EXPECT_EQ(link->unheard_since_ns(), 0);
    shutdown(last, SHUT_RDWR);
  }
  EXPECT_GE(connections, 6);
  for (const auto* each : {&here, &there})
    for (size_t i = 0; i < each->size(); ++i) ASSERT_EQ((*each)[i], static_cast<int64_t>(i));
}

TEST_F(Links, OneThatEnduresIsSoughtMoreSeldomTheLongerNobodyIsThere) {
  Endpoint at;
  { const ipc::Descriptor listener(ListenAt(at)); }  // its port is free again
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [](const auto& why) { ADD_FAILURE() << why; }});
  link->Endure();
  link->Send({.kind = PeerKind::kCommit, .words = {7}});
  EXPECT_GT(link->unheard_since_ns(), 0);
  RunUntil([&] { return !link->why_lost().empty(); });
  EXPECT_THAT(link->why_lost(), testing::HasSubstr("Connection refused"));
  // Who comes there meanwhile, and is turned away.
  const ipc::Descriptor listener(ListenAt(at));
  std::vector<int64_t> came_ms;
  for (int64_t ms = 0; ms < 8'000; ms += 100) {
    link->Watch(ms * 1'000'000);
    loop_->Poll(1);
    pollfd waits{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, 0) <= 0) continue;
    came_ms.push_back(ms);
    // Adopted, and closed before it was answered.
    link->Watch(ms * 1'000'000 + 1);
    close(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    RunUntil([&] { return !link->is_connected(); });
  }
  ASSERT_GE(came_ms.size(), 6u);
  EXPECT_EQ(came_ms[0], 0);
  for (size_t i = 2; i < came_ms.size(); ++i)
    EXPECT_GE(came_ms[i] - came_ms[i - 1], came_ms[i - 1] - came_ms[i - 2]) << i;
  EXPECT_LE(came_ms.back() - came_ms[came_ms.size() - 2], 2'200);
}

void LetThrough(int listener) {
  const int none = 0;
  setsockopt(listener, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
}

// Links to a listening socket, and the first word of each frame that came on any.
struct Listening {
  Listening(EventLoop& loop, int listener) {
    loop.Add(listener, 1, [this, &loop, listener](uint32_t) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      if (accepted.empty()) accepts_first();
      accepted.push_back(std::make_unique<PeerLink>(
          loop, fd,
          PeerLink::Handlers{
              .frame = [this](const PeerFrame& frame) { words.push_back(frame.words[0]); },
              .lost = [](const auto&) {}},
          &links));
    });
  }
  std::function<void()> accepts_first = [] {};
  PeerLinks links;
  std::list<std::unique_ptr<PeerLink>> accepted;
  std::vector<int64_t> words;
};

// What the first connection was to bring is lost before anything of it was heard.
TEST_F(Links, AConnectionThatNothingWasHeardOfIsReplacedToo) {
  // Packets longer than any header of TCP are dropped: it is made, and brings nothing.
  constexpr uint32_t kLongestHeader = 60;
  sock_filter empty[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
                         BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLongestHeader, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, 0),
                         BPF_STMT(BPF_RET | BPF_K, std::numeric_limits<uint32_t>::max())};
  const sock_fprog drop{std::size(empty), empty};
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  ASSERT_EQ(setsockopt(listener.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
  Listening all(*loop_, listener.fd());
  // The next one has not the filter, which the first one has kept.
  all.accepts_first = [&] { LetThrough(listener.fd()); };
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [](const auto& why) { ADD_FAILURE() << why; }});
  for (int64_t i = 0; i < 3; ++i) link->Send({.kind = PeerKind::kCommit, .words = {i}});
  int64_t now = 0;
  RunUntil([&] {
    link->Watch(now += 100'000'000);
    return all.words.size() == 3;
  });
  EXPECT_GE(all.accepted.size(), 2u);
  EXPECT_THAT(all.words, testing::ElementsAre(0, 1, 2));
}

// The network drops the first connection before it is made: one of those that are tried beside it takes its place.
TEST_F(Links, AFirstConnectionThatIsNotMadeIsReplaced) {
  const sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog drop{1, const_cast<sock_filter*>(&nothing)};
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  ASSERT_EQ(setsockopt(listener.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
  const Listening all(*loop_, listener.fd());
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [](const auto& why) { ADD_FAILURE() << why; }});
  for (int64_t i = 0; i < 3; ++i) link->Send({.kind = PeerKind::kCommit, .words = {i}});
  int64_t now = 0;
  link->Watch(now += 100'000'000);
  LetThrough(listener.fd());
  RunUntil([&] {
    link->Watch(now += 100'000'000);
    return all.words.size() == 3;
  });
  EXPECT_GE(all.accepted.size(), 2u) << "the kernel's own second attempt would be the only one";
  EXPECT_THAT(all.words, testing::ElementsAre(0, 1, 2));
}

TEST_F(Links, AFirstConnectionThatIsNotMadeWhereNobodyIsThereAnyMoreIsLost) {
  const sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog drop{1, const_cast<sock_filter*>(&nothing)};
  Endpoint at;
  std::optional<ipc::Descriptor> listener(ListenAt(at));
  ASSERT_EQ(setsockopt(listener->fd(), SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
  std::string lost;
  auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  int64_t now = 0;
  link->Watch(now += 100'000'000);
  listener.reset();
  RunUntil([&] {
    link->Watch(now += 100'000'000);
    return !lost.empty();
  });
  EXPECT_THAT(lost, testing::HasSubstr("nobody is there any more at 127.0.0.1:"));
  EXPECT_TRUE(link->was_refused());
}

// The other end has gone over to another connection; what the one before brings comes later than that.
TEST_F(Links, AnOlderConnectionThatIsHeardLateIsClosed) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  PeerLinks links;
  std::list<std::unique_ptr<PeerLink>> accepted;
  std::vector<int64_t> there;
  std::vector<std::string> lost;
  const auto come = [&] {
    auto client = ControlLink::Connect("127.0.0.1", at.port, 10);
    EXPECT_TRUE(client) << client.error().message;
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    accepted.push_back(std::make_unique<PeerLink>(
        *loop_, fd,
        PeerLink::Handlers{
            .frame = [&](const PeerFrame& frame) { there.push_back(frame.words[0]); },
            .lost = [&](const std::string& why) { lost.push_back(why); }},
        &links));
    return std::move(*client);
  };
  ControlLink older = come(), newer = come();
  const auto say = [](ControlLink& link, int64_t number, int64_t frame) {
    for (const PeerFrame& said :
         {PeerFrame{.kind = PeerKind::kLink, .words = {7, 8, 0, number, int64_t{kPeerMagic}}},
          PeerFrame{.kind = PeerKind::kCommit, .words = {frame}}})
      EXPECT_TRUE(link.Send(FrameType::kDaemon, Encode(said)));
  };
  say(newer, 1, 20);
  RunUntil([&] { return !there.empty(); });
  say(older, 0, 10);
  RunUntil([&] { return !lost.empty(); });
  EXPECT_THAT(there, testing::ElementsAre(20));
  EXPECT_THAT(lost, testing::ElementsAre("the other end has left this connection"));
  // The newer one goes on: it hears who it is met as, that its frame was heard, and what is sent.
  accepted.back()->Send({.kind = PeerKind::kCommit, .words = {30}});
  std::vector<PeerKind> heard;
  while (heard.empty() || heard.back() != PeerKind::kCommit) {
    const auto frame = newer.Receive(PeerLink::kMostBytes, 10'000);
    ASSERT_TRUE(frame && *frame);
    heard.push_back(Decode((*frame)->body)->kind);
  }
  EXPECT_THAT(heard, testing::ElementsAre(PeerKind::kLink, PeerKind::kHeard, PeerKind::kCommit));
}

// Of a daemon of another version nothing is heard; both ends know why.
TEST_F(Links, DaemonsOfTwoVersionsSaySo) {
  constexpr int64_t kOther = kPeerMagic + (int64_t{1} << 48);
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  const auto accept_one = [&] {
    return accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  };
  {
    ControlLink newer = ControlLink::Connect("127.0.0.1", at.port, 10).value();
    bool heard = false;
    std::string lost;
    PeerLinks links;
    PeerLink accepted(*loop_, accept_one(),
                      {.frame = [&](const PeerFrame&) { heard = true; },
                       .lost = [&](const std::string& why) { lost = why; }},
                      &links);
    for (const PeerFrame& said : {PeerFrame{.kind = PeerKind::kLink, .words = {7, 8, 0, 0, kOther}},
                                  PeerFrame{.kind = PeerKind::kJoin, .words = {1, 2, 2, 0}}})
      ASSERT_TRUE(newer.Send(FrameType::kDaemon, Encode(said)));
    std::optional<Frame> answer;
    RunUntil([&] {
      if (!answer) answer = *newer.TryReceive(PeerLink::kMostBytes);
      return answer.has_value();
    });
    EXPECT_EQ(Decode(answer->body)->words.at(4), int64_t{kPeerMagic});
    { const ControlLink closed = std::move(newer); }
    RunUntil([&] { return !lost.empty(); });
    EXPECT_FALSE(heard);
    EXPECT_TRUE(links.empty());
  }
  std::string lost;
  const auto link = PeerLink::Connect(
      *loop_, at,
      {.frame = [](const PeerFrame&) {}, .lost = [&](const std::string& why) { lost = why; }});
  ControlLink newer(accept_one());
  ASSERT_TRUE(newer.Send(FrameType::kDaemon, Encode(PeerFrame{.kind = PeerKind::kLink,
                                                              .words = {0, 0, 0, 0, kOther}})));
  RunUntil([&] { return !lost.empty(); });
  EXPECT_EQ(lost, fmt::format("127.0.0.1:{}: version 3 of Tutti's protocol meets version 2: all "
                              "hosts need the same version of Tutti",
                              at.port));
}

// Who has nothing to say hears by its beat, which nobody acknowledges, that the other's host is gone without a word.
TEST_F(Links, WhoAcceptedALinkBeatsToo) {
  Endpoint at;
  const ipc::Descriptor listener(ListenAt(at));
  auto client = ControlLink::Connect("127.0.0.1", at.port, 10);
  ASSERT_TRUE(client) << client.error().message;
  const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  ASSERT_GE(fd, 0);
  PeerLink accepted(*loop_, fd,
                    {.frame = [](const PeerFrame&) {}, .lost = [](const std::string&) {}});
  accepted.Watch(1'000'000'000);
  const auto beat = client->Receive(PeerLink::kMostBytes, 10'000);
  ASSERT_TRUE(beat && *beat);
  EXPECT_EQ(Decode((*beat)->body)->kind, PeerKind::kHeard);
}

}  // namespace
}  // namespace tutti::service
