#include "tutti/bounds/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "all_pairs.h"
#include "cut_bound.h"
#include "flow_bound.h"
#include "group_bounds.h"
#include "latency_bound.h"
#include "partition_bound.h"
#include "reducing_partition.h"
#include "sources.h"
#include "telling_bound.h"
#include "tutti/base/check.h"
#include "tutti/base/units.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

// Ranks * links up to which the tightest partition is looked for: about a second.
constexpr int64_t kMaxForPartitions = 500'000;

// Fills the bandwidth part of a Bounds for one topology, one function a kind of limit.
class BandwidthPart {
 public:
  BandwidthPart(const Topology& topology, const Collective& collective,
                const std::vector<Source>& sources, Bounds& bounds)
      : topology_(topology),
        collective_(collective),
        sources_(sources),
        network_(topology),
        bounds_(bounds) {}

  void Fill() {
    if (collective_.is_all_to_all()) return FillAllToAll();
    if (collective_.is_reversed_form())
      return TakeCut(Flipped(CutOf(collective_.Reversed(), network_.Transposed())));
    if (collective_.reduces()) return FillAllReduce();
    TakeCut(CutOf(collective_, network_));
  }

  // The papers' "ideal": each rank sends or receives all it must at its full bandwidth.
  void FillIdeal() {
    int64_t halves = 0;
    if (collective_.kind() == Kind::kAllReduce) halves = 2;
    if (collective_.kind() == Kind::kAllGather) halves = 1;
    if (collective_.kind() == Kind::kReduceScatter) halves = 1;
    if (halves == 0) return;
    const std::vector<WideCapacity> in = network_.InCapacities(), out = network_.OutCapacities();
    WideCapacity least = std::min(in[0], out[0]);
    for (NodeId rank : topology_.Ranks())
      least = std::min({least, in[rank.index()], out[rank.index()]});
    const int64_t n = topology_.num_ranks();
    bounds_.ideal_seconds_per_byte = Rational(halves * (n - 1), n) / network_.BytesPerSecond(least);
  }

 private:
  // What limits a collective that only spreads.
  static Cut CutOf(const Collective& collective, const CutNetwork& network) {
    if (!collective.has_root()) return AllGatherCut(network);
    return collective.destinations(ShardId{0}).all ? SmallestRootCut(network, collective.root())
                                                   : ScatterCut(network, collective.root());
  }

  Rational SecondsPerByte(const Cut& cut) const {
    return RationalOf(cut.shards_out) /
           (Rational(collective_.num_shards()) * network_.BytesPerSecond(cut.capacity_out));
  }

  // The cut with `shards` in place of its own count of what must leave.
  CutCertificate Certificate(const Cut& cut, Rational shards) const {
    CutCertificate certificate;
    for (NodeId node : topology_.Nodes())
      if (cut.inside[node.index()]) certificate.inside.push_back(node);
    certificate.shards_out = std::move(shards);
    certificate.capacity_out = network_.BytesPerSecond(cut.capacity_out);
    return certificate;
  }

  void TakeCut(const Cut& cut) {
    bounds_.seconds_per_byte = SecondsPerByte(cut);
    bounds_.cut = Certificate(cut, RationalOf(cut.shards_out));
    const int64_t ranks = network_.RanksIn(cut.inside);
    bounds_.bandwidth_reason = fmt::format(
        "cut of {} of {} ranks, {} of {} shards must leave", ranks, topology_.num_ranks(),
        bounds_.cut->shards_out.ToString(), collective_.num_shards());
  }

  void FillAllReduce() {
    const CutNetwork transposed = network_.Transposed();
    const NodeId any{0};
    Cut cut = SmallestRootCut(network_, any);
    Cut back = Flipped(SmallestRootCut(transposed, any));
    if (back.capacity_out < cut.capacity_out) cut = std::move(back);
    // All of the buffer crosses it, whatever it is cut into.
    cut.shards_out = collective_.num_shards();
    TakeCut(cut);

    const int64_t n = topology_.num_ranks();
    const Rational by_total =
        Rational(2 * (n - 1)) / network_.BytesPerSecond(network_.total_capacity);
    if (by_total > bounds_.seconds_per_byte) {
      bounds_.seconds_per_byte = by_total;
      bounds_.bandwidth_reason = fmt::format("total link capacity: {} crossings of M", 2 * (n - 1));
      bounds_.cut.reset();
    }
    FillRsag(transposed);
    TakePartition();
  }

  void TakePartition() {
    if (int64_t{topology_.num_ranks()} * topology_.num_links() > kMaxForPartitions) return;
    if (topology_.has_reducing_switches()) {
      if (const auto partition = TightestReducingPartition(topology_, network_))
        TakeCrossings(partition->num_parts, partition->capacity);
    } else {
      const Partition partition = TightestPartition(network_);
      TakeCrossings(partition.num_parts, partition.capacity);
      TakeTelling(partition);
    }
  }

  // Where reduce-scatter and all-gather do not meet what is proven so far.
  void TakeTelling(const Partition& tightest) {
    if (network_.IsSymmetric() || *bounds_.rsag_seconds_per_byte <= bounds_.seconds_per_byte)
      return;
    for (const Partition& parts : {EachAlone(network_), tightest})
      for (const CutNetwork& network : {network_, network_.Transposed()}) {
        const std::optional<Rational> most = MostToldAtOnce(network, parts);
        if (!most || most->is_zero()) continue;
        const Rational limit = Rational(1) / (*most * Rational(network_.unit));
        if (limit <= bounds_.seconds_per_byte) continue;
        bounds_.seconds_per_byte = limit;
        bounds_.bandwidth_reason =
            fmt::format("what comes before and after the first of {} parts of the ranks knows M",
                        parts.num_parts);
        bounds_.cut.reset();
      }
  }

  void TakeCrossings(int64_t num_parts, WideCapacity capacity) {
    const int64_t crossings = 2 * (num_parts - 1);
    const Rational limit = Rational(crossings) / network_.BytesPerSecond(capacity);
    if (limit <= bounds_.seconds_per_byte) return;
    bounds_.seconds_per_byte = limit;
    bounds_.bandwidth_reason =
        fmt::format("{} crossings of M between {} parts of the ranks", crossings, num_parts);
    bounds_.cut.reset();
  }

  void FillRsag(const CutNetwork& transposed) {
    const Rational shards = topology_.num_ranks();
    const auto limit = [&](const CutNetwork& network) {
      const Cut cut = AllGatherCut(network);
      return RationalOf(cut.shards_out) / (shards * network_.BytesPerSecond(cut.capacity_out));
    };
    const Rational gather = limit(network_);
    bounds_.rsag_seconds_per_byte = gather + (network_.IsBalanced() ? gather : limit(transposed));
  }

  void FillAllToAll() {
    FlowBound flow = ComputeFlowBound(topology_, collective_, sources_);
    bounds_.seconds_per_byte = flow.seconds_per_byte;
    bounds_.f_upper = std::move(flow.f_upper);
    bounds_.bandwidth_reason = std::move(flow.reason);
    if (!flow.cut) return;
    const int64_t n = topology_.num_ranks();
    const Rational mean = RationalOf(TotalDemandWeight(collective_)) / Rational(n * (n - 1));
    bounds_.cut = Certificate(*flow.cut, RationalOf(flow.cut->shards_out) / mean);
  }

  const Topology& topology_;
  const Collective& collective_;
  const std::vector<Source>& sources_;
  const CutNetwork network_;
  Bounds& bounds_;
};

// The bandwidth part on the network in which host limits are links.
Status FillWithHosts(const Topology& topology, const Collective& collective, Bounds& bounds) {
  const Result<Topology> split = HostForwarding(topology);
  if (!split) return tl::unexpected(split.error());
  const std::vector<Source> sources = SourcesOf(*split, collective);
  BandwidthPart part(*split, collective, sources, bounds);
  part.Fill();
  part.FillIdeal();
  bounds.bandwidth_reason += ", with host limits";
  if (bounds.f_upper) *bounds.f_upper *= Rational(split->min_bandwidth(), topology.min_bandwidth());
  if (bounds.cut) {
    std::vector<NodeId>& inside = bounds.cut->inside;
    inside.erase(std::remove_if(inside.begin(), inside.end(),
                                [&](NodeId node) { return node.value >= topology.num_nodes(); }),
                 inside.end());
  }
  return {};
}

void TakeLatency(const LatencyBound& latency, Bounds& bounds) {
  bounds.steps = latency.steps;
  bounds.latency_ps = latency.alpha_ps;
  bounds.min_alpha_ps = latency.min_alpha_ps;
}

Result<Bounds> BoundsOfUnwound(const Topology& topology, const Topology& original,
                               const Collective& collective) {
  Result<Bounds> bounds = ComputeBounds(original, collective);
  if (!bounds) return bounds;
  TakeLatency(ComputeLatencyBound(original, collective, SourcesOf(original, collective),
                                  Switches::kPassedAtOnce),
              *bounds);
  if (bounds->f_upper)
    *bounds->f_upper *= Rational(original.min_bandwidth(), topology.min_bandwidth());
  bounds->tb = bounds->seconds_per_byte * Rational(topology.max_in_bandwidth());
  return bounds;
}

}  // namespace

Result<Bounds> ComputeBounds(const Topology& topology, const Collective& collective) {
  if (collective.num_ranks() != topology.num_ranks())
    return InvalidArgument(fmt::format("the collective is over {} ranks, the topology has {}",
                                       collective.num_ranks(), topology.num_ranks()));
  if (collective.has_groups()) return ComputeGroupBounds(topology, collective);
  Bounds bounds;
  if (topology.num_ranks() == 1) {
    bounds.bandwidth_reason = "one rank: nothing to send";
    return bounds;
  }
  if (const Topology* original = topology.original())
    return BoundsOfUnwound(topology, *original, collective);
  const std::vector<Source> sources = SourcesOf(topology, collective);
  TakeLatency(ComputeLatencyBound(topology, collective, sources), bounds);
  if (topology.has_host_limits()) {
    if (Status status = FillWithHosts(topology, collective, bounds); !status)
      return tl::unexpected(status.error());
  } else {
    BandwidthPart part(topology, collective, sources, bounds);
    part.Fill();
    part.FillIdeal();
  }
  bounds.tb = bounds.seconds_per_byte * Rational(topology.max_in_bandwidth());
  return bounds;
}

