#include "tutti/verify/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "findings.h"
#include "structure.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "words.h"

namespace tutti {
namespace {

using verify::Finding;
using verify::Findings;
using verify::IsSound;

constexpr size_t kMaxPending = size_t{1} << 20;  // transfers of a step that are kept
constexpr size_t kAhead = 16;                    // transfers whose bits are asked for in time
constexpr int64_t kPendingGrain = 1 << 13;

double BitsBytes(const Topology& topology, const Schedule& header) {
  const double row =
      static_cast<double>(header.collective.num_shards()) * header.units_per_shard / 8 + 8;
  return static_cast<double>(topology.num_nodes()) * row;
}

// The first stretch of units where one transfer breaks a rule.
struct Stretch {
  int32_t begin = -1, end = -1;
  void Add(int32_t unit) {
    if (begin < 0) begin = end = unit;
    if (end == unit) ++end;
  }
};

class StreamRun {
 public:
  StreamRun(const Topology& topology, const Schedule& header, Findings& findings)
      : topology_(topology),
        header_(header),
        collective_(header.collective),
        units_(static_cast<size_t>(header.units_per_shard)),
        row_words_((static_cast<size_t>(collective_.num_shards()) * units_ + 63) / 64),
        held_(static_cast<size_t>(topology.num_nodes()) * row_words_),
        findings_(findings) {
    for (ShardId shard : collective_.Shards()) {
      const NodeId source = collective_.contributors(shard).one;
      for (size_t unit = 0; unit < units_; ++unit) Set(held_, Place(source, shard, unit));
      if (collective_.weight(shard) == 0) continue;
      const Collective::Ranks to = collective_.destinations(shard);
      const int64_t receivers = to.Count(topology_.num_ranks());
      missing_ += (receivers - (to.Contains(source) ? 1 : 0)) * header.units_per_shard;
    }
  }

  // The next transfers; steps ascend.
  void Add(std::span<const Transfer> transfers) {
    for (const Transfer& transfer : transfers) {
      if (transfer.step != step_) EndStep();
      step_ = transfer.step;
      pending_.push_back(transfer);
      if (IsSound(topology_, collective_, header_, transfer)) {
        ++deliveries_;
      } else {
        findings_.Add({.kind = ViolationKind::kStructure, .transfer = next_});
        pending_.back().link = kLeftOut;
      }
      ++next_;
      if (pending_.size() == kMaxPending) ApplyPartOfStep();
    }
  }

  // Returns how many transfers were judged.
  int64_t Finish() {
    EndStep();
    if (missing_ > 0) CheckEnd();
    return deliveries_;
  }

 private:
  static constexpr LinkId kLeftOut{-1};

  struct Bit {
    size_t word;
    uint64_t mask;
  };
  Bit Place(NodeId node, ShardId shard, size_t unit) const {
    const size_t bit = shard.index() * units_ + unit;
    return {node.index() * row_words_ + bit / 64, uint64_t{1} << (bit % 64)};
  }
  static void Set(LargeTable<uint64_t>& bits, const Bit& bit) { bits[bit.word] |= bit.mask; }
  bool Holds(const Bit& bit) const { return (held_[bit.word] & bit.mask) != 0; }
  bool HeldBeforeStep(const Bit& bit) const {
    return Holds(bit) && (!fresh_ || ((*fresh_)[bit.word] & bit.mask) == 0);
  }

  int64_t IndexOf(size_t pending) const {
    return next_ - static_cast<int64_t>(pending_.size()) + static_cast<int64_t>(pending);
  }
  void Report(Findings& found, ViolationKind kind, size_t pending, NodeId node,
              const Stretch& where) const {
    found.Add({.kind = kind,
               .time = 2 * int64_t{step_},
               .transfer = IndexOf(pending),
               .shard = pending_[pending].shard,
               .node = node,
               .begin = where.begin,
               .end = where.end,
               .link = pending_[pending].link});
  }

  void CheckSenders() {
    ParallelFor(static_cast<int64_t>(pending_.size()), kPendingGrain,
                [this](int64_t first, int64_t last) {
                  Findings found(findings_.limit());
                  const auto end = static_cast<size_t>(last);
                  for (auto i = static_cast<size_t>(first); i < end; ++i) {
                    if (i + kAhead < end) Fetch(pending_[i + kAhead], false);
                    CheckSender(i, found);
                  }
                  Merge(found);
                });
  }
  void CheckSender(size_t i, Findings& found) const {
    const Transfer& transfer = pending_[i];
    if (transfer.link == kLeftOut) return;
    const NodeId tail = topology_.tail(transfer.link);
    Stretch lacking;
    for (int32_t unit = transfer.begin; unit < transfer.end; ++unit)
      if (!HeldBeforeStep(Place(tail, transfer.shard, static_cast<size_t>(unit))))
        lacking.Add(unit);
    if (lacking.begin >= 0) Report(found, ViolationKind::kNotHeld, i, tail, lacking);
  }

