// What the engine must know of a datatype, and moving blocks of derived ones to and from plain
// bytes.
//
// Model       Elements of a *plain* datatype lie one behind the other in the order of their type
//             map: their bytes can be sent as they lie. All others are packed into their `size`
//             bytes per element, in the order of the type map, which is what any datatype of the
//             same signature unpacks.
// Errors      An MPI error code.
// Threads     Any.
// Reference   MPI 4.0 section 5.1.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace tutti::mpi {

struct TypeShape {
  int64_t size = 0;    // bytes of an element without holes
  int64_t extent = 0;  // bytes from one element to the next
  bool plain = false;
};

int ShapeOf(MPI_Datatype type, TypeShape* shape);

// `elements` at `from` become elements * size bytes at `packed`, and back; holes are not touched.
// The communicator is Tutti's own: blocks above INT_MAX bytes, which MPI_Pack cannot count, go as a
// message to itself.
int PackBlock(const std::byte* from, int elements, MPI_Datatype type, int64_t bytes,
              std::byte* packed, MPI_Comm communicator, int rank);
int UnpackBlock(const std::byte* packed, int64_t bytes, std::byte* into, int elements,
                MPI_Datatype type, MPI_Comm communicator, int rank);

}  // namespace tutti::mpi
