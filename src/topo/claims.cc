#include "claims.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "draft.h"
#include "families/family.h"
#include "tutti/topo/expression.h"

namespace tutti::topo {
namespace {

enum class Agreement { kNone, kWiring, kAll };

struct Port {
  int32_t tail, head;
  LinkSpec spec;

  std::pair<int32_t, int32_t> ends() const { return {tail, head}; }
  auto key() const { return std::tuple(tail, head, spec.bandwidth, spec.alpha_ps); }
};

// Links and self-loops by ends and parameters, whatever their order.
std::vector<Port> SortedPorts(const Topology& topology) {
  std::vector<Port> ports;
  ports.reserve(static_cast<size_t>(topology.num_links()));
  for (LinkId link : topology.Links())
    ports.push_back({topology.tail(link).value, topology.head(link).value, topology.spec(link)});
  for (NodeId node : topology.Nodes())
    for (const LinkSpec& loop : topology.self_loops(node))
      ports.push_back({node.value, node.value, loop});
  std::sort(ports.begin(), ports.end(),
            [](const Port& a, const Port& b) { return a.key() < b.key(); });
  return ports;
}

Agreement Compare(const Topology& a, const Topology& b) {
  if (a.num_ranks() != b.num_ranks() || a.num_nodes() != b.num_nodes() ||
      a.num_links() != b.num_links())
    return Agreement::kNone;
  const std::vector<Port> ports = SortedPorts(a), others = SortedPorts(b);
  const auto same_ends = [](const Port& x, const Port& y) { return x.ends() == y.ends(); };
  if (!std::equal(ports.begin(), ports.end(), others.begin(), others.end(), same_ends))
    return Agreement::kNone;
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].spec != others[i].spec) return Agreement::kWiring;
  for (NodeId rank : a.Ranks())
    if (a.host_bandwidth(rank) != b.host_bandwidth(rank)) return Agreement::kWiring;
  for (NodeId node : a.Nodes())
    if (a.reduces(node) != b.reduces(node)) return Agreement::kWiring;
  return Agreement::kAll;
}

bool NamesFiles(const ExpressionTree& tree) {
  return tree.family.empty() || FindFamily(tree.family)->reads_file ||
         std::any_of(tree.operands.begin(), tree.operands.end(), NamesFiles);
}

// Operators make networks smaller, too: without(torus(9,9),nodes=70). One that is made of a far
// larger network is taken for another one, so that a short file costs little.
ParseLimits LimitsFor(const Topology& topology) {
  constexpr int64_t kTimes = 32, kSmall = 256;
  const auto within = [](int64_t size, int64_t most) {
    return std::min(most, SaturatingMul(SaturatingAdd(size, kSmall), kTimes));
  };
  return {.max_nodes = within(topology.num_nodes(), kMaxNodes),
          .max_links = within(topology.num_links(), kMaxLinks),
          .allow_files = false};
}

// Ordered pairs of nodes, each once.
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Pairs Once(Pairs pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

bool GridFits(const Topology& topology, const GridShape& grid) {
  if (topology.has_switches()) return false;
  Pairs neighbours, linked;
  int32_t stride = topology.num_ranks();
  for (const int32_t dim : grid.dims) {
    stride /= dim;
    for (int32_t rank = 0; rank < topology.num_ranks() && dim > 1; ++rank) {
      const int32_t at = rank / stride % dim;
      if (at + 1 == dim && !grid.wraps) continue;
      const int32_t next = at + 1 < dim ? rank + stride : rank - at * stride;
      neighbours.insert(neighbours.end(), {{rank, next}, {next, rank}});
    }
  }
  for (LinkId link : topology.Links())
    linked.emplace_back(topology.tail(link).value, topology.head(link).value);
  return Once(std::move(linked)) == Once(std::move(neighbours));
}

// Bytes/s out of and into a rank.
std::pair<int64_t, int64_t> Ports(const Topology& topology, NodeId rank) {
  std::pair<int64_t, int64_t> total;
  for (LinkId link : topology.OutLinks(rank)) total.first += topology.bandwidth(link);
  for (LinkId link : topology.InLinks(rank)) total.second += topology.bandwidth(link);
  return total;
}

bool OriginalFits(const Topology& topology, const Topology& original) {
  if (topology.has_switches() || !original.has_switches()) return false;
  for (NodeId rank : topology.Ranks()) {
    const auto [out, in] = Ports(topology, rank);
    const auto [max_out, max_in] = Ports(original, rank);
    if (out > max_out || in > max_in ||
        topology.host_bandwidth(rank) != original.host_bandwidth(rank))
      return false;
  }
  return true;
}

// What a text says of the network: nothing, since it is no expression or names files, or this.
struct Claim {
  bool is_expression = false, names_files = false;
  Agreement agreement = Agreement::kNone;
  std::shared_ptr<const Topology> original = {};

  bool usable() const { return is_expression && (names_files || agreement != Agreement::kNone); }
};

Claim Judge(const Topology& topology, const std::string& text) {
  const Result<ExpressionTree> tree = ParseExpressionTree(text);
  if (!tree) return {};
  if (NamesFiles(*tree)) return {.is_expression = true, .names_files = true};
  const Result<Topology> made = ParseTopology(text, LimitsFor(topology));
  if (!made) return {.is_expression = true};
  return {.is_expression = true,
          .agreement = Compare(*made, topology),
          .original = made->origin().original};
}

void CheckExpression(const Topology& topology, TopologyOrigin& origin) {
  const Claim name = Judge(topology, origin.name);
  const Claim expression =
      origin.expression == origin.name ? name : Judge(topology, origin.expression);
  if (!expression.usable()) origin.expression = name.usable() ? origin.name : "";
  const Claim& held = expression.usable() ? expression : name;
  if (held.is_expression && !held.names_files) {
    if (held.agreement != Agreement::kAll) origin.original.reset();
    if (held.agreement == Agreement::kAll && !origin.original) origin.original = held.original;
  }
  if (!name.is_expression || name.names_files) return;
  if (name.agreement == Agreement::kWiring) origin.name += " with other parameters";
  if (name.agreement == Agreement::kNone) origin.name = "modified from " + origin.name;
}

}  // namespace

Topology CheckClaims(Topology topology) {
  TopologyOrigin origin = topology.origin();
  CheckExpression(topology, origin);
  if (origin.grid && !GridFits(topology, *origin.grid)) origin.grid.reset();
  if (origin.original && !OriginalFits(topology, *origin.original)) origin.original.reset();
  return std::move(topology).WithOrigin(std::move(origin));
}

}  // namespace tutti::topo
