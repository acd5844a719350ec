// Trace: where the time and the memory of one exchange went, for breakdowns and tests.
//
// Units       Seconds of PMPI_Wtime (simulated ones under SMPI); bytes; messages this rank sent.
// Invariants  Fields are added to, never reset, so that one Trace may sum several exchanges; the
//             peaks (temporary_bytes, staging_bytes, slots) are the largest seen.
// Use         Algorithms take a Trace* and read no clock where it is null.
//
//   StopWatch watch(trace);            // starts the clock
//   ... gather ...
//   watch.Charge(&Trace::copy_s);      // what passed since the last call belongs to copy_s
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>

namespace tutti::mpi {

struct Trace {
  double prepare_s = 0;     // communicator state, scratch, counts and displacements in bytes
  double metadata_s = 0;    // waiting for sizes of blocks
  double data_s = 0;        // sending, receiving, waiting for blocks
  double copy_s = 0;        // gathering blocks into messages, copying arrived ones to their place
  double rearrange_s = 0;   // packing and unpacking of datatypes, final order
  double inter_node_s = 0;  // hierarchical forms: the exchange between nodes
  int64_t temporary_bytes = 0;  // [T] most bytes of blocks on their way to others held at once
  int64_t staging_bytes = 0;    // other memory: messages being put together or arriving
  int64_t slots = 0;            // [B] blocks there is place for in [T]
  int64_t rounds = 0;           // [K] point-to-point rounds (of algorithms that have rounds)
  int64_t messages = 0;

  void NoteTemporary(int64_t bytes) { temporary_bytes = std::max(temporary_bytes, bytes); }
  void NoteStaging(int64_t bytes) { staging_bytes = std::max(staging_bytes, bytes); }
};

class StopWatch {
 public:
  explicit StopWatch(Trace* trace) : trace_(trace), since_(trace == nullptr ? 0 : PMPI_Wtime()) {}

  void Charge(double Trace::*field) {
    if (trace_ == nullptr) return;
    const double now = PMPI_Wtime();
    trace_->*field += now - since_;
    since_ = now;
  }

 private:
  Trace* trace_;
  double since_;
};

}  // namespace tutti::mpi
