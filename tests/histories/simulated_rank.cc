#include "simulated_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulated_kernel.h"
#include "world.h"

namespace tutti::histories {

void SimulatedRank::Later(int64_t most_ns, void (SimulatedRank::*what)()) {
  world_.kernel().At(world_.kernel().now_ns() + 1 + world_.DrawNs(most_ns + 1), [this, what] {
    if (!has_died_) (this->*what)();
  });
}

void SimulatedRank::Join() {
  if (stage_ != Stage::kToJoin) return;
  Core* core = world_.Enter(host_, [this] { Join(); });
  if (core == nullptr) return;
  stage_ = Stage::kJoining;
  called_ns = world_.kernel().now_ns();
  service::Tenant* tenant = core->FindTenant(0, "token of " + group_.tenant);
  const auto joined = core->JoinCommunicator(*tenant, group_.id, group_.num_ranks, rank_, *this, 0);
  world_.Wake(host_);
  if (!joined) return End(joined.error());
  communicator_ = *joined;
  // Who waits in vain gives up, as a program would.
  constexpr int64_t kPatienceNs = 12 * kSecond;
  world_.kernel().At(world_.kernel().now_ns() + kPatienceNs, [this] {
    if (stage_ != Stage::kJoining || communicator_ == nullptr) return;
    if (world_.Enter(host_, [] {}) == nullptr) return;
    communicator_->Abort(
        {ErrorCode::kCancelled, fmt::format("rank {}: it does not wait any longer", rank_)});
    world_.Wake(host_);
  });
}

void SimulatedRank::Joined(uint32_t) {
  if (stage_ != Stage::kJoining) return world_.Break(Where() + " is told that it has joined");
  world_.Note("rank {} has joined", Name());
  stage_ = Stage::kRuns;
  GoOn();
}

void SimulatedRank::JoinRefused(uint32_t line, const Error& why) {
  if (has_died_) return;
  if (communicator_ != nullptr) communicator_->Leave({&line, 1}, *this, why.message);
  communicator_ = nullptr;
  End(why);
}

// It has no communicator: it could not join.
void SimulatedRank::End(const Error& why) {
  world_.Note("rank {} does not join: {}", Name(), why.message);
  failed_ = true;
  world_.CheckCulprit(*this, why.message);
  stage_ = Stage::kOver;
  world_.RankIsOver();
}

void SimulatedRank::GoOn() {
  if (stage_ != Stage::kRuns) return;
  if (completed_ >= NumToComplete()) {
    stage_ = Stage::kComplete;
    if (group_.grows_by > 0 && !group_.came_of_regrouping)
      return Later(20 * kMs, &SimulatedRank::Shrink);
    return Later(20 * kMs, &SimulatedRank::LeaveWell);
  }
  if (issuing_ || issued_ - completed_ >= depth || issued_ >= NumToComplete()) return;
  issuing_ = true;
  Later(pause_ns, &SimulatedRank::Issue);
}

void SimulatedRank::Issue() {
  if (stage_ != Stage::kRuns) return;
  if (world_.Enter(host_, [this] { Issue(); }) == nullptr) return;
  issuing_ = false;
  called_ns = world_.kernel().now_ns();
  const uint64_t operation = Program()[issued_++];
  if (!communicator_->Issue(0, *this, MakeCommand(operation)))
    world_.Break(Where() + ": its queue is full");
  world_.Wake(host_);
  GoOn();
}

const std::vector<uint64_t>& SimulatedRank::Program() const {
  for (uint64_t next = program_.empty() ? 0 : program_.back() + 1; next < group_.program.size();
       ++next)
    if (rank_ < NumExchangers(next)) program_.push_back(next);
  return program_;
}

service::Command SimulatedRank::MakeCommand(uint64_t operation) {
  const Planned& planned = group_.program[operation];
  Buffers& buffers = buffers_.emplace_back();
  const int32_t ranks = group_.num_ranks;
  const auto fill = [&](int64_t elements) {
    for (int64_t i = 0; i < elements; ++i) buffers.input.push_back(Value(operation, rank_, i));
  };
  service::Command command;
  if (planned.is_exchange) {
    fill(planned.count);
    buffers.output.assign(static_cast<size_t>(planned.count), -1);
    const int64_t bytes = planned.count * static_cast<int64_t>(sizeof(int32_t));
    command.is_exchange = true;
    command.is_of_all = planned.exchangers == 0;
    command.what = operation;
    command.bytes = bytes;
    const int32_t exchangers = NumExchangers(operation);
    command.messages.push_back({.peer = (rank_ + 1) % exchangers,
                                .data = buffers.input.data(),
                                .bytes = bytes,
                                .is_send = true});
    command.messages.push_back({.peer = (rank_ + exchangers - 1) % exchangers,
                                .data = buffers.output.data(),
                                .bytes = bytes,
                                .is_send = false});
    return command;
  }
  CollectiveCall& call = command.call;
  call.kind = planned.kind;
  call.count = planned.count + (operation == calls_wrongly ? 1 : 0);
  call.root = planned.root;
  call.type = DataType::kInt32;
  const auto words = [](int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(int32_t)); };
  fill(words(InputBytes(call, rank_, ranks)));
  buffers.output.assign(static_cast<size_t>(words(OutputBytes(call, rank_, ranks))), -1);
  call.input = buffers.input.data();
  call.output = buffers.output.data();
  command.bytes = InputBytes(call, rank_, ranks);
  return command;
}

