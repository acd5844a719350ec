// ten: matches chunks to links over a time-expanded network ([tacos] section IV).
//
// Model       Where all links are equal, time goes in rounds (rounds.h) and the result is a step
//             schedule: one chunk a link and step. Otherwise links choose whenever they become free
//             (events.h) and the result is a timed schedule for options.size_bytes and
//             options.link_model.
//             Blocks with one destination (all-to-all, gather, scatter) move by blocks.h.
//             Several variants of the order of choice are tried and the best is kept; a variant
//             that reaches the bound ends the search. All-reduce is reduce-scatter + all-gather, or
//             what all_reduce.h makes of it. Timed schedules, and all-reduces, are passed over once
//             more in the end (reroute.h, compact.h). What is larger than memory: stream.cc.
#include "tutti/synth/ten.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "registry.h"
#include "ten/all_reduce.h"
#include "ten/blocks.h"
#include "ten/chunk_count.h"
#include "ten/compact.h"
#include "ten/input.h"
#include "ten/link_time.h"
#include "ten/step_schedules.h"
#include "ten/timed_schedules.h"
#include "tutti/base/memory.h"

namespace tutti {
namespace ten {
namespace {

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

// blocks.h has one rule.
Status CheckPolicyOfBlocks(const Input& input) {
  if (input.policy == nullptr || input.policy == &FarthestPolicy()) return {};
  return InvalidArgument(fmt::format(
      "the blocks of {} have one destination each and go farthest first; '{}' is no policy of "
      "theirs",
      Name(input.collective.kind()), input.policy->name));
}

// `reversed`: to be turned around in time, so that copies become sums.
Result<Schedule> MakeForwardSchedule(const Topology& topology, const Collective& forward,
                                     const SynthOptions& options, bool reversed) {
  Result<Input> input =
      MakeInput(topology, forward, options, TenMemoryOf(topology, forward, options).in_memory_bytes,
                AvailableMemoryBytes());
  if (!input) return tl::unexpected(input.error());
  input->switch_use = {.multicast = options.multicast, .reversed = reversed};
  if (!forward.destinations(ShardId{0}).all) {
    if (const Status applies = CheckPolicyOfBlocks(*input); !applies)
      return tl::unexpected(applies.error());
    return BlockMaker(*input, options).Make();
  }
  if (AllLinksEqual(topology) && options.link_model == LinkModel::kHeld)
    return MakeInRounds(*input, options);
  return MakeInEvents(*input, options);
}

// The final pass, where it can help: rounds leave no link idle that has something to carry.
Result<Schedule> Finish(const Topology& topology, Result<Schedule> made,
                        const SynthOptions& options) {
  constexpr size_t kMaxTimed = 2'000'000,
                   kMaxInSteps = 50'000;  // as long as making them, or less
  if (!options.final_pass || !made || topology.has_switches()) return made;
  const bool is_timed = made->kind == ScheduleKind::kTimed;
  if (!is_timed && made->collective.kind() != CollectiveKind::kAllReduce) return made;
  if (made->transfers.size() > (is_timed ? kMaxTimed : kMaxInSteps)) return made;
  return Compact(topology, *made).schedule;
}

Result<Schedule> MakeWithCount(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  const auto make = [&](const Topology& on, const Collective& forward) {
    return Finish(on, MakeForwardSchedule(on, forward, options, collective.reduces()), options);
  };
  if (!collective.reduces() && !collective.destinations(ShardId{0}).all)
    return make(topology, collective);
  return DeriveFromForward(topology, collective, make);
}

// A switch passes on whole chunks, so that one a shard would take twice as long or more.
bool ChoosesChunks(const Topology& topology, const Collective& collective,
                   const SynthOptions& options) {
  return options.chunks == 0 && topology.has_switches() &&
         (collective.reduces() || collective.destinations(ShardId{0}).all);
}

// Copies that a switch made could not be turned around: it adds nothing, unless it reduces and
// copies by itself.
Status CheckMulticast(const Collective& collective, const SynthOptions& options) {
  const bool spreads = collective.destinations(ShardId{0}).all && !collective.reduces();
  if (!options.multicast || spreads) return {};
  return InvalidArgument(
      fmt::format("multicast serves all-gather and broadcast; of {} switches forward each message "
                  "to one port",
                  Name(collective.kind())));
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  if (const Status copies = CheckMulticast(collective, options); !copies)
    return tl::unexpected(copies.error());
  const auto make = [&](const SynthOptions& with_count) {
    return MakeWithCount(topology, collective, with_count);
  };
  const auto finish = [&](Schedule made) -> Result<Schedule> {
    if (collective.kind() != CollectiveKind::kAllReduce || !options.final_pass ||
        topology.has_switches())
      return made;
    return Finish(topology, OverlapAllReduce(topology, collective, options, std::move(made)),
                  options);
  };
  if (options.auto_chunks || ChoosesChunks(topology, collective, options))
    return WithBestChunkCount(topology, collective, options, make, finish);
  Result<Schedule> made = make(options);
  if (!made) return made;
  return finish(*std::move(made));
}

Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& options) {
  constexpr int64_t kNsADelivery = 100, kNsATimedDelivery = 10'000;  // all tries together
  constexpr int64_t kNsAWay = 1300, kMaxWays = 64, kNsOfChoice = 3'000'000'000;
  const bool steps_only = AllLinksEqual(topology) && options.link_model == LinkModel::kHeld &&
                          collective.demand().empty();
  const int64_t ways =
      topology.has_switches() ? std::min<int64_t>(kMaxWays, topology.num_ranks()) : 0;
  const int64_t ns_a_timed_delivery = kNsATimedDelivery + ways * kNsAWay;
  Forecast forecast =
      ForecastByDeliveries(collective, options, steps_only ? kNsADelivery : ns_a_timed_delivery);
  forecast.steps_only = steps_only;
  if (ChoosesChunks(topology, collective, options))
    forecast.work_ns += std::min(kNsOfChoice, forecast.work_ns * kMaxWays);
  if (collective.kind() == CollectiveKind::kAllReduce && options.final_pass &&
      !topology.has_switches())
    forecast.work_ns += OverlapWorkNs(topology, collective, options);
  return forecast;
}

}  // namespace
}  // namespace ten

std::vector<TenPolicy> TenPolicies() {
  std::vector<TenPolicy> policies;
  for (const ten::Policy* policy : ten::Policies())
    policies.push_back({policy->name, policy->description});
  return policies;
}

Synthesizer TenSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = ten::kName,
          .description = "chunks matched to links over a time-expanded network, any network",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                          Kind::kBroadcast, Kind::kReduce, Kind::kGather, Kind::kScatter,
                          Kind::kAllToAll, Kind::kAllToAllV},
          .synthesize = ten::Synthesize,
          .reduces_through_switches = true,
          .chunk_choice = true,
          .forecast = ten::ForecastOf,
          .options = {SynthOption::kTries, SynthOption::kAutoChunks, SynthOption::kPolicy,
                      SynthOption::kWaiting, SynthOption::kFinalPass, SynthOption::kMulticast},
          .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti
