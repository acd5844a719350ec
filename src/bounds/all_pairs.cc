#include "all_pairs.h"

#include <mutex>

#include "cut_network.h"
#include "tutti/base/check.h"
#include "tutti/base/parallel.h"

namespace tutti {

WideCapacity TotalDemandWeight(const Collective& collective) {
  if (collective.kind() == CollectiveKind::kAllToAll)
    return WideCapacity{collective.num_ranks()} * (collective.num_ranks() - 1);
  WideCapacity total = 0;
  for (NodeId from{0}; from.value < collective.num_ranks(); ++from.value)
    for (NodeId to{0}; to.value < collective.num_ranks(); ++to.value)
      total += DemandWeight(collective, from, to);
  return total;
}

WideCapacity SourceRouter::Run(NodeId source) {
  source_ = source;
  paths_.Run(source);
  WideCapacity sum = 0;
  for (NodeId target : topology_.Ranks())
    sum += WideCapacity{DemandWeight(collective_, source, target)} * paths_.distance(target);
  return sum;
}

void SourceRouter::AddLoad(std::vector<WideCapacity>& load) {
  beyond_.assign(static_cast<size_t>(topology_.num_nodes()), 0);
  for (NodeId rank : topology_.Ranks())
    beyond_[rank.index()] = DemandWeight(collective_, source_, rank);
  const std::vector<NodeId>& order = paths_.order();
  for (size_t i = order.size() - 1; i > 0; --i) {
    const LinkId link = paths_.last_link(order[i]);
    load[link.index()] += beyond_[order[i].index()];
    beyond_[topology_.tail(link).index()] += beyond_[order[i].index()];
  }
}

AllPairsCost RouteAllPairs(const Topology& topology, const Collective& collective,
                           const std::vector<int64_t>& lengths, const std::vector<Source>& sources,
                           bool with_load) {
  AllPairsCost cost;
  cost.load.assign(with_load ? lengths.size() : 0, 0);
  std::mutex mutex;  // the sums are of integers: their order does not matter
  ParallelFor(static_cast<int64_t>(sources.size()), 16, [&](int64_t begin, int64_t end) {
    SourceRouter router(topology, collective, lengths);
    AllPairsCost part;
    part.load.assign(cost.load.size(), 0);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      part.demand_distance += router.Run(sources[i].rank) * sources[i].count;
      if (with_load) router.AddLoad(part.load);
    }
    const std::lock_guard lock(mutex);
    cost.demand_distance += part.demand_distance;
    for (size_t l = 0; l < part.load.size(); ++l) cost.load[l] += part.load[l];
  });
  return cost;
}

Rational LimitOf(const Topology& topology, const Collective& collective,
                 const std::vector<int64_t>& lengths, WideCapacity demand_distance) {
  WideCapacity budget = 0;
  for (LinkId link : topology.Links())
    budget += WideCapacity{topology.bandwidth(link)} * lengths[link.index()];
  TUTTI_CHECK(budget > 0);
  return RationalOf(demand_distance) / (RationalOf(budget) * Rational(collective.weight_of_size()));
}

}  // namespace tutti
