// ten: matches chunks to links over a time-expanded network ([tacos] section IV).
//
// Model       Where all links are equal, time goes in rounds (rounds.h) and the result is a step
//             schedule: one chunk a link and step. Otherwise links choose whenever they become free
//             (events.h) and the result is a timed schedule for options.size_bytes and
//             options.link_model.
//             Blocks with one destination (all-to-all, gather, scatter) move by blocks.h.
//             Several variants of the order of choice are tried and the best is kept; a variant
//             that reaches the bound ends the search.
#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "registry.h"
#include "ten/blocks.h"
#include "ten/events.h"
#include "ten/rounds.h"

namespace tutti {
namespace ten {
namespace {

constexpr std::string_view kName = "ten";
// Networks with fewer deliveries are tried in several variants by default: a fraction of a second.
constexpr int64_t kFewDeliveries = 200'000;
constexpr int64_t kManyDeliveries = 10'000'000;
constexpr int32_t kTriesOfFew = 8;
constexpr int32_t kDefaultTries = 4;

struct Input {
  const Topology& topology;
  const Collective& collective;
  int32_t chunks = 1;  // a shard
  std::vector<NodeId> source;
  int64_t size_bytes = 0;
  LinkModel link_model = LinkModel::kHeld;

  int64_t num_deliveries() const {
    return static_cast<int64_t>(source.size()) * (topology.num_ranks() - 1);
  }
  Transfer MakeTransfer(LinkId link, uint32_t chunk, int32_t step) const {
    const auto shard = static_cast<int32_t>(chunk) / chunks;
    const auto begin = static_cast<int32_t>(chunk) % chunks;
    return {ShardId{shard}, link, begin, begin + 1, step, TransferOp::kCopy};
  }
};

Status CheckMemory(int64_t num_chunks, const Topology& topology) {
  const double transfers =
      static_cast<double>(num_chunks) * static_cast<double>(topology.num_ranks() - 1);
  const double needed = transfers * (sizeof(Transfer) + sizeof(int64_t) + sizeof(uint32_t));
  const double present =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed <= present) return {};
  constexpr double kGiB = 1 << 30;
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("the schedule has {:.0f} transfers, which need {:.1f} GiB; this "
                               "machine has {:.1f} GiB",
                               transfers, needed / kGiB, present / kGiB));
}

Result<Input> MakeInput(const Topology& topology, const Collective& collective,
                        const SynthOptions& options) {
  if (topology.has_switches())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' needs a network of ranks only; replace the switches by "
                                 "links: unwind({})",
                                 kName, topology.name()));
  if (options.chunks < 0 || options.tries < 0)
    return InvalidArgument(
        fmt::format("chunks and tries must be >= 0, got {} and {}", options.chunks, options.tries));
  if (options.size_bytes < 1)
    return InvalidArgument(fmt::format("the size must be >= 1 byte, got {}", options.size_bytes));
  Input input{.topology = topology,
              .collective = collective,
              .chunks = options.chunks == 0 ? 1 : options.chunks,
              .source = {},
              .size_bytes = options.size_bytes,
              .link_model = options.link_model};
  const int64_t num_chunks = int64_t{collective.num_shards()} * input.chunks;
  if (num_chunks > std::numeric_limits<int32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} shards of {} chunks are more than 2^31 - 1 chunks",
                                 collective.num_shards(), input.chunks));
  if (const Status fits = CheckMemory(num_chunks, topology); !fits)
    return tl::unexpected(fits.error());
  input.source.reserve(static_cast<size_t>(num_chunks));
  for (ShardId shard : collective.Shards())
    input.source.insert(input.source.end(), static_cast<size_t>(input.chunks),
                        collective.contributors(shard).one);
  return input;
}

Schedule Header(const Input& input, uint64_t seed) {
  Schedule schedule{.collective = input.collective};
  schedule.units_per_shard = input.chunks;
  schedule.topology_fingerprint = input.topology.Fingerprint();
  schedule.algorithm = kName;
  schedule.seed = seed;
  return schedule;
}

