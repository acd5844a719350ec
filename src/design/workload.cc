#include "tutti/design/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/units.h"
#include "tutti/topo/expression.h"

namespace tutti {

Result<std::vector<Workload::Size>> ParseSizeDistribution(const std::string& text) {
  std::vector<Workload::Size> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = std::min(part.find(':'), part.size());
    const Result<int64_t> bytes = ParseSizeBytes(part.substr(0, colon));
    if (!bytes) return tl::unexpected(bytes.error());
    if (*bytes < 1) return InvalidArgument(fmt::format("size '{}': at least 1 byte", part));
    Workload::Size size{*bytes, 1};
    if (colon < part.size()) {
      std::optional<Rational> weight = Rational::Parse(part.substr(colon + 1));
      if (!weight || *weight <= Rational(0))
        return InvalidArgument(
            fmt::format("'{}': wanted SIZE or SIZE:WEIGHT with a weight above 0", part));
      size.weight = *std::move(weight);
    }
    sizes.push_back(std::move(size));
    begin = end + 1;
  }
  return sizes;
}

Result<Rational> ExpectedSeconds(const Design& design, const Workload& workload,
                                 std::optional<Rational> flow) {
  TUTTI_CHECK(!workload.sizes.empty());
  Rational weight, bytes;
  for (const Workload::Size& size : workload.sizes) {
    bytes += size.weight * Rational(size.bytes);
    weight += size.weight;
  }
  bytes /= weight;
  const Rational link(workload.link.bandwidth);
  switch (workload.collective) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce: {
      const DesignCost cost = design.CostOf(workload.collective);
      return Rational(cost.tl) * Rational(workload.link.alpha_ps, kPicosecondsPerSecond) +
             cost.tb * bytes / (Rational(design.degree) * link);
    }
    case CollectiveKind::kAllToAll:
      if (!flow) return InvalidArgument("the time of an all-to-all needs the flow value");
      return bytes / Rational(design.ranks) / (*flow * link);
    default:
      return InvalidArgument(
          fmt::format("designs are compared by all-gather, reduce-scatter, all-reduce and "
                      "all-to-all, not by {}",
                      Name(workload.collective)));
  }
}

Result<Topology> NetworkWithLinks(const std::string& recipe, const LinkSpec& link) {
  const bool is_call = recipe.ends_with(')');
  const Result<Topology> named =
      is_call ? ParseTopology(fmt::format("{},bw={},alpha={})", recipe.substr(0, recipe.size() - 1),
                                          FormatBandwidth(link.bandwidth),
                                          FormatDurationPs(link.alpha_ps)))
              : ParseTopology(recipe);
  if (!named || is_call) return named;
  // A file, or a family without brackets, cannot say it.
  Topology::Builder builder(named->num_ranks(), named->num_nodes() - named->num_ranks());
  for (NodeId node : named->Nodes())
    for (size_t loop = 0; loop < named->self_loops(node).size(); ++loop)
      builder.AddLink(node, node, link);
  for (LinkId id : named->Links()) builder.AddLink(named->tail(id), named->head(id), link);
  TopologyOrigin origin = named->origin();
  origin.original = nullptr;  // which has other bandwidths
  builder.SetOrigin(std::move(origin));
  std::vector<std::string> names;
  for (NodeId node : named->Nodes()) names.push_back(named->node_name(node));
  builder.SetNodeNames(std::move(names));
  return std::move(builder).Build();
}

}  // namespace tutti
