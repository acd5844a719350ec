// Nonblocking messages of any number of bytes, and waiting for them, as the engine does it.
//
// Model       Up to kLargestPiece bytes a message is so many MPI_BYTE. Above, counts of type int do
//             not suffice: the message is one element of a datatype of whole pieces and a rest, so
//             that it stays one message whatever its size.
// Errors      An MPI error code.
// Threads     As the MPI library allows.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::mpi {

inline constexpr int64_t kLargestPiece = int64_t{1} << 30;

// Tags on Tutti's own duplicates of communicators.
enum class Tag : int { kData = 1, kSizes = 2, kPack = 3, kNode = 4 };  // and above, by lanes

struct Pieces {
  int whole;  // of the piece's size
  int rest;   // bytes, less than a piece
};

// bytes == whole * piece + rest. Right for every int64 that has at most INT_MAX pieces.
Pieces SplitIntoPieces(int64_t bytes, int64_t piece = kLargestPiece);

// A committed datatype of `bytes` bytes, more than a piece; the caller frees it.
int MakePiecesType(int64_t bytes, int64_t piece, MPI_Datatype* type);

int SendBytes(const std::byte* from, int64_t bytes, int to, Tag tag, MPI_Comm communicator,
              MPI_Request* request, int64_t piece = kLargestPiece);
int ReceiveBytes(std::byte* into, int64_t bytes, int from, Tag tag, MPI_Comm communicator,
                 MPI_Request* request, int64_t piece = kLargestPiece);

// Waits for all; MPI_REQUEST_NULL is legal. SMPI's Waitall takes quadratic time: there one by one.
int WaitForAll(std::span<MPI_Request> requests);

}  // namespace tutti::mpi
