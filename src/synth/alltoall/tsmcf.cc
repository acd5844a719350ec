// tsmcf and mcf: which numbers of steps and of chunks are tried, what they are compared by, and
// transfers from the paths of chunks.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "alltoall/chunk_router.h"
#include "alltoall/step_network.h"
#include "alltoall/time_stepped.h"
#include "classic/shard_weights.h"
#include "memory.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/random.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/graph/distance.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace tsmcf {
namespace {

// Links looked at after which no other try begins, and after which one ends: some seconds.
constexpr int64_t kWork = 200'000'000, kWorkOfATry = 600'000'000;
// Numbers of steps above the fewest that are tried.
constexpr int32_t kMoreSteps = 16;
// Orders of the chunks that are tried with the best of these numbers, but for `tries`.
constexpr int32_t kTries = 5;
// Hops more than the shortest path: all that help on small networks, few on large ones.
constexpr int32_t kDetour = 2;
constexpr double kFlowGap = 1e-4;

struct Problem {
  const Topology& topology;
  const Collective& collective;
  const SynthOptions& options;
  StepNetwork network;
  Rational tb_bound;
  std::vector<std::vector<bool>> flow_links;  // mcf: [source][link] that the flow uses; empty: all
  int32_t fewest_steps = 0;                   // that all chunks need
  std::string_view algorithm;
};

// Chunks of the representatives' shards, `count` units each. A shard that is smaller than the mean
// goes in fewer pieces.
std::vector<Chunk> CutChunks(const Problem& problem, int32_t count) {
  const Collective& collective = problem.collective;
  const classic::ShardWeights weights(collective, count);
  __extension__ using Wide = unsigned __int128;
  Wide total = 0;
  int64_t shards = 0;
  for (ShardId shard : collective.Shards())
    if (Sends(collective, shard)) {
      total += weights.Of(shard);
      ++shards;
    }
  const auto mean = static_cast<int64_t>(total / static_cast<Wide>(std::max<int64_t>(shards, 1)));
  std::vector<Chunk> chunks;
  for (NodeId source : problem.network.sources)
    for (NodeId destination : problem.topology.Ranks()) {
      const ShardId shard{source.value * collective.num_ranks() + destination.value};
      if (!Sends(collective, shard)) continue;
      const int64_t weight = weights.Of(shard);
      const auto pieces = static_cast<int32_t>(
          std::clamp<int64_t>(weight * count / std::max<int64_t>(mean, 1), 1, count));
      for (int32_t piece = 0; piece < pieces; ++piece) {
        Chunk chunk{.source = source, .destination = destination};
        chunk.begin = static_cast<int32_t>(int64_t{count} * piece / pieces);
        chunk.end = static_cast<int32_t>(int64_t{count} * (piece + 1) / pieces);
        chunk.weight = weight * (chunk.end - chunk.begin);
        chunks.push_back(chunk);
      }
    }
  return chunks;
}

// Links that data crosses at least, over shortest paths.
int64_t HopsOf(const Problem& problem) {
  int64_t hops = 0;
  for (NodeId source : problem.topology.Ranks())
    for (NodeId destination : problem.topology.Ranks())
      if (Sends(problem.collective,
                ShardId{source.value * problem.collective.num_ranks() + destination.value}))
        hops += problem.network.hops_to[destination.index()][source.index()];
  return hops;
}

// The chunks of each shard take its units in the order of their paths, so that what goes one way is
// one interval as far as possible.
std::vector<Transfer> TransfersOf(const Problem& problem, const ChunkRouter& router,
                                  int32_t steps) {
  struct Piece {
    const Chunk* chunk;
    const int32_t* way;
  };
  const auto num_steps = static_cast<size_t>(steps);
  const std::vector<Chunk>& chunks = router.chunks();
  std::vector<Transfer> transfers;
  const auto emit = [&](const Chunk& chunk, const Transfer& transfer) {
    for (const NodeAndLinkMap& map : problem.network.symmetries) {
      Transfer image = transfer;
      image.link = map.link[transfer.link.index()];
      image.shard = ShardId{map.node[chunk.source.index()].value * problem.topology.num_ranks() +
                            map.node[chunk.destination.index()].value};
      transfers.push_back(image);
    }
  };
  std::vector<Piece> pieces;
  for (size_t first = 0, last = 0; first < chunks.size(); first = last) {
    pieces.clear();
    for (; last < chunks.size() && chunks[last].source == chunks[first].source &&
           chunks[last].destination == chunks[first].destination;
         ++last)
      pieces.push_back({&chunks[last], router.WayOf(last)});
    std::stable_sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
      return std::lexicographical_compare(a.way, a.way + num_steps, b.way, b.way + num_steps);
    });
    constexpr LinkId kNone{ChunkRouter::kWaits};
    std::vector<Transfer> open(num_steps, Transfer{.shard = {}, .link = kNone});
    int32_t begin = 0;
    const auto close = [&](Transfer& transfer) {
      if (transfer.link != kNone) emit(chunks[first], transfer);
    };
    for (const Piece& piece : pieces) {
      const int32_t end = begin + (piece.chunk->end - piece.chunk->begin);
      for (size_t step = 0; step < num_steps; ++step) {
        const LinkId link{piece.way[step]};
        if (open[step].link != link) {
          close(open[step]);
          open[step] = {
              .shard = {}, .link = link, .begin = begin, .step = static_cast<int32_t>(step)};
        }
        open[step].end = end;
      }
      begin = end;
    }
    for (Transfer& transfer : open) close(transfer);
  }
  return transfers;
}

