/* Collectives by Tutti's schedules, for C programs: the names, numbers and meaning of NCCL's interface on memory
 * of the host, so that porting is renaming.
 *
 * Model     A communicator has N ranks, each held by one process or thread, which join by a unique id that one of
 *           them makes and hands to the others: by MPI_Bcast, or by a file (tuttiCommInitFile). Each rank calls
 *           the same operations in the same order.
 *           With a stream an operation returns at once and runs in the stream's own thread, in order; errors of
 *           it show in tuttiCommGetAsyncError and tuttiStreamSynchronize. With the stream NULL it runs in the
 *           calling thread and returns when this rank's part is complete.
 *           Between tuttiGroupStart and tuttiGroupEnd calls are only noted; tuttiGroupEnd starts them. Messages
 *           (tuttiSend, tuttiRecv) of a group run all at once, whatever their order.
 * Memory    Any address of the program may be given, of the host or of a CUDA device (whoever allocated it there; the
 *           data goes by way of the host). What a kernel is to have written has to be there when the operation starts: on
 *           the device's default stream, or synchronised. tuttiMemAlloc and tuttiMemAllocDevice are there for
 *           programs that also run under a service, which works on no other memory in place.
 * Units     Counts are elements, as NCCL counts them: of the whole buffer for AllReduce, Broadcast and Reduce, of
 *           one rank's block for the others.
 * Schedules TUTTI_SCHEDULES or tuttiConfig_t.schedules: a folder of schedule files (docs/guide/library.md).
 * Errors    Every function returns a result; tuttiGetLastError says more. After a failure of an operation the
 *           communicator stays failed.
 * Versions  Functions are only ever added, tuttiConfig_t only grows at its end: a program runs with any later
 *           library. Each function f exists as pf, too, for tools that wrap it.
 * Threads   Different communicators: any. One communicator: one thread at a time, but for tuttiCommAbort and
 *           tuttiCommGetAsyncError.
 */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_MAJOR 0
#define TUTTI_MINOR 1
#define TUTTI_PATCH 0
#define TUTTI_VERSION_CODE (TUTTI_MAJOR * 10000 + TUTTI_MINOR * 100 + TUTTI_PATCH)
#define TUTTI_UNIQUE_ID_BYTES 128

typedef enum {
  tuttiSuccess = 0,
  tuttiUnhandledDeviceError = 1,
  tuttiSystemError = 2,
  tuttiInternalError = 3,
  tuttiInvalidArgument = 4,
  tuttiInvalidUsage = 5,
  tuttiRemoteError = 6,
  tuttiInProgress = 7,
  tuttiResultLargest = 0x7fffffff /* any int is a value, so that wrong ones can be refused */
} tuttiResult_t;

typedef enum {
  tuttiInt8 = 0,
  tuttiChar = 0,
  tuttiUint8 = 1,
  tuttiInt32 = 2,
  tuttiInt = 2,
  tuttiUint32 = 3,
  tuttiInt64 = 4,
  tuttiUint64 = 5,
  tuttiFloat16 = 6,
  tuttiHalf = 6,
  tuttiFloat32 = 7,
  tuttiFloat = 7,
  tuttiFloat64 = 8,
  tuttiDouble = 8,
  tuttiBfloat16 = 9,
  tuttiDataTypeLargest = 0x7fffffff
} tuttiDataType_t;

typedef enum {
  tuttiSum = 0,
  tuttiProd = 1,
  tuttiMax = 2,
  tuttiMin = 3,
  tuttiAvg = 4,
  tuttiRedOpLargest = 0x7fffffff
} tuttiRedOp_t;

typedef struct {
  char internal[TUTTI_UNIQUE_ID_BYTES];
} tuttiUniqueId;

typedef struct tuttiComm* tuttiComm_t;
typedef struct tuttiStream* tuttiStream_t;
typedef struct tuttiEvent* tuttiEvent_t;

typedef struct {
  size_t size; /* the first three are TUTTI_CONFIG_INITIALIZER's */
  uint32_t magic;
  uint32_t version;
  double timeout_s;      /* of each operation, and for all ranks to join; 0: none */
  const char* schedules; /* folder of a schedule library; NULL: $TUTTI_SCHEDULES, if set */
} tuttiConfig_t;
#define TUTTI_CONFIG_MAGIC 0x54545543u
#define TUTTI_CONFIG_INITIALIZER \
  { sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION_CODE, 600.0, NULL }

/* Each is declared twice: under its name and with a p before it. */
#define TUTTI_DECLARE(result, name, parameters) \
  result name parameters;                       \
  result p##name parameters

TUTTI_DECLARE(tuttiResult_t, tuttiGetVersion, (int* version));
TUTTI_DECLARE(const char*, tuttiGetErrorString, (tuttiResult_t result));
/* Of the communicator's last failure; with NULL, of the last one of this thread. Valid until the next. */
TUTTI_DECLARE(const char*, tuttiGetLastError, (tuttiComm_t comm));

/* This process listens for the ranks until all have joined and gone. Others reach it at TUTTI_HOST, an address of this
 * host (of IP version 4 or 6) or its name, if set, else at that of its first interface. */
TUTTI_DECLARE(tuttiResult_t, tuttiGetUniqueId, (tuttiUniqueId * id));
TUTTI_DECLARE(tuttiResult_t, tuttiCommInitRank,
              (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank));
TUTTI_DECLARE(tuttiResult_t, tuttiCommInitRankConfig,
              (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank,
               const tuttiConfig_t* config));
