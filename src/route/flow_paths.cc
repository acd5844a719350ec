#include "flow_paths.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "link_shares.h"
#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing_chunks.h"
#include "widest_paths.h"

namespace tutti {
namespace {

// Sources whose paths are held at once on their way into the routing.
constexpr int32_t kBatch = 64;

std::vector<WideInteger> LoadsOf(const ConcurrentFlow& flow) {
  std::vector<WideInteger> load(flow.bundles.size(), 0);
  for (const auto& from : flow.flow_from)
    for (const BundleFlow& part : from) load[static_cast<size_t>(part.bundle)] += part.units;
  return load;
}

// At most as many paths as bundles with flow and destinations; of the length of a mean unit's way.
Status CheckPathMemory(const ConcurrentFlow& flow, const std::vector<WideInteger>& load,
                       const DemandTable& demand) {
  double paths = 0, hops = 0;
  for (const auto& from : flow.flow_from)
    paths += static_cast<double>(from.size()) + static_cast<double>(flow.flow_from.size());
  for (const WideInteger units : load) hops += static_cast<double>(units);
  hops /= ToRational(demand.Total()).ToDouble() * static_cast<double>(flow.units_per_demand);
  if (paths > std::numeric_limits<int32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted, "the flow may have more than 2^31 paths");
  const double bytes = paths * (16 + 4 * hops) + 8.0 * static_cast<double>(flow.flow_from.size()) *
                                                     static_cast<double>(flow.flow_from.size());
  return CheckMemory("the paths of the flow", static_cast<int64_t>(bytes), AvailableMemoryBytes());
}

}  // namespace

Result<Routing> PathsOfFlow(const Topology& topology, const ConcurrentFlow& flow) {
  const int32_t ranks = topology.num_ranks();
  const DemandTable demand(ranks, flow.demand);
  const std::vector<WideInteger> load = LoadsOf(flow);
  if (const Status fits = CheckPathMemory(flow, load, demand); !fits)
    return tl::unexpected(fits.error());
  Result<LinkShares> shares = LinkShares::Make(topology, flow.bundles, load);
  if (!shares) return tl::unexpected(shares.error());

  RoutingBuilder builder(ranks, flow.units_per_demand * shares->factor());
  std::vector<SourcePaths> batch;
  for (int32_t begin = 0; begin < ranks; begin += kBatch) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    batch.assign(static_cast<size_t>(std::min(kBatch, ranks - begin)), {});
    ParallelFor(static_cast<int64_t>(batch.size()), 4, [&](int64_t from, int64_t to) {
      WidestPaths widest(flow.bundles, topology.num_nodes());
      for (int64_t i = from; i < to; ++i) {
        const auto source = begin + static_cast<int32_t>(i);
        batch[static_cast<size_t>(i)] = widest.Extract(
            demand, source, flow.flow_from[static_cast<size_t>(source)], flow.units_per_demand);
      }
    });
    for (const SourcePaths& paths : batch) {
      size_t path = 0;
      for (int32_t destination = 0; destination < ranks; ++destination) {
        for (; path < paths.weight.size() && paths.destination[path] == destination; ++path) {
          const auto first = static_cast<size_t>(paths.first_hop[path]);
          const auto last = static_cast<size_t>(paths.first_hop[path + 1]);
          shares->AddPath(std::span(paths.bundles).subspan(first, last - first), paths.weight[path],
                          builder);
        }
        builder.EndPair();
      }
    }
  }
  Routing routing = std::move(builder).Finish();
  routing.demand = flow.demand;
  routing.topology_fingerprint = topology.Fingerprint();
  DivideByCommonFactor(routing);
  return routing;
}

}  // namespace tutti
