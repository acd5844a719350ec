// Datatypes drawn at random, and where blocks of them can lie without touching a byte twice.
//
// Model       All types of a call are made of one *base* (a basic type, a pair with a hole, or a
//             record of two basic types); a type of n elements has the signature of n bases, so
//             that blocks of types of different shapes but as many bases match. Type maps here go
//             in any direction, have holes, lower bounds of any sign and extents smaller or larger
//             than what they span.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "random.h"

namespace tutti::mpi::differential {

struct Piece {
  int64_t offset, bytes;
};

class Type {
 public:
  Type() = default;
  ~Type();
  Type(Type&& other) noexcept;
  Type& operator=(Type&& other) noexcept;
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;

  MPI_Datatype handle = MPI_BYTE;
  bool owned = false;
  int64_t extent = 1;
  std::vector<Piece> pieces = {{0, 1}};  // what an element touches
  std::string text = "byte";             // how it was made

  int64_t low() const;  // of the touched bytes; both 0 of none
  int64_t high() const;
};

constexpr int kBases = 6;
constexpr int kPlainBase = 0;  // bytes

// `elements` bases as they are: contiguous, nothing resized.
Type MakePlainType(Random& random, int base, int elements);
// Any shape; may touch bytes twice, which only what is sent may do.
Type MakeType(Random& random, int base, int elements);

// Where the blocks of one side of a call lie, in extents of the type; which bytes they touch.
struct Places {
  std::vector<int> displacements;
  int64_t low = 0, high = 0;  // touched bytes from the buffer's address on
};

// No bases at all; of any extent.
Type MakeEmptyType(Random& random);

// Draws displacements of either sign in any order. False where no place was found (which can be
// only if blocks may not overlap).
bool Place(Random& random, const Type& type, const std::vector<int>& counts, bool may_overlap,
           Places* places);
// Block i begins where block i - 1 ends, as in MPI_Alltoall.
bool PlaceInRow(const Type& type, int count, int blocks, bool may_overlap, Places* places);

}  // namespace tutti::mpi::differential
