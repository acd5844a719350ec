// Piece: the data of one message (or copy) in one tile, as the segments of its instruction, and what
// moves such data: whole or up to a budget, from buffers or from packed bytes.
//
// Model       Both sides of a message have the same number of segments, of equally many elements
//             (Program, G1). A *cursor* says how far a move has come, so that a move that ran out
//             of budget goes on where it stopped and no element is moved or reduced twice.
// Lifetime    A Piece points to a Program and a Binding, which must outlive it.
// Complexity  O(segments + bytes), no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels.h"
#include "program.h"

namespace tutti {

struct Piece {
  std::span<const Segment> segments;
  const Binding* binding = nullptr;
  int64_t tile = 0, tiles = 1;
  int32_t units = 1, element_bytes = 1;
  TilesOf tiles_of = TilesOf::kSlots;

  ElementRange RangeOf(const Segment& segment) const {
    return RangeInTile(segment, units, tile, tiles, tiles_of);
  }
  int64_t Bytes() const;
};

// Where a message goes: dst of the segments, reduced with src where there is a kernel.
struct Target {
  Piece piece;
  ReduceKernel reduce = nullptr;
  bool past_cache = false;  // stored so, where it is copied: nobody here reads it soon
};

Piece PieceOf(const Program& program, int32_t rank, const Binding& binding, const Step& step,
              int64_t tile);
// What message `message` (counted over all passes) of a stream's sends reads.
Piece SourceOf(const Program& program, int32_t rank, const Binding& binding,
               const StreamProgram& stream, uint64_t message);

struct Cursor {
  size_t segment = 0;
  int64_t elements = 0;  // done of that segment
  int64_t bytes = 0;     // done of the piece
};

inline constexpr int64_t kNoBudget = INT64_MAX;

// Moves from src of `source` to `target` until all is done (true) or `budget`, which is reduced by
// what was moved, does not suffice for another element.
bool Move(const Piece& source, const Target& target, Cursor& cursor, int64_t& budget);
// The same from bytes in the order of the segments; `packed` is where the cursor stands in them.
bool MovePacked(const std::byte* packed, const Target& target, Cursor& cursor, int64_t& budget);
void Pack(const Piece& source, std::byte* to);

}  // namespace tutti