std::string SimulatedRank::WhatIsWrong(uint64_t nth) const {
  const uint64_t operation = Program()[nth];
  const Planned& planned = group_.program[operation];
  const std::vector<int32_t>& output = buffers_[nth].output;
  const int32_t ranks = group_.num_ranks;
  const auto expected = [&](int64_t at) -> int32_t {
    const auto sum = [&](int64_t index) {
      int32_t all = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) all += Value(operation, rank, index);
      return all;
    };
    if (planned.is_exchange) {
      const int32_t exchangers = NumExchangers(operation);
      return Value(operation, (rank_ + exchangers - 1) % exchangers, at);
    }
    switch (planned.kind) {
      case CollectiveKind::kAllGather:
        return Value(operation, static_cast<int32_t>(at / planned.count), at % planned.count);
      case CollectiveKind::kReduceScatter:
        return sum(rank_ * planned.count + at);
      case CollectiveKind::kBroadcast:
        return Value(operation, planned.root, at);
      case CollectiveKind::kAllToAll:
        return Value(operation, static_cast<int32_t>(at / planned.count),
                     rank_ * planned.count + at % planned.count);
      default:
        return sum(at);
    }
  };
  for (size_t i = 0; i < output.size(); ++i)
    if (output[i] != expected(static_cast<int64_t>(i)))
      return fmt::format("element {} of operation {} ({}) is {}, wanted {}", i, operation + 1,
                         planned.is_exchange ? "an exchange" : tutti::Name(planned.kind), output[i],
                         expected(static_cast<int64_t>(i)));
  return "";
}

void SimulatedRank::Completed(uint32_t, uint64_t completed, uint32_t epoch) {
  if (completed != completed_ + 1 || completed > issued_ || stage_ != Stage::kRuns)
    return world_.Break(fmt::format("H1: {} is told that {} are completed", Where(), completed));
  world_.Note("rank {} has completed {} in epoch {}", Name(), completed, epoch);
  ++completed_;
  ++world_.outcome().operations;
  if (const std::string wrong = WhatIsWrong(completed - 1); !wrong.empty())
    return world_.Break(fmt::format("H1: {}: {}", Where(), wrong));
  auto& of_all = group_.epochs[Program()[completed - 1]];
  if (epoch < epoch_ || of_all.value_or(epoch) != epoch)
    return world_.Break(fmt::format("H2: {} ran operation {} in epoch {}, others in {}", Where(),
                                    completed, epoch, of_all.value_or(epoch_)));
  epoch_ = epoch;
  of_all = epoch;
  GoOn();
}

void SimulatedRank::Failed(uint32_t, const Error& why) {
  if (has_died_) return;
  world_.Note("rank {} fails: {}", Name(), why.message);
  if (stage_ != Stage::kRuns && stage_ != Stage::kComplete)
    return world_.Break(fmt::format("H1: {} is told that it has failed: {}", Where(), why.message));
  failed_ = true;
  ++world_.outcome().failed_ranks;
  stage_ = Stage::kFailed;
  world_.CheckCulprit(*this, why.message);
  Later(30 * kMs, group_.shrinks ? &SimulatedRank::Shrink : &SimulatedRank::LeaveWell);
}

void SimulatedRank::AskToRegroup(const RegroupAsk& asked) {
  const bool grows = stage_ == Stage::kComplete && group_.grows_by > 0;
  if (!grows && stage_ != Stage::kFailed) return;
  Core* core = world_.Enter(host_, [this, asked] { AskToRegroup(asked); });
  if (core == nullptr) return;
  RegroupAsk ask = asked;
  world_.Note("rank {} asks to {}", Name(), grows ? "grow" : "shrink");
  if (grows) {
    ask.grows_to = group_.num_ranks + group_.grows_by;
    if (rank_ == 0) {
      const auto id = core->MakeId(*core->FindTenant(0, "token of " + group_.tenant));
      if (id) ask.id = *id;
    }
  }
  constexpr int64_t kPatienceNs = 8 * kSecond;
  const Status asks = communicator_->Regroup(0, *this, ask, world_.kernel().now_ns() + kPatienceNs,
                                             [this, grows](const Result<tutti::Regrouped>& become) {
                                               if (!has_died_)
                                                 world_.Regrouped(*this, become, grows);
                                             });
  world_.Wake(host_);
  if (!asks) world_.Regrouped(*this, tl::unexpected(asks.error()), grows);
}

void SimulatedRank::Leave(const std::string& why) {
  if (stage_ == Stage::kOver) return;
  if (world_.Enter(host_, [this, why] { Leave(why); }) == nullptr) return;
  world_.Note("rank {} leaves", Name());
  if (communicator_->local().front()->rank == rank_)
    world_.outcome().lost_ways += communicator_->path_watch().total();
  stage_ = Stage::kOver;
  world_.RankIsOver();
  const uint32_t line = 0;
  std::exchange(communicator_, nullptr)->Leave({&line, 1}, *this, why);
  world_.Wake(host_);
}

void SimulatedRank::Die(bool daemon_hears) {
  if (has_died_) return;
  has_died_ = true;
  if (stage_ != Stage::kOver) world_.RankIsOver();
  stage_ = Stage::kOver;
  const uint32_t line = 0;
  if (auto* communicator = std::exchange(communicator_, nullptr);
      communicator != nullptr && daemon_hears)
    communicator->Leave({&line, 1}, *this, "its process has ended");
}

}  // namespace tutti::histories
