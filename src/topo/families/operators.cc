// Operators: networks made from networks.
#include "tutti/topo/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "families/family.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace topo {
namespace {

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

int64_t CountPorts(const Topology& topology) {
  int64_t ports = topology.num_links();
  for (NodeId node : topology.Nodes())
    ports += static_cast<int64_t>(topology.self_loops(node).size());
  return ports;
}

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
  KeepReducing(base, *draft);
  draft->grid = base.grid();
  if (base.original() != nullptr && !call.ChangesLinks())
    draft->original = std::make_shared<const Topology>(TransposeTopology(*base.original()));
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
  KeepReducing(base, *draft);
  draft->grid = base.grid();
  return draft;
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
}  // namespace topo

Result<int64_t> LargestUnwinding(const Topology& base) {
  using topo::Attachment;
  int64_t largest = std::max<int64_t>(1, base.num_ranks() - 1);
  for (NodeId node : base.Nodes()) {
    if (base.is_rank(node)) continue;
    const std::vector<Attachment> around = topo::AttachmentsOf(base, node);
    const std::string& name = base.node_name(node);
    if (!base.is_rank(around.back().node))
      return MakeError(
          ErrorCode::kInfeasible,
          fmt::format("switch '{}' is linked to switch '{}', and only switches between ranks can "
                      "be unwound; 'forest' and 'ten' pass through such switches and reduce at "
                      "ranks, 'direct' and 'tsmcf' pass through them",
                      name, base.node_name(around.back().node)));
    for (const Attachment& one : around)
      if (one.up == 0 || one.down == 0)
        return MakeError(ErrorCode::kInfeasible,
                         fmt::format("switch '{}' has a link {} rank '{}' and none back; only "
                                     "switches linked both ways to each of their ranks can be "
                                     "unwound",
                                     name, one.up == 0 ? "to" : "from", base.node_name(one.node)));
    largest = std::min(largest, static_cast<int64_t>(around.size()) - 1);
  }
  if (largest < 1)
    return MakeError(ErrorCode::kInfeasible,
                     "a switch with one rank only leads nowhere and cannot be unwound");
  return largest;
}

namespace topo {

// [tacos] III-G: a switch with neighbours 0 .. n-1 becomes links i -> i + 1, .., i + d modulo n,
// each with a d-th of the bandwidth and the alpha of the links to the switch.
Result<Draft> BuildUnwind(const FamilyCall& call) {
  const Topology& base = call.operands[0];
  const Result<int64_t> largest = LargestUnwinding(base);
  if (!largest) return call.Fault(largest.error().message);
  if (!call.options[0])
    return call.Fault(fmt::format("degree= is missing, wanted 1 .. {}", *largest));
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
    const size_t n = ranks.size();
    if (degree >= static_cast<int64_t>(n))
      return call.Fault(fmt::format("got degree={}, but switch '{}' has {} ranks: at most {}",
                                    degree, base.node_name(node), n, n - 1));
    for (size_t i = 0; i < n; ++i)
      for (size_t step = 1; step <= static_cast<size_t>(degree); ++step) {
        const Attachment& to = ranks[(i + step) % n];
        const int64_t bandwidth = std::min(ranks[i].up, to.down);
        if (bandwidth < degree)
          return call.Fault(fmt::format("got degree={}, but switch '{}' has {} B/s a rank", degree,
                                        base.node_name(node), bandwidth));
        const LinkSpec spec{.bandwidth = bandwidth / degree,
                            .alpha_ps = std::max(ranks[i].alpha_ps, to.alpha_ps)};
        draft->AddLink(ranks[i].node.value, to.node.value, call.links.Override(spec, 0));
      }
  }
  KeepNames(base, base.num_ranks(), *draft);
  KeepHostLimits(base, *draft);
  // With links of other parameters it is no longer what the switches can carry.
  if (!call.ChangesLinks())
    draft->original =
        base.has_switches() ? std::make_shared<const Topology>(base) : base.origin().original;
  return draft;
}

}  // namespace topo
}  // namespace tutti
