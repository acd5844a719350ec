#include "tutti/synth/bfb.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bfb/delivery.h"
#include "bfb/plan.h"
#include "memory.h"
#include "registry.h"
#include "tutti/base/units.h"

namespace tutti {
namespace {

Status CheckInput(const Topology& topology, const Collective& collective,
                  const SynthOptions& options) {
  if (collective.kind() != CollectiveKind::kAllGather &&
      collective.kind() != CollectiveKind::kBroadcast)
    return InvalidArgument(
        fmt::format("bfb itself makes all-gather and broadcast, not {}", Name(collective.kind())));
  return CheckBfbInput(topology, collective, options);
}

// The transfers in order of steps, within a step of receivers: each receiver's place is counted
// first, so that threads write where they like.
Status FillTransfers(const BfbModel& model, const BfbPlan& plan, Schedule& schedule) {
  const auto num_steps = plan.step_time.size();
  const auto num_ranks = static_cast<size_t>(model.table.topology.num_ranks());
  const auto solve = [&](const LoadProblem& problem) {
    return Deliver(model, problem, plan.units_per_shard);
  };
  std::vector<int64_t> place(num_steps * num_ranks, 0);
  const auto place_of = [&](int32_t step, NodeId receiver) -> int64_t& {
    return place[static_cast<size_t>(step) * num_ranks + receiver.index()];
  };
  Status status = model.ForEachBlock("bfb: counting", [&](ReceiverBlock& block) {
    SourceLayers layers(model.table);
    LoadProblem problem;
    StepMemo<Delivery> memo;
    while (const std::optional<NodeId> u = block.Next())
      model.ForEachStep(*u, layers, problem, [&](int32_t step, const LoadProblem& one) {
        place_of(step, *u) = memo.Get(step, one, solve).num_transfers;
      });
  });
  if (!status) return status;
  int64_t total = 0;
  for (int64_t& slot : place) total += std::exchange(slot, total);
  if (status = CheckMemoryFor(total); !status) return status;
  schedule.transfers.resize(static_cast<size_t>(total));
  return model.ForEachBlock("bfb: schedule", [&](ReceiverBlock& block) {
    SourceLayers layers(model.table);
    LoadProblem problem;
    StepMemo<Delivery> memo;
    while (const std::optional<NodeId> u = block.Next())
      model.ForEachStep(*u, layers, problem, [&](int32_t step, const LoadProblem& one) {
        WriteTransfers(memo.Get(step, one, solve), layers.GroupedShards(),
                       model.table.topology.InLinks(*u), step, plan.units_per_shard,
                       schedule.transfers.data() + place_of(step, *u));
      });
  });
}

Result<Schedule> SynthesizeBfb(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  return DeriveFromForward(topology, collective,
                           [&options](const Topology& network, const Collective& forward) {
                             return MakeBfb(network, forward, options);
                           });
}

}  // namespace

Result<Schedule> MakeBfb(const Topology& topology, const Collective& collective,
                         const SynthOptions& options) {
  Status status = CheckInput(topology, collective, options);
  if (!status) return tl::unexpected(status.error());
  const int64_t deliveries = int64_t{collective.num_shards()} * (collective.num_ranks() - 1);
  if (status = CheckMemoryFor(deliveries); !status) return tl::unexpected(status.error());
  const BfbModel model(topology, collective, options.size_bytes);
  const Result<BfbPlan> plan = MakeBfbPlan(model, BfbUnitsFor(topology, collective, options));
  if (!plan) return tl::unexpected(plan.error());
  Schedule schedule{.collective = collective};
  NoteUnits(*plan, options);
  schedule.units_per_shard = plan->units_per_shard;
  schedule.num_steps = static_cast<int32_t>(plan->step_time.size());
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = "bfb";
  schedule.seed = options.seed;
  if (status = FillTransfers(model, *plan, schedule); !status)
    return tl::unexpected(status.error());
  return schedule;
}

Result<BfbCost> ComputeBfbCost(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  if (const Status status = CheckInput(topology, collective, options); !status)
    return tl::unexpected(status.error());
  const BfbModel model(topology, collective, options.size_bytes);
  const Result<BfbPlan> plan = MakeBfbPlan(model, BfbUnitsFor(topology, collective, options));
  if (!plan) return tl::unexpected(plan.error());
  BfbCost cost;
  cost.tl = static_cast<int32_t>(plan->step_time.size());
  cost.units_per_shard = plan->units_per_shard;
  cost.exact = plan->exact;
  Rational time;
  for (const Rational& step : plan->step_time) time += step;
  if (!model.equal_alphas) {
    cost.seconds = time;
    return cost;
  }
  if (cost.tl == 0) {
    cost.tb = Rational(0);
    return cost;
  }
  // `time` is now in shards over a link of bandwidth 1, or over the one bandwidth there is.
  if (model.equal_links) time /= Rational(topology.bandwidth(LinkId{0}));
  const Rational seconds_per_byte = time / model.shards_in_size;
  cost.tb = seconds_per_byte * Rational(topology.max_in_bandwidth());
  cost.seconds = seconds_per_byte * Rational(options.size_bytes) +
                 Rational(topology.alpha_ps(LinkId{0}), kPicosecondsPerSecond) * Rational(cost.tl);
  return cost;
}

Synthesizer BfbSynthesizer() {
  return {.name = "bfb",
          .description = "breadth-first broadcast along shortest paths, balanced exactly",
          .collectives = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                          CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                          CollectiveKind::kReduce},
          .synthesize = SynthesizeBfb,
          .forecast =
              [](const Topology&, const Collective& collective, const SynthOptions& options) {
                // Chunks are only finer units of what a link carries anyway.
                constexpr int64_t kNsADelivery = 200;
                SynthOptions whole = options;
                whole.chunks = 1;
                return ForecastByDeliveries(collective, whole, kNsADelivery);
              },
          .groups = GroupUse::kOwnLinks};
}

}  // namespace tutti