/* Rank 0 writes the id to `path`, the others wait for it there. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommInitFile,
              (tuttiComm_t * comm, int nranks, int rank, const char* path,
               const tuttiConfig_t* config));
/* Ranks of one colour >= 0 get a communicator, in the order of (key, rank); a negative one gets NULL. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommSplit,
              (tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm,
               const tuttiConfig_t* config));
/* The ranks that are left of a communicator, failed or not, get a new one, in their old order: all that live and are not in the
 * list call it with the same list. Who has ended need not be in the list. One group can go on: that with more than half
 * of the ranks that live, or half with the lowest; others get tuttiRemoteError. TUTTI_SHRINK_ABORT ends what runs
 * first (tuttiCommAbort without the end of comm); without it what was started is waited for. comm has to be
 * destroyed as before. */
#define TUTTI_SHRINK_DEFAULT 0x00
#define TUTTI_SHRINK_ABORT 0x01
TUTTI_DECLARE(tuttiResult_t, tuttiCommShrink,
              (tuttiComm_t comm, const int* excludeRanksList, int excludeRanksCount,
               tuttiComm_t* newcomm, const tuttiConfig_t* config, int shrinkFlags));
/* For tuttiCommGrow: one rank of comm gets an id, and hands it to those that are to join by it. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommGetUniqueId, (tuttiComm_t comm, tuttiUniqueId* id));
/* Ranks of comm keep their ranks: they give rank -1, and NULL for id but for the one that got it. Those that join give NULL for
 * comm, the id, and ranks behind those; what they get is as of tuttiCommInitRankConfig. Of a comm that has failed,
 * those grow that are left, in their old order. comm stays as it is. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommGrow,
              (tuttiComm_t comm, int nranks, const tuttiUniqueId* id, int rank,
               tuttiComm_t* newcomm, const tuttiConfig_t* config));
/* Waits for all that was started, on all ranks. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommFinalize, (tuttiComm_t comm));
/* Waits for what this rank has started. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommDestroy, (tuttiComm_t comm));
/* What runs fails on all ranks; then as tuttiCommDestroy. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommAbort, (tuttiComm_t comm));
/* tuttiSuccess, tuttiInProgress while something runs, or why it has failed. */
TUTTI_DECLARE(tuttiResult_t, tuttiCommGetAsyncError, (tuttiComm_t comm, tuttiResult_t* result));
TUTTI_DECLARE(tuttiResult_t, tuttiCommCount, (tuttiComm_t comm, int* count));
TUTTI_DECLARE(tuttiResult_t, tuttiCommUserRank, (tuttiComm_t comm, int* rank));

TUTTI_DECLARE(tuttiResult_t, tuttiMemAlloc, (void** ptr, size_t bytes)); /* at a multiple of 4096 */
/* Zeros on a CUDA device, by its number in this process; an address of the device. */
TUTTI_DECLARE(tuttiResult_t, tuttiMemAllocDevice, (void** ptr, size_t bytes, int device));
TUTTI_DECLARE(tuttiResult_t, tuttiMemFree, (void* ptr)); /* of either */

TUTTI_DECLARE(tuttiResult_t, tuttiAllReduce,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiAllGather,
              (const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t datatype,
               tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiReduceScatter,
              (const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t datatype,
               tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiBroadcast,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               int root, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiReduce,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiGather,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               int root, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiScatter,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               int root, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiAlltoAll,
              (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
               tuttiComm_t comm, tuttiStream_t stream));
/* Counts and offsets in elements, one a rank; read before the call returns. */
TUTTI_DECLARE(tuttiResult_t, tuttiAlltoAllv,
              (const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
               void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
               tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiSend,
              (const void* sendbuff, size_t count, tuttiDataType_t datatype, int peer,
               tuttiComm_t comm, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiRecv,
              (void* recvbuff, size_t count, tuttiDataType_t datatype, int peer, tuttiComm_t comm,
               tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiGroupStart, (void));
TUTTI_DECLARE(tuttiResult_t, tuttiGroupEnd, (void));

/* Streams of the host: a thread that does one thing after the other. */
TUTTI_DECLARE(tuttiResult_t, tuttiStreamCreate, (tuttiStream_t * stream));
TUTTI_DECLARE(tuttiResult_t, tuttiStreamDestroy, (tuttiStream_t stream)); /* waits for it */
TUTTI_DECLARE(tuttiResult_t, tuttiStreamLaunch,
              (tuttiStream_t stream, void (*function)(void*), void* argument));
/* The first failure since the last time, if any. */
TUTTI_DECLARE(tuttiResult_t, tuttiStreamSynchronize, (tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiEventCreate, (tuttiEvent_t * event));
TUTTI_DECLARE(tuttiResult_t, tuttiEventDestroy, (tuttiEvent_t event));
/* Reached when the stream has done all that it was given before. */
TUTTI_DECLARE(tuttiResult_t, tuttiEventRecord, (tuttiEvent_t event, tuttiStream_t stream));
TUTTI_DECLARE(tuttiResult_t, tuttiEventQuery, (tuttiEvent_t event)); /* tuttiInProgress: not yet */
TUTTI_DECLARE(tuttiResult_t, tuttiEventSynchronize, (tuttiEvent_t event));
TUTTI_DECLARE(tuttiResult_t, tuttiStreamWaitEvent, (tuttiStream_t stream, tuttiEvent_t event));

#ifdef __cplusplus
}
#endif
#endif
