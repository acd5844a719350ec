// The part of ServiceCommunicator that executes commands: of each local rank one after the other, from its queue to its end.

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "service_communicator.h"
#include "tutti/base/clock.h"

namespace tutti::service {
namespace {

constexpr int64_t kStuckBeforeSave = 4, kStuckBetweenChecks = 256;

}  // namespace

bool ServiceCommunicator::Issue(uint32_t line, const RankOwner& owner, Command&& command) {
  LocalRank* rank = Find(line, owner);
  if (rank == nullptr || failed_ || rank->has_failed) return true;  // it hears of it by its line
  if (rank->queue.size() >= kMaxQueued) return false;
  if (command.posted_ns == 0) command.posted_ns = NowNs();
  if (!command.is_exchange) {
    const bool is_new = std::none_of(seen_.begin(), seen_.end(), [&](const CollectiveCall& seen) {
      return seen.kind == command.call.kind && seen.root == command.call.root &&
             seen.count == command.call.count;
    });
    constexpr size_t kMaxSeen = 32;
    if (is_new && seen_.size() < kMaxSeen) seen_.push_back(command.call);
  }
  rank->queue.push_back(std::move(command));
  ++rank->issued;
  if (!ended_.empty()) CheckEnded(*rank);
  return true;
}

bool ServiceCommunicator::has_work() const {
  return !failed_ && stage_ == Stage::kActive &&
         std::any_of(local_.begin(), local_.end(), [](const auto& rank) {
           return !rank->has_failed && (rank->running || !rank->queue.empty());
         });
}

bool ServiceCommunicator::PollNext(int64_t budget) {
  const bool is_open = GateIsOpen();
  if (!is_open && !gate_.holds_launches_only()) return false;
  for (size_t tried = 0; tried < local_.size() && !failed_; ++tried)
    if (PollRank(next_++ % local_.size(), budget, is_open)) return true;
  return false;
}

bool ServiceCommunicator::GateIsOpen() {
  if (!gate_.has_windows() && !gate_.follows()) return true;
  return gate_.IsOpen(RealNowNs(), NowNs(), followed_.is_busy());
}

bool ServiceCommunicator::PollRank(size_t index, int64_t budget, bool may_launch) {
  try {
    return Advance(index, budget, may_launch);
  } catch (const std::bad_alloc&) {
    // Buffers are as large as what tenants ask for: one that there is no memory for ends its own communicator alone.
    Fail({ErrorCode::kResourceExhausted, fmt::format("rank {}: the daemon ({}) has no memory left",
                                                     local_[index]->rank, parts_.host)},
         true);
    return false;
  }
}

bool ServiceCommunicator::Advance(size_t index, int64_t budget, bool may_launch) {
  LocalRank& rank = *local_[index];
  if (rank.has_failed || (!rank.running && !(may_launch && TryLaunch(index)))) return false;
  const Interpreter::Outcome outcome = rank.operation().Poll(budget);
  const bool sockets = rank.epoch->PollSockets(index);
  if (outcome == Interpreter::Outcome::kOver) {
    Complete(index);
    return true;
  }
  if (outcome == Interpreter::Outcome::kMoved || sockets) {
    rank.polls_stuck = 0;
    return true;
  }
  if (++rank.polls_stuck != kStuckBeforeSave && rank.polls_stuck % kStuckBetweenChecks != 0)
    return false;
  rank.operation().SaveWanted();
  if (const Status health = rank.operation().health(); !health)
    Fail({health.error().code, fmt::format("rank {}: in {}: {}{}", rank.rank, rank.running->Text(),
                                           health.error().message, OtherCalls(rank))},
         true);
  return false;
}

std::string ServiceCommunicator::OtherCalls(const LocalRank& rank) const {
  std::string calls;
  for (const auto& other : local_)
    if (other->running && other->running->Text() != rank.running->Text())
      calls += fmt::format("; rank {} runs {}", other->rank, other->running->Text());
  return calls;
}

bool ServiceCommunicator::TryLaunch(size_t index) {
  LocalRank& rank = *local_[index];
  if (!ended_.empty()) CheckEnded(rank);
  if (rank.queue.empty() || stage_ != Stage::kActive) return false;
  const auto kind =
      rank.queue.front().is_of_all ? BarrierEvent::Kind::kCommand : BarrierEvent::Kind::kExchange;
  const BarrierStep step =
      parts_.barrier(barrier_, {.kind = kind, .rank = static_cast<int32_t>(index)});
  if (!step.refused.empty()) return false;  // held
  Epoch& epoch = *epochs_.at(step.actions().front().epoch);
  const std::optional<bool> made = MakeOperation(index, epoch, rank.queue.front());
  if (!made || !*made) return false;
  rank.running = std::move(rank.queue.front());
  rank.queue.pop_front();
  rank.epoch = &epoch;
  rank.launched_ns = NowNs();
  rank.polls_stuck = 0;
  Announce();
  Perform(step);
  return !failed_;
}

std::optional<bool> ServiceCommunicator::MakeOperation(size_t index, Epoch& epoch,
                                                       Command& command) {
  LocalRank& rank = *local_[index];
  const auto exchange = [&](std::span<const Message> messages, uint64_t what) {
    rank.exchange =
        std::make_unique<ExchangeOperation>(messages, what, rank.rank, epoch.lanes(index));
    return true;
  };
  if (command.is_exchange) return exchange(command.messages, command.what);
  const CollectiveCall& call = command.call;
  if (const auto on_host = HostCollectiveFor(rank, epoch, call)) {
    on_host->Enter(rank.rank, call);
    rank.on_host.emplace(on_host);
    return true;
  }
  const auto planned = epoch.strategy().IfMade(call, epoch.one_host());
  if (!planned) {
    PlanFor(call, epoch);
    return std::nullopt;
  }
  if (*planned == nullptr)
    return exchange(DirectMessages(call, rank.rank, num_ranks_), SignatureOfText(ToText(call)));
  auto operation = epoch.OperationFor(index, **planned,
                                      {.count = ElementsOf(call, num_ranks_),
                                       .type = call.type,
                                       .op = call.op,
                                       .in_place = IsInPlace(call, rank.rank)});
  if (!operation) {
    Fail({operation.error().code,
          fmt::format("rank {}: in {}: {}", rank.rank, ToText(call), operation.error().message)},
         true);
    return false;
  }
  rank.planned = std::move(*operation);
  epoch.lanes(index).SetSignature(SignatureOf(call, (*planned)->digest));
  rank.planned->Begin(call.input, call.output, epoch.Scratch(index, rank.planned->scratch_bytes()));
  rank.planned->Watch(
      chunks_.For(rank.rank, rank.completed + 1, epoch.number(), rank.planned->program().program));
  return true;
}

std::shared_ptr<HostCollective> ServiceCommunicator::HostCollectiveFor(const LocalRank& rank,
                                                                       const Epoch& epoch,
                                                                       const CollectiveCall& call) {
  if (!epoch.one_host()) return nullptr;
  const uint64_t number = rank.progress.collectives + 1;
  if (const auto found = host_collectives_.find(number); found != host_collectives_.end())
    return found->second;
  const bool is_first = std::none_of(local_.begin(), local_.end(), [&](const auto& other) {
    const uint64_t completed = other->progress.collectives;
    return completed >= number ||
           (other->running && other->running->is_of_all && completed + 1 == number);
  });
  // Chunks that an operator wants to see are those of a plan.
  if (!is_first || !epoch.strategy().is_built_in() || chunks_.is_on() ||
      !HostCollective::Fits(call, num_ranks_))
    return nullptr;
  // Else ranks of the one before are still to see that it is done.
  if (newest_host_collective_.use_count() == 1)
    newest_host_collective_->Reset();
  else
    newest_host_collective_ = std::make_shared<HostCollective>(num_ranks_);
  return host_collectives_[number] = newest_host_collective_;
}

void ServiceCommunicator::PlanFor(const CollectiveCall& call, Epoch& epoch) {
  if (planning_) return;
  planning_ = true;
  parts_.planner.Add([this, alive = alive_, call, strategy = epoch.shared_strategy(),
                      one_host = epoch.one_host()]() -> Worker::Finish {
    const Status planned = strategy->Prepare(call, one_host);
    return [this, alive, planned, call] {
      if (!*alive) return;
      planning_ = false;
      if (!planned)
        Fail({planned.error().code, fmt::format("{}: {}", ToText(call), planned.error().message)},
             true);
    };
  });
}

void ServiceCommunicator::Complete(size_t index) {
  LocalRank& rank = *local_[index];
  rank.epoch->PollSockets(index);  // the last acknowledgements
  rank.planned.reset();
  rank.exchange.reset();
  ++rank.completed;
  rank.progress.Add(rank.running->AsCall());
  // The others hold it, until they have seen that it is done.
  if (rank.on_host) host_collectives_.erase(rank.progress.collectives);
  rank.on_host.reset();
  ++tenant_.operations;
  tenant_.bytes += rank.running->bytes;
  trace_.push_back({.rank = rank.rank,
                    .epoch = rank.epoch->number(),
                    .sequence = rank.completed,
                    .is_exchange = rank.running->is_exchange,
                    .call = rank.running->call,
                    .messages = rank.running->messages.size(),
                    .bytes = rank.running->bytes,
                    .posted_ns = rank.running->posted_ns,
                    .launched_ns = rank.launched_ns,
                    .completed_ns = NowNs()});
  Count(trace_.back());
  if (trace_.size() > kTraceRecords) trace_.pop_front();
  rank.running.reset();
  Announce();
  const uint32_t epoch = std::exchange(rank.epoch, nullptr)->number();
  if (rank.owner != nullptr) rank.owner->Completed(rank.line, rank.completed, epoch);
  CheckDrained();
}

}  // namespace tutti::service