  // Each thread sets the bits of nodes of its own, in the order of the transfers.
  void Deliver(bool more_of_step_follows) {
    if (more_of_step_follows && !fresh_) fresh_.emplace(held_.size());
    const int64_t parts =
        static_cast<int64_t>(pending_.size()) < 2 * kPendingGrain ? 1 : int64_t{NumThreads()};
    const int64_t nodes = topology_.num_nodes();
    std::atomic<int64_t> delivered{0};
    ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
      Findings found(findings_.limit());
      const auto begin = static_cast<int32_t>(first * nodes / parts);
      const auto end = static_cast<int32_t>(last * nodes / parts);
      int64_t count = 0;
      for (size_t i = 0; i < pending_.size(); ++i) {
        if (i + kAhead < pending_.size()) Fetch(pending_[i + kAhead], true);
        if (pending_[i].link == kLeftOut) continue;
        const NodeId head = topology_.head(pending_[i].link);
        if (begin <= head.value && head.value < end)
          count += DeliverOne(i, head, more_of_step_follows, found);
      }
      delivered += count;
      Merge(found);
    });
    missing_ -= delivered;
  }
  // How much of what is missing this brings.
  int64_t DeliverOne(size_t i, NodeId head, bool mark_as_fresh, Findings& found) {
    const Transfer& transfer = pending_[i];
    Stretch redundant;
    int64_t count = 0;
    for (int32_t unit = transfer.begin; unit < transfer.end; ++unit) {
      const Bit bit = Place(head, transfer.shard, static_cast<size_t>(unit));
      if (Holds(bit)) {
        if (topology_.is_rank(head)) redundant.Add(unit);
        continue;
      }
      Set(held_, bit);
      if (mark_as_fresh) Set(*fresh_, bit);
      ++count;
    }
    if (redundant.begin >= 0) Report(found, ViolationKind::kRedundantDelivery, i, head, redundant);
    return IsWanted(transfer.shard, head) ? count : 0;
  }
  bool IsWanted(ShardId shard, NodeId node) const {
    if (!topology_.is_rank(node) || collective_.weight(shard) == 0) return false;
    return collective_.destinations(shard).Contains(node);
  }

  void Fetch(const Transfer& transfer, bool head) const {
    if (transfer.link == kLeftOut) return;
    const NodeId node = head ? topology_.head(transfer.link) : topology_.tail(transfer.link);
    const Bit bit = Place(node, transfer.shard, static_cast<size_t>(transfer.begin));
    __builtin_prefetch(held_.data() + bit.word, 1);
  }

  // A step too large to be kept: what its first part brings must not be sent on by the rest.
  void ApplyPartOfStep() {
    CheckSenders();
    Deliver(true);
    pending_.clear();
  }
  void EndStep() {
    CheckSenders();
    Deliver(false);
    pending_.clear();
    fresh_.reset();
  }

  void CheckEnd() {
    for (ShardId shard : collective_.Shards()) {
      if (collective_.weight(shard) == 0) continue;
      const Collective::Ranks to = collective_.destinations(shard);
      to.ForEach(topology_.num_ranks(), [&](NodeId rank) { CheckEndOf(shard, rank); });
    }
  }
  void CheckEndOf(ShardId shard, NodeId rank) {
    Stretch lacking;
    for (size_t unit = 0; unit < units_; ++unit)
      if (!Holds(Place(rank, shard, unit))) lacking.Add(static_cast<int32_t>(unit));
    if (lacking.begin < 0) return;
    findings_.Add({.kind = ViolationKind::kPostcondition,
                   .time = verify::kAtTheEnd,
                   .shard = shard,
                   .node = rank,
                   .begin = lacking.begin,
                   .end = lacking.end});
  }

  void Merge(const Findings& found) {
    if (found.count() == 0) return;
    const std::lock_guard lock(mutex_);
    findings_.Merge(found);
  }

