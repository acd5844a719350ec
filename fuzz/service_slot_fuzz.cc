// Commands in a tenant's queue to a daemon whose communicator of one rank runs them. Right ones are checked against a model: all
// are completed, and the rank's memory holds what they say. A tenant that said something wrong is followed by another; an honest
// one is answered all the while.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "bytes.h"
#include "support/served_daemon.h"
#include "tutti/coll/collective.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"
#include "tutti/runtime/types.h"

namespace {

using tutti::CollectiveKind;
using tutti::DataType;
using tutti::ReduceOp;
using tutti::fuzz::Bytes;
using tutti::ipc::Kind;
using tutti::ipc::Memory;
using tutti::ipc::Opcode;
using tutti::ipc::Packet;
using tutti::ipc::Slot;
using tutti::test_support::RawTenant;
using tutti::test_support::ServedDaemon;

// Of an enumeration from its first value to `last`.
template <class Enum>
uint8_t Draw(Bytes& bytes, Enum last) {
  return static_cast<uint8_t>(bytes.Take<uint8_t>() % (static_cast<int>(last) + 1));
}

// The only rank of a communicator, and what its memory has to hold.
class Rank {
 public:
  explicit Rank(RawTenant of) : tenant_(std::move(of)) {
    if (!tenant_.is_welcome()) std::abort();
    const auto allocated = tenant_.Ask({.kind = Kind::kAllocate, .words = {kBytes}});
    const Packet id = tenant_.AskOf({.kind = Kind::kMakeId});
    const Packet joined = tenant_.AskOf({.kind = Kind::kJoin, .words = {1, 0}, .text = id.text});
    if (!allocated || allocated->descriptors.size() != 1 || joined.kind != Kind::kJoined)
      std::abort();
    auto mapped = Memory::Map(allocated->descriptors[0].fd(), kBytes, true);
    if (!mapped) std::abort();
    memory_ = std::move(*mapped);
    buffer_ = static_cast<uint32_t>(allocated->packet.words[0]);
    line_ = static_cast<uint32_t>(joined.words[0]);
    for (size_t i = 0; i < kBytes; ++i) wanted_[i] = static_cast<std::byte>(i ^ i >> 8);
    std::memcpy(memory_.data(), wanted_.data(), kBytes);
  }

