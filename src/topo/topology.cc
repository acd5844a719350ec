#include "tutti/topo/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/hash.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The first fault of the node names, if any (T6).
std::optional<std::string> FaultOfNames(const std::vector<std::string>& names, size_t num_nodes) {
  if (names.size() != num_nodes)
    return fmt::format("got {} node names for {} nodes", names.size(), num_nodes);
  std::unordered_set<std::string> seen;
  for (size_t node = 0; node < names.size(); ++node) {
    if (names[node].empty()) return fmt::format("node {}: its name is empty", node);
    if (HasControlCharacter(names[node]))
      return fmt::format("node {}: its name holds a control character", node);
    if (!seen.insert(names[node]).second)
      return fmt::format("node {}: the name '{}' is taken by an earlier node", node, names[node]);
  }
  return std::nullopt;
}

// The first fault of an origin for `num_ranks` ranks, if any (T8).
std::optional<std::string> FaultOfOrigin(const TopologyOrigin& origin, int32_t num_ranks) {
  if (const auto& grid = origin.grid) {
    // size stays below 2^62: a grid that has outgrown the ranks grows no more.
    int64_t size = 1;
    for (int32_t dim : grid->dims)
      size = dim < 1 ? 0 : std::min<int64_t>(size, num_ranks + 1) * dim;
    if (size != num_ranks)
      return fmt::format("a grid of {} does not describe {} ranks", fmt::join(grid->dims, " x "),
                         num_ranks);
  }
  if (const Topology* original = origin.original.get()) {
    if (original->num_ranks() != num_ranks)
      return fmt::format("the network it was unwound from has {} ranks, this one {}",
                         original->num_ranks(), num_ranks);
    if (original->original() != nullptr)
      return "the network it was unwound from is an unwound one itself";
  }
  return std::nullopt;
}

}  // namespace

void Topology::Builder::CopyHostLimits(const Topology& other) {
  for (NodeId rank : other.Ranks())
    if (const auto bandwidth = other.host_bandwidth(rank)) SetHostBandwidth(rank, *bandwidth);
}

void Topology::Builder::CopyReducingSwitches(const Topology& other) {
  if (!other.has_reducing_switches()) return;
  for (NodeId node : other.Nodes())
    if (!other.is_rank(node) && other.reduces(node)) SetReduces(node);
}

void Topology::Builder::AddLink(NodeId tail, NodeId head, LinkSpec spec) {
  pending_.push_back({tail, head, spec});
}

Result<Topology> Topology::Builder::Build() && {
  if (num_ranks_ < 1)
    return InvalidArgument(fmt::format("a topology needs at least 1 rank, got {}", num_ranks_));
  if (num_switches_ < 0)
    return InvalidArgument(fmt::format("the number of switches is negative: {}", num_switches_));
  const int32_t num_nodes = num_ranks_ + num_switches_;
  for (size_t call = 0; call < pending_.size(); ++call) {
    const auto& [tail, head, spec] = pending_[call];
    for (NodeId end : {tail, head})
      if (end.value < 0 || end.value >= num_nodes)
        return InvalidArgument(
            fmt::format("link {}: node {} is outside [0, {})", call, end.value, num_nodes));
    if (spec.bandwidth < 1 || spec.bandwidth > kMaxBandwidth)
      return InvalidArgument(
          fmt::format("link {} ({} -> {}): bandwidth {} is outside 1 .. 2^50 B/s", call, tail.value,
                      head.value, spec.bandwidth));
    if (spec.alpha_ps < 0 || spec.alpha_ps > kMaxAlphaPs)
      return InvalidArgument(fmt::format("link {} ({} -> {}): alpha {} ps is outside 0 .. 1000 s",
                                         call, tail.value, head.value, spec.alpha_ps));
  }

  for (const auto& [rank, bandwidth] : host_limits_) {
    if (rank.value < 0 || rank.value >= num_ranks_)
      return InvalidArgument(
          fmt::format("host limit of node {}: no rank, ranks are [0, {})", rank.value, num_ranks_));
    if (bandwidth < 1 || bandwidth > kMaxBandwidth)
      return InvalidArgument(fmt::format(
          "host limit of rank {}: bandwidth {} is outside 1 .. 2^50 B/s", rank.value, bandwidth));
  }

  for (NodeId node : reducing_)
    if (node.value < num_ranks_ || node.value >= num_nodes)
      return InvalidArgument(fmt::format("node {} reduces: no switch, switches are [{}, {})",
                                         node.value, num_ranks_, num_nodes));

  Topology topology;
  topology.num_ranks_ = num_ranks_;
  std::vector<Digraph::Arc> arcs;
  std::vector<size_t> call_of_arc;
  for (size_t call = 0; call < pending_.size(); ++call) {
    const auto& [tail, head, spec] = pending_[call];
    if (tail == head) {
      topology.self_loops_.resize(static_cast<size_t>(num_nodes));
      topology.self_loops_[tail.index()].push_back(spec);
    } else {
      arcs.emplace_back(tail, head);
      call_of_arc.push_back(call);
    }
  }
  std::vector<int32_t> order;
  topology.graph_ = Digraph(num_nodes, arcs, &order);
  topology.spec_.reserve(arcs.size());
  for (int32_t arc : order)
    topology.spec_.push_back(pending_[call_of_arc[static_cast<size_t>(arc)]].spec);

  if (!host_limits_.empty()) topology.host_bandwidth_.resize(static_cast<size_t>(num_ranks_), 0);
  for (const auto& [rank, bandwidth] : host_limits_)
    topology.host_bandwidth_[rank.index()] = bandwidth;
  if (!reducing_.empty()) topology.reducing_.resize(static_cast<size_t>(num_switches_), false);
  for (NodeId node : reducing_)
    topology.reducing_[node.index() - static_cast<size_t>(num_ranks_)] = true;

  if (node_names_.empty())
    for (int32_t node = 0; node < num_nodes; ++node) node_names_.push_back(std::to_string(node));
  if (const auto fault = FaultOfNames(node_names_, static_cast<size_t>(num_nodes)))
    return InvalidArgument(*fault);
  topology.node_name_ = std::move(node_names_);

  const Connectivity connectivity = CheckStronglyConnected(topology.graph_);
  if (!connectivity.strongly_connected)
    return InvalidArgument(
        fmt::format("the network is disconnected: no way leads from '{}' to '{}'",
                    topology.node_name(connectivity.from), topology.node_name(connectivity.to)));
  if (const auto fault = FaultOfOrigin(origin_, num_ranks_)) return InvalidArgument(*fault);
  topology.origin_ = std::move(origin_);
  return topology;
}

