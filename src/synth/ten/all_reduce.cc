#include "ten/all_reduce.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ten/input.h"
#include "ten/link_jobs.h"
#include "ten/tree_packing.h"
#include "tutti/base/progress.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/properties.h"

namespace tutti::ten {
namespace {

__extension__ using WideWork = __int128;

constexpr int64_t kUnreached = std::numeric_limits<int64_t>::max();
// Seconds on one core; of the first also the memory, about 100 bytes a job.
constexpr int64_t kMaxJobs = 2'000'000;
constexpr int64_t kJobPasses = 6'000'000;
constexpr int64_t kLinksLookedAt = 40'000'000;
constexpr int32_t kFewPasses = 6, kManyPasses = 100;
constexpr int32_t kPackingPasses = 20;
// Chunks a shard that are tried where none are asked for.
constexpr int32_t kChunks[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// How trees grow, and how much later (in sixteenths of the whole) the last chunk counts than the
// first: 0 reduces everything before it spreads, 16 takes chunk after chunk.
struct SidesVariant {
  int32_t depth_weight, later;
};
constexpr SidesVariant kVariants[] = {{4, 4}, {1, 12}, {4, 2}, {8, 6}};

// One thing to try. Chunk c of its trees is of shard c % shards.
struct SidesAttempt {
  int32_t chunks = 1;
  int32_t variant = 0;
  std::vector<ChunkTrees> trees{};  // empty: to be packed
  int32_t passes = 0;               // with which it was timed
  int64_t end_ps = kUnreached;
};
const SidesVariant& VariantOf(const SidesAttempt& attempt) {
  return kVariants[static_cast<size_t>(attempt.variant) % std::size(kVariants)];
}
// How many go on.
constexpr size_t kBestChunks = 2, kBestAttempts = 1;

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

  // The best numbers of chunks go on to all variants, and the best of these to many passes.
  Result<Schedule> Run() {
    const int32_t chunks_before = best_.units_per_shard;
    if (IsNearlyBest(chunks_before)) return std::move(best_);
    ProgressScope progress("overlap of both halves", options_.chunks > 0 ? 2 : 3);
    std::optional<std::vector<ChunkTrees>> matched = TreesOf(best_);
    std::vector<SidesAttempt> attempts;
    if (options_.chunks > 0) {
      attempts.push_back({.chunks = options_.chunks});
    } else {
      for (int32_t chunks : kChunks) attempts.push_back({.chunks = chunks});
      if (const Status tried = TryAll(attempts, kBestChunks); !tried)
        return tl::unexpected(tried.error());
      progress.Add(1);
    }
    const int32_t num_variants =
        options_.tries > 0 ? options_.tries : static_cast<int32_t>(std::size(kVariants));
    const size_t num_chunks = attempts.size();
    for (int32_t variant = 1; variant < num_variants; ++variant)
      for (size_t k = 0; k < num_chunks; ++k)
        attempts.push_back({.chunks = attempts[k].chunks, .variant = variant});
    if (matched) attempts.push_back({.chunks = chunks_before, .trees = *std::move(matched)});
    if (const Status tried = TryAll(attempts, kBestAttempts); !tried)
      return tl::unexpected(tried.error());
    progress.Add(1);
    if (const Status tried = TryAll(attempts, kBestAttempts); !tried)
      return tl::unexpected(tried.error());
    return std::move(best_);
  }

 private:
  int64_t NumJobs(int32_t chunks) const {
    return int64_t{2} * (topology_.num_ranks() - 1) * collective_.num_shards() * chunks;
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

  // Time of one chunk on each link, whether time goes in rounds or not.
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
    const WideWork ps = static_cast<WideWork>(rounds) * TimesOf(chunks).front().travel_ps;
    return ps > kUnreached ? kUnreached : static_cast<int64_t>(ps);
  }

  // Every chunk must be taken over a link 2 (N - 1) times: what the links can do between them is
  // used to within one part in 128.
  bool IsNearlyBest(int32_t chunks) const {
    const std::vector<LinkTime> times = TimesOf(chunks);
    constexpr WideWork kUnit = static_cast<WideWork>(1) << 100;
    WideWork chunks_in_unit_time = 0;
    for (const LinkTime& time : times) chunks_in_unit_time += kUnit / time.hold_ps;
    if (chunks_in_unit_time == 0) return true;
    WideWork min_ps = static_cast<WideWork>(NumJobs(chunks)) * (kUnit / chunks_in_unit_time);
    // With more chunks per shard the last round may be fuller.
    if (in_rounds_ && options_.chunks > 0) {
      const int64_t links = topology_.num_links();
      min_ps = RoundsPs((NumJobs(chunks) + links - 1) / links, chunks);
    }
    return best_ps_ <= min_ps + min_ps / 128;
  }

  bool IsTooMuch(int32_t chunks) const {
    const int64_t num_jobs = NumJobs(chunks);
    if (num_jobs > kMaxJobs) return true;
    if (LinksLookedAt(chunks) > kLinksLookedAt) return true;
    // No sum of times may overflow.
    for (const LinkTime& time : TimesOf(chunks))
      if (time.travel_ps > kUnreached / 4 / num_jobs) return true;
    return false;
  }
  // In one pass of packing.
  int64_t LinksLookedAt(int32_t chunks) const {
    return int64_t{collective_.num_shards()} * chunks * topology_.num_links() * (reverse_ ? 1 : 2);
  }

  // Shares the work out among the attempts, of which those that are too much of it are left out,
  // and keeps the `best_few`.
  Status TryAll(std::vector<SidesAttempt>& attempts, size_t best_few) {
    std::erase_if(attempts,
                  [this](const SidesAttempt& attempt) { return IsTooMuch(attempt.chunks); });
    int64_t jobs = 0, links = 0;
    for (size_t k = 0; k < attempts.size(); ++k) {
      jobs += NumJobs(attempts[k].chunks);
      links += LinksLookedAt(attempts[k].chunks);
      if (k > 0 && jobs * kFewPasses > kJobPasses) {
        jobs -= NumJobs(attempts[k].chunks);
        attempts.resize(k);
      }
    }
    if (attempts.empty()) return {};
    const auto passes = static_cast<int32_t>(
        std::clamp<int64_t>(kJobPasses / std::max<int64_t>(jobs, 1), kFewPasses, kManyPasses));
    const auto packing_passes = static_cast<int32_t>(
        std::clamp<int64_t>(kLinksLookedAt / std::max<int64_t>(links, 1), 1, kPackingPasses));
    ProgressScope progress("trees and their times", 2 * static_cast<int64_t>(attempts.size()));
    for (SidesAttempt& attempt : attempts) {
      if (attempt.trees.empty()) {
        Result<std::vector<ChunkTrees>> packed = Pack(attempt, packing_passes);
        if (!packed) return tl::unexpected(packed.error());
        attempt.trees = *std::move(packed);
      }
      progress.Add(1);
      if (passes > attempt.passes) {
        const Result<int64_t> end_ps = Try(attempt, passes);
        if (!end_ps) return tl::unexpected(end_ps.error());
        attempt.passes = passes;
        attempt.end_ps = *end_ps;
      }
      progress.Add(1);
    }
    std::stable_sort(
        attempts.begin(), attempts.end(),
        [](const SidesAttempt& a, const SidesAttempt& b) { return a.end_ps < b.end_ps; });
    if (attempts.size() > best_few) attempts.resize(best_few);
    return {};
  }

  Result<std::vector<ChunkTrees>> Pack(const SidesAttempt& attempt, int32_t passes) const {
    PackingProblem problem{.topology = topology_, .reverse = reverse_, .root = {}, .hold_ps = {}};
    const int64_t num_chunks = int64_t{collective_.num_shards()} * attempt.chunks;
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk)
      problem.root.push_back(NodeId{static_cast<int32_t>(chunk % topology_.num_ranks())});
    for (const LinkTime& time : TimesOf(attempt.chunks)) problem.hold_ps.push_back(time.hold_ps);
    problem.depth_weight = VariantOf(attempt).depth_weight;
    problem.seed = options_.seed + static_cast<uint64_t>(attempt.variant);
    problem.passes = passes;
    return PackTrees(problem);
  }

