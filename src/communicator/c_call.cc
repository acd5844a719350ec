#include "c_call.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace tutti::c_api {
namespace {

constexpr std::array<DataType, 10> kTypes = {
    DataType::kInt8,    DataType::kUint8,   DataType::kInt32,   DataType::kUint32,
    DataType::kInt64,   DataType::kUint64,  DataType::kFloat16, DataType::kFloat32,
    DataType::kFloat64, DataType::kBfloat16};
constexpr std::array<ReduceOp, 5> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                          ReduceOp::kMin, ReduceOp::kAvg};

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

}  // namespace

std::string& LastError() {
  thread_local std::string last_error;
  return last_error;
}

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
  LastError() = error.message;
  return CodeOf(error);
}
tuttiResult_t Refuse(std::string why) {
  return Fail({ErrorCode::kInvalidArgument, std::move(why)});
}
tuttiResult_t Misused(std::string why) {
  LastError() = std::move(why);
  return tuttiInvalidUsage;
}
tuttiResult_t CodeOf(const Status& status) { return status ? tuttiSuccess : Fail(status.error()); }

void WaitForIssued(tuttiComm& comm) {
  std::unique_lock lock(comm.mutex);
  comm.changed.wait(lock, [&comm] { return comm.done == comm.issued; });
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

bool InGroup() { return group_depth > 0; }

void BeginGroup() { ++group_depth; }

tuttiResult_t EndGroup() {
  if (--group_depth > 0) return tuttiSuccess;
  tuttiResult_t first = tuttiSuccess;
  for (const Pending& call : Fused(std::exchange(group, {})))
    if (const tuttiResult_t result = Submit(call); first == tuttiSuccess) first = result;
  return first;
}

tuttiResult_t CheckArguments(size_t count, tuttiDataType_t type, tuttiRedOp_t op) {
  constexpr size_t kMaxElements = size_t{1} << 56;
  if (count > kMaxElements) return Refuse(fmt::format("a count of {}", count));
  if (static_cast<unsigned>(op) >= kOps.size())
    return Refuse(
        fmt::format("reduction {}: there are 0 to {}", static_cast<int>(op), kOps.size() - 1));
  if (static_cast<unsigned>(type) >= kTypes.size())
    return Refuse(
        fmt::format("data type {}: there are 0 to {}", static_cast<int>(type), kTypes.size() - 1));
  return tuttiSuccess;
}
DataType TypeOf(tuttiDataType_t type) { return kTypes[static_cast<size_t>(type)]; }
ReduceOp OpOf(tuttiRedOp_t op) { return kOps[static_cast<size_t>(op)]; }

}  // namespace tutti::c_api
