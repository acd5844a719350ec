// The C interface of tutti/tutti.h: collectives, messages and groups.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "c_call.h"

namespace tutti::c_api {
namespace {

std::vector<int64_t> Signed(const size_t* numbers, int count) { return {numbers, numbers + count}; }

// `message`: without its bytes.
tuttiResult_t IssueMessage(Message message, size_t count, tuttiDataType_t type, tuttiComm_t comm,
                           tuttiStream_t stream) {
  return Guarded([&] {
    const tuttiResult_t checked = CheckArguments(count, type, tuttiSum);
    if (checked != tuttiSuccess) return checked;
    message.bytes = static_cast<int64_t>(count) * SizeOf(TypeOf(type));
    return Issue({.comm = comm, .stream = stream, .is_message = true, .message = message});
  });
}

}  // namespace
}  // namespace tutti::c_api

using namespace tutti::c_api;

TUTTI_DEFINE(tuttiResult_t, tuttiAllReduce,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, op, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto reduction) {
                          return ranks.AllReduce(sendbuff, recvbuff, n, type, reduction);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAllGather,
             (const void* sendbuff, void* recvbuff, size_t sendcount, tuttiDataType_t datatype,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(sendcount, datatype, tuttiSum, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto) {
                          return ranks.AllGather(sendbuff, recvbuff, n, type);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiReduceScatter,
             (const void* sendbuff, void* recvbuff, size_t recvcount, tuttiDataType_t datatype,
              tuttiRedOp_t op, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(recvcount, datatype, op, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto reduction) {
                          return ranks.ReduceScatter(sendbuff, recvbuff, n, type, reduction);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiBroadcast,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, tuttiSum, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto) {
                          return ranks.Broadcast(sendbuff, recvbuff, n, type, root);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiReduce,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiRedOp_t op, int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, op, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto reduction) {
                          return ranks.Reduce(sendbuff, recvbuff, n, type, reduction, root);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiGather,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, tuttiSum, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto) {
                          return ranks.Gather(sendbuff, recvbuff, n, type, root);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiScatter,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              int root, tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, tuttiSum, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto) {
                          return ranks.Scatter(sendbuff, recvbuff, n, type, root);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAlltoAll,
             (const void* sendbuff, void* recvbuff, size_t count, tuttiDataType_t datatype,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return CallCollective(count, datatype, tuttiSum, comm, stream,
                        [=](auto& ranks, auto n, auto type, auto) {
                          return ranks.AllToAll(sendbuff, recvbuff, n, type);
                        });
}

TUTTI_DEFINE(tuttiResult_t, tuttiAlltoAllv,
             (const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
              void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
              tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream)) {
  return Guarded([&] {
    if (comm == nullptr) return Refuse("the communicator is NULL");
    if (sendcounts == nullptr || sdispls == nullptr || recvcounts == nullptr || rdispls == nullptr)
      return Refuse("a list of counts or displacements is NULL");
    const int ranks = comm->ranks.num_ranks();
    const auto to = Signed(sendcounts, ranks), to_at = Signed(sdispls, ranks);
    const auto from = Signed(recvcounts, ranks), from_at = Signed(rdispls, ranks);
    return CallCollective(
        0, datatype, tuttiSum, comm, stream, [=](auto& all, auto, auto type, auto) {
          return all.AllToAllV(sendbuff, to, to_at, recvbuff, from, from_at, type);
        });
  });
}

TUTTI_DEFINE(tuttiResult_t, tuttiSend,
             (const void* sendbuff, size_t count, tuttiDataType_t datatype, int peer,
              tuttiComm_t comm, tuttiStream_t stream)) {
  return IssueMessage({.peer = peer, .data = const_cast<void*>(sendbuff), .is_send = true}, count,
                      datatype, comm, stream);
}

TUTTI_DEFINE(tuttiResult_t, tuttiRecv,
             (void* recvbuff, size_t count, tuttiDataType_t datatype, int peer, tuttiComm_t comm,
              tuttiStream_t stream)) {
  return IssueMessage({.peer = peer, .data = recvbuff, .is_send = false}, count, datatype, comm,
                      stream);
}

TUTTI_DEFINE(tuttiResult_t, tuttiGroupStart, (void)) {
  BeginGroup();
  return tuttiSuccess;
}

TUTTI_DEFINE(tuttiResult_t, tuttiGroupEnd, (void)) {
  return Guarded(
      [] { return InGroup() ? EndGroup() : Misused("tuttiGroupEnd without tuttiGroupStart"); });
}
