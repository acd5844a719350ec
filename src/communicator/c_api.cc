// The C interface of tutti/tutti.h over Communicator.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "host_stream.h"
#include "service_client.h"
#include "tutti/communicator.h"
#include "tutti/tutti.h"

// Under both names; f itself is weak, so that a tool may define it and call pf.
#define TUTTI_DEFINE(result, name, parameters)                               \
  extern "C" __attribute__((weak, alias("p" #name))) result name parameters; \
  extern "C" result p##name parameters

namespace tutti {
namespace {

thread_local std::string last_error;

tuttiResult_t CodeOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
    case ErrorCode::kInfeasible:
      return tuttiInvalidArgument;
    case ErrorCode::kIo:
    case ErrorCode::kResourceExhausted:
      return tuttiSystemError;
    case ErrorCode::kCancelled:
    case ErrorCode::kPeerFailed:
      break;
  }
  return tuttiRemoteError;
}

tuttiResult_t Fail(const Error& error) {
  last_error = error.message;
  return CodeOf(error);
}
tuttiResult_t Refuse(std::string why) {
  return Fail({ErrorCode::kInvalidArgument, std::move(why)});
}
tuttiResult_t Misused(std::string why) {
  last_error = std::move(why);
  return tuttiInvalidUsage;
}
tuttiResult_t CodeOf(const Status& status) { return status ? tuttiSuccess : Fail(status.error()); }

constexpr std::array<DataType, 10> kTypes = {
    DataType::kInt8,    DataType::kUint8,   DataType::kInt32,   DataType::kUint32,
    DataType::kInt64,   DataType::kUint64,  DataType::kFloat16, DataType::kFloat32,
    DataType::kFloat64, DataType::kBfloat16};
constexpr std::array<ReduceOp, 5> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                          ReduceOp::kMin, ReduceOp::kAvg};

// Out of memory, threads or the like: nothing of C++ leaves the interface.
template <class Body>
tuttiResult_t Guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail({ErrorCode::kResourceExhausted, "out of memory"});
  } catch (const std::exception& error) {
    last_error = error.what();
    return tuttiSystemError;
  }
}

}  // namespace
}  // namespace tutti

struct tuttiComm {
  explicit tuttiComm(tutti::Communicator joined) : ranks(std::move(joined)) {}

  tutti::Communicator ranks;
  // Calls run in the order in which they were made, whichever streams they are on.
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t issued = 0, done = 0;
  std::string shown_error;  // what tuttiGetLastError gave
};
struct tuttiStream {
  tutti::HostStream stream;
  std::mutex mutex;
  tuttiResult_t failure = tuttiSuccess;
};
struct tuttiEvent {
  // Streams may still reach it after it was destroyed.
  std::shared_ptr<tutti::HostEvent> event = std::make_shared<tutti::HostEvent>();
};

