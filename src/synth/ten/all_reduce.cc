#include "ten/all_reduce.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ten/input.h"
#include "ten/link_jobs.h"
#include "ten/tree_packing.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/properties.h"

namespace tutti::ten {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Seconds on one core; of the first also the memory, about 100 bytes a job.
constexpr int64_t kMostJobs = 2'000'000;
constexpr int64_t kJobPasses = 10'000'000;
constexpr int64_t kLinksLookedAt = 20'000'000;
constexpr int32_t kFewPasses = 6, kManyPasses = 60;
constexpr int32_t kPackingPasses = 20;
// Chunks a shard that are tried where none are asked for.
constexpr int32_t kChunks[] = {1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 16, 20, 24, 32};

// How trees grow, and how much later (in sixteenths of the whole) the last chunk counts than the
// first: 0 reduces everything before it spreads, 16 takes chunk after chunk.
struct Variant {
  int32_t depth_weight, later;
};
constexpr Variant kVariants[] = {{4, 4}, {1, 12}, {4, 2}, {8, 6}};
constexpr int32_t kLaterOfMatched[] = {1, 4};

class Overlapper {
 public:
  Overlapper(const Topology& topology, const Collective& collective, const SynthOptions& options,
             Schedule concatenated)
      : topology_(topology),
        collective_(collective),
        options_(options),
        reverse_(ReverseLinks(topology)),
        in_rounds_(concatenated.kind == ScheduleKind::kStep),
        best_(std::move(concatenated)),
        best_ps_(EndOf(best_)) {}

  Result<Schedule> Run() {
    const int32_t chunks_before = best_.units_per_shard;
    if (IsNearlyBest(chunks_before)) return std::move(best_);
    const std::optional<std::vector<ChunkTrees>> matched = TreesOf(best_);
    int32_t chunks = options_.chunks;
    if (chunks == 0) {
      const Result<int32_t> chosen = ChooseChunks();
      if (!chosen) return tl::unexpected(chosen.error());
      chunks = *chosen;
    }
    const int32_t tries = TriesOf(chunks);
    for (int32_t attempt = 0; attempt < tries; ++attempt) {
      const Result<int64_t> tried = TryPacked(chunks, static_cast<uint64_t>(attempt), tries);
      if (!tried) return tl::unexpected(tried.error());
    }
    if (!matched) return std::move(best_);
    for (int32_t later : kLaterOfMatched) {
      const Result<int64_t> tried =
          Try(*matched, chunks_before, later, PassesOf(chunks_before, tries));
      if (!tried) return tl::unexpected(tried.error());
    }
    return std::move(best_);
  }

 private:
  int64_t NumJobs(int32_t chunks) const {
    return int64_t{2} * (topology_.num_ranks() - 1) * collective_.num_shards() * chunks;
  }
  int32_t TriesOf(int32_t chunks) const {
    if (options_.tries > 0) return options_.tries;
    return static_cast<int32_t>(
        std::clamp<int64_t>(kJobPasses / (NumJobs(chunks) * kFewPasses), 1, std::ssize(kVariants)));
  }
  int32_t PassesOf(int32_t chunks, int32_t tries) const {
    return static_cast<int32_t>(
        std::clamp<int64_t>(kJobPasses / (NumJobs(chunks) * tries), kFewPasses, kManyPasses));
  }

  Schedule HeaderOf(int32_t chunks) const {
    Schedule header{.collective = collective_};
    header.units_per_shard = chunks;
    header.topology_fingerprint = topology_.Fingerprint();
    header.algorithm = kName;
    header.seed = options_.seed;
    header.link_model = options_.link_model;
    header.size_bytes = options_.size_bytes;
    header.kind = in_rounds_ ? ScheduleKind::kStep : ScheduleKind::kTimed;
    return header;
  }

  // Of one chunk on each link, whether time goes in rounds or not.
  std::vector<LinkTime> TimesOf(int32_t chunks) const {
    Schedule header = HeaderOf(chunks);
    header.kind = ScheduleKind::kTimed;
    std::vector<LinkTime> times;
    for (LinkId link : topology_.Links())
      times.push_back(LinkTimeOf(header, topology_, {ShardId{0}, link, 0, 1}));
    return times;
  }

  int64_t EndOf(const Schedule& schedule) const {
    if (!in_rounds_) return CompletionPs(topology_, schedule);
    return RoundsPs(schedule.num_steps, schedule.units_per_shard);
  }
  int64_t RoundsPs(int64_t rounds, int32_t chunks) const {
    const Wide ps = static_cast<Wide>(rounds) * TimesOf(chunks).front().travel_ps;
    return ps > kNever ? kNever : static_cast<int64_t>(ps);
  }

