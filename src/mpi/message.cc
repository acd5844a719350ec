#include "message.h"

#include "copy.h"

namespace tutti::mpi {
int MakePiecesType(int64_t bytes, int64_t piece, MPI_Datatype* type) {
  const Pieces pieces = SplitIntoPieces(bytes, piece);
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  if (const int error = PMPI_Type_contiguous(static_cast<int>(piece), MPI_BYTE, &whole)) {
    return error;
  }
  int lengths[] = {pieces.whole, pieces.rest};
  MPI_Aint places[] = {0, static_cast<MPI_Aint>(pieces.whole * piece)};
  MPI_Datatype types[] = {whole, MPI_BYTE};
  int error = PMPI_Type_create_struct(pieces.rest == 0 ? 1 : 2, lengths, places, types, type);
  PMPI_Type_free(&whole);
  if (error == MPI_SUCCESS) error = PMPI_Type_commit(type);
  return error;
}

Pieces SplitIntoPieces(int64_t bytes, int64_t piece) {
  return {.whole = static_cast<int>(bytes / piece), .rest = static_cast<int>(bytes % piece)};
}

int SendBytes(const std::byte* from, int64_t bytes, int to, Tag tag, MPI_Comm communicator,
              MPI_Request* request, int64_t piece) {
  SettleCopies();
  if (bytes <= piece) {
    return PMPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, static_cast<int>(tag),
                      communicator, request);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (const int error = MakePiecesType(bytes, piece, &type)) return error;
  const int error = PMPI_Isend(from, 1, type, to, static_cast<int>(tag), communicator, request);
  PMPI_Type_free(&type);
  return error;
}

int ReceiveBytes(std::byte* into, int64_t bytes, int from, Tag tag, MPI_Comm communicator,
                 MPI_Request* request, int64_t piece) {
  if (bytes <= piece) {
    return PMPI_Irecv(into, static_cast<int>(bytes), MPI_BYTE, from, static_cast<int>(tag),
                      communicator, request);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (const int error = MakePiecesType(bytes, piece, &type)) return error;
  const int error = PMPI_Irecv(into, 1, type, from, static_cast<int>(tag), communicator, request);
  PMPI_Type_free(&type);
  return error;
}

int WaitForAll(std::span<MPI_Request> requests) {
  SettleCopies();
#ifdef TUTTI_MPI_SMPI
  int first_error = MPI_SUCCESS;
  for (MPI_Request& each : requests) {
    const int error = PMPI_Wait(&each, MPI_STATUS_IGNORE);
    if (first_error == MPI_SUCCESS) first_error = error;
  }
  return first_error;
#else
  return PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
#endif
}

}  // namespace tutti::mpi
