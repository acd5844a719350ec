// The C functions of the collectives beside the all-to-alls: blocking ones go to the engine,
// non-blocking and persistent ones are counted and passed on. The argument lists are those of the
// MPI standard with every handle as wide as a pointer (interface.h).
//
// Invariant   Where there is no engine, arguments reach the next function unread.
#include "interface.h"
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {
namespace {

int ServeOrPassOn(const CollectiveCall& call) {
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->collective(call) : NextCollective(call);
}

// What the engine said last, of each collective with a root. Short calls of these are passed on in a few nanoseconds so;
// arguments that are written down first would wait for what the MPI library has written into memory of others.
constinit thread_local LeftCalls left_calls[4] __attribute__((tls_model("initial-exec")));
constexpr Collective kFirstWithRoot = Collective::kBcast;

// Of a collective with a root: whether it is the next function's.
inline bool IsLeft(Collective which, Handle communicator, int root, int send_count,
                   Handle send_type, int receive_count, Handle receive_type) {
  LeftCalls& left = left_calls[static_cast<int>(which) - static_cast<int>(kFirstWithRoot)];
  const bool sends = CountsWhereItSends(which, root == left.rank);
  if (left.num_freed != nullptr && left.as_of == *left.num_freed &&
      left.communicator == communicator && left.type == (sends ? send_type : receive_type)) {
    const int count = sends ? send_count : receive_count;
    return 0 < count && count <= left.max_count;
  }
  const Engine* engine = FindEngine();
  return engine == nullptr || engine->leaves(which, communicator, root, send_count, send_type,
                                             receive_count, receive_type, &left);
}

}  // namespace

#define TUTTI_LIST(...) __VA_ARGS__

// The three forms of a collective: Name and, where "I" stands before it, `lower`. `parameters` and
// `arguments` are lists in parentheses, `is_left` says at once that the next function serves it, the rest what a
// CollectiveCall has of the arguments.
#define TUTTI_FORMS(Name, which_one, lower, parameters, arguments, is_left, ...)                \
  extern "C" int C##Name(TUTTI_LIST parameters) TUTTI_AS("MPI_" #Name);                         \
  static constinit Next<decltype(C##Name)> next_##Name{"MPI_" #Name};                           \
  int C##Name(TUTTI_LIST parameters) {                                                          \
    if (is_left) return next_##Name(TUTTI_LIST arguments);                                      \
    return ServeOrPassOn({.which = Collective::which_one, __VA_ARGS__});                        \
  }                                                                                             \
  extern "C" int CI##Name(TUTTI_LIST parameters, void* request) TUTTI_AS("MPI_I" #lower);       \
  int CI##Name(TUTTI_LIST parameters, void* request) {                                          \
    static constinit Next<decltype(CI##Name)> next{"MPI_I" #lower};                             \
    CountPassedOn(NonblockingOf(Collective::which_one));                                        \
    return next(TUTTI_LIST arguments, request);                                                 \
  }                                                                                             \
  extern "C" int C##Name##Init(TUTTI_LIST parameters, Handle info, void* request)               \
      TUTTI_AS(TUTTI_PERSISTENT_PREFIX #Name "_init");                                          \
  int C##Name##Init(TUTTI_LIST parameters, Handle info, void* request) {                        \
    static constinit Next<decltype(C##Name##Init)> next{TUTTI_PERSISTENT_PREFIX #Name "_init"}; \
    CountPassedOn(PersistentOf(Collective::which_one));                                         \
    return next(TUTTI_LIST arguments, info, request);                                           \
  }

TUTTI_FORMS(Allreduce, kAllreduce, allreduce,
            (const void* send, void* receive, int count, Handle type, Handle op,
             Handle communicator),
            (send, receive, count, type, op, communicator), false, .send = send, .receive = receive,
            .receive_count = count, .receive_type = type, .op = op, .communicator = communicator)
TUTTI_FORMS(Allgather, kAllgather, allgather,
            (const void* send, int send_count, Handle send_type, void* receive, int receive_count,
             Handle receive_type, Handle communicator),
            (send, send_count, send_type, receive, receive_count, receive_type, communicator),
            false, .send = send, .send_count = send_count, .send_type = send_type,
            .receive = receive, .receive_count = receive_count, .receive_type = receive_type,
            .communicator = communicator)
TUTTI_FORMS(Allgatherv, kAllgatherv, allgatherv,
            (const void* send, int send_count, Handle send_type, void* receive, const int* counts,
             const int* displacements, Handle receive_type, Handle communicator),
            (send, send_count, send_type, receive, counts, displacements, receive_type,
             communicator),
            false, .send = send, .send_count = send_count, .send_type = send_type,
            .receive = receive, .receive_type = receive_type, .counts = counts,
            .displacements = displacements, .communicator = communicator)
TUTTI_FORMS(Reduce_scatter, kReduceScatter, reduce_scatter,
            (const void* send, void* receive, const int* counts, Handle type, Handle op,
             Handle communicator),
            (send, receive, counts, type, op, communicator), false, .send = send,
            .receive = receive, .receive_type = type, .counts = counts, .op = op,
            .communicator = communicator)
TUTTI_FORMS(Reduce_scatter_block, kReduceScatterBlock, reduce_scatter_block,
            (const void* send, void* receive, int count, Handle type, Handle op,
             Handle communicator),
            (send, receive, count, type, op, communicator), false, .send = send, .receive = receive,
            .receive_count = count, .receive_type = type, .op = op, .communicator = communicator)
TUTTI_FORMS(Bcast, kBcast, bcast,
            (void* buffer, int count, Handle type, int root, Handle communicator),
            (buffer, count, type, root, communicator),
            (IsLeft(Collective::kBcast, communicator, root, 0, 0, count, type)), .receive = buffer,
            .receive_count = count, .receive_type = type, .root = root,
            .communicator = communicator)
TUTTI_FORMS(Reduce, kReduce, reduce,
            (const void* send, void* receive, int count, Handle type, Handle op, int root,
             Handle communicator),
            (send, receive, count, type, op, root, communicator),
            (IsLeft(Collective::kReduce, communicator, root, 0, 0, count, type)), .send = send,
            .receive = receive, .receive_count = count, .receive_type = type, .op = op,
            .root = root, .communicator = communicator)
#define TUTTI_FORMS_BY_ROOT(Name, which, name)                                                 \
  TUTTI_FORMS(                                                                                 \
      Name, which, name,                                                                       \
      (const void* send, int send_count, Handle send_type, void* receive, int receive_count,   \
       Handle receive_type, int root, Handle communicator),                                    \
      (send, send_count, send_type, receive, receive_count, receive_type, root, communicator), \
      (IsLeft(Collective::which, communicator, root, send_count, send_type, receive_count,     \
              receive_type)),                                                                  \
      .send = send, .send_count = send_count, .send_type = send_type, .receive = receive,      \
      .receive_count = receive_count, .receive_type = receive_type, .root = root,              \
      .communicator = communicator)
TUTTI_FORMS_BY_ROOT(Gather, kGather, gather)
TUTTI_FORMS_BY_ROOT(Scatter, kScatter, scatter)
#undef TUTTI_FORMS_BY_ROOT
TUTTI_FORMS(Barrier, kBarrier, barrier, (Handle communicator), (communicator), false,
            .communicator = communicator)

int NextCollective(const CollectiveCall& c) {
  switch (c.which) {
    case Collective::kAllreduce:
      return next_Allreduce(c.send, c.receive, c.receive_count, c.receive_type, c.op,
                            c.communicator);
    case Collective::kAllgather:
      return next_Allgather(c.send, c.send_count, c.send_type, c.receive, c.receive_count,
                            c.receive_type, c.communicator);
    case Collective::kAllgatherv:
      return next_Allgatherv(c.send, c.send_count, c.send_type, c.receive, c.counts,
                             c.displacements, c.receive_type, c.communicator);
    case Collective::kReduceScatter:
      return next_Reduce_scatter(c.send, c.receive, c.counts, c.receive_type, c.op, c.communicator);
    case Collective::kReduceScatterBlock:
      return next_Reduce_scatter_block(c.send, c.receive, c.receive_count, c.receive_type, c.op,
                                       c.communicator);
    case Collective::kBcast:
      return next_Bcast(c.receive, c.receive_count, c.receive_type, c.root, c.communicator);
    case Collective::kReduce:
      return next_Reduce(c.send, c.receive, c.receive_count, c.receive_type, c.op, c.root,
                         c.communicator);
    case Collective::kGather:
      return next_Gather(c.send, c.send_count, c.send_type, c.receive, c.receive_count,
                         c.receive_type, c.root, c.communicator);
    case Collective::kScatter:
      return next_Scatter(c.send, c.send_count, c.send_type, c.receive, c.receive_count,
                          c.receive_type, c.root, c.communicator);
    case Collective::kBarrier:
      break;
  }
  return next_Barrier(c.communicator);
}

}  // namespace tutti::mpi::preload
