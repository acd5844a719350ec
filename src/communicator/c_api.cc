// The C interface of tutti/tutti.h: communicators, memory, streams and events.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "c_call.h"
#include "device_allocations.h"
#include "service_client.h"

namespace tutti::c_api {
namespace {

tuttiResult_t ReadConfig(const tuttiConfig_t* config, CommunicatorOptions& options) {
  if (config == nullptr) return tuttiSuccess;
  if (config->magic != TUTTI_CONFIG_MAGIC || config->size < offsetof(tuttiConfig_t, timeout_s))
    return Refuse("the configuration was not made with TUTTI_CONFIG_INITIALIZER");
  // An older program's: it lacks what came later.
  tuttiConfig_t known = TUTTI_CONFIG_INITIALIZER;
  std::memcpy(&known, config, std::min(config->size, sizeof(known)));
  if (!(known.timeout_s >= 0)) return Refuse(fmt::format("a time-out of {} s", known.timeout_s));
  options.timeout_s = known.timeout_s;
  if (known.schedules != nullptr) options.schedules = known.schedules;
  return tuttiSuccess;
}

tuttiResult_t Give(Result<Communicator> joined, tuttiComm_t* comm) {
  if (!joined) return Fail(joined.error());
  *comm = new tuttiComm(std::move(*joined));
  return tuttiSuccess;
}

tuttiResult_t GiveNew(Result<std::unique_ptr<Communicator>> made, tuttiComm_t* comm) {
  if (!made) return Fail(made.error());
  *comm = *made == nullptr ? nullptr : new tuttiComm(std::move(**made));
  return tuttiSuccess;
}

tuttiResult_t Join(tuttiComm_t* comm, int num_ranks, const Result<UniqueId>& id, int rank,
                   const CommunicatorOptions& options) {
  if (!id) return Fail(id.error());
  return Give(Communicator::Join(*id, num_ranks, rank, options), comm);
}

// No number of bytes that a program may ask for is too large to be refused as one.
int64_t Bounded(size_t bytes) {
  constexpr size_t kMaxAllocation = size_t{1} << 46;
  return static_cast<int64_t>(std::min(bytes, kMaxAllocation));
}

tuttiResult_t AllocateOfService(const std::string& socket, void** memory, size_t bytes) {
  return Guarded([&] {
    const auto client = ServiceClient::Get(socket);
    if (!client) return Fail(client.error());
    const Result<void*> made = (*client)->Allocate(Bounded(bytes));
    if (!made) return Fail(made.error());
    *memory = *made;
    return tuttiSuccess;
  });
}

Result<void*> AllocateOnDevice(int device, int64_t bytes) {
  const std::string socket = ServiceSocket();
  if (socket.empty()) return DeviceAllocations::OfThisProcess().Allocate(device, bytes);
  const auto client = ServiceClient::Get(socket);
  if (!client) return tl::unexpected(client.error());
  return (*client)->AllocateOnDevice(bytes, device);
}

}  // namespace
}  // namespace tutti::c_api

using namespace tutti::c_api;

// --- Communicators -------------------------------------------------------------------------------

TUTTI_DEFINE(tuttiResult_t, tuttiGetVersion, (int* version)) {
  if (version == nullptr) return Refuse("version is NULL");
  *version = TUTTI_VERSION_CODE;
  return tuttiSuccess;
}

TUTTI_DEFINE(const char*, tuttiGetErrorString, (tuttiResult_t result)) {
  switch (result) {
    case tuttiSuccess:
      return "no error";
    case tuttiUnhandledDeviceError:
      return "a device failed";
    case tuttiSystemError:
      return "the operating system refused something";
    case tuttiInternalError:
      return "a bug of the library";
    case tuttiInvalidArgument:
      return "an invalid argument";
    case tuttiInvalidUsage:
      return "an invalid order of calls";
    case tuttiRemoteError:
      return "another rank failed, has gone or aborted";
    case tuttiInProgress:
      return "in progress";
    case tuttiResultLargest:
      break;
  }
  return "an unknown result";
}

TUTTI_DEFINE(const char*, tuttiGetLastError, (tuttiComm_t comm)) {
  if (comm == nullptr) return LastError().c_str();
  const tutti::Status health = comm->ranks.health();
  const std::lock_guard lock(comm->mutex);
  comm->shown_error = health ? "" : health.error().message;
  return comm->shown_error.c_str();
}

