// The collectives that are compared, one row each: how the native algorithm is called (PMPI_), how
// the call that the drop-in library takes over, and the forms that programs call by name. A
// collective that is taken over later is one row more.
#pragma once

#include <mpi.h>

#include <vector>

#include "tutti/mpi/tutti_mpi.h"

namespace tutti::mpi::differential {

// The arguments of any of them; a row reads those that it has.
struct Arguments {
  const void* send = nullptr;
  std::vector<int> send_counts, send_displacements;
  MPI_Datatype send_type = MPI_BYTE;
  void* receive = nullptr;
  std::vector<int> receive_counts, receive_displacements;
  MPI_Datatype receive_type = MPI_BYTE;
  MPI_Comm communicator = MPI_COMM_NULL;
};

struct Collective {
  const char* name;
  bool equal_blocks;  // one count for all blocks, which lie in a row
  int (*native)(const Arguments&);
  int (*taken_over)(const Arguments&);
  int (*by_name)(const Arguments&, const char* algorithm);
  int (*nonblocking)(const Arguments&, MPI_Request*);
  // Null where there is none.
  int (*persistent)(const Arguments&, const char* algorithm, tutti_exchange*);
};

const std::vector<Collective>& Collectives();

// The same answer by messages from rank to rank, which is how the standard defines it: says which
// of two that differ is right. Intracommunicators only.
int ByMessages(const Collective& collective, const Arguments& arguments);

}  // namespace tutti::mpi::differential
