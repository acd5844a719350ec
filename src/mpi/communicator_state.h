// CommunicatorState: what Tutti keeps for a communicator of the program: a communicator of its own
// over the same ranks, and what folders of this room remember from call to call.
//
// Model       Kept as an attribute of the program's communicator; made at the first call on it,
//             freed when the program frees it. A duplicate that the program makes starts afresh.
//             The own communicator has the same ranks in the same order, none of the program's
//             attributes, and returns errors, so that they reach the program's error handler of its
//             own communicator.
// Errors      An MPI error code.
// Threads     One thread at a time per communicator, as for collectives.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace tutti::mpi {

// Collective: a communicator of the same ranks that returns errors and has none of the program's
// attributes (MPI_Comm_dup would run their copy callbacks).
int SameRanks(MPI_Comm communicator, MPI_Comm* own);

class CommunicatorState {
 public:
  // What a folder keeps here; each derives its own type.
  struct Part {
    virtual ~Part() = default;
  };
  enum class PartName { kGroups, kChoice, kDropin };

  // Collective at the first call on a communicator, local after. Intracommunicators only.
  static int Of(MPI_Comm communicator, CommunicatorState** state);

  // The same without a communicator of its own as long as Of() was not called: local. For those
  // who may never need one.
  static int FindOrCreateLocal(MPI_Comm communicator, CommunicatorState** state);

  // What these gave this thread last, if that was for this communicator; else null. A comparison.
  static CommunicatorState* Latest(MPI_Comm communicator);

  // How many were freed with their communicators: handles are used again, so that what is remembered by a handle holds as
  // long as this number does.
  static const std::atomic<uint64_t>& NumFreed();

  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  // IMPORTANT: only nonblocking messages and collectives of the engine go over it.
  MPI_Comm duplicate() const { return duplicate_; }  // MPI_COMM_NULL before Of()
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Null until its folder has made it; freed with the communicator.
  std::unique_ptr<Part>& part(PartName name) { return parts_[static_cast<int>(name)]; }

  // Scratch for the counts and displacements of one call, in bytes: `size` each.
  struct Bytes {
    std::vector<int64_t> send_offset, send_bytes, receive_offset, receive_bytes;
  };
  Bytes& bytes() { return bytes_; }

 private:
  CommunicatorState() = default;

  MPI_Comm duplicate_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  std::unique_ptr<Part> parts_[3];
  Bytes bytes_;
};

}  // namespace tutti::mpi