// Steps in which nothing is sent are left out.
void DropEmptySteps(Schedule& schedule) {
  int32_t next = -1, last = -1;
  for (Transfer& transfer : schedule.transfers) {
    if (transfer.step != last) ++next;
    last = transfer.step;
    transfer.step = next;
  }
  schedule.num_steps = next + 1;
}

struct Try {
  Schedule schedule;
  Rational seconds = {};
  int64_t work = 0;
};

Result<Try> Attempt(const Problem& problem, int32_t steps, int32_t count, uint64_t seed) {
  RouterLimits limits{.steps = steps,
                      .detour = problem.flow_links.empty() ? kDetour : problem.topology.num_nodes(),
                      .work = kWorkOfATry,
                      .seed = seed};
  if (!problem.flow_links.empty()) limits.flow_links = &problem.flow_links;
  const Topology& topology = problem.topology;
  if (problem.collective.demand().empty())
    limits.enough = (problem.tb_bound * Rational(topology.min_bandwidth()) /
                     Rational(topology.max_in_bandwidth()))
                        .ToDouble() *
                    problem.collective.num_ranks() * count * (1 + 1e-12);
  ChunkRouter router(problem.network, CutChunks(problem, count), limits);
  router.Run();
  if (CancelRequested()) return tl::unexpected(CancelledError());
  Try made{.schedule = {.collective = problem.collective}, .work = router.work()};
  made.schedule.units_per_shard = count;
  made.schedule.num_steps = steps;
  made.schedule.transfers = TransfersOf(problem, router, steps);
  made.schedule.topology_fingerprint = topology.Fingerprint();
  made.schedule.algorithm = problem.algorithm;
  made.schedule.seed = problem.options.seed;
  SortBySteps(made.schedule);
  DropEmptySteps(made.schedule);
  made.seconds = AnalyticSeconds(topology, made.schedule, problem.options.size_bytes);
  return made;
}

std::vector<int32_t> StepCounts(const Problem& problem) {
  if (problem.options.steps > 0) return {problem.options.steps};
  std::vector<int32_t> counts;
  for (int32_t more = 0; more <= kMoreSteps; ++more) counts.push_back(problem.fewest_steps + more);
  return counts;
}