  const Topology& topology_;
  const Schedule& header_;
  const Collective& collective_;
  size_t units_, row_words_;
  LargeTable<uint64_t> held_;                  // a row of bits a node, by shard and unit
  std::optional<LargeTable<uint64_t>> fresh_;  // the same, of what came in this step
  std::vector<Transfer> pending_;              // of this step
  int32_t step_ = 0;
  int64_t next_ = 0;  // index of the next transfer
  int64_t deliveries_ = 0, missing_ = 0;
  Findings& findings_;
  std::mutex mutex_;
};

Violation Describe(const Topology& topology, const Schedule& header, const Finding& finding) {
  using namespace verify;
  const std::string node = NodeText(topology, finding.node);
  const std::string what =
      fmt::format("{} of {}", PartText(finding.begin, finding.end, header.units_per_shard),
                  ShardText(topology, header.collective, finding.shard));
  if (finding.kind == ViolationKind::kPostcondition)
    return {finding.kind, fmt::format("in the end {} lacks {}", node, what)};
  // The reader lets only transfers pass that keep S1 .. S4.
  if (finding.kind == ViolationKind::kStructure)
    return {finding.kind,
            fmt::format("transfer {} reduces, but {} only copies{}", finding.transfer,
                        Name(header.collective.kind()),
                        header.collective.others() == Others::kIdle
                            ? ", or passes a rank that is in no group and takes no part"
                            : ""),
            finding.transfer};
  const std::string prefix =
      fmt::format("transfer {} in step {}: ", finding.transfer, finding.time / 2);
  const std::string over = "over link " + LinkText(topology, finding.link);
  return {finding.kind,
          finding.kind == ViolationKind::kNotHeld
              ? fmt::format("{}{} does not hold {}, which it sends {}", prefix, node, what, over)
              : fmt::format("{}{} arrives at {} {}, which has got it already", prefix, what, node,
                            over),
          finding.transfer};
}

}  // namespace

Status CheckStreamable(const Schedule& header) {
  const auto fail = [](const char* why) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("this schedule cannot be judged block by block: {}", why));
  };
  if (header.kind == ScheduleKind::kTimed) return fail("it is timed");
  if (header.collective.reduces()) return fail("it reduces");
  return {};
}

VerifyMemory VerifyMemoryOf(const Topology& topology, const Schedule& header,
                            uint64_t num_transfers) {
  constexpr double kMost = 9e18;
  constexpr double kPendingBytes = kMaxPending * sizeof(Transfer);
  // The transfers, their order by shard and a bit each; times where there are some.
  const double each = sizeof(Transfer) + sizeof(uint32_t) + 1 +
                      (header.kind == ScheduleKind::kTimed ? 2 * sizeof(int64_t) : 0);
  return {.in_memory_bytes =
              static_cast<int64_t>(std::min(kMost, each * static_cast<double>(num_transfers))),
          .streamed_bytes =
              static_cast<int64_t>(std::min(kMost, BitsBytes(topology, header) + kPendingBytes))};
}

Result<VerifyReport> VerifyStream(ScheduleReader& reader, const VerifyOptions& options,
                                  int64_t available_bytes) {
  const Topology& topology = reader.topology();
  const Schedule& header = reader.header();
  if (const Status fine = CheckStreamable(header); !fine) return tl::unexpected(fine.error());
  VerifyReport report;
  const auto limit = static_cast<size_t>(std::max(options.max_violations, 0));
  if (auto fault = verify::FaultOfWhole(topology, header.collective, header)) {
    report.num_violations = 1;
    if (limit > 0) report.violations.push_back(*std::move(fault));
    return report;
  }
  const int64_t needed = VerifyMemoryOf(topology, header, reader.num_transfers()).streamed_bytes;
  if (const Status fits = CheckMemory("judging this schedule", needed, available_bytes); !fits)
    return tl::unexpected(fits.error());

  Findings findings(limit);
  StreamRun run(topology, header, findings);
  ProgressScope progress("verify", static_cast<int64_t>(reader.num_transfers()));
  std::vector<Transfer> transfers;
  std::vector<int64_t> start_ps;
  for (;;) {
    const Result<bool> more = reader.Next(transfers, start_ps);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    run.Add(transfers);
    progress.Add(static_cast<int64_t>(transfers.size()));
  }
  report.deliveries = run.Finish();
  report.num_violations = findings.count();
  for (const Finding& finding : findings.Sorted())
    report.violations.push_back(Describe(topology, header, finding));
  return report;
}

}  // namespace tutti
