// taccl-like: the shortest all-gather that an integer program over a time-expanded network finds.
//
// Model       Time is cut into slots, each as long as the fastest link takes for a chunk; link l
//             takes d_l whole slots, rounded up. Columns: chunk c starts over link l in slot t, or
//             not; rank n has chunk c at the start of slot t, from 0 to 1. Rows: a rank has what it
//             had or what has arrived; only what the tail has is sent; a link carries one chunk at
//             a time; in the end every rank has every chunk. Columns that come too early to have
//             the chunk or too late for the end are left out. The number of slots grows from a
//             proven limit until the integer program has an answer; each attempt may search
//             kTimeExpandedNodes nodes, and for half of the time that is left, so that one that is
//             hard to refuse does not take it all.
//             Reduce-scatter is the reverse, all-reduce both.
//             options.notes says whether the number of slots is proven to be the least.
// Complexity  Exponential; at most kMaxColumns columns, which is about 16 ranks.
// Errors      kInfeasible: switches, too many columns, or no answer within the limits; the message
//             says up to which number of slots was searched and which were refused.
// Reference   [taccl] as [tacos] sections V.A and VII tell it: an integer program, here over the
//             time-expanded network as the authors of [tacos] do it (footnote 7). Deviations: the
//             program is ours and knows congestion exactly; no communication sketch.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "classic/common.h"
#include "registry.h"
#include "switches.h"
#include "tutti/base/cancel.h"
#include "tutti/lp/integer_program.h"
#include "tutti/synth/time_expanded_program.h"

namespace tutti {
namespace baselines {
namespace {

constexpr std::string_view kTacclLike = "taccl-like";
constexpr int64_t kMaxColumns = 60'000;
constexpr int64_t kMaxSlots = 1 << 14;
// Beyond the proven limit; a schedule that needs more is not looked for.
constexpr int32_t kMaxAttempts = 32;
constexpr int32_t kMaxSlotsOfALink = 64;

// Slots that a chunk takes over each link.
std::vector<int32_t> SlotsOfLinks(const Topology& topology, const Rational& chunk_bytes) {
  std::vector<int64_t> time_ps;
  for (LinkId link : topology.Links())
    time_ps.push_back(topology.alpha_ps(link) + BandwidthPs(chunk_bytes, topology.bandwidth(link)));
  const int64_t slot = std::max<int64_t>(1, *std::min_element(time_ps.begin(), time_ps.end()));
  std::vector<int32_t> slots;
  for (int64_t time : time_ps)
    slots.push_back(
        static_cast<int32_t>(std::clamp<int64_t>((time - 1) / slot + 1, 1, kMaxSlotsOfALink)));
  return slots;
}

// Least slots from `from` to every node, by relaxing until nothing changes.
std::vector<int32_t> SlotsFrom(const Topology& topology, const std::vector<int32_t>& slots,
                               NodeId from) {
  std::vector<int32_t> least(static_cast<size_t>(topology.num_nodes()), INT32_MAX / 2);
  least[from.index()] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (LinkId link : topology.Links()) {
      const int32_t through = least[topology.tail(link).index()] + slots[link.index()];
      int32_t& head = least[topology.head(link).index()];
      changed = changed || through < head;
      head = std::min(head, through);
    }
  }
  return least;
}

class TimeExpandedProgram {
 public:
  TimeExpandedProgram(const Topology& topology, int32_t chunks, const Rational& chunk_bytes)
      : topology_(topology), chunks_(chunks), slots_(SlotsOfLinks(topology, chunk_bytes)) {
    for (NodeId rank : topology.Ranks()) min_slots_.push_back(SlotsFrom(topology, slots_, rank));
  }

  // No schedule takes fewer slots: the farthest rank, and what its links bring into a rank.
  int32_t LeastSlots() const {
    int32_t least = 1;
    for (const std::vector<int32_t>& from : min_slots_)
      least = std::max(least, *std::max_element(from.begin(), from.end()));
    for (NodeId rank : topology_.Ranks())
      for (;; ++least) {
        int64_t into = 0;
        for (LinkId link : topology_.InLinks(rank)) into += least / slots_[link.index()];
        if (into >= int64_t{topology_.num_ranks() - 1} * chunks_) break;
      }
    return least;
  }

  int64_t CountColumns(int32_t horizon) const {
    int64_t count = 0;
    for (NodeId source : topology_.Ranks())
      for (LinkId link : topology_.Links())
        if (topology_.head(link) != source)
          count += std::max(0, horizon - slots_[link.index()] + 1 - Earliest(source, link));
    return count * chunks_;
  }

