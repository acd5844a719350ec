// Burst: some calls of one of the collectives beside the all-to-alls, with arguments of one shape and
// data of their own, made one behind the other without waiting for the answers of the native
// algorithm, so that ranks run ahead of each other as they do in programs; and what came of it.
//
// Model       What is drawn alike by all ranks comes from (seed, number). Data are moved in datatypes
//             that each rank draws for itself (types.h), of any shape; reductions are of the types
//             and operations of the standard and of one that the program defines and that does not
//             commute. Where TUTTI_REORDER is set floating-point numbers are drawn so that no order
//             rounds. Forms that are passed on are compared with the same form of the MPI library,
//             which may have another order for each.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "call.h"
#include "random.h"
#include "types.h"

namespace tutti::mpi::differential {

enum class BurstForm { kBlocking, kNonblocking, kPersistent };
constexpr int kBurstForms = 3;
const char* Name(BurstForm form);

class Burst {
 public:
  Burst(const Options& options, uint64_t number, const Group& group, int world_rank);

  // "" where the answers are the same, else what differs on this rank.
  std::string Run();
  std::string Text() const;
  BurstForm form() const { return form_; }
  int calls() const { return static_cast<int>(calls_.size()); }

 private:
  struct Kind;
  struct Arguments {
    const void* send;
    void* receive;
    MPI_Request* request;  // of the other forms than the blocking one
  };
  struct Call {
    Buffer send, sent, native, tested;
  };
  // One side of the calls on this rank.
  struct Side {
    int bases = 1;
    Type type;
    std::vector<int> counts;  // of blocks; none: this rank has no such side
    Places places;
  };

  static const std::vector<Kind>& Kinds();
  void DrawReduction();
  void DrawBlocks();
  bool DrawPlaces();
  void FillNumbers(Buffer& buffer, uint64_t key) const;
  bool IsRoot() const;
  // In the form of this burst; `native`: the MPI library's own.
  int Invoke(bool native, const Arguments& arguments) const;
  Arguments ArgumentsOf(Call& call, bool native) const;
  int RunAll(bool native);

  const Options& options_;
  const uint64_t number_;
  const Group& group_;
  const int world_rank_;
  Random common_, mine_;
  const Kind* kind_ = nullptr;
  BurstForm form_ = BurstForm::kBlocking;
  bool in_place_ = false;
  int rank_ = 0, size_ = 1;  // of the group; of the other side where it is an intercommunicator
  int root_ = 0;             // as the call has it
  // Reductions: of all ranks alike.
  MPI_Datatype element_ = MPI_INT;
  MPI_Op op_ = MPI_SUM;
  std::string op_text_;
  bool of_doubles_ = false, of_floats_ = false;
  std::vector<int> block_elements_;
  Side send_side_, receive_side_;
  std::vector<Call> calls_;
};

}  // namespace tutti::mpi::differential