int32_t TriesOf(const Input& input, const SynthOptions& options) {
  if (options.tries > 0) return options.tries;
  if (input.num_deliveries() < kFewDeliveries) return kTriesOfFew;
  return input.num_deliveries() < kManyDeliveries ? kDefaultTries : 1;
}

// Of a large network fewer chunks are compared, so that time stays in proportion to deliveries.
size_t WindowOf(const Input& input) {
  return std::clamp<size_t>(size_t{1 << 20} / input.source.size(), 16, 1024);
}

bool AllLinksEqual(const Topology& topology) {
  for (LinkId link : topology.Links())
    if (!(topology.spec(link) == topology.spec(LinkId{0}))) return false;
  return true;
}

// The order of choice of an attempt, counted from the seed: plain ones first.
struct Variant {
  uint64_t number = 0;
  bool by_rounds() const { return number < 4 || number % 2 == 1; }
  LinkOrder order() const {
    constexpr LinkOrder kPlain[] = {LinkOrder::kFarthestNumber, LinkOrder::kNearestNumber,
                                    LinkOrder::kScarcestTail, LinkOrder::kLeastBacklog};
    return number < std::size(kPlain) ? kPlain[number] : LinkOrder::kSeeded;
  }
  ChunkChoice choice() const { return number == 4 ? ChunkChoice::kRarest : ChunkChoice::kRandom; }
};

Result<int32_t> MatchInRounds(const Input& input, const Variant& variant, int32_t most,
                              const std::vector<LinkId>& link_of_slot, Schedule& schedule) {
  const RoundsProblem problem{.topology = input.topology,
                              .source = input.source,
                              .order = variant.order(),
                              .seed = variant.number};
  return MatchRounds(problem, most,
                     [&](int32_t round, std::span<const uint32_t> chunk_of_slot) -> Status {
                       for (size_t slot = 0; slot < chunk_of_slot.size(); ++slot)
                         if (chunk_of_slot[slot] != kNoChunk)
                           schedule.transfers.push_back(
                               input.MakeTransfer(link_of_slot[slot], chunk_of_slot[slot], round));
                       return {};
                     });
}

// Equal links as links that take 1: what starts at t is of round t.
Result<int32_t> MatchRarestInRounds(const Input& input, const Variant& variant, int32_t most,
                                    Schedule& schedule) {
  const EventsProblem problem{
      .topology = input.topology,
      .source = input.source,
      .time = std::vector<LinkTime>(static_cast<size_t>(input.topology.num_links())),
      .choice = variant.choice(),
      .window = WindowOf(input),
      .seed = variant.number};
  return MatchEvents(problem, most,
                     [&](LinkId link, uint32_t chunk, int64_t start) {
                       schedule.transfers.push_back(
                           input.MakeTransfer(link, chunk, static_cast<int32_t>(start)));
                     })
      .map([](int64_t end) { return static_cast<int32_t>(end); });
}

Result<Schedule> MakeInRounds(const Input& input, const SynthOptions& options) {
  const std::vector<LinkId> link_of_slot = InLinkSlots(input.topology);
  const int32_t fewest = FewestRounds(input.topology, input.source);
  Schedule best = Header(input, options.seed);
  best.num_steps = std::numeric_limits<int32_t>::max();
  for (int32_t attempt = 0; attempt < TriesOf(input, options); ++attempt) {
    const Variant variant{options.seed - 1 + static_cast<uint64_t>(attempt)};
    Schedule schedule = Header(input, options.seed);
    schedule.transfers.reserve(static_cast<size_t>(input.num_deliveries()));
    const int32_t most = best.num_steps - 1;
    const Result<int32_t> rounds = variant.by_rounds()
                                       ? MatchInRounds(input, variant, most, link_of_slot, schedule)
                                       : MatchRarestInRounds(input, variant, most, schedule);
    if (!rounds) return tl::unexpected(rounds.error());
    if (*rounds >= best.num_steps) continue;
    schedule.num_steps = *rounds;
    best = std::move(schedule);
    if (best.num_steps <= fewest) break;
  }
  return best;
}