  // Every chunk must be taken over a link 2 (N - 1) times: what the links can do between them is
  // used to within one part in 256.
  bool IsNearlyBest(int32_t chunks) const {
    Wide chunks_in_unit_time = 0;
    constexpr Wide kUnit = static_cast<Wide>(1) << 100;
    for (const LinkTime& time : TimesOf(chunks)) chunks_in_unit_time += kUnit / time.hold_ps;
    if (chunks_in_unit_time == 0) return true;
    const Wide least_ps = static_cast<Wide>(NumJobs(chunks)) * (kUnit / chunks_in_unit_time);
    return best_ps_ <= least_ps + least_ps / 256;
  }

  bool IsTooMuch(int32_t chunks) const {
    const int64_t num_jobs = NumJobs(chunks);
    if (num_jobs > kMostJobs) return true;
    if (LinksLookedAt(chunks) > kLinksLookedAt) return true;
    // No sum of times may overflow.
    for (const LinkTime& time : TimesOf(chunks))
      if (time.travel_ps > kNever / 4 / num_jobs) return true;
    return false;
  }
  // In one pass of packing.
  int64_t LinksLookedAt(int32_t chunks) const {
    return int64_t{collective_.num_shards()} * chunks * topology_.num_links() * (reverse_ ? 1 : 2);
  }

  // That which ends first with few passes.
  Result<int32_t> ChooseChunks() {
    int32_t chosen = 1;
    int64_t chosen_ps = kNever;
    const auto num_tries = static_cast<int32_t>(std::size(kChunks));
    for (int32_t chunks : kChunks) {
      if (chunks > 1 && IsTooMuch(chunks)) break;
      if (chunks > 1 && NumJobs(chunks) * kFewPasses * num_tries > kJobPasses) break;
      const Result<int64_t> end_ps = TryPacked(chunks, 0, 2 * num_tries);
      if (!end_ps) return tl::unexpected(end_ps.error());
      if (*end_ps >= chosen_ps) continue;
      chosen_ps = *end_ps;
      chosen = chunks;
    }
    return chosen;
  }

  // The n-th of `tries`; when it ends, or kNever when that is too much work.
  Result<int64_t> TryPacked(int32_t chunks, uint64_t attempt, int32_t tries) {
    if (IsTooMuch(chunks)) return kNever;
    const Variant& variant = kVariants[attempt % std::size(kVariants)];
    PackingProblem problem{.topology = topology_, .reverse = reverse_, .root = {}, .hold_ps = {}};
    const int64_t num_chunks = int64_t{collective_.num_shards()} * chunks;
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk)
      problem.root.push_back(NodeId{static_cast<int32_t>(chunk % topology_.num_ranks())});
    for (const LinkTime& time : TimesOf(chunks)) problem.hold_ps.push_back(time.hold_ps);
    problem.depth_weight = variant.depth_weight;
    problem.seed = options_.seed + attempt;
    problem.passes = static_cast<int32_t>(
        std::clamp<int64_t>(kLinksLookedAt / (LinksLookedAt(chunks) * tries), 1, kPackingPasses));
    const Result<std::vector<ChunkTrees>> trees = PackTrees(problem);
    if (!trees) return tl::unexpected(trees.error());
    return Try(*trees, chunks, variant.later, PassesOf(chunks, tries));
  }

  // Keeps what these trees make when it ends earlier than the best. Chunk c is of shard c % shards.
  Result<int64_t> Try(const std::vector<ChunkTrees>& trees, int32_t chunks, int32_t later,
                      int32_t passes) {
    if (IsTooMuch(chunks)) return kNever;
    std::vector<LinkTime> times = TimesOf(chunks);
    if (in_rounds_) std::fill(times.begin(), times.end(), LinkTime{});
    const int64_t most_ps = MostOf(trees, times);
    const LinkJobs jobs = JobsOf(trees, times, most_ps * later / 16);
    const Result<JobTimes> timed =
        TimeJobs(jobs, {.passes = passes, .enough_ps = most_ps, .seed = options_.seed});
    if (!timed) return tl::unexpected(timed.error());
    const int64_t end_ps = in_rounds_ ? RoundsPs(timed->end_ps, chunks) : timed->end_ps;
    if (end_ps >= best_ps_) return end_ps;
    best_ps_ = end_ps;
    best_ = ScheduleOf(jobs, *timed, chunks);
    return end_ps;
  }

  // What the busiest link carries.
  int64_t MostOf(const std::vector<ChunkTrees>& trees, const std::vector<LinkTime>& times) const {
    std::vector<int64_t> load(times.size(), 0);
    for (const ChunkTrees& tree : trees) {
      for (NodeId rank : topology_.Ranks()) {
        if (rank == tree.root) continue;
        for (LinkId link : {tree.up[rank.index()], tree.down[rank.index()]})
          load[link.index()] += times[link.index()].hold_ps;
      }
    }
    return *std::max_element(load.begin(), load.end());
  }

  size_t JobsOfChunk() const { return 2 * static_cast<size_t>(topology_.num_ranks()); }