// The least TB that `count` chunks per block allow for on equal links, over the one of any schedule:
// the busiest link of a step carries whole chunks.
Rational WholeChunks(const Problem& problem, int32_t count) {
  if (!problem.topology.is_homogeneous() || problem.topology.has_host_limits() ||
      !problem.collective.demand().empty())
    return {1};
  const Rational chunks = problem.tb_bound * Rational(problem.topology.min_bandwidth()) /
                          Rational(problem.topology.max_in_bandwidth()) *
                          Rational(int64_t{problem.collective.num_ranks()} * count);
  return chunks.Ceil() / chunks;
}

// Ascending.
std::vector<int32_t> ChunkCounts(const Problem& problem) {
  if (problem.options.chunks > 0) return {problem.options.chunks};
  const int32_t most =
      problem.options.max_chunks > 0 ? problem.options.max_chunks : kDefaultMaxChunks;
  const double links = static_cast<double>(problem.network.sources.size()) *
                       problem.topology.num_ranks() * (problem.fewest_steps + 1) *
                       problem.topology.num_links();
  constexpr double kMinPasses = 40, kLooked = 0.3;  // part of the links that a chunk looks at
  const double affordable = static_cast<double>(kWorkOfATry) / (links * kLooked * kMinPasses);
  std::vector<int32_t> counts;
  for (int32_t count = 1; count <= most && (count == 1 || count <= affordable); ++count)
    counts.push_back(count);
  return counts;
}

// The one that loses least to whole chunks; of equal ones the largest, which is easiest to fit.
int32_t FirstCount(const Problem& problem, const std::vector<int32_t>& counts) {
  int32_t first = counts.front();
  Rational least = WholeChunks(problem, first);
  for (int32_t count : counts) {
    const Rational loss = WholeChunks(problem, count);
    if (loss > least) continue;
    first = count;
    least = loss;
  }
  return first;
}

Result<TimeStepped> Best(const Problem& problem) {
  const std::vector<int32_t> step_counts = StepCounts(problem), counts = ChunkCounts(problem);
  TimeStepped result{.schedule = {.collective = problem.collective}};
  std::optional<Try> best;
  int32_t best_steps = step_counts.front();
  int64_t work = 0;
  const auto attempt = [&](int32_t steps, int32_t count, uint64_t seed) -> Status {
    Result<Try> made = Attempt(problem, steps, count, seed);
    if (!made) return tl::unexpected(made.error());
    work += made->work;
    ++result.tried;
    const bool better = !best || made->seconds < best->seconds ||
                        (made->seconds == best->seconds && count < best->schedule.units_per_shard);
    if (!better) return {};
    best = *std::move(made);
    best_steps = steps;
    return {};
  };
  const auto bound = [&](int32_t count) { return problem.tb_bound * WholeChunks(problem, count); };
  const auto best_tb = [&] { return AnalyticCost(problem.topology, best->schedule).tb; };
  const int32_t first = FirstCount(problem, counts);
  for (int32_t steps : step_counts) {
    if (best && (work > kWork || steps > best_steps + 2 || best_tb() <= bound(first))) break;
    if (Status status = attempt(steps, first, problem.options.seed); !status)
      return tl::unexpected(status.error());
  }
  const int32_t tries = problem.options.tries > 0 ? problem.options.tries : kTries;
  for (int32_t i = 1; i < tries && work <= kWork && best_tb() > bound(first); ++i)
    if (Status status = attempt(best_steps, first,
                                Random(problem.options.seed + static_cast<uint64_t>(i)).Next());
        !status)
      return tl::unexpected(status.error());
  // Fewer chunks that do as well, or other numbers that do better.
  for (int32_t count : counts) {
    if (work > kWork) break;
    if (count == first || bound(count) > best_tb()) continue;
    if (Status status = attempt(best_steps, count, problem.options.seed); !status)
      return tl::unexpected(status.error());
    if (best_tb() <= problem.tb_bound && best->schedule.units_per_shard == count) break;
  }
  result.schedule = std::move(best->schedule);
  result.fewest_steps = FewestSteps(problem.network, problem.collective);
  result.tb = AnalyticCost(problem.topology, result.schedule).tb;
  result.tb_bound = problem.tb_bound;
  return result;
}

