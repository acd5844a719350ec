#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"
#include "tutti/ipc/socket.h"

namespace tutti::ipc {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(PacketTest, ComesBackAsItWas) {
  for (const std::string& text : {std::string(), std::string("why"), std::string(4000, 'x')}) {
    const Packet packet{.kind = Kind::kJoin, .request = 42, .words = {1, ~0ull, 3}, .text = text};
    const auto back = Decode(BytesOf(Encode(packet)));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, packet.kind);
    EXPECT_EQ(back->request, packet.request);
    EXPECT_EQ(back->words, packet.words);
    EXPECT_EQ(back->text, text);
  }
  // Too long a text is cut; the packet is none too long.
  const std::string cut = Encode({.text = std::string(10'000, 'x')});
  EXPECT_EQ(cut.size(), kMaxPacketBytes);
  EXPECT_TRUE(Decode(BytesOf(cut)));
}

TEST(PacketTest, NoWrongBytesAreTaken) {
  const std::string right = Encode({.kind = Kind::kHello, .request = 1, .text = "t"});
  constexpr size_t kFixed = 88;
  for (size_t size = 0; size < kFixed; ++size) EXPECT_FALSE(Decode(BytesOf(right).first(size)));
  EXPECT_FALSE(Decode(BytesOf(std::string(kMaxPacketBytes + 1, 'x'))));
  Random random(5);
  for (int i = 0; i < 10'000; ++i) {
    std::string wrong = right;
    wrong[random.Below(wrong.size())] = static_cast<char>(random.Below(256));
    const auto packet = Decode(BytesOf(wrong));
    EXPECT_TRUE(!packet || Encode(*packet) == wrong);
  }
}

std::array<Descriptor, 2> Pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

TEST(SocketTest, DescriptorsArriveOrAreClosedUnseen) {
  auto [a, b] = Pair();
  Descriptor file;
  const auto memory = Memory::Make("test", 4096, false, file);
  ASSERT_TRUE(memory);
  for (const bool take : {true, false}) {
    ASSERT_TRUE(Send(a.fd(), {.kind = Kind::kAllocated}, {file.fd(), file.fd()}));
    const auto received = Receive(b.fd(), true, take);
    ASSERT_TRUE(received && *received);
    EXPECT_EQ((*received)->descriptors.size(), take ? 2u : 0u);
    EXPECT_FALSE((*received)->lost_descriptors);
  }
  const auto nothing = Receive(b.fd(), false, true);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  a = Descriptor();
  const auto gone = Receive(b.fd(), true, true);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kPeerFailed);
}

TEST(SocketTest, DescriptorsThatFindNoRoomAreReportedAsLost) {
  auto [a, b] = Pair();
  Descriptor file;
  const auto memory = Memory::Make("test", 4096, false, file);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(Send(a.fd(), {.kind = Kind::kAllocated}, {file.fd(), file.fd()}));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // Room for one at most: the next number that is free.
  const Descriptor next(dup(file.fd()));
  const rlimit short_of{.rlim_cur = static_cast<rlim_t>(next.fd()) + 2,
                        .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &short_of), 0);
  const auto received = Receive(b.fd(), true, true);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(received && *received);
  EXPECT_TRUE((*received)->lost_descriptors);
  EXPECT_LT((*received)->descriptors.size(), 2u);
}

TEST(SocketTest, WhatIsNoPacketIsCorrupt) {
  auto [a, b] = Pair();
  for (const std::string& wrong : {std::string("x"), std::string(5000, 'y')}) {
    ASSERT_GT(send(a.fd(), wrong.data(), wrong.size(), 0), 0);
    const auto received = Receive(b.fd(), true, true);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().code, ErrorCode::kCorrupt);
  }
}

TEST(SocketTest, ListensWhereNobodyDoes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ipc-" + std::to_string(getpid()))).string();
  {
    const auto first = Listen(path, SocketKind::kPackets, OpenTo::kOwner);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const auto second = Listen(path, SocketKind::kPackets, OpenTo::kOwner);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, testing::HasSubstr("another daemon serves it"));
    const auto client = Connect(path, SocketKind::kPackets);
    ASSERT_TRUE(client);
    const Descriptor served(accept4(first->fd(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto caller = CallerOf(served.fd());
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->user, getuid());
    EXPECT_EQ(caller->process, getpid());
  }
  EXPECT_FALSE(Connect(path, SocketKind::kPackets));
  EXPECT_TRUE(
      Listen(path, SocketKind::kStream, OpenTo::kAnybody));  // what was left behind is replaced
  std::filesystem::remove(path);
}

// What another process maps cannot be made smaller under it, nor written where it is read-only.
TEST(MemoryTest, IsSealed) {
  for (const bool read_only : {false, true}) {
    Descriptor file;
    const auto mine = Memory::Make("test", 8192, read_only, file);
    ASSERT_TRUE(mine);
    EXPECT_NE(ftruncate(file.fd(), 0), 0);
    EXPECT_NE(ftruncate(file.fd(), 1 << 20), 0);
    EXPECT_NE(fcntl(file.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
    EXPECT_EQ(static_cast<bool>(Memory::Map(file.fd(), 8192, true)), !read_only);
    const auto theirs = Memory::Map(file.fd(), 8192, false);
    ASSERT_TRUE(theirs);
    mine->data()[5000] = std::byte{7};
    EXPECT_EQ(theirs->data()[5000], std::byte{7});
    // Holes may be made by who can write; they read as zeros and hurt nobody.
    const bool made =
        fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096) == 0;
    EXPECT_EQ(theirs->data()[5000], made ? std::byte{0} : std::byte{7});
  }
}

TEST(WatchTest, SeesThatAProcessHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const Descriptor watched = WatchProcess(child);
  if (!watched.is_open()) GTEST_SKIP() << "the kernel has no pidfd_open";
  pollfd ready{.fd = watched.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(WatchProcess(0).is_open());
}

// A line whose daemon completes operation 1 and then fails it, because another rank has left, between any two
// looks of the rank that waits.
struct ChangingLine {
  explicit ChangingLine(int looks_before) : looks_left(looks_before) {}
  template <class T>
  struct Field {
    ChangingLine& line;
    T before, after;
    T load() const { return line.looks_left-- > 0 ? before : after; }
  };
  mutable int looks_left;
  Field<uint64_t> completed{*this, 0, 1};
  Field<LineState> state{*this, LineState::kActive, LineState::kFailed};
};

TEST(LineOutcomeTest, WhatWasCompletedBeforeTheLineFailedIsComplete) {
  for (int looks = 0; looks <= 1; ++looks) {
    const ChangingLine line(looks);
    EXPECT_EQ(OutcomeOf(line, 1), LineOutcome::kCompleted) << looks;
  }
  StatusLine line;
  line.state = LineState::kActive;
  EXPECT_EQ(OutcomeOf(line, 1), LineOutcome::kPending);
  line.completed = 1;
  EXPECT_EQ(OutcomeOf(line, 1), LineOutcome::kCompleted);
  line.state = LineState::kFailed;
  EXPECT_EQ(OutcomeOf(line, 1), LineOutcome::kCompleted);
  EXPECT_EQ(OutcomeOf(line, 2), LineOutcome::kFailed);
}

}  // namespace
}  // namespace tutti::ipc