constexpr int64_t kLongestPs = std::numeric_limits<int64_t>::max() / 4;

// At most kLongestPs.
LinkTime LinkTimeOf(const Schedule& header, const Topology& topology, const Transfer& transfer) {
  const int64_t bytes_ps =
      std::min(kLongestPs, TransferPs(header, transfer, topology.bandwidth(transfer.link)));
  const int64_t alpha_ps = topology.alpha_ps(transfer.link);
  const int64_t travel_ps = std::min(kLongestPs, bytes_ps + alpha_ps);
  return {std::max<int64_t>(1, header.link_model == LinkModel::kHeld ? travel_ps : bytes_ps),
          std::max<int64_t>(1, travel_ps)};
}

Result<Schedule> MakeInEvents(const Input& input, const SynthOptions& options) {
  Schedule header = Header(input, options.seed);
  header.kind = ScheduleKind::kTimed;
  header.size_bytes = input.size_bytes;
  header.link_model = input.link_model;
  EventsProblem problem{
      .topology = input.topology, .source = input.source, .time = {}, .window = WindowOf(input)};
  for (LinkId link : input.topology.Links()) {
    problem.time.push_back(LinkTimeOf(header, input.topology, input.MakeTransfer(link, 0, 0)));
    if (problem.time.back().travel_ps == kLongestPs)
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("a chunk takes longer than {} ps on a link", kLongestPs));
  }
  Schedule best = header;
  int64_t best_ps = std::numeric_limits<int64_t>::max();
  for (int32_t attempt = 0; attempt < TriesOf(input, options); ++attempt) {
    const uint64_t variant = options.seed - 1 + static_cast<uint64_t>(attempt);
    problem.waits = variant % 2 == 0;
    problem.choice = variant < 2   ? ChunkChoice::kRarest
                     : variant < 4 ? ChunkChoice::kOldest
                                   : ChunkChoice::kRandom;
    problem.seed = variant < 4 ? 1 : variant;
    Schedule schedule = header;
    schedule.transfers.reserve(static_cast<size_t>(input.num_deliveries()));
    schedule.start_ps.reserve(static_cast<size_t>(input.num_deliveries()));
    const Result<int64_t> end_ps =
        MatchEvents(problem, best_ps - 1, [&](LinkId link, uint32_t chunk, int64_t start_ps) {
          schedule.transfers.push_back(input.MakeTransfer(link, chunk, 0));
          schedule.start_ps.push_back(start_ps);
        });
    if (!end_ps) return tl::unexpected(end_ps.error());
    if (*end_ps >= best_ps) continue;
    best_ps = *end_ps;
    best = std::move(schedule);
  }
  return best;
}

// All-to-all, gather and scatter: one destination a shard.
class BlockMaker {
 public:
  BlockMaker(const Input& input, const SynthOptions& options)
      : input_(input), options_(options), header_(Header(input, options.seed)) {
    const Collective& collective = input.collective;
    for (ShardId shard : collective.Shards()) {
      const NodeId from = collective.contributors(shard).one,
                   to = collective.destinations(shard).one;
      if (from == to || collective.weight(shard) == 0) continue;
      heaviest_ = std::max(heaviest_, collective.weight(shard));
      lightest_ = std::min(lightest_, collective.weight(shard));
      for (int32_t k = 0; k < input.chunks; ++k) {
        chunks_.push_back({from, to});
        number_.push_back(static_cast<uint32_t>(shard.value * input.chunks + k));
        if (collective.weight(shard) == heaviest_) usual_ = number_.back();
      }
    }
    in_rounds_ = AllLinksEqual(input.topology) && input.link_model == LinkModel::kHeld &&
                 heaviest_ == lightest_;
    if (in_rounds_) return;
    header_.kind = ScheduleKind::kTimed;
    header_.size_bytes = input.size_bytes;
    header_.link_model = input.link_model;
  }

