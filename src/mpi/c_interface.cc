#include <memory>
#include <string>
#include <utility>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"
#include "tutti/mpi/persistent.h"
#include "tutti/mpi/tutti_mpi.h"

using tutti::alltoallv::Algorithm;

struct tutti_exchange_state {
  std::unique_ptr<tutti::mpi::PersistentAlltoallv> exchange;
};

namespace {

std::string& Message() {
  thread_local std::string message;
  return message;
}

int Parse(const char* text, Algorithm* algorithm) {
  Message().clear();
  tutti::Result<Algorithm> parsed =
      text == nullptr ? tutti::InvalidArgument("no algorithm is named; 'auto' is one")
                      : tutti::alltoallv::ParseAlgorithm(text);
  if (!parsed) {
    Message() = std::move(parsed.error().message);
    return MPI_ERR_ARG;
  }
  *algorithm = parsed.value();
  return MPI_SUCCESS;
}

}  // namespace

int tutti_alltoallv(const void* send, const int send_counts[], const int send_displacements[],
                    MPI_Datatype send_type, void* receive, const int receive_counts[],
                    const int receive_displacements[], MPI_Datatype receive_type,
                    MPI_Comm communicator, const char* algorithm) {
  Algorithm parsed;
  if (const int error = Parse(algorithm, &parsed)) return error;
  return tutti::mpi::Alltoallv(send, send_counts, send_displacements, send_type, receive,
                               receive_counts, receive_displacements, receive_type, communicator,
                               parsed);
}

int tutti_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm communicator,
                   const char* algorithm) {
  Algorithm parsed;
  if (const int error = Parse(algorithm, &parsed)) return error;
  return tutti::mpi::Alltoall(send, send_count, send_type, receive, receive_count, receive_type,
                              communicator, parsed);
}

int tutti_alltoallv_init(const void* send, const int send_counts[], const int send_displacements[],
                         MPI_Datatype send_type, void* receive, const int receive_counts[],
                         const int receive_displacements[], MPI_Datatype receive_type,
                         MPI_Comm communicator, const char* algorithm, tutti_exchange* exchange) {
  *exchange = nullptr;
  Algorithm parsed;
  if (const int error = Parse(algorithm, &parsed)) return error;
  auto state = std::make_unique<tutti_exchange_state>();
  if (const int error = tutti::mpi::PersistentAlltoallv::Init(
          send, send_counts, send_displacements, send_type, receive, receive_counts,
          receive_displacements, receive_type, communicator, parsed, &state->exchange)) {
    return error;
  }
  *exchange = state.release();
  return MPI_SUCCESS;
}

int tutti_start(tutti_exchange exchange) {
  return exchange == nullptr ? MPI_ERR_REQUEST : exchange->exchange->Start();
}

int tutti_wait(tutti_exchange exchange) {
  return exchange == nullptr ? MPI_ERR_REQUEST : exchange->exchange->Wait();
}

int tutti_free(tutti_exchange* exchange) {
  delete std::exchange(*exchange, nullptr);
  return MPI_SUCCESS;
}

const char* tutti_mpi_message(void) { return Message().c_str(); }
