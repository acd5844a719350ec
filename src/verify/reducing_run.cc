#include <algorithm>
#include <numeric>

#include "runs.h"

namespace tutti::verify {
namespace {

constexpr SetRef kAllRanks{SetRef::Form::kAll, 0};

}  // namespace

ReducingRun::ReducingRun(const Problem& problem)
    : problem_(problem),
      intervals_(problem.schedule().units_per_shard),
      sets_(problem.topology().num_ranks()) {}

void ReducingRun::Run(ShardId shard, Findings& findings, Probe* probe) {
  Start(shard);
  size_t arrived = 0;
  for (size_t local = 0; local < transfers_.size(); ++local) {
    const int64_t now = StartOf(local);
    // What takes no time at all arrives after it was sent nevertheless.
    while (arrived < by_arrival_.size() && by_arrival_[arrived] < local &&
           ArrivalOf(by_arrival_[arrived]) <= now)
      Arrive(by_arrival_[arrived++], findings, probe);
    Send(local, findings);
  }
  while (arrived < by_arrival_.size()) Arrive(by_arrival_[arrived++], findings, probe);
  CheckEnd(shard, findings);
  Finish();
}

void ReducingRun::Start(ShardId shard) {
  const std::span<const uint32_t> transfers = transfers_ = problem_.OfShard(shard);
  const Collective::Ranks contributors = problem_.collective().contributors(shard);
  sent_.clear();
  for (size_t i = 0; i < transfers.size(); ++i) {
    constexpr size_t kAhead = 16;
    if (i + kAhead < transfers.size())
      __builtin_prefetch(&problem_.transfer(transfers[i + kAhead]));
    sent_.push_back(problem_.transfer(transfers[i]));
  }
  intervals_.Assign(sent_.size(), [this](size_t i) -> const Transfer& { return sent_[i]; });
  const size_t count = intervals_.count();
  held_.clear();
  for (NodeId node : problem_.topology().Nodes())
    held_.insert(held_.end(), count,
                 problem_.topology().is_rank(node) && contributors.Contains(node)
                     ? ContributionSets::One(node.value)
                     : SetRef{});
  last_writer_.assign(held_.size(), -1);
  by_arrival_.resize(transfers.size());
  std::iota(by_arrival_.begin(), by_arrival_.end(), uint32_t{0});
  if (problem_.timed())
    std::stable_sort(by_arrival_.begin(), by_arrival_.end(),
                     [this](uint32_t a, uint32_t b) { return ArrivalOf(a) < ArrivalOf(b); });
  first_carried_.clear();
  carried_.clear();
}

void ReducingRun::Send(size_t local, Findings& findings) {
  const Transfer& transfer = sent_[local];
  const NodeId tail = problem_.topology().tail(transfer.link);
  const size_t row = tail.index() * intervals_.count(), end = intervals_.IndexOf(transfer.end);
  first_carried_.push_back(carried_.size());
  for (size_t i = intervals_.IndexOf(transfer.begin); i < end; ++i) {
    carried_.push_back(sets_.Share(held_[row + i]));
    if (sets_.Count(carried_.back()) == 0) faults_.Add(ViolationKind::kNotHeld, i, intervals_);
  }
  faults_.Flush(problem_, transfers_[local], tail, StartOf(local), findings);
}

void ReducingRun::Arrive(size_t local, Findings& findings, Probe* probe) {
  const Transfer& transfer = sent_[local];
  const NodeId head = problem_.topology().head(transfer.link);
  const size_t row = head.index() * intervals_.count(), end = intervals_.IndexOf(transfer.end);
  size_t from = first_carried_[local];
  for (size_t i = intervals_.IndexOf(transfer.begin); i < end; ++i) {
    const SetRef carried = carried_[from++];
    if (sets_.Count(carried) == 0) continue;  // reported when it was sent
    const size_t cell = row + i;
    if (Clashes(cell, local)) {
      AddClash(cell, local, i, carried);
    } else {
      if (transfer.op == TransferOp::kReduce)
        ReduceInto(cell, i, carried);
      else
        CopyInto(cell, local, i, carried);
      last_writer_[cell] = static_cast<int64_t>(local);
      if (probe != nullptr && probe->transfer < 0 && probe->node == head &&
          intervals_.begin(i) <= probe->unit && probe->unit < intervals_.end(i) &&
          sets_.Contains(held_[cell], probe->contributor))
        probe->transfer = transfers_[local];
    }
    sets_.Release(carried);
  }
  faults_.Flush(problem_, transfers_[local], head, StartOf(local), findings);
}

// Two writes of one instant have no order; only reductions do not mind.
bool ReducingRun::Clashes(size_t cell, size_t local) const {
  if (last_writer_[cell] < 0) return false;
  const auto before = static_cast<size_t>(last_writer_[cell]);
  return ArrivalOf(before) == ArrivalOf(local) &&
         (sent_[before].op == TransferOp::kCopy || sent_[local].op == TransferOp::kCopy);
}

void ReducingRun::AddClash(size_t cell, size_t local, size_t interval, SetRef carried) {
  const auto before = static_cast<size_t>(last_writer_[cell]);
  const bool copies = sent_[local].op == TransferOp::kCopy && sent_[before].op == TransferOp::kCopy;
  const bool same = copies && sets_.Equal(held_[cell], carried);
  const NodeId head = problem_.topology().head(sent_[local].link);
  if (same && !problem_.topology().is_rank(head)) return;
  Finding* finding = faults_.Add(
      same ? ViolationKind::kRedundantDelivery : ViolationKind::kOverwrite, interval, intervals_);
  if (finding != nullptr) finding->other = LastWriter(cell);
}

void ReducingRun::ReduceInto(size_t cell, size_t interval, SetRef carried) {
  const int32_t common = sets_.FirstCommon(held_[cell], carried);
  if (common >= 0) {
    Finding* finding = faults_.Add(ViolationKind::kDoubleReduction, interval, intervals_);
    if (finding != nullptr) finding->contributor = common;
  }
  held_[cell] = sets_.Unite(held_[cell], carried);
}

void ReducingRun::CopyInto(size_t cell, size_t local, size_t interval, SetRef carried) {
  const SetRef before = held_[cell];
  const NodeId head = problem_.topology().head(sent_[local].link);
  if (sets_.Equal(before, carried)) {
    if (!problem_.topology().is_rank(head)) return;  // once more, for another receiver
    Finding* finding = faults_.Add(ViolationKind::kRedundantDelivery, interval, intervals_);
    if (finding != nullptr) finding->other = LastWriter(cell);
    return;
  }
  // A switch has no contribution to lose: it forwards one value after the other.
  if (problem_.topology().is_rank(head) && !sets_.IsSubset(before, carried)) {
    Finding* finding = faults_.Add(ViolationKind::kOverwrite, interval, intervals_);
    if (finding != nullptr) finding->contributor = sets_.FirstOutside(before, carried);
    return;
  }
  held_[cell] = sets_.Share(carried);
  sets_.Release(before);
}

void ReducingRun::CheckEnd(ShardId shard, Findings& findings) const {
  const int32_t num_ranks = problem_.topology().num_ranks();
  const Collective::Ranks destinations = problem_.collective().destinations(shard);
  const Collective::Ranks contributors = problem_.collective().contributors(shard);
  const int32_t wanted = contributors.Count(num_ranks);
  // The smallest contributor that a set lacks.
  const auto lacking = [&](SetRef held) {
    if (contributors.all) return sets_.FirstOutside(kAllRanks, held);
    for (const NodeId rank : contributors.group)
      if (!sets_.Contains(held, rank.value)) return rank.value;
    return int32_t{-1};
  };
  const auto check = [&](NodeId rank) {
    const size_t row = rank.index() * intervals_.count();
    for (size_t i = 0; i < intervals_.count(); ++i) {
      const int32_t count = sets_.Count(held_[row + i]);
      if (count == wanted) continue;
      findings.Add({.kind = ViolationKind::kPostcondition,
                    .time = kAtTheEnd,
                    .shard = shard,
                    .node = rank,
                    .begin = intervals_.begin(i),
                    .end = intervals_.end(i),
                    .contributor = lacking(held_[row + i]),
                    .lacking = wanted - count});
      return;
    }
  };
  destinations.ForEach(num_ranks, check);
}

void ReducingRun::Finish() {
  for (SetRef set : held_) sets_.Release(set);
}

}  // namespace tutti::verify