Topology Topology::WithOrigin(TopologyOrigin origin) && {
  TUTTI_CHECK(!FaultOfOrigin(origin, num_ranks_));
  origin_ = std::move(origin);
  return std::move(*this);
}

std::span<const LinkSpec> Topology::self_loops(NodeId node) const {
  if (self_loops_.empty()) return {};
  return self_loops_[node.index()];
}
std::optional<int64_t> Topology::host_bandwidth(NodeId rank) const {
  if (host_bandwidth_.empty() || host_bandwidth_[rank.index()] == 0) return std::nullopt;
  return host_bandwidth_[rank.index()];
}
int32_t Topology::in_degree(NodeId node) const {
  return static_cast<int32_t>(InLinks(node).size() + self_loops(node).size());
}
int32_t Topology::out_degree(NodeId node) const {
  return OutLinks(node).size() + static_cast<int32_t>(self_loops(node).size());
}

std::optional<int32_t> Topology::regular_degree() const {
  const int32_t degree = in_degree(NodeId{0});
  for (NodeId node : Nodes())
    if (in_degree(node) != degree || out_degree(node) != degree) return std::nullopt;
  return degree;
}

bool Topology::is_homogeneous() const {
  std::optional<LinkSpec> first;
  const auto same = [&first](const LinkSpec& spec) {
    if (!first) first = spec;
    return spec == *first;
  };
  for (LinkId link : Links())
    if (!same(spec(link))) return false;
  for (NodeId node : Nodes())
    for (const LinkSpec& loop : self_loops(node))
      if (!same(loop)) return false;
  return true;
}

int64_t Topology::max_in_bandwidth() const {
  int64_t most = 0;
  for (NodeId rank : Ranks()) {
    int64_t total = 0;
    for (LinkId link : InLinks(rank)) total += bandwidth(link);
    for (const LinkSpec& loop : self_loops(rank)) total += loop.bandwidth;
    most = std::max(most, total);
  }
  return most;
}

int64_t Topology::min_bandwidth() const {
  int64_t least = spec_.empty() ? 0 : spec_[0].bandwidth;
  for (const LinkSpec& spec : spec_) least = std::min(least, spec.bandwidth);
  return least;
}

uint64_t Topology::Fingerprint() const {
  Fnv1a hash;
  hash.AddWord(num_ranks_);
  hash.AddWord(num_nodes());
  for (LinkId link : Links()) {
    hash.AddWord(tail(link).value);
    hash.AddWord(head(link).value);
    hash.AddWord(bandwidth(link));
    hash.AddWord(alpha_ps(link));
  }
  for (NodeId node : Nodes())
    for (const LinkSpec& loop : self_loops(node)) {
      hash.AddWord(node.value);
      hash.AddWord(loop.bandwidth);
      hash.AddWord(loop.alpha_ps);
    }
  for (NodeId rank : Ranks())
    if (const auto bandwidth = host_bandwidth(rank)) {
      hash.AddWord(-1);  // no link and no self-loop begins so
      hash.AddWord(rank.value);
      hash.AddWord(*bandwidth);
    }
  if (has_reducing_switches())
    for (NodeId node : Nodes())
      if (!is_rank(node) && reduces(node)) {
        hash.AddWord(-2);  // nothing else begins so
        hash.AddWord(node.value);
      }
  return hash.value();
}

std::string Topology::ToText() const {
  std::string text =
      fmt::format("topology ranks={} switches={}\n", num_ranks(), num_nodes() - num_ranks());
  for (LinkId link : Links())
    text += fmt::format("link {} -> {} bandwidth={} alpha_ps={}\n", tail(link).value,
                        head(link).value, bandwidth(link), alpha_ps(link));
  for (NodeId node : Nodes())
    for (const LinkSpec& loop : self_loops(node))
      text += fmt::format("self-loop {} bandwidth={} alpha_ps={}\n", node.value, loop.bandwidth,
                          loop.alpha_ps);
  for (NodeId rank : Ranks())
    if (const auto bandwidth = host_bandwidth(rank))
      text += fmt::format("host {} bandwidth={}\n", rank.value, *bandwidth);
  for (NodeId node : Nodes())
    if (!is_rank(node) && reduces(node)) text += fmt::format("reduces {}\n", node.value);
  return text;
}

}  // namespace tutti
