#include "root_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "words.h"

namespace tutti::verify {
namespace {

// All transfers of one operation, in rows by the rank that they concern: of copies the rank that
// gets the part, of reductions the rank that gives it away. With time turned around the latter is
// the former, so one set of checks serves both.
class Half {
 public:
  Half(const Topology& topology, const Schedule& root, TransferOp op)
      : topology_(topology), root_(root), op_(op) {
    first_.assign(static_cast<size_t>(topology.num_ranks()) + 1, 0);
    for (const Transfer& transfer : root.transfers)
      if (transfer.op == op) ++first_[To(transfer).index() + 1];
    for (size_t rank = 1; rank < first_.size(); ++rank) first_[rank] += first_[rank - 1];
    entry_.resize(first_.back());
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (uint32_t i = 0; i < root.transfers.size(); ++i)
      if (root.transfers[i].op == op) entry_[next[To(root.transfers[i]).index()]++].transfer = i;
    for (size_t rank = 0; rank + 1 < first_.size(); ++rank) SortRow(first_[rank], first_[rank + 1]);
  }

  struct Entry {
    uint32_t transfer;
    int32_t reach;  // the largest end in the row so far
  };
  using Row = std::pair<const Entry*, const Entry*>;

  bool reduces() const { return op_ == TransferOp::kReduce; }
  bool Has(const Transfer& transfer) const { return transfer.op == op_; }
  NodeId To(const Transfer& transfer) const {
    return reduces() ? topology_.tail(transfer.link) : topology_.head(transfer.link);
  }
  NodeId From(const Transfer& transfer) const {
    return reduces() ? topology_.head(transfer.link) : topology_.tail(transfer.link);
  }
  // Whether `a` is over before `b` begins, in the direction in which this half is read.
  bool IsBefore(const Transfer& a, const Transfer& b) const {
    return reduces() ? a.step > b.step : a.step < b.step;
  }
  // Ascending in begin.
  Row RowOf(NodeId rank) const {
    return {entry_.data() + first_[rank.index()], entry_.data() + first_[rank.index() + 1]};
  }
  // Without what ends at or before `unit`, at the front.
  Row RowBeyond(NodeId rank, int32_t unit) const {
    const auto [begin, end] = RowOf(rank);
    return {std::upper_bound(begin, end, unit,
                             [](int32_t u, const Entry& entry) { return u < entry.reach; }),
            end};
  }

 private:
  void SortRow(size_t begin, size_t end) {
    const auto at = [this](size_t i) { return entry_.begin() + static_cast<ptrdiff_t>(i); };
    std::sort(at(begin), at(end), [this](const Entry& a, const Entry& b) {
      const Transfer &s = root_.transfers[a.transfer], &t = root_.transfers[b.transfer];
      return std::tie(s.begin, s.end, a.transfer) < std::tie(t.begin, t.end, b.transfer);
    });
    int32_t reach = 0;
    for (size_t i = begin; i < end; ++i)
      entry_[i].reach = reach = std::max(reach, root_.transfers[entry_[i].transfer].end);
  }

  const Topology& topology_;
  const Schedule& root_;
  TransferOp op_;
  std::vector<size_t> first_;
  std::vector<Entry> entry_;
};

constexpr int64_t kNone = -1;

struct Fault {
  ViolationKind kind;
  TransferOp op;
  int64_t transfer = kNone;
  int64_t other = kNone;  // the transfer that it collides with
  NodeId rank{0};         // of no transfer: who lacks something
  int32_t begin = 0, end = 0;
};

class Checker {
 public:
  Checker(const Topology& topology, const Schedule& root) : topology_(topology), root_(root) {}

  void Check(const Half& half) {
    for (NodeId rank : topology_.Ranks()) CheckRow(half, rank);
    for (uint32_t i = 0; i < root_.transfers.size(); ++i)
      if (half.Has(root_.transfers[i]) && half.From(root_.transfers[i]).value != 0)
        CheckHeld(half, i);
  }

  // In an all-reduce rank 0 sends on only what it has got from everyone.
  void CheckHandOver() {
    std::vector<uint32_t> into_root;
    for (uint32_t i = 0; i < root_.transfers.size(); ++i)
      if (root_.transfers[i].op == TransferOp::kReduce &&
          topology_.head(root_.transfers[i].link).value == 0)
        into_root.push_back(i);
    for (uint32_t i = 0; i < root_.transfers.size(); ++i) {
      const Transfer& sent = root_.transfers[i];
      if (sent.op != TransferOp::kCopy || topology_.tail(sent.link).value != 0) continue;
      for (uint32_t j : into_root) {
        const Transfer& got = root_.transfers[j];
        const int32_t begin = std::max(got.begin, sent.begin), end = std::min(got.end, sent.end);
        if (begin >= end || got.step < sent.step) continue;
        faults_.push_back({ViolationKind::kNotHeld, sent.op, i, j, {}, begin, end});
        break;
      }
    }
  }

  void Report(size_t limit, VerifyReport& report) {
    const auto key = [this](const Fault& fault) {
      const int64_t step = fault.transfer == kNone
                               ? std::numeric_limits<int64_t>::max()
                               : root_.transfers[static_cast<size_t>(fault.transfer)].step;
      return std::tuple(step, fault.transfer, fault.kind, fault.rank, fault.begin);
    };
    std::sort(faults_.begin(), faults_.end(),
              [&key](const Fault& a, const Fault& b) { return key(a) < key(b); });
    report.num_violations += static_cast<int64_t>(faults_.size());
    for (const Fault& fault : faults_) {
      if (report.violations.size() >= limit) break;
      report.violations.push_back({fault.kind, Text(fault), fault.transfer});
    }
  }