TUTTI_DEFINE(tuttiResult_t, tuttiGetUniqueId, (tuttiUniqueId * id)) {
  return Guarded([&] {
    if (id == nullptr) return Refuse("id is NULL");
    const tutti::Result<tutti::UniqueId> made = tutti::MakeUniqueId();
    if (!made) return Fail(made.error());
    std::memcpy(id->internal, made->bytes.data(), made->bytes.size());
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitRankConfig,
             (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank,
              const tuttiConfig_t* config)) {
  return Guarded([&] {
    if (comm == nullptr) return Refuse("comm is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = ReadConfig(config, options); read != tuttiSuccess) return read;
    tutti::UniqueId bytes;
    std::memcpy(bytes.bytes.data(), id.internal, bytes.bytes.size());
    return Join(comm, nranks, bytes, rank, options);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitRank,
             (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank)) {
  return ptuttiCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitFile,
             (tuttiComm_t * comm, int nranks, int rank, const char* path,
              const tuttiConfig_t* config)) {
  return Guarded([&] {
    if (comm == nullptr || path == nullptr) return Refuse("comm or path is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = ReadConfig(config, options); read != tuttiSuccess) return read;
    return Join(comm, nranks, tutti::ShareUniqueIdByFile(path, rank, options.timeout_s), rank,
                options);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommSplit,
             (tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm,
              const tuttiConfig_t* config)) {
  return Guarded([&] {
    if (comm == nullptr || newcomm == nullptr) return Refuse("comm or newcomm is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = ReadConfig(config, options); read != tuttiSuccess) return read;
    if (InGroup()) return Misused("tuttiCommSplit within a group");
    WaitForIssued(*comm);
    return GiveNew(comm->ranks.Split(color, key), newcomm);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommShrink,
             (tuttiComm_t comm, const int* excludeRanksList, int excludeRanksCount,
              tuttiComm_t* newcomm, const tuttiConfig_t* config, int shrinkFlags)) {
  return Guarded([&] {
    if (comm == nullptr || newcomm == nullptr) return Refuse("comm or newcomm is NULL");
    if (excludeRanksCount < 0 || (excludeRanksCount > 0 && excludeRanksList == nullptr))
      return Refuse(fmt::format("a list of {} ranks at {}", excludeRanksCount,
                                static_cast<const void*>(excludeRanksList)));
    if ((shrinkFlags & ~TUTTI_SHRINK_ABORT) != 0)
      return Refuse(fmt::format("flags {:#x}: there is {:#x}", shrinkFlags, TUTTI_SHRINK_ABORT));
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = ReadConfig(config, options); read != tuttiSuccess) return read;
    if (InGroup()) return Misused("tuttiCommShrink within a group");
    if ((shrinkFlags & TUTTI_SHRINK_ABORT) != 0) comm->ranks.Abort();
    WaitForIssued(*comm);
    return GiveNew(comm->ranks.Shrink({excludeRanksList, static_cast<size_t>(excludeRanksCount)}),
                   newcomm);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommGetUniqueId, (tuttiComm_t comm, tuttiUniqueId* id)) {
  return Guarded([&] {
    if (comm == nullptr || id == nullptr) return Refuse("comm or id is NULL");
    const tutti::Result<tutti::UniqueId> made = comm->ranks.MakeGrowId();
    if (!made) return Fail(made.error());
    std::memcpy(id->internal, made->bytes.data(), made->bytes.size());
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommGrow,
             (tuttiComm_t comm, int nranks, const tuttiUniqueId* id, int rank, tuttiComm_t* newcomm,
              const tuttiConfig_t* config)) {
  return Guarded([&] {
    if (newcomm == nullptr) return Refuse("newcomm is NULL");
    if (comm == nullptr) {
      if (id == nullptr) return Refuse("comm and id are NULL");
      return ptuttiCommInitRankConfig(newcomm, nranks, *id, rank, config);
    }
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = ReadConfig(config, options); read != tuttiSuccess) return read;
    if (rank != -1)
      return Refuse(fmt::format("rank {}: a rank of comm keeps its own and gives -1", rank));
    if (InGroup()) return Misused("tuttiCommGrow within a group");
    tutti::UniqueId given;
    if (id != nullptr) std::memcpy(given.bytes.data(), id->internal, given.bytes.size());
    WaitForIssued(*comm);
    return GiveNew(comm->ranks.Grow(nranks, id == nullptr ? nullptr : &given), newcomm);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommFinalize, (tuttiComm_t comm)) {
  return Guarded([&] {
    if (comm == nullptr) return Refuse("comm is NULL");
    if (InGroup()) return Misused("tuttiCommFinalize within a group");
    WaitForIssued(*comm);
    return CodeOf(comm->ranks.Barrier());
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommDestroy, (tuttiComm_t comm)) {
  return Guarded([&] {
    if (comm == nullptr) return tuttiSuccess;
    if (InGroup()) return Misused("tuttiCommDestroy within a group");
    WaitForIssued(*comm);
    delete comm;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommAbort, (tuttiComm_t comm)) {
  return Guarded([&] {
    if (comm == nullptr) return tuttiSuccess;
    comm->ranks.Abort();
    WaitForIssued(*comm);
    delete comm;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommGetAsyncError, (tuttiComm_t comm, tuttiResult_t* result)) {
  return Guarded([&] {
    if (comm == nullptr || result == nullptr) return Refuse("comm or result is NULL");
    const tutti::Status health = comm->ranks.health();
    const std::lock_guard lock(comm->mutex);
    *result = !health                     ? CodeOf(health.error())
              : comm->done < comm->issued ? tuttiInProgress
                                          : tuttiSuccess;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommCount, (tuttiComm_t comm, int* count)) {
  if (comm == nullptr || count == nullptr) return Refuse("comm or count is NULL");
  *count = comm->ranks.num_ranks();
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommUserRank, (tuttiComm_t comm, int* rank)) {
  if (comm == nullptr || rank == nullptr) return Refuse("comm or rank is NULL");
  *rank = comm->ranks.rank();
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiMemAlloc, (void** ptr, size_t bytes)) {
  constexpr size_t kPage = 4096;
  if (ptr == nullptr) return Refuse("ptr is NULL");
  if (const std::string socket = tutti::ServiceSocket(); !socket.empty())
    return AllocateOfService(socket, ptr, bytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, kPage, std::max<size_t>(bytes, 1)) != 0)
    return Fail(
        {tutti::ErrorCode::kResourceExhausted, fmt::format("no memory for {} bytes", bytes)});
  *ptr = memory;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiMemAllocDevice, (void** ptr, size_t bytes, int device)) {
  return Guarded([&] {
    if (ptr == nullptr) return Refuse("ptr is NULL");
    const tutti::Result<void*> made = AllocateOnDevice(device, Bounded(std::max<size_t>(bytes, 1)));
    if (!made) return Fail(made.error());
    *ptr = *made;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiMemFree, (void* ptr)) {
  if (tutti::ServiceClient::FreeOfAny(ptr)) return tuttiSuccess;
  if (tutti::DeviceAllocations::OfThisProcess().Free(ptr)) return tuttiSuccess;
  std::free(ptr);
  return tuttiSuccess;
}

// --- Streams and events --------------------------------------------------------------------------

TUTTI_DEFINE(tuttiResult_t, tuttiStreamCreate, (tuttiStream_t * stream)) {
  return Guarded([&] {
    if (stream == nullptr) return Refuse("stream is NULL");
    *stream = new tuttiStream;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamDestroy, (tuttiStream_t stream)) {
  delete stream;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamLaunch,
             (tuttiStream_t stream, void (*function)(void*), void* argument)) {
  return Guarded([&] {
    if (function == nullptr) return Refuse("function is NULL");
    if (stream == nullptr)
      function(argument);
    else
      stream->stream.Add([function, argument] { function(argument); });
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamSynchronize, (tuttiStream_t stream)) {
  return Guarded([&] {
    if (stream == nullptr) return tuttiSuccess;
    stream->stream.Synchronize();
    const std::lock_guard lock(stream->mutex);
    return std::exchange(stream->failure, tuttiSuccess);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventCreate, (tuttiEvent_t * event)) {
  return Guarded([&] {
    if (event == nullptr) return Refuse("event is NULL");
    *event = new tuttiEvent;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventDestroy, (tuttiEvent_t event)) {
  delete event;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventRecord, (tuttiEvent_t event, tuttiStream_t stream)) {
  return Guarded([&] {
    if (event == nullptr) return Refuse("event is NULL");
    const uint64_t record = event->event->Record();
    if (stream == nullptr)
      event->event->Reach(record);
    else
      stream->stream.Add([reached = event->event, record] { reached->Reach(record); });
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventQuery, (tuttiEvent_t event)) {
  if (event == nullptr) return Refuse("event is NULL");
  return event->event->IsReached() ? tuttiSuccess : tuttiInProgress;
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventSynchronize, (tuttiEvent_t event)) {
  if (event == nullptr) return Refuse("event is NULL");
  event->event->Wait(event->event->last());
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamWaitEvent, (tuttiStream_t stream, tuttiEvent_t event)) {
  return Guarded([&] {
    if (event == nullptr) return Refuse("event is NULL");
    const uint64_t record = event->event->last();
    if (stream == nullptr)
      event->event->Wait(record);
    else
      stream->stream.Add([awaited = event->event, record] { awaited->Wait(record); });
    return tuttiSuccess;
  });
}
