// step-lp: trees in steps, chosen by a linear program: the least TB of so many steps, and the
// frontier of a network over their number.
//
// Model       The shares of step_program.h, in whole chunks: in as many as make them exact, or where
//             those would be too many in the number of chunks that loses least. Reduce-scatter is
//             the all-gather reversed, all-reduce both.
// Method      With options.steps that number; without, from the least number on, while the TB of
//             steps comes nearer to the cut and the program is not too large, and the one that takes
//             the least time for options.size_bytes.
// Complexity  That of SolveStepProgram for every number of steps; on request only.
// Errors      As SolveStepProgram.
// Reference   [direct-connect] 4.1 (TL and TB), 5.4 (frontiers).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "registry.h"
#include "step_lp/step_program.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace step_lp {
namespace {

constexpr std::string_view kName = "step-lp";
constexpr int32_t kMostSteps = 8;  // beyond the least number
constexpr int32_t kMostChunks = 4096;
// Where the exact number is larger: so many are tried.
constexpr int32_t kTriedChunks = 128;

// How many of `chunks` each part gets: its share of them rounded, all of them of every root.
std::vector<int32_t> WholeChunks(const StepShares& shares, int32_t chunks) {
  std::vector<int32_t> counts;
  for (size_t begin = 0; begin < shares.parts.size();) {
    size_t end = begin;
    std::vector<std::pair<Rational, size_t>> rest;
    int64_t left = chunks;
    for (; end < shares.parts.size() && shares.parts[end].root == shares.parts[begin].root; ++end) {
      const Rational exact = shares.parts[end].share * Rational(chunks);
      const Rational whole = exact.Floor();
      counts.push_back(static_cast<int32_t>(*whole.Num64()));
      left -= counts.back();
      rest.emplace_back(whole - exact, end);  // the largest remainder comes first
    }
    std::sort(rest.begin(), rest.end());
    for (int64_t i = 0; i < left; ++i) ++counts[rest[static_cast<size_t>(i)].second];
    begin = end;
  }
  return counts;
}

class Writer {
 public:
  Writer(const Topology& topology, const Collective& collective, const StepShares& shares)
      : topology_(topology), collective_(collective), shares_(shares) {
    if (!shares.translations) return;
    for (NodeId rank : topology.Ranks()) images_.push_back(shares.translations->ImagesOf(rank));
  }

  Schedule Write(int32_t chunks) const {
    Schedule schedule{.collective = collective_};
    schedule.units_per_shard = chunks;
    schedule.num_steps = shares_.steps;
    schedule.topology_fingerprint = topology_.Fingerprint();
    schedule.algorithm = kName;
    const std::vector<int32_t> counts = WholeChunks(shares_, chunks);
    int32_t begin = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const StepShares::Part& part = shares_.parts[i];
      if (i > 0 && part.root != shares_.parts[i - 1].root) begin = 0;
      if (counts[i] > 0) AddPart(part, begin, begin + counts[i], schedule);
      begin += counts[i];
    }
    std::sort(schedule.transfers.begin(), schedule.transfers.end(),
              [](const Transfer& a, const Transfer& b) {
                return std::tuple(a.step, a.link, a.shard, a.begin) <
                       std::tuple(b.step, b.link, b.shard, b.begin);
              });
    return schedule;
  }

 private:
  void AddPart(const StepShares::Part& part, int32_t begin, int32_t end, Schedule& schedule) const {
    for (const StepBranch& branch : part.tree) {
      if (images_.empty()) {
        schedule.transfers.push_back({.shard = ShardId{part.root.value},
                                      .link = branch.link,
                                      .begin = begin,
                                      .end = end,
                                      .step = branch.step});
        continue;
      }
      const int32_t link_class = shares_.translations->LinkClass(branch.link);
      for (NodeId root : topology_.Ranks()) {
        const NodeId head = images_[topology_.head(branch.link).index()][root.index()];
        schedule.transfers.push_back({.shard = ShardId{root.value},
                                      .link = shares_.translations->InLink(head, link_class),
                                      .begin = begin,
                                      .end = end,
                                      .step = branch.step});
      }
    }
  }

