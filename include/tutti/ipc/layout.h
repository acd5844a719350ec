// What a tenant's process and the daemon of its host share in memory: commands, and what became of them.
//
// Model       Two memory files a process, made by the daemon.
//             *Commands*, written by the tenant: a page of control words, then kSlots slots. The tenant
//             writes a slot, then `tail`; the daemon copies the slot once and checks the copy, as the
//             memory may change at any moment.
//             *Status*, read-only for the tenant: whether the daemon sleeps, how many slots it has
//             taken, and a line a rank of a communicator: how many of its commands are complete.
//             Buffers are memory files of their own (docs/formats/service.md).
// Waking      The tenant stores `tail`, then rings the doorbell if `daemon_sleeps`; the daemon stores
//             that, then looks at all tails again. It stores a line, then wakes who waits for it by
//             waits[line].
// Units       Counts are elements, offsets bytes from the start of the buffer.
// Trust       Nothing in it is a length, index or address for the daemon before it was checked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::ipc {

inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kSlots = 256;
inline constexpr uint32_t kLines = 256;  // ranks of communicators of one process
inline constexpr uint32_t kNoBuffer = 0;

enum class Opcode : uint16_t {
  kNone,
  kCollective,  // `kind` of it
  kMessage,     // of an exchange: one of several
  kExchange,    // the exchange of the messages before it: they run at once
};

struct Slot {
  uint64_t sequence = 0;  // of this line, from 1; messages of an exchange have that of the exchange
  Opcode opcode = Opcode::kNone;
  uint8_t kind = 0;   // CollectiveKind; of an exchange kAllToAllV where all ranks take part, else 0
  uint8_t type = 0;   // DataType
  uint8_t op = 0;     // ReduceOp
  uint8_t sends = 0;  // of a message
  uint16_t reserved = 0;
  uint32_t line = 0;
  uint32_t root = 0;                               // or the peer of a message
  uint32_t input = kNoBuffer, output = kNoBuffer;  // buffers; a message has `input` only
  uint64_t input_offset = 0, output_offset = 0;
  uint64_t count = 0;  // elements; of a message bytes
  uint64_t what = 0;   // of an exchange: what all ranks have to call alike
  std::array<uint64_t, 8> zero{};
};
static_assert(sizeof(Slot) == 128);

struct CommandPage {
  uint32_t version = kVersion;
  uint32_t slots = kSlots;
  alignas(64) std::atomic<uint64_t> tail{0};
  alignas(64) std::array<std::atomic<uint32_t>, kLines> waits{};
};
struct CommandArea {
  CommandPage page;
  alignas(4096) std::array<Slot, kSlots> slots;
};

enum class LineState : uint32_t { kFree, kActive, kFailed };

struct StatusLine {
  alignas(64) std::atomic<uint64_t> completed{0};
  std::atomic<LineState> state{LineState::kFree};
  std::atomic<uint32_t> epoch{0};
};
struct StatusArea {
  uint32_t version = kVersion;
  std::atomic<uint32_t> daemon_sleeps{0};
  alignas(64) std::atomic<uint64_t> head{0};
  alignas(64) std::array<StatusLine, kLines> lines;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// What has become of operation `sequence` of a line.
enum class LineOutcome : uint8_t { kPending, kCompleted, kFailed };
// An operation that was completed before its line failed is complete: the state is read first, as the daemon
// writes it last. Line: a StatusLine.
template <class Line>
LineOutcome OutcomeOf(const Line& line, uint64_t sequence) {
  const LineState state = line.state.load();
  if (line.completed.load() >= sequence) return LineOutcome::kCompleted;
  return state == LineState::kActive ? LineOutcome::kPending : LineOutcome::kFailed;
}

}  // namespace tutti::ipc