  // Keeps what the trees make when it ends earlier than the best; when it ends.
  Result<int64_t> Try(const SidesAttempt& attempt, int32_t passes) {
    const int32_t chunks = attempt.chunks;
    const std::vector<ChunkTrees>& trees = attempt.trees;
    std::vector<LinkTime> times = TimesOf(chunks);
    if (in_rounds_) std::fill(times.begin(), times.end(), LinkTime{});
    const int64_t max_ps = MostOf(trees, times);
    const LinkJobs jobs = JobsOf(trees, times, max_ps * VariantOf(attempt).later / 16);
    const Result<JobTimes> timed =
        TimeJobs(jobs, {.passes = passes, .enough_ps = max_ps, .seed = options_.seed});
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

  // Each chunk has two jobs a rank, up and down; the root has two joins: all has been reduced.
  LinkJobs JobsOf(const std::vector<ChunkTrees>& trees, const std::vector<LinkTime>& times,
                  int64_t later_ps) const {
    LinkJobs jobs(times.size());
    for (size_t chunk = 0; chunk < trees.size(); ++chunk) {
      const ChunkTrees& tree = trees[chunk];
      const auto later =
          static_cast<int64_t>(static_cast<WideWork>(later_ps) * chunk / trees.size());
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

  // By chunk as attempts number them; nothing where transfers are not of whole chunks, or not
  // trees.
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

int64_t OverlapWorkNs(const Topology& topology, const Collective& collective,
                      const SynthOptions& options) {
  constexpr int64_t kNsAJobPass = 200, kNsALink = 40, kStages = 3;
  const int64_t chunks = options.chunks > 0 ? options.chunks : 1;
  const int64_t num_chunks = collective.num_shards() * chunks;
  if (num_chunks > kMaxJobs || topology.num_ranks() > kMaxJobs) return 0;
  const int64_t jobs = 2 * num_chunks * (topology.num_ranks() - 1);
  const int64_t links = num_chunks * topology.num_links();
  if (jobs > kMaxJobs || links > kLinksLookedAt) return 0;
  constexpr int64_t kAttempts = std::size(kChunks);
  return kStages * kNsAJobPass *
             std::max(jobs * kFewPasses, std::min(kJobPasses, jobs * kManyPasses * kAttempts)) +
         kNsALink * std::min(kLinksLookedAt, links * kPackingPasses * kAttempts);
}

}  // namespace tutti::ten
