/* Tutti's all-to-all-v for programs in C. Arguments are those of MPI_Alltoallv and
 * MPI_Alltoall plus the algorithm as text: "auto", "mpi", "linear", "pairwise", "xor",
 * "spread-out", "scattered:b=32", "two-phase-bruck", "padded-bruck", "tuna:r=8",
 * "coalesced:r=4,b=16", "staggered:r=4,b=16", "multilevel:r=4,b=16", "shared:b=16",
 * "shared-coalesced:b=16" (tutti/alltoallv/algorithm.h says what each does).
 *
 * Errors: an MPI error code. Text that is no algorithm: MPI_ERR_ARG, and tutti_mpi_message() says
 * what is accepted.
 *
 * Threads: as the MPI library allows collectives: one at a time per communicator.
 *
 *   tutti_alltoallv(send, send_counts, send_displacements, MPI_DOUBLE,
 *                   receive, receive_counts, receive_displacements, MPI_DOUBLE,
 *                   MPI_COMM_WORLD, "tuna:r=8");
 */
#ifndef TUTTI_MPI_TUTTI_MPI_H_
#define TUTTI_MPI_TUTTI_MPI_H_

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

int tutti_alltoallv(const void *send, const int send_counts[], const int send_displacements[],
                    MPI_Datatype send_type, void *receive, const int receive_counts[],
                    const int receive_displacements[], MPI_Datatype receive_type,
                    MPI_Comm communicator, const char *algorithm);

int tutti_alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm communicator,
                   const char *algorithm);

/* The persistent form: sizes are exchanged once, in the collective init. The arguments must stay as
 * they are until the exchange is freed, by all ranks; what the buffers hold may change between
 * exchanges. No rank may wait for another between its start and its wait (tutti/mpi/persistent.h).
 */
typedef struct tutti_exchange_state *tutti_exchange;

int tutti_alltoallv_init(const void *send, const int send_counts[], const int send_displacements[],
                         MPI_Datatype send_type, void *receive, const int receive_counts[],
                         const int receive_displacements[], MPI_Datatype receive_type,
                         MPI_Comm communicator, const char *algorithm, tutti_exchange *exchange);
int tutti_start(tutti_exchange exchange);
int tutti_wait(tutti_exchange exchange);
int tutti_free(tutti_exchange *exchange);

/* What was wrong with the last text that this thread gave as an algorithm; "" if nothing. */
const char *tutti_mpi_message(void);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_MPI_TUTTI_MPI_H_ */