  bool goes_on() const {
    char byte = 0;
    const bool is_open = recv(tenant_.socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    return is_open && state() == tutti::ipc::LineState::kActive;
  }
  // All that was issued is done, as it has to be.
  bool is_as_wanted() const {
    return state() == tutti::ipc::LineState::kActive &&
           tenant_.status().lines[line_].completed.load() == sequence_ &&
           std::memcmp(memory_.data(), wanted_.data(), kBytes) == 0;
  }
  const RawTenant& tenant() const { return tenant_; }

  // Of one rank every collective is a copy, whatever it adds up.
  void IssueCollective(Bytes& bytes) {
    Slot slot = Next(Opcode::kCollective);
    slot.kind = Draw(bytes, CollectiveKind::kAllToAll);
    slot.type = Draw(bytes, tutti::kLastDataType);
    // Not averages of numbers with a fraction: to divide by one turns a signalling NaN into a quiet one.
    const bool may_be_average = slot.type >= static_cast<uint8_t>(DataType::kInt32);
    slot.op = Draw(bytes, may_be_average ? ReduceOp::kAvg : ReduceOp::kMax);
    const auto size = static_cast<uint64_t>(tutti::SizeOf(static_cast<DataType>(slot.type)));
    const uint64_t elements = kBytes / size;
    const uint64_t from = bytes.Take<uint16_t>() % elements, to = bytes.Take<uint16_t>() % elements;
    slot.count = bytes.Take<uint16_t>() % (elements - std::max(from, to) + 1);
    slot.input = slot.output = buffer_;
    slot.input_offset = from * size;
    slot.output_offset = to * size;
    ++sequence_;
    tenant_.SubmitSilently(slot);
    Copy(slot.input_offset, slot.output_offset, slot.count * size);
  }
  // From one half of its memory to the other: at once, so neither may be part of the other.
  void IssueExchange(Bytes& bytes) {
    constexpr uint64_t kHalf = kBytes / 2;
    const uint64_t from = bytes.Take<uint16_t>() % kHalf, to = bytes.Take<uint16_t>() % kHalf;
    const uint64_t length = bytes.Take<uint16_t>() % (kHalf - std::max(from, to) + 1);
    for (const bool sends : {true, false}) {
      Slot message = Next(Opcode::kMessage);
      message.sends = sends ? 1 : 0;
      message.input = buffer_;
      message.input_offset = sends ? from : kHalf + to;
      message.count = length;
      tenant_.SubmitSilently(message);
    }
    Slot slot = Next(Opcode::kExchange);
    const bool is_of_all = bytes.Take<uint8_t>() % 2 == 1;
    slot.kind = is_of_all ? static_cast<uint8_t>(CollectiveKind::kAllToAllV) : 0;
    slot.what = bytes.Take<uint8_t>();
    ++sequence_;
    tenant_.SubmitSilently(slot);
    Copy(from, kHalf + to, length);
  }
  // Anything, but for what a bit of `right` sets as a library would.
  void IssueAnything(uint8_t right, Bytes& bytes) {
    auto slot = bytes.Take<Slot>();
    if ((right & 1) != 0) slot.line = line_;
    if ((right & 2) != 0) slot.sequence = sequence_ + 1;
    if ((right & 4) != 0) {
      slot.reserved = 0;
      slot.zero = {};
    }
    if ((right & 8) != 0) {
      slot.input = slot.output = buffer_;
      slot.root = 0;
      slot.count %= kBytes;
    }
    tenant_.SubmitSilently(slot);
  }

 private:
  static constexpr size_t kBytes = 2 * 4096;

  tutti::ipc::LineState state() const { return tenant_.status().lines[line_].state.load(); }
  Slot Next(Opcode opcode) const {
    Slot slot;
    slot.sequence = sequence_ + 1;
    slot.opcode = opcode;
    slot.line = line_;
    return slot;
  }
  void Copy(uint64_t from, uint64_t to, uint64_t bytes) {
    std::memmove(wanted_.data() + to, wanted_.data() + from, bytes);
  }

  RawTenant tenant_;
  Memory memory_;
  uint32_t buffer_ = 0, line_ = 0;
  uint64_t sequence_ = 0;  // of the last right command
  std::array<std::byte, kBytes> wanted_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ServedDaemon served("tutti-slot-fuzz");
  static RawTenant honest = served.Come();
  static std::optional<Rank> rank;
  if (!rank) rank.emplace(served.Come());
  Bytes bytes(data, size);
  bool all_right = true;
  constexpr int kMostCommands = 32;
  for (int command = 0; command < kMostCommands && !bytes.empty(); ++command) {
    // Little of what is drawn is wrong: the tenant is followed by another, which takes a quarter of a millisecond to come.
    const auto how = bytes.Take<uint8_t>();
    if (how >= 0xFD) {
      all_right = false;
      rank->IssueAnything(bytes.Take<uint8_t>(), bytes);
    } else if (how == 0xFC) {
      all_right = false;
      rank->tenant().commands().page.tail.store(bytes.Take<uint64_t>());
      break;
    } else if (how % 4 == 0) {
      rank->IssueExchange(bytes);
    } else {
      rank->IssueCollective(bytes);
    }
  }
  rank->tenant().Ring();
  served.Work();
  if (all_right) {
    if (!rank->is_as_wanted()) std::abort();
    return 0;
  }
  const bool was_ended = !rank->goes_on();
  rank.reset();
  served.Work();
  if (was_ended && honest.AskOf({.kind = Kind::kMakeId}).kind != Kind::kIdMade) std::abort();
  return 0;
}