  // Of each chunk two jobs a rank, up and down; the root has two joins: all has been reduced.
  LinkJobs JobsOf(const std::vector<ChunkTrees>& trees, const std::vector<LinkTime>& times,
                  int64_t later_ps) const {
    LinkJobs jobs(times.size());
    for (size_t chunk = 0; chunk < trees.size(); ++chunk) {
      const ChunkTrees& tree = trees[chunk];
      const auto later = static_cast<int64_t>(static_cast<Wide>(later_ps) * chunk / trees.size());
      const auto first = static_cast<uint32_t>(jobs.size());
      const auto up = [first](NodeId rank) {
        return first + 2 * static_cast<uint32_t>(rank.value);
      };
      const auto down = [up](NodeId rank) { return up(rank) + 1; };
      for (NodeId rank : topology_.Ranks()) {
        if (rank == tree.root) {
          jobs.AddJoin();
          jobs.AddJoin();
          continue;
        }
        for (LinkId link : {tree.up[rank.index()], tree.down[rank.index()]})
          jobs.Add(static_cast<uint32_t>(link.value), times[link.index()], later);
      }
      for (NodeId rank : topology_.Ranks()) {
        if (rank == tree.root) {
          jobs.Need(up(rank), down(rank));
          continue;
        }
        jobs.Need(up(rank), up(topology_.head(tree.up[rank.index()])));
        jobs.Need(down(topology_.tail(tree.down[rank.index()])), down(rank));
      }
    }
    return jobs;
  }

  Schedule ScheduleOf(const LinkJobs& jobs, const JobTimes& timed, int32_t chunks) const {
    Schedule schedule = HeaderOf(chunks);
    std::vector<uint32_t> order;
    for (uint32_t job = 0; job < jobs.size(); ++job)
      if (jobs.link(job) != LinkJobs::kNoLink) order.push_back(job);
    std::stable_sort(order.begin(), order.end(), [&timed](uint32_t a, uint32_t b) {
      return timed.start_ps[a] < timed.start_ps[b];
    });
    const auto num_shards = static_cast<size_t>(collective_.num_shards());
    for (uint32_t job : order) {
      const size_t chunk = job / JobsOfChunk();
      const auto begin = static_cast<int32_t>(chunk / num_shards);
      const bool is_up = job % 2 == 0;
      schedule.transfers.push_back({ShardId{static_cast<int32_t>(chunk % num_shards)},
                                    LinkId{static_cast<int32_t>(jobs.link(job))}, begin, begin + 1,
                                    in_rounds_ ? static_cast<int32_t>(timed.start_ps[job]) : 0,
                                    is_up ? TransferOp::kReduce : TransferOp::kCopy});
      if (!in_rounds_) schedule.start_ps.push_back(timed.start_ps[job]);
    }
    if (in_rounds_) schedule.num_steps = static_cast<int32_t>(timed.end_ps);
    return schedule;
  }

  // By chunk as Try() numbers them; nothing where transfers are not of whole chunks, or not trees.
  std::optional<std::vector<ChunkTrees>> TreesOf(const Schedule& schedule) const {
    const auto n = static_cast<size_t>(topology_.num_ranks());
    const auto num_shards = static_cast<size_t>(collective_.num_shards());
    const size_t num_chunks = num_shards * static_cast<size_t>(schedule.units_per_shard);
    if (schedule.transfers.size() != num_chunks * 2 * (n - 1)) return std::nullopt;
    constexpr LinkId kNone{-1};
    std::vector<ChunkTrees> trees(
        num_chunks, {NodeId{-1}, std::vector<LinkId>(n, kNone), std::vector<LinkId>(n, kNone)});
    for (const Transfer& transfer : schedule.transfers) {
      if (transfer.units() != 1) return std::nullopt;
      ChunkTrees& tree =
          trees[static_cast<size_t>(transfer.begin) * num_shards + transfer.shard.index()];
      const bool is_up = transfer.op == TransferOp::kReduce;
      LinkId& place = is_up ? tree.up[topology_.tail(transfer.link).index()]
                            : tree.down[topology_.head(transfer.link).index()];
      if (place != kNone) return std::nullopt;
      place = transfer.link;
    }
    for (ChunkTrees& tree : trees) {
      for (NodeId rank : topology_.Ranks())
        if (tree.up[rank.index()] == kNone) tree.root = rank;
      if (tree.down[tree.root.index()] != kNone) return std::nullopt;
    }
    return trees;
  }

  const Topology& topology_;
  const Collective& collective_;
  const SynthOptions& options_;
  const std::optional<std::vector<LinkId>> reverse_;
  const bool in_rounds_;
  Schedule best_;
  int64_t best_ps_;
};

}  // namespace

Result<Schedule> OverlapAllReduce(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options, Schedule concatenated) {
  if (concatenated.transfers.empty()) return concatenated;
  return Overlapper(topology, collective, options, std::move(concatenated)).Run();
}

}  // namespace tutti::ten