namespace tutti {
namespace {

using Run = std::function<Status(Communicator&)>;

// A call between its making and its start.
struct Pending {
  tuttiComm_t comm = nullptr;
  tuttiStream_t stream = nullptr;
  bool is_message = false;
  Message message = {};
  Run run = {};
};

thread_local int group_depth = 0;
thread_local std::vector<Pending> group;

void Finish(tuttiComm& comm) {
  {
    const std::lock_guard lock(comm.mutex);
    ++comm.done;
  }
  comm.changed.notify_all();
}

Status RunInTurn(tuttiComm& comm, uint64_t ticket, const Run& run) {
  {
    std::unique_lock lock(comm.mutex);
    comm.changed.wait(lock, [&comm, ticket] { return comm.done == ticket; });
  }
  Status status;
  try {
    status = run(comm.ranks);
  } catch (const std::exception& error) {
    status = MakeError(ErrorCode::kResourceExhausted, error.what());
    comm.ranks.Abort();  // half of it may have been done
  }
  Finish(comm);
  return status;
}

void WaitForIssued(tuttiComm& comm) {
  std::unique_lock lock(comm.mutex);
  comm.changed.wait(lock, [&comm] { return comm.done == comm.issued; });
}

tuttiResult_t Submit(const Pending& call) {
  tuttiComm& comm = *call.comm;
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(comm.mutex);
    ticket = comm.issued++;
  }
  if (call.stream == nullptr) return CodeOf(RunInTurn(comm, ticket, call.run));
  call.stream->stream.Add([&comm, ticket, run = call.run, stream = call.stream] {
    const Status status = RunInTurn(comm, ticket, run);
    if (status) return;
    const std::lock_guard lock(stream->mutex);
    if (stream->failure == tuttiSuccess) stream->failure = CodeOf(status.error());
  });
  return tuttiSuccess;
}

tuttiResult_t Issue(Pending call) {
  if (call.comm == nullptr) return Refuse("the communicator is NULL");
  if (call.is_message && !call.run)
    call.run = [message = call.message](Communicator& ranks) {
      return ranks.Exchange({&message, 1});
    };
  if (group_depth == 0) return Submit(call);
  group.push_back(std::move(call));
  return tuttiSuccess;
}

// Messages of one communicator that follow one another become one exchange.
std::vector<Pending> Fused(std::vector<Pending> calls) {
  std::vector<Pending> fused;
  std::vector<bool> taken(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    if (taken[i]) continue;
    if (!calls[i].is_message) {
      fused.push_back(std::move(calls[i]));
      continue;
    }
    std::vector<Message> messages;
    for (size_t j = i; j < calls.size(); ++j) {
      if (calls[j].comm != calls[i].comm) continue;
      if (!calls[j].is_message) break;
      messages.push_back(calls[j].message);
      taken[j] = true;
    }
    fused.push_back({.comm = calls[i].comm,
                     .stream = calls[i].stream,
                     .is_message = true,
                     .run = [messages](Communicator& ranks) { return ranks.Exchange(messages); }});
  }
  return fused;
}

// Checks what the enums may be; C lets any number through.
tuttiResult_t CheckType(tuttiDataType_t type) {
  if (static_cast<unsigned>(type) < kTypes.size()) return tuttiSuccess;
  return Refuse(
      fmt::format("data type {}: there are 0 to {}", static_cast<int>(type), kTypes.size() - 1));
}
tuttiResult_t CheckArguments(size_t count, tuttiDataType_t type, tuttiRedOp_t op) {
  constexpr size_t kMaxElements = size_t{1} << 56;
  if (count > kMaxElements) return Refuse(fmt::format("a count of {}", count));
  if (static_cast<unsigned>(op) >= kOps.size())
    return Refuse(
        fmt::format("reduction {}: there are 0 to {}", static_cast<int>(op), kOps.size() - 1));
  return CheckType(type);
}
DataType TypeOf(tuttiDataType_t type) { return kTypes[static_cast<size_t>(type)]; }
ReduceOp OpOf(tuttiRedOp_t op) { return kOps[static_cast<size_t>(op)]; }

// What all collectives share: `run` gets the communicator, count, type and operation.
template <class Body>
tuttiResult_t CallCollective(size_t count, tuttiDataType_t type, tuttiRedOp_t op, tuttiComm_t comm,
                             tuttiStream_t stream, Body body) {
  return Guarded([&] {
    if (const tuttiResult_t checked = CheckArguments(count, type, op); checked != tuttiSuccess)
      return checked;
    return Issue({.comm = comm,
                  .stream = stream,
                  .run = [body, n = static_cast<int64_t>(count), t = TypeOf(type),
                          o = OpOf(op)](Communicator& ranks) { return body(ranks, n, t, o); }});
  });
}

tuttiResult_t ReadConfig(const tuttiConfig_t* config, CommunicatorOptions& options) {
  if (config == nullptr) return tuttiSuccess;
  if (config->magic != TUTTI_CONFIG_MAGIC || config->size < offsetof(tuttiConfig_t, timeout_s))
    return Refuse("the configuration was not made with TUTTI_CONFIG_INITIALIZER");
  // Of an older program: it lacks what came later.
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

tuttiResult_t Join(tuttiComm_t* comm, int num_ranks, const Result<UniqueId>& id, int rank,
                   const CommunicatorOptions& options) {
  if (!id) return Fail(id.error());
  return Give(Communicator::Join(*id, num_ranks, rank, options), comm);
}

tuttiResult_t AllocateOfService(const std::string& socket, void** memory, size_t bytes) {
  return Guarded([&] {
    const auto client = ServiceClient::Get(socket);
    if (!client) return Fail(client.error());
    constexpr size_t kMaxAllocation = size_t{1} << 46;
    const Result<void*> made =
        (*client)->Allocate(static_cast<int64_t>(std::min(bytes, kMaxAllocation)));
    if (!made) return Fail(made.error());
    *memory = *made;
    return tuttiSuccess;
  });
}

std::vector<int64_t> Signed(const size_t* numbers, int count) { return {numbers, numbers + count}; }

}  // namespace
}  // namespace tutti

