// Operators: networks made from networks.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "families/family.h"
#include "tutti/base/random.h"
#include "tutti/graph/distance.h"
#include "tutti/topo/properties.h"

namespace tutti::topo {
namespace {

// Links and self-loops.
int64_t CountPorts(const Topology& topology) {
  int64_t ports = topology.num_links();
  for (NodeId node : topology.Nodes())
    ports += static_cast<int64_t>(topology.self_loops(node).size());
  return ports;
}

// visit(tail, head, spec) for every link and self-loop.
template <class Visit>
void ForEachPort(const Topology& topology, const Visit& visit) {
  for (LinkId link : topology.Links())
    visit(topology.tail(link).value, topology.head(link).value, topology.spec(link));
  for (NodeId node : topology.Nodes())
    for (const LinkSpec& loop : topology.self_loops(node)) visit(node.value, node.value, loop);
}

void KeepHostLimits(const Topology& topology, Draft& draft) {
  if (!topology.has_host_limits()) return;
  for (NodeId rank : topology.Ranks())
    draft.host_bandwidth.push_back(topology.host_bandwidth(rank).value_or(0));
}

bool HasNames(const Topology& topology) {
  for (NodeId node : topology.Nodes())
    if (topology.node_name(node) != std::to_string(node.value)) return true;
  return false;
}

void KeepNames(const Topology& topology, int32_t num_nodes, Draft& draft) {
  if (!HasNames(topology)) return;
  for (NodeId node : IdRange<NodeId>{0, num_nodes}) draft.names.push_back(topology.node_name(node));
}

}  // namespace

Status CheckNoHostLimits(const FamilyCall& call) {
  for (const Topology& operand : call.operands)
    if (operand.has_host_limits())
      return call.Fault(
          "a network with host limits, whose ranks are not those of the result; give host_bw= to "
          "the whole");
  return {};
}

namespace {

// Cartesian product. Node (v_1, v_2, ...) is row-major, the first factor slowest.
Result<Draft> BuildProductOf(const FamilyCall& call, const std::vector<const Topology*>& factors) {
  if (Status status = CheckNoHostLimits(call); !status) return tl::unexpected(status.error());
  int64_t ranks = 1;
  for (const Topology* factor : factors) {
    if (factor->has_switches())
      return call.Fault("a factor has switches, wanted ranks only; unwind it first");
    ranks = SaturatingMul(ranks, factor->num_nodes());
  }
  int64_t ports = 0;
  for (const Topology* factor : factors)
    ports = SaturatingAdd(ports, SaturatingMul(CountPorts(*factor), ranks / factor->num_nodes()));
  Result<Draft> draft = call.Start(ranks, 0, ports, factors.size());
  if (!draft) return draft;
  int64_t stride = ranks;
  for (size_t f = 0; f < factors.size(); ++f) {
    const int64_t size = factors[f]->num_nodes();
    stride /= size;
    ForEachPort(*factors[f], [&](int64_t tail, int64_t head, LinkSpec spec) {
      spec = call.links.Override(spec, f);
      for (int64_t before = 0; before < ranks; before += stride * size)
        for (int64_t after = 0; after < stride; ++after)
          draft->AddLink(before + tail * stride + after, before + head * stride + after, spec);
    });
  }
  return draft;
}

}  // namespace

// [direct-connect] Definition 3.
Result<Draft> BuildProduct(const FamilyCall& call) {
  std::vector<const Topology*> factors;
  for (const Topology& operand : call.operands) factors.push_back(&operand);
  return BuildProductOf(call, factors);
}

Result<Draft> BuildPower(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 1, 64); !status) return tl::unexpected(status.error());
  return BuildProductOf(
      call, std::vector<const Topology*>(static_cast<size_t>(call.sizes[0]), &call.operands[0]));
}

Result<Draft> BuildTranspose(const FamilyCall& call) {
  const Topology& base = call.operands[0];
  Result<Draft> draft =
      call.Start(base.num_ranks(), base.num_nodes() - base.num_ranks(), CountPorts(base), 1);
  if (!draft) return draft;
  ForEachPort(base, [&](int32_t tail, int32_t head, LinkSpec spec) {
    draft->AddLink(head, tail, call.links.Override(spec, 0));
  });
  KeepNames(base, base.num_nodes(), *draft);
  KeepHostLimits(base, *draft);
  draft->grid = base.grid();
  return draft;
}

// [direct-connect] A.6: the union of G and its transpose, so that degree d becomes 2 d. A network
// that is bidirectional already stays as it is.
Result<Draft> BuildBidirectional(const FamilyCall& call) {
  const Topology& base = call.operands[0];
  const std::vector<Cable> cables = CablesOf(base);
  const bool stays = std::all_of(cables.begin(), cables.end(),
                                 [](const Cable& cable) { return cable.back.has_value(); });
  Result<Draft> draft = call.Start(base.num_ranks(), base.num_nodes() - base.num_ranks(),
                                   SaturatingMul(CountPorts(base), stays ? 1 : 2), 1);
  if (!draft) return draft;
  ForEachPort(base, [&](int32_t tail, int32_t head, LinkSpec spec) {
    spec = call.links.Override(spec, 0);
    draft->AddLink(tail, head, spec);
    if (!stays) draft->AddLink(head, tail, spec);
  });
  KeepNames(base, base.num_nodes(), *draft);
  KeepHostLimits(base, *draft);
  draft->grid = base.grid();
  return draft;
}