// All-to-all's mean block, in parts of M.
Rational MeanBlock(const Collective& collective) {
  Rational total;
  for (ShardId shard : collective.Shards())
    if (collective.contributors(shard).one != collective.destinations(shard).one)
      total += Rational(collective.weight(shard));
  const int64_t n = collective.num_ranks();
  return total / Rational(n * (n - 1)) / Rational(collective.weight_of_size());
}

Result<ConcurrentFlow> FlowOf(const Topology& split, const Collective& collective, bool exact) {
  ConcurrentFlowOptions options;
  options.gap = kFlowGap;
  options.exact = exact;
  options.max_passes = 2000;
  options.demand = collective.demand();
  return SolveConcurrentFlow(split, options);
}

// The node of `topology` that each of HostLimitsAsLinks(topology) belongs to.
std::vector<NodeId> OwnersOf(const Topology& topology) {
  std::vector<NodeId> owner;
  for (NodeId node : topology.Nodes()) owner.push_back(node);
  for (NodeId rank : topology.Ranks())
    if (topology.host_bandwidth(rank)) owner.insert(owner.end(), 2, rank);
  return owner;
}

// The links that a flow of `source` uses.
std::vector<bool> LinksOf(const Topology& topology, const std::vector<NodeId>& owner,
                          const ConcurrentFlow& flow, NodeId source) {
  std::vector<bool> used(static_cast<size_t>(topology.num_links()), false);
  for (const BundleFlow& part : flow.flow_from[source.index()]) {
    const LinkBundle& bundle = flow.bundles[static_cast<size_t>(part.bundle)];
    const NodeId head = owner[bundle.head.index()];
    for (LinkId link : topology.OutLinks(owner[bundle.tail.index()]))
      if (topology.head(link) == head) used[link.index()] = true;
  }
  return used;
}

// What each representative's chunks may use: the paths of the flows of all ranks that it stands for,
// taken back to it. And the steps that these paths need.
void UseWaysOf(const ConcurrentFlow& flow, Problem& problem) {
  const Topology& topology = problem.topology;
  const std::vector<NodeId> owner = OwnersOf(topology);
  problem.flow_links.resize(static_cast<size_t>(topology.num_ranks()));
  for (NodeId source : problem.network.sources) {
    std::vector<bool>& used = problem.flow_links[source.index()];
    used.assign(static_cast<size_t>(topology.num_links()), false);
    for (const NodeAndLinkMap& map : problem.network.symmetries) {
      const std::vector<bool> image = LinksOf(topology, owner, flow, map.node[source.index()]);
      for (LinkId link : topology.Links())
        if (image[map.link[link.index()].index()]) used[link.index()] = true;
    }
    std::vector<Digraph::Arc> arcs;
    for (LinkId link : topology.Links())
      if (used[link.index()]) arcs.emplace_back(topology.tail(link), topology.head(link));
    const std::vector<int32_t> hops = DistancesFrom(Digraph(topology.num_nodes(), arcs), source);
    for (NodeId rank : topology.Ranks())
      problem.fewest_steps = std::max(problem.fewest_steps, hops[rank.index()]);
  }
}

