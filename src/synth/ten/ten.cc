// ten: matches chunks to links over a time-expanded network ([tacos] section IV).
//
// Model       Where all links are equal, time goes in rounds (rounds.h) and the result is a step
//             schedule: one chunk a link and step. Otherwise links choose whenever they become free
//             (events.h) and the result is a timed schedule for options.size_bytes and
//             options.link_model.
//             Blocks with one destination (all-to-all, gather, scatter) move by blocks.h.
//             Several variants of the order of choice are tried and the best is kept; a variant
//             that reaches the bound ends the search. What is larger than memory: stream.cc.
//             All-reduce is reduce-scatter + all-gather, or what all_reduce.h makes of it.
#include "tutti/synth/ten.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "registry.h"
#include "ten/all_reduce.h"
#include "ten/blocks.h"
#include "ten/events.h"
#include "ten/input.h"
#include "ten/step_schedules.h"
#include "tutti/base/memory.h"

namespace tutti {
namespace ten {
namespace {

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
  const Result<Input> input =
      MakeInput(topology, forward, options, TenMemoryOf(topology, forward, options).in_memory_bytes,
                AvailableMemoryBytes());
  if (!input) return tl::unexpected(input.error());
  if (!forward.destinations(ShardId{0}).all) return BlockMaker(*input, options).Make();
  const bool in_rounds = AllLinksEqual(topology) && options.link_model == LinkModel::kHeld;
  return in_rounds ? MakeInRounds(*input, options) : MakeInEvents(*input, options);
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  if (!collective.reduces() && !collective.destinations(ShardId{0}).all)
    return MakeForwardSchedule(topology, collective, options);
  Result<Schedule> made =
      DeriveFromForward(topology, collective, [&](const Topology& on, const Collective& forward) {
        return MakeForwardSchedule(on, forward, options);
      });
  if (!made || collective.kind() != CollectiveKind::kAllReduce) return made;
  return OverlapAllReduce(topology, collective, options, *std::move(made));
}

Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& options) {
  constexpr int64_t kNsADelivery = 100;
  Forecast forecast = ForecastByDeliveries(collective, options, kNsADelivery);
  const std::vector<int64_t>& demand = collective.demand();
  forecast.steps_only =
      AllLinksEqual(topology) && options.link_model == LinkModel::kHeld && demand.empty();
  return forecast;
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
          .synthesize = ten::Synthesize,
          .chunk_choice = true,
          .forecast = ten::ForecastOf};
}

}  // namespace tutti