namespace {

// One draw of without(): which nodes and links are gone.
struct Puncture {
  std::vector<char> node_gone, link_gone;
};

// The first `count` of `items` become a uniform draw without replacement.
template <class Item>
void DrawFirst(std::vector<Item>& items, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) std::swap(items[i], items[i + random.Below(items.size() - i)]);
}

// False when too few cables would be left.
bool DrawPuncture(const Topology& base, const std::vector<Cable>& cables, size_t num_links,
                  size_t num_nodes, Random& random, Puncture& puncture) {
  puncture.node_gone.assign(static_cast<size_t>(base.num_nodes()), 0);
  puncture.link_gone.assign(static_cast<size_t>(base.num_links()), 0);
  std::vector<NodeId> nodes;
  for (NodeId node : base.Nodes()) nodes.push_back(node);
  DrawFirst(nodes, num_nodes, random);
  for (size_t i = 0; i < num_nodes; ++i) puncture.node_gone[nodes[i].index()] = 1;
  std::vector<Cable> left;
  for (const Cable& cable : cables)
    if (!puncture.node_gone[base.tail(cable.there).index()] &&
        !puncture.node_gone[base.head(cable.there).index()])
      left.push_back(cable);
  // Fewer cables than it takes to join the nodes cannot do.
  if (left.size() < num_links + nodes.size() - num_nodes - 1) return false;
  DrawFirst(left, num_links, random);
  for (size_t i = 0; i < num_links; ++i) {
    puncture.link_gone[left[i].there.index()] = 1;
    if (left[i].back) puncture.link_gone[left[i].back->index()] = 1;
  }
  return true;
}

// New numbers of the nodes that stay, in the old order; -1 for the others.
std::vector<int32_t> Renumber(const std::vector<char>& gone) {
  std::vector<int32_t> number(gone.size(), -1);
  int32_t next = 0;
  for (size_t node = 0; node < gone.size(); ++node)
    if (!gone[node]) number[node] = next++;
  return number;
}

bool IsConnected(const Topology& base, const Puncture& puncture,
                 const std::vector<int32_t>& number) {
  std::vector<Digraph::Arc> arcs;
  for (LinkId link : base.Links()) {
    const int32_t tail = number[base.tail(link).index()];
    const int32_t head = number[base.head(link).index()];
    if (tail >= 0 && head >= 0 && !puncture.link_gone[link.index()])
      arcs.emplace_back(NodeId{tail}, NodeId{head});
  }
  const auto left = std::count(puncture.node_gone.begin(), puncture.node_gone.end(), 0);
  const Digraph graph(static_cast<int32_t>(left), arcs);
  return CheckStronglyConnected(graph).strongly_connected;
}

Result<Draft> BuildPunctured(const FamilyCall& call, const Puncture& puncture,
                             const std::vector<int32_t>& number) {
  const Topology& base = call.operands[0];
  int32_t ranks = 0, nodes = 0;
  for (NodeId node : base.Nodes()) {
    if (number[node.index()] < 0) continue;
    ++nodes;
    ranks += base.is_rank(node) ? 1 : 0;
  }
  Result<Draft> draft = call.Start(ranks, nodes - ranks, CountPorts(base), 1);
  if (!draft) return draft;
  for (NodeId node : base.Nodes()) {
    if (number[node.index()] < 0) continue;
    draft->names.push_back(base.node_name(node));
    if (base.has_host_limits() && base.is_rank(node))
      draft->host_bandwidth.push_back(base.host_bandwidth(node).value_or(0));
    for (const LinkSpec& loop : base.self_loops(node))
      draft->AddLink(number[node.index()], number[node.index()], call.links.Override(loop, 0));
  }
  for (LinkId link : base.Links()) {
    const int32_t tail = number[base.tail(link).index()];
    const int32_t head = number[base.head(link).index()];
    if (tail >= 0 && head >= 0 && !puncture.link_gone[link.index()])
      draft->AddLink(tail, head, call.links.Override(base.spec(link), 0));
  }
  return draft;
}

}  // namespace

