#include "tutti/training/parallel_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tutti {
namespace {

constexpr int32_t kNobody = -1;   // of a switch that serves no rank
constexpr int32_t kSeveral = -2;  // of a switch that serves several groups

// What groups of one kind have in common.
struct Kind {
  const char* name;  // "tensor-parallel"
  int32_t count = 0;
  std::function<int32_t(int32_t rank)> group_of;
  std::optional<GridShape> grid;  // of each group
};

// The group of each node: switches take that of all ranks they and the switches behind them serve.
std::vector<int32_t> GroupOfNodes(const Topology& topology, const Kind& kind) {
  std::vector<int32_t> group(static_cast<size_t>(topology.num_nodes()), kNobody);
  for (NodeId rank : topology.Ranks()) group[rank.index()] = kind.group_of(rank.value);
  std::vector<bool> seen(group.size(), false);
  std::vector<NodeId> linked;  // switches that count as one
  for (NodeId start : topology.Nodes()) {
    if (topology.is_rank(start) || seen[start.index()]) continue;
    linked.assign(1, start);
    seen[start.index()] = true;
    int32_t served = kNobody;
    const auto meet = [&](NodeId other) {
      if (topology.is_rank(other)) {
        const int32_t its = group[other.index()];
        served = served == kNobody || served == its ? its : kSeveral;
      } else if (!seen[other.index()]) {
        seen[other.index()] = true;
        linked.push_back(other);
      }
    };
    for (size_t next = 0; next < linked.size(); ++next) {
      const NodeId node = linked[next];
      for (LinkId link : topology.OutLinks(node)) meet(topology.head(link));
      for (LinkId link : topology.InLinks(node)) meet(topology.tail(link));
    }
    for (NodeId node : linked) group[node.index()] = served;
  }
  return group;
}

// The ranks of one group, as messages show them: "0, 4, 8, .. (16 ranks)".
std::string RanksText(const Topology& topology, const std::vector<int32_t>& group, int32_t which) {
  constexpr int32_t kShown = 3;
  std::string text;
  int32_t count = 0;
  for (NodeId rank : topology.Ranks()) {
    if (group[rank.index()] != which) continue;
    if (++count > kShown) continue;
    text += fmt::format("{}{}", count == 1 ? "" : ", ", rank.value);
  }
  return count > kShown ? fmt::format("{}, .. ({} ranks)", text, count) : text;
}

Result<Topology> NetworkOfKind(const Topology& topology, const Kind& kind) {
  const std::vector<int32_t> group = GroupOfNodes(topology, kind);
  const auto count = static_cast<size_t>(kind.count);
  std::vector<int32_t> ranks(count, 0), switches(count, 0), place(group.size(), 0);
  for (NodeId node : topology.Nodes()) {
    if (group[node.index()] < 0) continue;
    const auto own = static_cast<size_t>(group[node.index()]);
    place[node.index()] = ranks[own] + switches[own];
    ++(topology.is_rank(node) ? ranks[own] : switches[own]);
  }
  std::vector<Topology::Builder> builders;
  builders.reserve(count);
  for (size_t i = 0; i < count; ++i) builders.emplace_back(ranks[i], switches[i]);
  for (NodeId node : topology.Nodes()) {
    const int32_t own = group[node.index()];
    if (own < 0) continue;
    Topology::Builder& builder = builders[static_cast<size_t>(own)];
    const NodeId tail{place[node.index()]};
    for (LinkId link : topology.OutLinks(node)) {
      const NodeId head = topology.head(link);
      if (group[head.index()] == own)
        builder.AddLink(tail, NodeId{place[head.index()]}, topology.spec(link));
    }
    for (const LinkSpec& loop : topology.self_loops(node)) builder.AddLink(tail, tail, loop);
    if (!topology.is_rank(node) && topology.reduces(node)) builder.SetReduces(tail);
  }
  std::optional<Topology> first;
  for (int32_t i = 0; i < kind.count; ++i) {
    Topology::Builder& builder = builders[static_cast<size_t>(i)];
    builder.SetName(fmt::format("a {} group of {}", kind.name, topology.name()));
    if (kind.grid) builder.SetGrid(*kind.grid);
    Result<Topology> network = std::move(builder).Build();
    if (!network)
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("the {} group of ranks {} has no network of its own: {}", kind.name,
                      RanksText(topology, group, i), network.error().message));
    if (!first) {
      first = *std::move(network);
    } else if (first->Fingerprint() != network->Fingerprint()) {
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("the {} groups of ranks {} and of ranks {} have unlike networks", kind.name,
                      RanksText(topology, group, 0), RanksText(topology, group, i)));
    }
  }
  return *std::move(first);
}

}  // namespace

Result<ParallelGroups> MakeParallelGroups(const Topology& topology, int64_t tensor) {
  const int32_t n = topology.num_ranks();
  if (tensor < 1 || tensor > n || n % tensor != 0)
    return InvalidArgument(fmt::format(
        "{} ranks a replica; accepted are the divisors of the network's {} ranks", tensor, n));
  ParallelGroups groups;
  if (tensor == 1 || tensor == n) {
    if (n > 1) (tensor == 1 ? groups.data : groups.tensor) = topology;
    return groups;
  }
  const auto size = static_cast<int32_t>(tensor);
  Kind blocks{"tensor-parallel", n / size, [size](int32_t rank) { return rank / size; }, {}};
  Kind places{"data-parallel", size, [size](int32_t rank) { return rank % size; }, {}};
  if (const auto& grid = topology.grid()) {
    size_t cut = grid->dims.size();
    int64_t inside = 1;
    while (cut > 0 && inside < tensor) inside *= grid->dims[--cut];
    if (inside == tensor) {
      const auto at = grid->dims.begin() + static_cast<std::ptrdiff_t>(cut);
      places.grid = GridShape{{grid->dims.begin(), at}, grid->wraps};
      blocks.grid = GridShape{{at, grid->dims.end()}, grid->wraps};
    }
  }
  for (const Kind* kind : {&blocks, &places}) {
    Result<Topology> network = NetworkOfKind(topology, *kind);
    if (!network) return tl::unexpected(network.error());
    (kind == &blocks ? groups.tensor : groups.data) = *std::move(network);
  }
  return groups;
}

}  // namespace tutti