  // The transfers of a schedule of `horizon` slots, steps being slots.
  Result<std::vector<Transfer>> Solve(int32_t horizon, double seconds) const {
    IntegerProgram program;
    struct Start {
      int32_t column, chunk, slot;
      LinkId link;
    };
    std::vector<Start> starts;
    const auto n = static_cast<size_t>(topology_.num_ranks());
    // By link, the columns in which it is busy, by slot.
    std::vector<std::vector<std::vector<IntegerProgram::Entry>>> busy(
        static_cast<size_t>(topology_.num_links()));
    for (auto& by_slot : busy) by_slot.resize(static_cast<size_t>(horizon));
    for (int32_t chunk = 0; chunk < topology_.num_ranks() * chunks_; ++chunk) {
      const NodeId source{chunk / chunks_};
      // has[rank][slot]: the column, or none where it cannot have the chunk yet.
      std::vector<std::vector<int32_t>> has(n);
      for (NodeId rank : topology_.Ranks())
        for (int32_t slot = 0; slot <= horizon && rank != source; ++slot) {
          const bool early = slot < min_slots_[source.index()][rank.index()];
          const double least = slot == horizon ? 1 : 0;
          has[rank.index()].push_back(early ? -1 : program.AddColumn(least, 1, 0, false));
        }
      // arrives[rank][slot]: what has arrived when the slot begins.
      std::vector<std::vector<std::vector<IntegerProgram::Entry>>> arrives(n);
      for (auto& by_slot : arrives) by_slot.resize(static_cast<size_t>(horizon) + 1);
      for (LinkId link : topology_.Links()) {
        const NodeId tail = topology_.tail(link), head = topology_.head(link);
        if (head == source) continue;
        const int32_t length = slots_[link.index()];
        for (int32_t slot = Earliest(source, link); slot + length <= horizon; ++slot) {
          const int32_t column = program.AddColumn(0, 1, slot + 1, true);
          starts.push_back({column, chunk, slot, link});
          const int32_t end = slot + length;
          arrives[head.index()][static_cast<size_t>(end)].push_back({column, -1});
          for (int32_t at = slot; at < slot + length; ++at)
            busy[link.index()][static_cast<size_t>(at)].push_back({column, 1});
          if (tail != source)
            program.AddRow(-IntegerProgram::kNoLimit, 0,
                           {{column, 1}, {has[tail.index()][static_cast<size_t>(slot)], -1}});
        }
      }
      for (NodeId rank : topology_.Ranks()) {
        if (rank == source) continue;
        for (int32_t slot = min_slots_[source.index()][rank.index()]; slot <= horizon; ++slot) {
          const auto at = static_cast<size_t>(slot);
          std::vector<IntegerProgram::Entry> row = arrives[rank.index()][at];
          row.push_back({has[rank.index()][at], 1});
          if (slot > 0 && has[rank.index()][at - 1] >= 0)
            row.push_back({has[rank.index()][at - 1], -1});
          program.AddRow(0, 0, std::move(row));
        }
      }
    }
    for (auto& by_slot : busy)
      for (auto& row : by_slot)
        if (row.size() > 1) program.AddRow(-IntegerProgram::kNoLimit, 1, std::move(row));

    IntegerLimits limits;
    limits.seconds = seconds;
    limits.nodes = kTimeExpandedNodes;
    limits.first_is_enough = true;
    const Result<IntegerSolution> solution = program.Solve(limits);
    if (!solution) return tl::unexpected(solution.error());
    std::vector<Transfer> transfers;
    for (const Start& start : starts)
      if (solution->columns[static_cast<size_t>(start.column)] > 0.5)
        transfers.push_back({.shard = ShardId{start.chunk / chunks_},
                             .link = start.link,
                             .begin = start.chunk % chunks_,
                             .end = start.chunk % chunks_ + 1,
                             .step = start.slot});
    return transfers;
  }

 private:
  int32_t Earliest(NodeId source, LinkId link) const {
    return min_slots_[source.index()][topology_.tail(link).index()];
  }