 private:
  // Every rank gets, or gives away, every part once; rank 0 has the shard, and keeps it.
  void CheckRow(const Half& half, NodeId rank) {
    const auto [begin, end] = half.RowOf(rank);
    const ViolationKind twice =
        half.reduces() ? ViolationKind::kDoubleReduction : ViolationKind::kRedundantDelivery;
    const TransferOp op = half.reduces() ? TransferOp::kReduce : TransferOp::kCopy;
    int32_t reach = 0;
    const Half::Entry* farthest = nullptr;
    for (const Half::Entry* at = begin; at != end; ++at) {
      const Transfer& transfer = root_.transfers[at->transfer];
      if (rank.value == 0) {
        faults_.push_back({twice, op, at->transfer, kNone, rank, transfer.begin, transfer.end});
        continue;
      }
      if (farthest != nullptr && transfer.begin < reach) {
        // The later of the two is the culprit.
        const Transfer& before = root_.transfers[farthest->transfer];
        const bool later =
            std::tie(before.step, farthest->transfer) < std::tie(transfer.step, at->transfer);
        const uint32_t culprit = later ? at->transfer : farthest->transfer;
        const uint32_t other = later ? farthest->transfer : at->transfer;
        faults_.push_back(
            {twice, op, culprit, other, rank, transfer.begin, std::min(transfer.end, before.end)});
      }
      if (transfer.begin > reach) AddLack(op, rank, reach, transfer.begin);
      if (at->reach > reach) farthest = at;
      reach = at->reach;
    }
    if (rank.value != 0 && reach < root_.units_per_shard)
      AddLack(op, rank, reach, root_.units_per_shard);
  }

  void AddLack(TransferOp op, NodeId rank, int32_t begin, int32_t end) {
    faults_.push_back({ViolationKind::kPostcondition, op, kNone, kNone, rank, begin, end});
  }

  // What is sent has arrived; what is reduced into a rank is sent on afterwards.
  void CheckHeld(const Half& half, uint32_t index) {
    const Transfer& transfer = root_.transfers[index];
    int32_t unit = transfer.begin;
    int64_t too_late = kNone;
    const auto [begin, end] = half.RowBeyond(half.From(transfer), unit);
    for (const Half::Entry* at = begin; at != end && unit < transfer.end; ++at) {
      const Transfer& other = root_.transfers[at->transfer];
      if (other.begin > unit) break;
      if (half.IsBefore(other, transfer))
        unit = std::max(unit, other.end);
      else if (other.end > unit && too_late == kNone)
        too_late = at->transfer;
    }
    if (unit >= transfer.end) return;
    const ViolationKind kind =
        half.reduces() ? ViolationKind::kPostcondition : ViolationKind::kNotHeld;
    faults_.push_back({kind, transfer.op, index, too_late, {}, unit, transfer.end});
  }

  std::string Text(const Fault& fault) const {
    const bool reduces = fault.op == TransferOp::kReduce;
    const std::string part =
        PartText(fault.begin, fault.end, root_.units_per_shard) + " of shard 0";
    if (fault.transfer == kNone)
      return reduces ? fmt::format("in the end rank 0 lacks the contribution of {} to {}",
                                   Rank(fault.rank), part)
                     : fmt::format("in the end {} lacks {}", Rank(fault.rank), part);
    const Transfer& transfer = root_.transfers[static_cast<size_t>(fault.transfer)];
    const std::string over = "over link " + LinkText(topology_, transfer.link);
    const std::string tail = Rank(topology_.tail(transfer.link));
    const std::string head = Rank(topology_.head(transfer.link));
    const std::string by = fault.other == kNone ? "" : fmt::format(" by transfer {}", fault.other);
    const int32_t other_step =
        fault.other == kNone ? 0 : root_.transfers[static_cast<size_t>(fault.other)].step;
    const std::string text = [&] {
      switch (fault.kind) {
        case ViolationKind::kRedundantDelivery:
          return fmt::format("{} arrives at {} {}, which has got it already{}", part, head, over,
                             by.empty() ? ", from the start" : by);
        case ViolationKind::kDoubleReduction:
          if (by.empty())
            return fmt::format("{} reduces {} away {}, which it is to keep", tail, part, over);
          return fmt::format("{} sends {} {}, and sends it{} too: it would count twice", tail, part,
                             over, by);
        case ViolationKind::kPostcondition:
          if (by.empty())
            return fmt::format("{} arrives at {} {}, which never sends it on: it is lost", part,
                               head, over);
          return fmt::format(
              "{} arrives at {} {}, which sends it on in step {}{} already: it is "
              "lost",
              part, head, over, other_step, by);
        default:
          if (by.empty())
            return fmt::format(
                "{} does not hold {}, which it sends {}; nothing ever brings it "
                "there",
                tail, part, over);
          return fmt::format("{} does not hold {}, which it sends {}; it arrives only in step {}{}",
                             tail, part, over, other_step, by);
      }
    }();
    return fmt::format("transfer {} in step {}: {}", fault.transfer, transfer.step, text);
  }
  std::string Rank(NodeId rank) const { return NodeText(topology_, rank); }

  const Topology& topology_;
  const Schedule& root_;
  std::vector<Fault> faults_;
};

}  // namespace

void RunRoot(const Topology& topology, const Schedule& root, size_t limit, VerifyReport& report) {
  Checker checker(topology, root);
  const CollectiveKind kind = root.collective.kind();
  if (kind != CollectiveKind::kAllGather) checker.Check(Half(topology, root, TransferOp::kReduce));
  if (kind != CollectiveKind::kReduceScatter)
    checker.Check(Half(topology, root, TransferOp::kCopy));
  if (kind == CollectiveKind::kAllReduce) checker.CheckHandOver();
  checker.Report(limit, report);
}

}  // namespace tutti::verify
