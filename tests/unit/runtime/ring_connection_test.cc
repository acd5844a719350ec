#include "ring_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "connection_cases.h"
#include "ranks_in_memory.h"
#include "tcp_frames.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// A ring in memory of this process, or of its children too.
class Ring {
 public:
  explicit Ring(uint64_t capacity = 4096, bool shared = false) : shared_(shared) {
    bytes_ = sizeof(RingState) + capacity;
    data_ = shared ? static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   : static_cast<std::byte*>(std::aligned_alloc(64, (bytes_ + 63) / 64 * 64));
    channel.state = new (data_) RingState();
    channel.bytes = data_ + sizeof(RingState);
    channel.capacity = capacity;
    channel.wake_sender = channel.wake_receiver = &waker_;
    channel.signature = &signature;
    channel.reference_bytes = &reference_bytes;
    channel.sender_process = getpid();
    channel.name = "connection 0 -> 1 channel 0";
    channel.sender = "rank 0";
  }
  ~Ring() { shared_ ? static_cast<void>(munmap(data_, bytes_)) : std::free(data_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  RingChannel channel;
  uint64_t signature = 0x11;
  int64_t reference_bytes = 0;

 private:
  bool shared_;
  size_t bytes_ = 0;
  std::byte* data_ = nullptr;
  NoWaker waker_;
};

class RingEnds {
 public:
  RingEnds(const RanksInMemory& ranks, uint64_t capacity, int64_t reference_bytes) {
    for (size_t c = 0; c < ranks.program().connections.size(); ++c) {
      Ring& ring = rings_.emplace_back(capacity);
      ring.reference_bytes = reference_bytes;
      senders_.emplace_back(ring.channel);
      receivers_.emplace_back(ring.channel);
    }
  }
  std::vector<StreamEnds> Of(const RanksInMemory& ranks, int32_t rank) {
    std::vector<StreamEnds> ends;
    for (const StreamProgram& stream : ranks.program().ranks[static_cast<size_t>(rank)].streams) {
      StreamEnds& of_stream = ends.emplace_back();
      if (stream.outgoing >= 0)
        of_stream.outgoing = &senders_[static_cast<size_t>(stream.outgoing)];
      if (stream.incoming >= 0)
        of_stream.incoming = &receivers_[static_cast<size_t>(stream.incoming)];
    }
    return ends;
  }
  bool Advance() {
    bool any = false;
    for (RingSender& sender : senders_) any = sender.Advance() || any;
    return any;
  }

 private:
  std::deque<Ring> rings_;
  std::deque<RingSender> senders_;
  std::deque<RingReceiver> receivers_;
};

// Every plan, with any budget, gives the bytes that it gives over shared memory: whether messages are
// copied through rings that hold many or a part of one, or are referenced.
TEST(RingConnectionTest, EveryPlanThroughSmallAndLargeRings) {
  for (const auto& [plan, options] : ConnectionCases()) {
    RanksInMemory shared(plan, options);
    SharedEnds shared_ends(shared);
    std::deque<Interpreter> over_memory;
    for (int32_t r = 0; r < shared.num_ranks(); ++r)
      over_memory.push_back(shared.MakeInterpreter(r, shared_ends.Of(shared, r)));
    shared.Fill();
    ASSERT_TRUE(RunInTurns(
        over_memory, [] { return kNoBudget; }, [] { return false; }));
    Random random(7);
    for (const uint64_t capacity : {uint64_t{4096}, uint64_t{1} << 20})
      for (const int64_t reference_bytes : {0, 1, 500}) {
        SCOPED_TRACE(testing::Message()
                     << Name(plan.collective.kind()) << " " << options.count << " "
                     << Name(options.type) << " " << Name(options.op) << " capacity " << capacity
                     << " referenced from " << reference_bytes);
        RanksInMemory ranks(plan, options);
        RingEnds ends(ranks, capacity, reference_bytes);
        std::deque<Interpreter> interpreters;
        for (int32_t r = 0; r < ranks.num_ranks(); ++r)
          interpreters.push_back(ranks.MakeInterpreter(r, ends.Of(ranks, r)));
        for (const uint64_t max_budget : {uint64_t{5000}, uint64_t{1} << 40}) {
          ranks.Fill();
          ASSERT_TRUE(RunInTurns(
              interpreters, [&] { return 1 + static_cast<int64_t>(random.Below(max_budget)); },
              [&] { return ends.Advance(); }));
          ASSERT_EQ(ranks.CountWrong(), 0);
        }
        EXPECT_EQ(ranks.Results(), shared.Results());
      }
  }
}

// One message of bytes.
struct OneMessage {
  explicit OneMessage(std::vector<std::byte>& data) {
    binding.base[static_cast<size_t>(Buffer::kInput)] = data.data();
    segment = {.src = {0, Buffer::kInput},
               .dst = {0, Buffer::kInput},
               .elements = static_cast<int64_t>(data.size()),
               .first_unit = 0,
               .last_unit = 1};
  }
  Piece piece() const { return {.segments = {&segment, 1}, .binding = &binding}; }

  Binding binding;
  Segment segment;
};

std::vector<std::byte> Numbers(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
  return bytes;
}

TEST(RingConnectionTest, AReferencedMessageIsReleasedWhenItWasTaken) {
  Ring ring;
  ring.reference_bytes = 100;
  RingSender sender(ring.channel);
  RingReceiver receiver(ring.channel);
  std::vector<std::byte> small = Numbers(99), large = Numbers(100), to_small(99), to_large(100);
  OneMessage out_small(small), out_large(large), in_small(to_small), in_large(to_large);
  ASSERT_TRUE(sender.TryPost(out_small.piece()));
  EXPECT_EQ(sender.released(), 1u);  // it is in the ring
  ASSERT_TRUE(sender.TryPost(out_large.piece()));
  EXPECT_EQ(sender.released(), 1u);
  int64_t budget = kNoBudget;
  EXPECT_EQ(receiver.TryTake({in_small.piece(), nullptr}, budget), Progress::kDone);
  EXPECT_EQ(receiver.TryTake({in_large.piece(), nullptr}, budget), Progress::kDone);
  EXPECT_EQ(sender.released(), 2u);
  EXPECT_EQ(to_small, small);
  EXPECT_EQ(to_large, large);
}

// Through rings that hold the message or a part of it, beginning and ending within a line.
TEST(RingConnectionTest, WhatIsStreamedIsWhatWasSent) {
  for (const uint64_t capacity : {uint64_t{4096}, uint64_t{1} << 20})
    for (const size_t bytes : {size_t{16} << 10, size_t{50'021}, size_t{100'000}}) {
      SCOPED_TRACE(testing::Message() << capacity << " " << bytes);
      Ring ring(capacity);
      ring.channel.state->to_stream = ~uint32_t{0};
      RingSender sender(ring.channel);
      RingReceiver receiver(ring.channel);
      std::vector<std::byte> small = Numbers(13), large = Numbers(bytes), first(13), second(bytes);
      OneMessage out_small(small), out_large(large), in_small(first), in_large(second);
      ASSERT_TRUE(sender.TryPost(out_small.piece()));
      ASSERT_TRUE(sender.TryPost(out_large.piece()));
      int64_t budget = kNoBudget;
      EXPECT_EQ(receiver.TryTake({in_small.piece(), nullptr}, budget), Progress::kDone);
      while (receiver.TryTake({in_large.piece(), nullptr}, budget) != Progress::kDone)
        ASSERT_TRUE(sender.Advance());
      EXPECT_EQ(first, small);
      EXPECT_EQ(second, large);
    }
}

TEST(RingConnectionTest, TheReceiverHasBothWaysOfStoringTried) {
  Ring ring(uint64_t{1} << 20);
  RingSender sender(ring.channel);
  RingReceiver receiver(ring.channel);
  std::vector<std::byte> data = Numbers(size_t{64} << 10), into(data.size());
  const uint32_t bit = CopyChoice::BitOf(static_cast<int64_t>(data.size()));
  OneMessage out(data), in(into);
  const auto pass = [&](int messages) {
    int64_t budget = kNoBudget;
    for (int i = 0; i < messages; ++i) {
      ASSERT_TRUE(sender.TryPost(out.piece()));
      ASSERT_EQ(receiver.TryTake({in.piece(), nullptr}, budget), Progress::kDone);
    }
  };
  EXPECT_EQ(ring.channel.state->to_stream.load(), 0u);
  pass(CopyChoice::kTrials);
  EXPECT_EQ(ring.channel.state->to_stream.load(), bit);
  pass(CopyChoice::kPeriod);
  EXPECT_EQ(ring.channel.state->to_stream.load() & ~bit, 0u);
  EXPECT_EQ(into, data);
}

// A sender that has failed: its caller may do with the memory what it likes.
TEST(RingConnectionTest, WhatIsRevokedIsNotRead) {
  Ring ring;
  ring.reference_bytes = 100;
  ring.channel.sender = "rank 7";
  RingSender sender(ring.channel);
  RingReceiver receiver(ring.channel);
  std::vector<std::byte> small = Numbers(99), large = Numbers(100), to_small(99), to_large(100);
  OneMessage out_small(small), out_large(large), in_small(to_small), in_large(to_large);
  ASSERT_TRUE(sender.TryPost(out_small.piece()));
  ASSERT_TRUE(sender.TryPost(out_large.piece()));
  sender.Revoke();
  int64_t budget = kNoBudget;
  EXPECT_EQ(receiver.TryTake({in_small.piece(), nullptr}, budget), Progress::kDone);
  EXPECT_EQ(to_small, small);  // from the ring
  EXPECT_EQ(receiver.TryTake({in_large.piece(), nullptr}, budget), Progress::kNothing);
  EXPECT_EQ(to_large, std::vector<std::byte>(100));
  ASSERT_FALSE(receiver.health());
  EXPECT_THAT(receiver.health().error().message, HasSubstr("rank 7 has given up"));
}

// A sender that fails again and again while a receiver of its process reads: what it read it was given before.
TEST(RingConnectionTest, MemoryIsTheCallersOwnOnceItIsRevoked) {
  constexpr int kRounds = 300;
  constexpr size_t kBytes = size_t{256} << 10;
  const std::vector<std::byte> wanted = Numbers(kBytes);
  for (int round = 0; round < kRounds; ++round) {
    Ring ring;
    ring.reference_bytes = 100;
    RingSender sender(ring.channel);
    RingReceiver receiver(ring.channel);
    std::vector<std::byte> data = wanted, into(kBytes);
    OneMessage out(data), in(into);
    ASSERT_TRUE(sender.TryPost(out.piece()));
    std::thread reads([&] {
      while (receiver.health()) {
        int64_t budget = 4096;
        if (receiver.TryTake({in.piece(), nullptr}, budget) != Progress::kDone) continue;
        EXPECT_EQ(into, wanted) << "round " << round;
        return;
      }
    });
    for (int i = 0; i < round * 20; ++i) sender.Advance();
    sender.Revoke();
    std::fill(data.begin(), data.end(), std::byte{0});
    reads.join();
  }
}

TEST(RingConnectionTest, WhatIsSavedMayBeOverwritten) {
  // Copied in parts, or referenced; not yet begun by the receiver, or begun.
  for (const int64_t reference_bytes : {0, 100}) {
    Ring ring;
    ring.reference_bytes = reference_bytes;
    RingSender sender(ring.channel);
    RingReceiver receiver(ring.channel);
    std::vector<std::byte> data = Numbers(10'000), into(10'000);
    const std::vector<std::byte> wanted = data;
    OneMessage out(data), in(into);
    ASSERT_TRUE(sender.TryPost(out.piece()));
    ASSERT_TRUE(sender.Save(0, out.piece()));
    std::fill(data.begin(), data.end(), std::byte{0});
    int64_t budget = kNoBudget;
    for (int turn = 0; turn < 10; ++turn) {
      if (receiver.TryTake({in.piece(), nullptr}, budget) == Progress::kDone) break;
      sender.Advance();
    }
    EXPECT_EQ(into, wanted) << reference_bytes;
    EXPECT_EQ(sender.released(), 1u);
  }
  Ring ring;
  ring.reference_bytes = 100;
  RingSender sender(ring.channel);
  RingReceiver receiver(ring.channel);
  std::vector<std::byte> data = Numbers(10'000), into(10'000);
  OneMessage out(data), in(into);
  ASSERT_TRUE(sender.TryPost(out.piece()));
  int64_t budget = 10;
  EXPECT_EQ(receiver.TryTake({in.piece(), nullptr}, budget), Progress::kPart);
  EXPECT_FALSE(sender.Save(0, out.piece()));  // the receiver is at it
  budget = kNoBudget;
  EXPECT_EQ(receiver.TryTake({in.piece(), nullptr}, budget), Progress::kDone);
  EXPECT_EQ(into, data);
}

TEST(RingConnectionTest, AnotherProcessReadsWhatIsReferenced) {
  Ring ring(4096, true);
  ring.reference_bytes = 100;
  std::vector<std::byte> data = Numbers(200'000);
  OneMessage out(data);
  RingSender sender(ring.channel);
  ASSERT_TRUE(sender.TryPost(out.piece()));
  ASSERT_TRUE(sender.TryPost(out.piece()));
  const pid_t child = fork();
  if (child == 0) {
    RingReceiver receiver(ring.channel);
    std::vector<std::byte> copied(data.size()), sums(data.size(), std::byte{1});
    OneMessage to_copied(copied), to_sums(sums);
    int64_t budget = kNoBudget;
    const bool took =
        receiver.TryTake({to_copied.piece(), nullptr}, budget) == Progress::kDone &&
        receiver.TryTake({to_sums.piece(), FindReduceKernel(DataType::kUint8, ReduceOp::kSum)},
                         budget) == Progress::kDone;
    bool right = took && copied == data;
    for (size_t i = 0; i < sums.size(); ++i)
      right = right && sums[i] == static_cast<std::byte>(static_cast<unsigned>(data[i]) + 1);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sender.released(), 2u);
}

// --- Faults --------------------------------------------------------------------------------------

TEST(RingConnectionTest, AnotherCallIsNamed) {
  Ring ring;
  RingSender sender(ring.channel);
  std::vector<std::byte> data(8), into(8);
  OneMessage out(data), in(into);
  ASSERT_TRUE(sender.TryPost(out.piece()));
  ring.signature = 0x22;
  RingReceiver receiver(ring.channel);
  int64_t budget = kNoBudget;
  EXPECT_EQ(receiver.TryTake({in.piece(), nullptr}, budget), Progress::kNothing);
  EXPECT_EQ(receiver.health().error().message,
            "connection 0 -> 1 channel 0: got message 0 of call 0000000000000011, wanted message 0 "
            "of call 0000000000000022: the ranks do not run the same");
}

// Whoever maps the ring may write anything: it is noticed, or it is data.
TEST(RingConnectionTest, ImpossibleCountsAreNoticed) {
  std::vector<std::byte> data(8), into(8);
  OneMessage out(data), in(into);
  int64_t budget = kNoBudget;
  {
    Ring ring;
    RingReceiver receiver(ring.channel);
    ring.channel.state->written = 4097;
    EXPECT_EQ(receiver.TryTake({in.piece(), nullptr}, budget), Progress::kNothing);
    ASSERT_FALSE(receiver.health());
    EXPECT_THAT(receiver.health().error().message, HasSubstr("more than there is room for"));
  }
  {
    Ring ring;
    RingSender sender(ring.channel);
    ring.channel.state->read = 1'000'000;
    std::vector<std::byte> large(10'000);
    OneMessage much(large);
    ASSERT_TRUE(sender.TryPost(much.piece()));
    ASSERT_FALSE(sender.health());
    EXPECT_THAT(sender.health().error().message, HasSubstr("has read what was not written"));
  }
  {
    Ring ring;
    ring.reference_bytes = 1;
    RingReceiver receiver(ring.channel);
    tcp::PutWord(ring.signature, ring.channel.bytes);
    tcp::PutWord(0, ring.channel.bytes + 8);
    tcp::PutWord(1, ring.channel.bytes + 16);
    ring.channel.state->written = 64;
    ring.channel.state->references[0].address = 16;  // nobody's memory
    const pid_t child = fork();  // of another process, so that the kernel is asked
    if (child == 0) {
      RingReceiver elsewhere(ring.channel);
      elsewhere.TryTake({in.piece(), nullptr}, budget);
      const Status health = elsewhere.health();
      // Where a process may not read another's memory at all, it is refused before it is looked for.
      const std::string what = "connection 0 -> 1 channel 0: cannot read the memory of rank 0: ";
      for (const int why : {EFAULT, EPERM})
        if (!health && health.error().message == what + std::strerror(why)) _exit(0);
      fprintf(stderr, "%s\n", health ? "healthy" : health.error().message.c_str());
      _exit(1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace tutti