  Result<Schedule> Make() const {
    Schedule best = header_;
    if (chunks_.empty()) return best;
    int64_t best_end = std::numeric_limits<int64_t>::max();
    const int32_t tries = options_.tries > 0 ? options_.tries : kTriesOfBlocks;
    for (int32_t attempt = 0; attempt < tries; ++attempt) {
      const uint64_t variant = options_.seed - 1 + static_cast<uint64_t>(attempt);
      Schedule schedule = header_;
      const Result<int64_t> end = Match(variant, best_end - 1, schedule);
      if (!end) return tl::unexpected(end.error());
      if (*end >= best_end) continue;
      best_end = *end;
      if (in_rounds_) schedule.num_steps = static_cast<int32_t>(*end);
      best = std::move(schedule);
    }
    return best;
  }

 private:
  static constexpr int32_t kTriesOfBlocks = 4;

  LinkTime TimeOf(LinkId link, uint32_t number) const {
    if (in_rounds_) return {};
    return LinkTimeOf(header_, input_.topology, input_.MakeTransfer(link, number, 0));
  }

  Result<int64_t> Match(uint64_t variant, int64_t most, Schedule& schedule) const {
    BlocksProblem problem{
        .topology = input_.topology,
        .chunks = chunks_,
        .time = [this](LinkId link, uint32_t chunk) { return TimeOf(link, number_[chunk]); },
        .usual_ps = {},
        .detours = variant % 2 == 1,
        .seed = variant < 2 ? 1 : variant};
    for (LinkId link : input_.topology.Links())
      problem.usual_ps.push_back(TimeOf(link, usual_).travel_ps);
    return MatchBlocks(problem, most, [&](LinkId link, uint32_t chunk, int64_t start) {
      const int32_t step = in_rounds_ ? static_cast<int32_t>(start) : 0;
      schedule.transfers.push_back(input_.MakeTransfer(link, number_[chunk], step));
      if (!in_rounds_) schedule.start_ps.push_back(start);
    });
  }

  const Input& input_;
  const SynthOptions& options_;
  Schedule header_;
  std::vector<BlockChunk> chunks_;
  std::vector<uint32_t> number_;  // of each chunk among all of the collective
  uint32_t usual_ = 0;            // a chunk of the heaviest shard
  int64_t heaviest_ = 0, lightest_ = std::numeric_limits<int64_t>::max();
  bool in_rounds_ = false;
};

Result<Schedule> MakeForwardSchedule(const Topology& topology, const Collective& forward,
                                     const SynthOptions& options) {
  const Result<Input> input = MakeInput(topology, forward, options);
  if (!input) return tl::unexpected(input.error());
  if (!forward.destinations(ShardId{0}).all) return BlockMaker(*input, options).Make();
  const bool in_rounds = AllLinksEqual(topology) && options.link_model == LinkModel::kHeld;
  return in_rounds ? MakeInRounds(*input, options) : MakeInEvents(*input, options);
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  if (!collective.reduces() && !collective.destinations(ShardId{0}).all)
    return MakeForwardSchedule(topology, collective, options);
  return DeriveFromForward(topology, collective,
                           [&](const Topology& on, const Collective& forward) {
                             return MakeForwardSchedule(on, forward, options);
                           });
}

}  // namespace
}  // namespace ten

Synthesizer TenSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = ten::kName,
          .description = "chunks matched to links over a time-expanded network, any network",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                          Kind::kBroadcast, Kind::kReduce, Kind::kGather, Kind::kScatter,
                          Kind::kAllToAll, Kind::kAllToAllV},
          .synthesize = ten::Synthesize};
}

}  // namespace tutti