Result<TimeStepped> Make(std::string_view algorithm, bool flow_ways, const Topology& topology,
                         const Collective& collective, const SynthOptions& options) {
  for (const auto& [name, value] :
       {std::pair("chunks", options.chunks), std::pair("max_chunks", options.max_chunks),
        std::pair("steps", options.steps)})
    if (value < 0)
      return InvalidArgument(fmt::format("{} must be at least 1, got {}", name, value));
  if (options.max_chunks > 0 && options.chunks > options.max_chunks)
    return InvalidArgument(fmt::format("{} chunks per block are more than the {} allowed",
                                       options.chunks, options.max_chunks));
  const bool alike = collective.demand().empty();
  Problem problem{topology, collective, options, StepNetwork(topology, alike),
                  {},       {},         0,       algorithm};
  problem.fewest_steps = FewestSteps(problem.network, collective);
  if (Status status = CheckMemoryFor(HopsOf(problem)); !status)
    return tl::unexpected(status.error());
  const Result<Topology> split = HostLimitsAsLinks(topology);
  if (!split) return tl::unexpected(split.error());
  constexpr int64_t kFewSourceLinks = 12'000;
  const bool small = int64_t{topology.num_ranks()} * topology.num_links() <= kFewSourceLinks;
  Result<ConcurrentFlow> flow = FlowOf(*split, collective, small);
  if (!flow) return tl::unexpected(flow.error());
  problem.tb_bound = MeanBlock(collective) / (flow->f_upper * Rational(split->min_bandwidth())) *
                     Rational(topology.max_in_bandwidth());
  if (flow_ways) {
    if (small) flow = FlowOf(*split, collective, false);
    if (!flow) return tl::unexpected(flow.error());
    UseWaysOf(*flow, problem);
  }
  if (options.steps > 0 && options.steps < problem.fewest_steps)
    return InvalidArgument(fmt::format(
        "{} steps are too few: {} have to be gone from a rank to another{}", options.steps,
        problem.fewest_steps, flow_ways ? " over the paths of the flow" : ""));
  return Best(problem);
}

}  // namespace
}  // namespace tsmcf

Result<TimeStepped> MakeTimeStepped(const Topology& topology, const Collective& collective,
                                    const SynthOptions& options) {
  return tsmcf::Make("tsmcf", false, topology, collective, options);
}

Result<TimeStepped> MakeFlowSteps(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options) {
  return tsmcf::Make("mcf", true, topology, collective, options);
}

namespace {

template <auto kMake>
Result<Schedule> OnlySchedule(const Topology& topology, const Collective& collective,
                              const SynthOptions& options) {
  return kMake(topology, collective, options).map([&options](TimeStepped made) {
    if (options.notes != nullptr) options.notes->tb_limit = made.tb_bound;
    return std::move(made.schedule);
  });
}

}  // namespace

namespace {

// As if no symmetry helped: what all tries together may take, and less on small networks.
Forecast ForecastTries(const Topology& topology, const Collective& collective,
                       const SynthOptions&) {
  constexpr int64_t kNsALink = 20, kLinksAPair = 1000;
  const double pairs = static_cast<double>(collective.num_ranks()) * collective.num_ranks();
  const double links =
      std::min(pairs * topology.num_links() * kLinksAPair, static_cast<double>(2 * tsmcf::kWork));
  return {.work_ns = static_cast<int64_t>(links + pairs * kLinksAPair) * kNsALink};
}

const std::vector<SynthOption> kOptions = {SynthOption::kTries, SynthOption::kAutoChunks,
                                           SynthOption::kSteps, SynthOption::kMaxChunks};

}  // namespace

Synthesizer TsmcfSynthesizer() {
  return {.name = "tsmcf",
          .description = "all-to-all in steps, every chunk's way and steps chosen together",
          .collectives = {CollectiveKind::kAllToAll, CollectiveKind::kAllToAllV},
          .synthesize = OnlySchedule<MakeTimeStepped>,
          .forecast = ForecastTries,
          .options = kOptions,
          .groups = GroupUse::kThroughOthers};
}

Synthesizer McfSynthesizer() {
  return {
      .name = "mcf",
      .description = "all-to-all over the paths of the concurrent flow, cut into chunks and steps",
      .collectives = {CollectiveKind::kAllToAll, CollectiveKind::kAllToAllV},
      .synthesize = OnlySchedule<MakeFlowSteps>,
      .on_request_only = true,
      .forecast = ForecastTries,
      .options = kOptions,
      .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti
