#include <algorithm>

#include "runs.h"

namespace tutti::verify {

Finding* FaultsOfTransfer::Add(ViolationKind kind, size_t interval, const Intervals& intervals) {
  for (size_t i = 0; i < size_; ++i) {
    if (found_[i].kind != kind) continue;
    if (found_[i].end == intervals.begin(interval)) found_[i].end = intervals.end(interval);
    return nullptr;
  }
  Finding& finding = found_[size_++];
  finding =
      Finding{.kind = kind, .begin = intervals.begin(interval), .end = intervals.end(interval)};
  return &finding;
}

void FaultsOfTransfer::Flush(const Problem& problem, uint32_t index, NodeId node, int64_t time,
                             Findings& findings) {
  for (size_t i = 0; i < size_; ++i) {
    found_[i].time = time;
    found_[i].transfer = index;
    found_[i].shard = problem.transfer(index).shard;
    found_[i].node = node;
    findings.Add(found_[i]);
  }
  size_ = 0;
}

HoldingRun::HoldingRun(const Problem& problem)
    : problem_(problem), intervals_(problem.schedule().units_per_shard) {}

void HoldingRun::Run(ShardId shard, Findings& findings) {
  const std::span<const uint32_t> transfers = problem_.OfShard(shard);
  const bool must_arrive = problem_.collective().weight(shard) > 0;
  if (transfers.empty() && !must_arrive) return;
  intervals_.Assign(transfers.size(),
                    [&](size_t i) -> const Transfer& { return problem_.transfer(transfers[i]); });
  const size_t count = intervals_.count();
  const size_t cells = static_cast<size_t>(problem_.topology().num_nodes()) * count;
  if (arrived_.size() < cells) arrived_.resize(cells, kAtTheEnd);

  const NodeId source = problem_.collective().contributors(shard).one;
  const Collective::Ranks destinations = problem_.collective().destinations(shard);
  std::fill_n(Row(source), count, kBeforeStart);
  const int64_t receivers = destinations.Count(problem_.topology().num_ranks());
  missing_ = (receivers - (destinations.Contains(source) ? 1 : 0)) * static_cast<int64_t>(count);
  for (uint32_t index : transfers) Apply(index, destinations, findings);
  if (missing_ > 0 && must_arrive) CheckEnd(shard, destinations, findings);
  Reset(transfers, source);
}

void HoldingRun::Apply(uint32_t index, const Collective::Ranks& destinations, Findings& findings) {
  const Transfer& transfer = problem_.transfer(index);
  const NodeId tail = problem_.topology().tail(transfer.link);
  const NodeId head = problem_.topology().head(transfer.link);
  const bool head_is_rank = problem_.topology().is_rank(head);
  const int64_t start = problem_.Start(index), arrival = problem_.Arrival(index);
  const size_t end = intervals_.IndexOf(transfer.end);
  const int64_t* from = Row(tail);
  int64_t* to = Row(head);
  FaultsOfTransfer not_held, redundant;
  bool faulty = false;
  int64_t delivered = 0;
  for (size_t i = intervals_.IndexOf(transfer.begin); i < end; ++i) {
    if (from[i] > start) {
      not_held.Add(ViolationKind::kNotHeld, i, intervals_);
      faulty = true;
    }
    if (to[i] == kAtTheEnd) {
      ++delivered;
    } else if (head_is_rank) {
      // Through a switch the same bytes may pass once for each receiver.
      redundant.Add(ViolationKind::kRedundantDelivery, i, intervals_);
      faulty = true;
    }
    // After a fault the run goes on as if the data had been there, so that one fault is one.
    to[i] = std::min(to[i], arrival);
  }
  if (head_is_rank && destinations.Contains(head)) missing_ -= delivered;
  if (!faulty) return;
  not_held.Flush(problem_, index, tail, start, findings);
  redundant.Flush(problem_, index, head, start, findings);
}

void HoldingRun::CheckEnd(ShardId shard, const Collective::Ranks& destinations,
                          Findings& findings) const {
  const auto check = [&](NodeId rank) {
    const int64_t* row = Row(rank);
    for (size_t i = 0; i < intervals_.count(); ++i) {
      if (row[i] != kAtTheEnd) continue;
      size_t end = i + 1;
      while (end < intervals_.count() && row[end] == kAtTheEnd) ++end;
      findings.Add({.kind = ViolationKind::kPostcondition,
                    .time = kAtTheEnd,
                    .shard = shard,
                    .node = rank,
                    .begin = intervals_.begin(i),
                    .end = intervals_.end(end - 1)});
      return;
    }
  };
  destinations.ForEach(problem_.topology().num_ranks(), check);
}

void HoldingRun::Reset(std::span<const uint32_t> transfers, NodeId source) {
  const size_t count = intervals_.count();
  const size_t cells = static_cast<size_t>(problem_.topology().num_nodes()) * count;
  if (transfers.size() >= static_cast<size_t>(problem_.topology().num_nodes()) / 2) {
    std::fill_n(arrived_.begin(), cells, kAtTheEnd);
    return;
  }
  std::fill_n(Row(source), count, kAtTheEnd);
  for (uint32_t index : transfers)
    std::fill_n(Row(problem_.topology().head(problem_.transfer(index).link)), count, kAtTheEnd);
}

}  // namespace tutti::verify
