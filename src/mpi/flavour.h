// Which MPI this copy of the room was compiled for: "openmpi", "mpich" or "smpi".
#pragma once

namespace tutti::mpi {

const char* FlavourName();

}  // namespace tutti::mpi