  const Topology& topology_;
  const Collective& collective_;
  const StepShares& shares_;
  std::vector<NodePermutation> images_;  // of each rank, where there are translations
};

// As many chunks as make all shares whole; 0: too many.
int32_t ExactChunks(const StepShares& shares, int32_t most) {
  int64_t common = 1;
  for (const StepShares::Part& part : shares.parts) {
    const std::optional<int64_t> den = part.share.Den64();
    if (!den || *den > most) return 0;
    common = std::lcm(common, *den);
    if (common > most) return 0;
  }
  return static_cast<int32_t>(common);
}

Schedule InChunks(const Topology& topology, const Collective& collective, const StepShares& shares,
                  const SynthOptions& options) {
  const Writer writer(topology, collective, shares);
  if (options.chunks > 0) return writer.Write(options.chunks);
  int32_t most = options.max_chunks > 0 ? options.max_chunks : kMostChunks;
  if (options.element_bytes > 0)
    most = static_cast<int32_t>(
        std::min<int64_t>(most, MostChunks(collective, options.size_bytes, options.element_bytes)));
  if (const int32_t exact = ExactChunks(shares, most); exact > 0) return writer.Write(exact);
  Schedule best = writer.Write(1);
  Rational best_tb = AnalyticCost(topology, best).tb;
  for (int32_t chunks = 2; chunks <= std::min(most, kTriedChunks); ++chunks) {
    Schedule next = writer.Write(chunks);
    Rational tb = AnalyticCost(topology, next).tb;
    if (tb >= best_tb) continue;
    best = std::move(next);
    best_tb = std::move(tb);
  }
  return best;
}

// What is known of the schedule that was chosen, and of the others that were not.
void Note(const Topology& topology, const Schedule& schedule, const StepShares& shares,
          std::vector<StepPoint> frontier, const SynthOptions& options) {
  if (options.notes == nullptr) return;
  SynthNotes& notes = *options.notes;
  const Rational tb = AnalyticCost(topology, schedule).tb;
  notes.gap = tb.is_zero() ? 0.0 : ((tb - shares.proof.tb) / tb).ToDouble();
  notes.remark = fmt::format("no all-gather of {} steps has a TB below {}", shares.steps,
                             shares.proof.tb.ToString());
  notes.frontier = std::move(frontier);
}

Result<Schedule> MakeAllGather(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  const Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  const int32_t first = options.steps > 0 ? options.steps : std::max(1, bounds->steps);
  const int32_t last = options.steps > 0 ? options.steps : first + kMostSteps;
  std::optional<Schedule> best;
  std::optional<StepShares> best_shares;
  Rational best_s;
  std::vector<StepPoint> frontier;
  for (int32_t steps = first; steps <= last; ++steps) {
    if (best && !CheckStepProgram(topology, steps)) break;
    Result<StepShares> shares = SolveStepProgram(topology, steps);
    if (!shares) return tl::unexpected(shares.error());
    const bool reached = shares->tb == bounds->tb;
    if (frontier.empty() || shares->tb < frontier.back().tb)
      frontier.push_back({steps, shares->tb, shares->proof.tb});
    Schedule schedule = InChunks(topology, collective, *shares, options);
    const Rational seconds = PredictedSeconds(topology, schedule, options.size_bytes);
    if (!best || seconds < best_s) {
      best = std::move(schedule);
      best_shares = *std::move(shares);
      best_s = seconds;
    }
    if (reached) break;
  }
  Note(topology, *best, *best_shares, std::move(frontier), options);
  best->seed = options.seed;
  return *std::move(best);
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  Result<Schedule> schedule = DeriveFromForward(
      topology, collective, [&](const Topology& network, const Collective& forward) {
        return MakeAllGather(network, forward, options);
      });
  if (schedule) schedule->algorithm = kName;
  return schedule;
}

}  // namespace
}  // namespace step_lp

Synthesizer StepLpSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = step_lp::kName,
          .description = "the least TB of so many steps, proven, by a linear program over trees",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
          .synthesize = step_lp::Synthesize,
          .on_request_only = true,
          .options = {SynthOption::kSteps, SynthOption::kMaxChunks}};
}

}  // namespace tutti