Result<Bounds> ComputeTransitiveBounds(const Topology& topology, const Collective& collective) {
  const Kind kind = collective.kind();
  if (kind != Kind::kAllGather && kind != Kind::kReduceScatter && kind != Kind::kAllReduce)
    return InvalidArgument(fmt::format(
        "limits by symmetry are known for all-gather, reduce-scatter and all-reduce, not for {}",
        Name(kind)));
  if (collective.num_ranks() != topology.num_ranks() || topology.has_switches())
    return InvalidArgument(fmt::format("the collective is over {} ranks, the topology has {}{}",
                                       collective.num_ranks(), topology.num_ranks(),
                                       topology.has_switches() ? " and switches" : ""));
  Bounds bounds;
  const int64_t n = topology.num_ranks();
  if (n == 1) {
    bounds.bandwidth_reason = "one rank: nothing to send";
    return bounds;
  }
  const NodeId any{0};
  TakeLatency(ComputeLatencyBound(topology, collective, {{any, n}}), bounds);
  // Into a rank and out of it alike: the totals over all ranks are the same.
  Rational capacity;
  for (LinkId link : topology.InLinks(any)) capacity += Rational(topology.bandwidth(link));
  const Rational ideal = Rational(n - 1, n) / capacity;
  if (kind == Kind::kAllReduce) {
    bounds.ideal_seconds_per_byte = bounds.rsag_seconds_per_byte = ideal * Rational(2);
    bounds.seconds_per_byte = std::max(Rational(1) / capacity, ideal * Rational(2));
    bounds.bandwidth_reason = fmt::format("total link capacity: {} crossings of M", 2 * (n - 1));
  } else {
    bounds.ideal_seconds_per_byte = bounds.seconds_per_byte = ideal;
    const bool all_but_one = kind == Kind::kAllGather;
    CutCertificate cut{{}, Rational(n - 1), capacity};
    for (NodeId rank : topology.Ranks())
      if ((rank == any) != all_but_one) cut.inside.push_back(rank);
    bounds.bandwidth_reason = fmt::format("cut of {} of {} ranks, {} of {} shards must leave",
                                          cut.inside.size(), n, n - 1, n);
    bounds.cut = std::move(cut);
  }
  bounds.tb = bounds.seconds_per_byte * Rational(topology.max_in_bandwidth());
  return bounds;
}

Rational Bounds::Limit(int64_t size_bytes) const {
  const Rational latency(latency_ps, kPicosecondsPerSecond);
  if (seconds_per_byte.is_zero()) return latency;
  return std::max(latency, Rational(min_alpha_ps, kPicosecondsPerSecond) +
                               seconds_per_byte * Rational(size_bytes));
}

Rational Bounds::StepLimit(int64_t size_bytes, int32_t min_steps) const {
  const Rational waits =
      Rational(std::max(steps, min_steps)) * Rational(min_alpha_ps, kPicosecondsPerSecond);
  return std::max(Limit(size_bytes), waits + seconds_per_byte * Rational(size_bytes));
}

int32_t MooreBoundSteps(int64_t num_ranks, int64_t degree) {
  TUTTI_CHECK(num_ranks >= 1 && degree >= 1);
  if (degree == 1) return static_cast<int32_t>(num_ranks - 1);
  int32_t steps = 0;
  // [M_{d,k}]; both grow to at most num_ranks * degree.
  WideCapacity reached = 1, layer = 1;
  while (reached < num_ranks) {
    layer *= degree;
    reached += layer;
    ++steps;
  }
  return steps;
}

Rational MooreFlow(int64_t num_ranks, int64_t degree) {
  TUTTI_CHECK(num_ranks >= 2 && degree >= 1);
  if (degree == 1) return Rational(2) / (Rational(num_ranks) * Rational(num_ranks - 1));
  Rational distances;
  WideCapacity layer = 1;
  int64_t left = num_ranks - 1;
  for (int64_t step = 1; left > 0; ++step) {
    layer = std::min<WideCapacity>(layer * degree, left);
    distances += Rational(static_cast<int64_t>(layer)) * Rational(step);
    left -= static_cast<int64_t>(layer);
  }
  return Rational(degree) / distances;
}

int32_t BidirectionalMooreBoundSteps(int64_t num_ranks, int64_t degree) {
  TUTTI_CHECK(num_ranks >= 1 && degree >= 1 && (degree >= 2 || num_ranks <= 2));
  if (degree <= 2) return static_cast<int32_t>(num_ranks / 2);
  int32_t steps = 0;
  WideCapacity reached = 1, layer = degree;
  for (; reached < num_ranks; ++steps) {
    reached += layer;
    layer *= degree - 1;
  }
  return steps;
}

}  // namespace tutti