  const Topology& topology_;
  int32_t chunks_;
  std::vector<int32_t> slots_;                   // by link
  std::vector<std::vector<int32_t>> min_slots_;  // by source and node
};

// Both halves of an all-reduce leave theirs: the larger gap counts.
void LeaveNotes(const TimeExpandedAnswer& answer, double seconds, SynthNotes& notes) {
  std::string remark;
  if (answer.slots == answer.min_slots) {
    remark = fmt::format("proven: no schedule takes fewer than {} slots", answer.slots);
  } else {
    constexpr double kPercent = 100;
    remark = fmt::format(
        "not proven optimal: {} slots, fewer than {} are impossible, gap {:.1f} %; {}",
        answer.slots, answer.min_slots, answer.Gap() * kPercent,
        answer.by_clock
            ? fmt::format("the time limit of {:g} s was reached, so that another machine may find "
                          "another answer",
                          seconds)
            : fmt::format("{} nodes of each integer program were searched", kTimeExpandedNodes));
  }
  if (notes.gap && *notes.gap >= answer.Gap()) return;
  notes.gap = answer.Gap();
  notes.remark = std::move(remark);
}

Result<Schedule> MakeTacclLikeForward(const Topology& topology, const Collective& forward,
                                      const SynthOptions& options) {
  const double seconds = options.max_seconds > 0 ? options.max_seconds : kTimeExpandedSeconds;
  return SolveTimeExpanded(topology, forward, options, seconds).map([&](TimeExpandedAnswer answer) {
    if (options.notes != nullptr) LeaveNotes(answer, seconds, *options.notes);
    return std::move(answer.schedule);
  });
}

Result<Schedule> SynthesizeTacclLike(const Topology& topology, const Collective& collective,
                                     const SynthOptions& options) {
  return classic::MakeClassic(kTacclLike, topology, collective, options, MakeTacclLikeForward);
}

}  // namespace
}  // namespace baselines

Result<TimeExpandedAnswer> SolveTimeExpanded(const Topology& topology, const Collective& forward,
                                             const SynthOptions& options, double seconds) {
  using baselines::kTacclLike;
  if (topology.has_switches())
    return NeedsUnwinding(kTacclLike, "works over links between ranks", topology);
  if (forward.kind() != CollectiveKind::kAllGather)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes all-reduce over N shards, not over one", kTacclLike));
  const Result<int32_t> chunks = classic::ChunksOf(options, 1, 1, kTacclLike, "");
  if (!chunks) return tl::unexpected(chunks.error());
  if (int64_t{*chunks} * topology.num_ranks() * topology.num_links() > baselines::kMaxColumns)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}': {} chunks over {} links are more than {} columns a slot",
                                 kTacclLike, int64_t{*chunks} * topology.num_ranks(),
                                 topology.num_links(), baselines::kMaxColumns));
  const baselines::TimeExpandedProgram program(
      topology, *chunks, forward.ShardBytes(ShardId{0}, options.size_bytes) * Rational(1, *chunks));
  const int32_t least = program.LeastSlots();
  int32_t refused = least - 1;  // no schedule takes so few slots
  bool by_clock = false;
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t slots = least; slots < least + baselines::kMaxAttempts; ++slots) {
    const int64_t columns = program.CountColumns(slots);
    if (columns > baselines::kMaxColumns || slots > baselines::kMaxSlots)
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("'{}' on {}: an integer program of {} columns for {} slots; at most {}",
                      kTacclLike, topology.name(), columns, slots, baselines::kMaxColumns));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const double left = seconds - spent.count();
    if (left <= 0)
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("'{}' on {}: no answer in {} s with {} to {} slots; fewer than "
                      "{} are impossible",
                      kTacclLike, topology.name(), seconds, least, slots - 1, refused + 1));
    Result<std::vector<Transfer>> made = program.Solve(slots, left / 2);
    if (made) {
      TimeExpandedAnswer answer{classic::FinishSchedule(topology, forward, *chunks,
                                                        *std::move(made), kTacclLike, options.seed),
                                slots, refused + 1, by_clock};
      return answer;
    }
    if (made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
    const std::chrono::duration<double> until_now = std::chrono::steady_clock::now() - begin;
    by_clock = by_clock || until_now.count() - spent.count() >= left / 2;
    if (made.error().code == ErrorCode::kInfeasible && refused == slots - 1) refused = slots;
  }
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("'{}' on {}: no answer with {} to {} slots", kTacclLike,
                               topology.name(), least, least + baselines::kMaxAttempts - 1));
}

Synthesizer TacclLikeSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = baselines::kTacclLike,
          .description = "an integer program over the time-expanded network, for small networks",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
          .synthesize = baselines::SynthesizeTacclLike,
          .on_request_only = true,
          .options = {SynthOption::kMaxSeconds},
          .groups = GroupUse::kOwnLinks};
}

}  // namespace tutti
