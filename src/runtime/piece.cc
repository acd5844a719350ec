#include "piece.h"

#include <algorithm>

#include "tutti/base/copy.h"

namespace tutti {
namespace {

// from_of(index of the segment, element within the slot): the bytes to move.
template <class FromOf>
bool MoveFrom(const Target& target, Cursor& cursor, int64_t& budget, FromOf from_of) {
  const Piece& piece = target.piece;
  const int64_t size = piece.element_bytes;
  for (; cursor.segment < piece.segments.size(); ++cursor.segment, cursor.elements = 0) {
    const Segment& segment = piece.segments[cursor.segment];
    const ElementRange range = piece.RangeOf(segment);
    const int64_t first = range.first + cursor.elements;
    const int64_t left = range.last - first;
    const int64_t count = left * size <= budget ? left : budget / size;
    if (count > 0) {
      const std::byte* from = from_of(cursor.segment, first);
      std::byte* to = segment.dst.In(*piece.binding) + first * size;
      if (target.reduce != nullptr)
        target.reduce(to, segment.src.In(*piece.binding) + first * size, from, count);
      else if (to != from && target.past_cache)
        CopyPastCache(to, from, static_cast<size_t>(count * size));
      else if (to != from)
        CopyMemory(to, from, static_cast<size_t>(count * size));
      cursor.elements += count;
      cursor.bytes += count * size;
      budget -= count * size;
    }
    if (count < left) break;
  }
  if (target.past_cache) EndCopiesPastCache();
  return cursor.segment == piece.segments.size();
}

}  // namespace

int64_t Piece::Bytes() const {
  int64_t elements = 0;
  for (const Segment& segment : segments) {
    const ElementRange range = RangeOf(segment);
    elements += range.last - range.first;
  }
  return elements * element_bytes;
}

Piece PieceOf(const Program& program, int32_t rank, const Binding& binding, const Step& step,
              int64_t tile) {
  const RankProgram& mine = program.ranks[static_cast<size_t>(rank)];
  return {.segments = {mine.segments.data() + step.first_segment,
                       mine.segments.data() + step.last_segment},
          .binding = &binding,
          .tile = tile,
          .tiles = program.tiles,
          .units = program.units,
          .element_bytes = program.element_bytes,
          .tiles_of = program.tiles_of};
}

Piece SourceOf(const Program& program, int32_t rank, const Binding& binding,
               const StreamProgram& stream, uint64_t message) {
  const auto sends = static_cast<uint64_t>(stream.num_sends);
  const auto step = static_cast<size_t>(stream.sends[static_cast<size_t>(message % sends)]);
  return PieceOf(program, rank, binding, program.ranks[static_cast<size_t>(rank)].steps[step],
                 static_cast<int64_t>(message / sends % static_cast<uint64_t>(program.tiles)));
}

bool Move(const Piece& source, const Target& target, Cursor& cursor, int64_t& budget) {
  return MoveFrom(target, cursor, budget, [&source](size_t segment, int64_t first) {
    return source.segments[segment].src.In(*source.binding) + first * source.element_bytes;
  });
}

bool MovePacked(const std::byte* packed, const Target& target, Cursor& cursor, int64_t& budget) {
  const int64_t start = cursor.bytes;
  return MoveFrom(target, cursor, budget, [packed, start, &cursor](size_t, int64_t) {
    return packed + (cursor.bytes - start);
  });
}

void Pack(const Piece& source, std::byte* to) {
  for (const Segment& segment : source.segments) {
    const ElementRange range = source.RangeOf(segment);
    const auto bytes = static_cast<size_t>((range.last - range.first) * source.element_bytes);
    if (bytes == 0) continue;  // of an empty message `to` may be null
    CopyMemory(to, segment.src.In(*source.binding) + range.first * source.element_bytes, bytes);
    to += bytes;
  }
}

}  // namespace tutti