// --- Communicators -------------------------------------------------------------------------------

TUTTI_DEFINE(tuttiResult_t, tuttiGetVersion, (int* version)) {
  if (version == nullptr) return tutti::Refuse("version is NULL");
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
  if (comm == nullptr) return tutti::last_error.c_str();
  const tutti::Status health = comm->ranks.health();
  const std::lock_guard lock(comm->mutex);
  comm->shown_error = health ? "" : health.error().message;
  return comm->shown_error.c_str();
}

TUTTI_DEFINE(tuttiResult_t, tuttiGetUniqueId, (tuttiUniqueId * id)) {
  return tutti::Guarded([&] {
    if (id == nullptr) return tutti::Refuse("id is NULL");
    const tutti::Result<tutti::UniqueId> made = tutti::MakeUniqueId();
    if (!made) return tutti::Fail(made.error());
    std::memcpy(id->internal, made->bytes.data(), made->bytes.size());
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitRankConfig,
             (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank,
              const tuttiConfig_t* config)) {
  return tutti::Guarded([&] {
    if (comm == nullptr) return tutti::Refuse("comm is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = tutti::ReadConfig(config, options); read != tuttiSuccess)
      return read;
    tutti::UniqueId bytes;
    std::memcpy(bytes.bytes.data(), id.internal, bytes.bytes.size());
    return tutti::Join(comm, nranks, bytes, rank, options);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitRank,
             (tuttiComm_t * comm, int nranks, tuttiUniqueId id, int rank)) {
  return ptuttiCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommInitFile,
             (tuttiComm_t * comm, int nranks, int rank, const char* path,
              const tuttiConfig_t* config)) {
  return tutti::Guarded([&] {
    if (comm == nullptr || path == nullptr) return tutti::Refuse("comm or path is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = tutti::ReadConfig(config, options); read != tuttiSuccess)
      return read;
    return tutti::Join(comm, nranks, tutti::ShareUniqueIdByFile(path, rank, options.timeout_s),
                       rank, options);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommSplit,
             (tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm,
              const tuttiConfig_t* config)) {
  return tutti::Guarded([&] {
    if (comm == nullptr || newcomm == nullptr) return tutti::Refuse("comm or newcomm is NULL");
    tutti::CommunicatorOptions options;
    if (const tuttiResult_t read = tutti::ReadConfig(config, options); read != tuttiSuccess)
      return read;
    if (tutti::group_depth > 0) return tutti::Misused("tuttiCommSplit within a group");
    tutti::WaitForIssued(*comm);
    auto part = comm->ranks.Split(color, key);
    if (!part) return tutti::Fail(part.error());
    *newcomm = *part == nullptr ? nullptr : new tuttiComm(std::move(**part));
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommFinalize, (tuttiComm_t comm)) {
  return tutti::Guarded([&] {
    if (comm == nullptr) return tutti::Refuse("comm is NULL");
    if (tutti::group_depth > 0) return tutti::Misused("tuttiCommFinalize within a group");
    tutti::WaitForIssued(*comm);
    return tutti::CodeOf(comm->ranks.Barrier());
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommDestroy, (tuttiComm_t comm)) {
  return tutti::Guarded([&] {
    if (comm == nullptr) return tuttiSuccess;
    if (tutti::group_depth > 0) return tutti::Misused("tuttiCommDestroy within a group");
    tutti::WaitForIssued(*comm);
    delete comm;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommAbort, (tuttiComm_t comm)) {
  return tutti::Guarded([&] {
    if (comm == nullptr) return tuttiSuccess;
    comm->ranks.Abort();
    tutti::WaitForIssued(*comm);
    delete comm;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommGetAsyncError, (tuttiComm_t comm, tuttiResult_t* result)) {
  return tutti::Guarded([&] {
    if (comm == nullptr || result == nullptr) return tutti::Refuse("comm or result is NULL");
    const tutti::Status health = comm->ranks.health();
    const std::lock_guard lock(comm->mutex);
    *result = !health                     ? tutti::CodeOf(health.error())
              : comm->done < comm->issued ? tuttiInProgress
                                          : tuttiSuccess;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommCount, (tuttiComm_t comm, int* count)) {
  if (comm == nullptr || count == nullptr) return tutti::Refuse("comm or count is NULL");
  *count = comm->ranks.num_ranks();
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiCommUserRank, (tuttiComm_t comm, int* rank)) {
  if (comm == nullptr || rank == nullptr) return tutti::Refuse("comm or rank is NULL");
  *rank = comm->ranks.rank();
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiMemAlloc, (void** ptr, size_t bytes)) {
  constexpr size_t kPage = 4096;
  if (ptr == nullptr) return tutti::Refuse("ptr is NULL");
  if (const std::string socket = tutti::ServiceSocket(); !socket.empty())
    return tutti::AllocateOfService(socket, ptr, bytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, kPage, std::max<size_t>(bytes, 1)) != 0)
    return tutti::Fail(
        {tutti::ErrorCode::kResourceExhausted, fmt::format("no memory for {} bytes", bytes)});
  *ptr = memory;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiMemFree, (void* ptr)) {
  if (tutti::ServiceClient::FreeOfAny(ptr)) return tuttiSuccess;
  std::free(ptr);
  return tuttiSuccess;
}

// --- Operations ----------------------------------------------------------------------------------

TUTTI_DEFINE(tuttiResult_t, tuttiAllReduce,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, op, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto reduction) {
                                 return ranks.AllReduce(sendbuff, recvbuff, n, type, reduction);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAllGather,
             (const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t datatype,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(sendcount, datatype, tuttiSum, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto) {
                                 return ranks.AllGather(sendbuff, recvbuff, n, type);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiReduceScatter,
             (const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t datatype,
              tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(recvcount, datatype, op, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto reduction) {
                                 return ranks.ReduceScatter(sendbuff, recvbuff, n, type, reduction);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiBroadcast,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, tuttiSum, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto) {
                                 return ranks.Broadcast(sendbuff, recvbuff, n, type, root);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiReduce,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, op, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto reduction) {
                                 return ranks.Reduce(sendbuff, recvbuff, n, type, reduction, root);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiGather,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, tuttiSum, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto) {
                                 return ranks.Gather(sendbuff, recvbuff, n, type, root);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiScatter,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, tuttiSum, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto) {
                                 return ranks.Scatter(sendbuff, recvbuff, n, type, root);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAlltoAll,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::CallCollective(count, datatype, tuttiSum, comm, stream,
                               [=](auto& ranks, auto n, auto type, auto) {
                                 return ranks.AllToAll(sendbuff, recvbuff, n, type);
                               });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAlltoAllv,
             (const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
              void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
              tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::Guarded([&] {
    if (comm == nullptr) return tutti::Refuse("the communicator is NULL");
    if (sendcounts == nullptr || sdispls == nullptr || recvcounts == nullptr || rdispls == nullptr)
      return tutti::Refuse("a list of counts or displacements is NULL");
    const int ranks = comm->ranks.num_ranks();
    const auto to = tutti::Signed(sendcounts, ranks), to_at = tutti::Signed(sdispls, ranks);
    const auto from = tutti::Signed(recvcounts, ranks), from_at = tutti::Signed(rdispls, ranks);
    return tutti::CallCollective(
        0, datatype, tuttiSum, comm, stream, [=](auto& all, auto, auto type, auto) {
          return all.AllToAllV(sendbuff, to, to_at, recvbuff, from, from_at, type);
        });
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiSend,
             (const void* sendbuff, size_t count, tuttiDataType_t datatype, int peer,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return tutti::Guarded([&] {
    const tuttiResult_t checked = tutti::CheckArguments(count, datatype, tuttiSum);
    if (checked != tuttiSuccess) return checked;
    const int64_t bytes = static_cast<int64_t>(count) * tutti::SizeOf(tutti::TypeOf(datatype));
    return tutti::Issue({.comm = comm,
                         .stream = stream,
                         .is_message = true,
                         .message = {peer, const_cast<void*>(sendbuff), bytes, true}});
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiRecv,
             (void* recvbuff, size_t count, tuttiDataType_t datatype, int peer, tuttiComm_t comm,
              tuttiStream_t stream)) {
  return tutti::Guarded([&] {
    const tuttiResult_t checked = tutti::CheckArguments(count, datatype, tuttiSum);
    if (checked != tuttiSuccess) return checked;
    const int64_t bytes = static_cast<int64_t>(count) * tutti::SizeOf(tutti::TypeOf(datatype));
    return tutti::Issue({.comm = comm,
                         .stream = stream,
                         .is_message = true,
                         .message = {peer, recvbuff, bytes, false}});
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiGroupStart, (void)) {
  ++tutti::group_depth;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiGroupEnd, (void)) {
  return tutti::Guarded([] {
    if (tutti::group_depth == 0) return tutti::Misused("tuttiGroupEnd without tuttiGroupStart");
    if (--tutti::group_depth > 0) return tuttiSuccess;
    tuttiResult_t first = tuttiSuccess;
    for (const tutti::Pending& call : tutti::Fused(std::exchange(tutti::group, {})))
      if (const tuttiResult_t result = tutti::Submit(call); first == tuttiSuccess) first = result;
    return first;
  });
}

// --- Streams and events --------------------------------------------------------------------------

TUTTI_DEFINE(tuttiResult_t, tuttiStreamCreate, (tuttiStream_t * stream)) {
  return tutti::Guarded([&] {
    if (stream == nullptr) return tutti::Refuse("stream is NULL");
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
  return tutti::Guarded([&] {
    if (function == nullptr) return tutti::Refuse("function is NULL");
    if (stream == nullptr)
      function(argument);
    else
      stream->stream.Add([function, argument] { function(argument); });
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamSynchronize, (tuttiStream_t stream)) {
  return tutti::Guarded([&] {
    if (stream == nullptr) return tuttiSuccess;
    stream->stream.Synchronize();
    const std::lock_guard lock(stream->mutex);
    return std::exchange(stream->failure, tuttiSuccess);
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventCreate, (tuttiEvent_t * event)) {
  return tutti::Guarded([&] {
    if (event == nullptr) return tutti::Refuse("event is NULL");
    *event = new tuttiEvent;
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventDestroy, (tuttiEvent_t event)) {
  delete event;
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventRecord, (tuttiEvent_t event, tuttiStream_t stream)) {
  return tutti::Guarded([&] {
    if (event == nullptr) return tutti::Refuse("event is NULL");
    const uint64_t record = event->event->Record();
    if (stream == nullptr)
      event->event->Reach(record);
    else
      stream->stream.Add([reached = event->event, record] { reached->Reach(record); });
    return tuttiSuccess;
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventQuery, (tuttiEvent_t event)) {
  if (event == nullptr) return tutti::Refuse("event is NULL");
  return event->event->IsReached() ? tuttiSuccess : tuttiInProgress;
}

TUTTI_DEFINE(tuttiResult_t, tuttiEventSynchronize, (tuttiEvent_t event)) {
  if (event == nullptr) return tutti::Refuse("event is NULL");
  event->event->Wait(event->event->last());
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiStreamWaitEvent, (tuttiStream_t stream, tuttiEvent_t event)) {
  return tutti::Guarded([&] {
    if (event == nullptr) return tutti::Refuse("event is NULL");
    const uint64_t record = event->event->last();
    if (stream == nullptr)
      event->event->Wait(record);
    else
      stream->stream.Add([awaited = event->event, record] { awaited->Wait(record); });
    return tuttiSuccess;
  });
}
