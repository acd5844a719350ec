// Program: a plan laid out for execution at one size: flat arrays, byte offsets, matched messages.
// It is pure in (plan, slots, piece size): no address stands in it, so that one program serves all
// calls of that count, type and placement; a Binding says where a rank's buffers are.
//
// Model       The slots of all buffers are cut into `tiles` equal parts, and every stream executes
//             its instructions once a tile: a *pass*. Tiles do not overlap in memory and the same
//             instructions move each of them, so that a rank may be in several passes at once, and
//             a partial sum is still in the cache when the next rank reads it.
//             Messages are matched when the plan is loaded: the k-th send of a connection meets its
//             k-th receive. Both ends cut a message into the same segments, so that the receiver
//             can pair its own with the sender's.
// Addresses   Unit u of slot s, in tile t of T, of a slot with E elements: the tile starts at
//             element floor(t * E / T) and has E_t elements; the unit starts floor(u * E_t / U)
//             elements behind (include/tutti/lower/plan.h, "any E works", with E_t as E).
//             A tile of every *unit* instead (TilesOf::kUnits), where an element's unit, and with it the
//             order in which it is reduced, must not depend on the number of tiles: the unit starts
//             floor(u * E / U) elements behind the slot and is cut into T parts alike.
// Hazards     A send is posted and the stream goes on; its source is read later. Each instruction
//             that writes knows the sends of its rank that read the same units; those that have
//             been posted must be over before it may start (Invariant G2).
// Invariants  G1  The segments of an instruction cover its units in order; on every side a segment
//                 lies in one slot, at the same units, and the slots have equally many elements.
//                 Of tiles of units a segment has one unit, where there is more than one tile.
//             G2  hazards of a step hold every send of the rank whose source overlaps what the step
//                 writes, but for later ones of its own stream.
// Complexity  O(instructions x slots they touch + overlapping pairs) time and memory.
// Errors      kInvalidArgument names rank, stream and instruction of the fault, with both sides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layout.h"
#include "slot_map.h"
#include "tutti/base/result.h"
#include "tutti/lower/plan.h"

namespace tutti {

// Where the buffers of one rank lie: input, output, scratch.
struct Binding {
  std::array<std::byte*, 3> base{};
};

// The start of a slot.
struct SlotAddress {
  int64_t offset = 0;  // bytes from the start of the buffer
  Buffer buffer = Buffer::kInput;

  std::byte* In(const Binding& binding) const {
    return binding.base[static_cast<size_t>(buffer)] + offset;
  }
};

// A stretch of an instruction within one slot; the other side of a message has one of its own.
struct Segment {
  SlotAddress src;       // what is sent or copied, or the local operand of a reduction
  SlotAddress dst;       // what is written
  int64_t elements = 0;  // of the slot
  int32_t first_unit = 0, last_unit = 0;  // half open
};

struct Step {
  OpCode op = OpCode::kCopy;
  int32_t first_segment = 0, last_segment = 0;
  int32_t first_wait = 0, last_wait = 0;
  int32_t first_hazard = 0, last_hazard = 0;
};

struct Hazard {
  int32_t connection = 0;
  int32_t ordinal = 0;  // of the send among those of one pass
};

struct StreamProgram {
  int32_t first_step = 0, num_steps = 0;
  int32_t outgoing = -1, incoming = -1;  // connections
  int32_t num_sends = 0, num_receives = 0;
  std::vector<int32_t> sends;  // steps that send, from first_step on
};

// A part of the output that holds results: what an average divides.
struct ResultRange {
  int64_t offset = 0;  // bytes from the start of the output
  int64_t elements = 0;
};

struct RankProgram {
  std::vector<StreamProgram> streams;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::vector<Dependency> waits;
  std::vector<Hazard> hazards;
  std::vector<ResultRange> results;
};

struct ConnectionProgram {
  int32_t sender = 0, receiver = 0, channel = 0;
  int32_t sender_stream = 0, receiver_stream = 0;
  int32_t messages = 0;         // a pass
  int64_t largest_message = 0;  // bytes a pass at most
};

// What is cut into equal parts.
enum class TilesOf : uint8_t { kSlots, kUnits };

struct Program {
  TilesOf tiles_of = TilesOf::kSlots;
  int32_t units = 1;
  int32_t element_bytes = 1;
  int64_t tiles = 1;
  std::vector<RankProgram> ranks;
  std::vector<ConnectionProgram> connections;
};

// Tiles are chosen so that the largest message of a pass is about `piece_bytes`.
Result<Program> MakeProgram(const Plan& plan, const SlotMap& slots, int64_t piece_bytes,
                            TilesOf tiles_of = TilesOf::kSlots);
inline Result<Program> MakeProgram(const Plan& plan, const Layout& layout, int64_t piece_bytes,
                                   TilesOf tiles_of = TilesOf::kSlots) {
  return MakeProgram(plan, layout.slots(), piece_bytes, tiles_of);
}

// The elements of a segment in one tile: from the start of the slot, half open.
struct ElementRange {
  int64_t first = 0, last = 0;
};
inline int64_t Scale(int64_t part, int64_t whole, int64_t parts) {
  // floor(part * whole / parts) without a wide product, for part <= parts < 2^31.
  return part * (whole / parts) + part * (whole % parts) / parts;
}
inline ElementRange RangeInTile(const Segment& segment, int32_t units, int64_t tile, int64_t tiles,
                                TilesOf tiles_of = TilesOf::kSlots) {
  if (tiles_of == TilesOf::kUnits && tiles > 1) {
    const int64_t start = Scale(segment.first_unit, segment.elements, units);
    const int64_t size = Scale(segment.last_unit, segment.elements, units) - start;
    return {start + Scale(tile, size, tiles), start + Scale(tile + 1, size, tiles)};
  }
  const int64_t start = Scale(tile, segment.elements, tiles);
  const int64_t size = Scale(tile + 1, segment.elements, tiles) - start;
  return {start + Scale(segment.first_unit, size, units),
          start + Scale(segment.last_unit, size, units)};
}

}  // namespace tutti