// Nodes are drawn first, then cables among what is left. A draw that disconnects the network, or
// leaves no rank, is drawn again.
Result<Draft> BuildWithout(const FamilyCall& call) {
  constexpr int kDraws = 1000;
  const Topology& base = call.operands[0];
  const int64_t links = call.options[0].value_or(0);
  const int64_t nodes = call.options[1].value_or(0);
  const std::vector<Cable> cables = CablesOf(base);
  if (nodes >= base.num_nodes())
    return call.Fault(
        fmt::format("nodes={} of {}: at least one must stay", nodes, base.num_nodes()));
  if (links > static_cast<int64_t>(cables.size()))
    return call.Fault(fmt::format("links={}: the network has {} cables", links, cables.size()));
  Random random(static_cast<uint64_t>(call.options[2].value_or(1)));
  Puncture puncture;
  for (int draw = 0; draw < kDraws; ++draw) {
    if (!DrawPuncture(base, cables, static_cast<size_t>(links), static_cast<size_t>(nodes), random,
                      puncture))
      continue;
    const std::vector<int32_t> number = Renumber(puncture.node_gone);
    const bool has_rank = std::any_of(number.begin(), number.begin() + base.num_ranks(),
                                      [](int32_t node) { return node >= 0; });
    if (!has_rank || !IsConnected(base, puncture, number)) continue;
    Result<Draft> draft = BuildPunctured(call, puncture, number);
    if (draft && links == 0 && nodes == 0) draft->grid = base.grid();
    return draft;
  }
  return call.Fault(
      fmt::format("every one of {} draws without {} cables and {} nodes left the "
                  "network disconnected; remove less or try another seed",
                  kDraws, links, nodes));
}

namespace {

// What a switch has on one of its sides: the neighbours' total bandwidth and largest alpha.
struct Attachment {
  NodeId node{0};
  int64_t up = 0, down = 0;  // bytes/s into and out of the switch
  int64_t alpha_ps = 0;
};

std::vector<Attachment> AttachmentsOf(const Topology& topology, NodeId node) {
  std::vector<Attachment> attachments;
  const auto at = [&attachments](NodeId neighbour) -> Attachment& {
    for (Attachment& one : attachments)
      if (one.node == neighbour) return one;
    attachments.push_back({.node = neighbour});
    return attachments.back();
  };
  for (LinkId link : topology.InLinks(node)) {
    Attachment& one = at(topology.tail(link));
    one.up += topology.bandwidth(link);
    one.alpha_ps = std::max(one.alpha_ps, topology.alpha_ps(link));
  }
  for (LinkId link : topology.OutLinks(node)) {
    Attachment& one = at(topology.head(link));
    one.down += topology.bandwidth(link);
    one.alpha_ps = std::max(one.alpha_ps, topology.alpha_ps(link));
  }
  std::sort(attachments.begin(), attachments.end(),
            [](const Attachment& a, const Attachment& b) { return a.node < b.node; });
  return attachments;
}

}  // namespace

// [tacos] III-G: a switch with neighbours 0 .. n-1 becomes links i -> i + 1, .., i + d modulo n,
// each with a d-th of the bandwidth and the alpha of the links to the switch.
Result<Draft> BuildUnwind(const FamilyCall& call) {
  const Topology& base = call.operands[0];
  if (!call.options[0]) return call.Fault("degree= is missing");
  const int64_t degree = *call.options[0];
  if (degree < 1) return call.Fault(fmt::format("got degree={}, wanted at least 1", degree));
  int64_t ports = CountPorts(base);
  for (NodeId node : base.Nodes())
    if (!base.is_rank(node))
      ports = SaturatingAdd(ports,
                            SaturatingMul(degree, static_cast<int64_t>(base.InLinks(node).size())));
  Result<Draft> draft = call.Start(base.num_ranks(), 0, ports, 1);
  if (!draft) return draft;
  ForEachPort(base, [&](int32_t tail, int32_t head, LinkSpec spec) {
    if (base.is_rank(NodeId{tail}) && base.is_rank(NodeId{head}))
      draft->AddLink(tail, head, call.links.Override(spec, 0));
  });
  for (NodeId node : base.Nodes()) {
    if (base.is_rank(node)) continue;
    const std::vector<Attachment> ranks = AttachmentsOf(base, node);
    if (ranks.back().node.value >= base.num_ranks())
      return call.Fault(fmt::format("switch '{}' is linked to switch '{}', wanted ranks only",
                                    base.node_name(node), base.node_name(ranks.back().node)));
    const size_t n = ranks.size();
    if (degree >= static_cast<int64_t>(n))
      return call.Fault(fmt::format("got degree={}, but switch '{}' has {} ranks: at most {}",
                                    degree, base.node_name(node), n, n - 1));
    for (size_t i = 0; i < n; ++i)
      for (size_t step = 1; step <= static_cast<size_t>(degree); ++step) {
        const Attachment& to = ranks[(i + step) % n];
        const LinkSpec spec{.bandwidth = std::min(ranks[i].up, to.down) / degree,
                            .alpha_ps = std::max(ranks[i].alpha_ps, to.alpha_ps)};
        draft->AddLink(ranks[i].node.value, to.node.value, call.links.Override(spec, 0));
      }
  }
  KeepNames(base, base.num_ranks(), *draft);
  KeepHostLimits(base, *draft);
  return draft;
}

}  // namespace tutti::topo
