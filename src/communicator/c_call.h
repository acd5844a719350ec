// What a call of the C interface (tutti/tutti.h) is before it becomes one of a Communicator: checked, in its place in the
// order of the communicator's calls, in a group or not, on a stream or in the caller's thread.
//
// Model       A call gets a ticket of its communicator when it is made and runs when all before it have run, whichever
//             streams they are on. Between tuttiGroupStart and tuttiGroupEnd calls are collected; messages of one
//             communicator that follow one another become one exchange.
// Errors      Codes of tutti/tutti.h; the text is kept for tuttiGetLastError. No exception passes Guarded().
// Threads     Groups and the last error are of each thread; a communicator's calls may come from any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "host_stream.h"
#include "tutti/communicator.h"
#include "tutti/tutti.h"

// Under both names; f itself is weak, so that a tool may define it and call pf.
#define TUTTI_DEFINE(result, name, parameters)                               \
  extern "C" __attribute__((weak, alias("p" #name))) result name parameters; \
  extern "C" result p##name parameters

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

namespace tutti::c_api {

// This thread's.
std::string& LastError();
tuttiResult_t CodeOf(const Error& error);
tuttiResult_t CodeOf(const Status& status);
tuttiResult_t Fail(const Error& error);
tuttiResult_t Refuse(std::string why);   // an argument
tuttiResult_t Misused(std::string why);  // the order of calls

// Out of memory, threads or the like: nothing of C++ leaves the interface.
template <class Body>
tuttiResult_t Guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail({ErrorCode::kResourceExhausted, "out of memory"});
  } catch (const std::exception& error) {
    LastError() = error.what();
    return tuttiSystemError;
  }
}

using Run = std::function<Status(Communicator&)>;

// A call between its making and its start.
struct Pending {
  tuttiComm_t comm = nullptr;
  tuttiStream_t stream = nullptr;
  bool is_message = false;
  Message message = {};
  Run run = {};
};

// Runs it, adds it to its stream, or to the group of this thread.
tuttiResult_t Issue(Pending call);
// Until all calls that were made of it have run.
void WaitForIssued(tuttiComm& comm);

bool InGroup();
void BeginGroup();
// The first failure of what is submitted where the outermost group ends.
tuttiResult_t EndGroup();

// What the enums may be; C lets any number through.
tuttiResult_t CheckArguments(size_t count, tuttiDataType_t type, tuttiRedOp_t op);
DataType TypeOf(tuttiDataType_t type);
ReduceOp OpOf(tuttiRedOp_t op);

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

}  // namespace tutti::c_api
