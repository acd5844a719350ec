// An all-to-all-v that is set up once and run many times with the same counts: the sizes that
// forwarding algorithms exchange, and the messages of direct ones, are prepared at the start.
//
// Model       Init is collective and keeps the arguments: buffers, counts and displacements must
//             stay as they are until the exchange is destroyed (the contents of the buffers may
//             change between exchanges). Start begins an exchange; the send buffer must not be
//             written and the receive buffer not be used before Wait has returned. All ranks call
//             Start and Wait alike; messages that need others go on inside Wait, so no rank may
//             wait for another between the two. Exchanges have communicators of their own: other
//             calls may come between.
//               linear, spread-out         Start starts every message
//               pairwise, xor, scattered   Start starts the first batch
//               TuNA                       Start starts the first rounds; no sizes are sent
//               all others                 Start does the whole exchange
// Errors      An MPI error code.
// Threads     One at a time.
#pragma once

#include <mpi.h>

#include <memory>

#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

class PersistentAlltoallv {
 public:
  // Collective. Intracommunicators only, MPI_ERR_COMM otherwise.
  static int Init(const void* send, const int send_counts[], const int send_displacements[],
                  MPI_Datatype send_type, void* receive, const int receive_counts[],
                  const int receive_displacements[], MPI_Datatype receive_type,
                  MPI_Comm communicator, const alltoallv::Algorithm& algorithm,
                  std::unique_ptr<PersistentAlltoallv>* made);

  virtual ~PersistentAlltoallv() = default;  // collective

  virtual int Start() = 0;
  virtual int Wait() = 0;
};

}  // namespace tutti::mpi
