#include "draft.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "tutti/topo/properties.h"

namespace tutti::topo {

int64_t SaturatingPow(int64_t base, int64_t exponent) {
  if (base <= 1) return exponent == 0 ? 1 : base;
  int64_t power = 1;
  for (int64_t i = 0; i < exponent && power < std::numeric_limits<int64_t>::max(); ++i)
    power = SaturatingMul(power, base);
  return power;
}

LinkSpec LinkParameters::Share(size_t dimension, int64_t links) const {
  LinkSpec spec = Link(dimension);
  if (bandwidth.given() && bandwidth_is_shared) spec.bandwidth /= links * parallel;
  return spec;
}

LinkSpec LinkParameters::Override(LinkSpec spec, size_t dimension) const {
  if (bandwidth.given()) spec.bandwidth = bandwidth.at(dimension);
  if (alpha_ps.given()) spec.alpha_ps = alpha_ps.at(dimension);
  return spec;
}

Result<Topology> FinishDraft(Draft draft, int64_t parallel, const std::string& expression) {
  const auto key = [](const DraftLink& link) {
    return std::tuple(link.tail, link.head, link.spec.bandwidth, link.spec.alpha_ps);
  };
  std::sort(draft.links.begin(), draft.links.end(),
            [&key](const DraftLink& a, const DraftLink& b) { return key(a) < key(b); });
  Topology::Builder builder(draft.num_ranks, draft.num_switches);
  for (const DraftLink& link : draft.links)
    for (int64_t copy = 0; copy < parallel; ++copy)
      builder.AddLink(NodeId{link.tail}, NodeId{link.head}, link.spec);
  builder.SetName(expression);
  builder.SetExpression(expression);
  builder.SetNodeNames(std::move(draft.names));
  for (size_t rank = 0; rank < draft.host_bandwidth.size(); ++rank)
    if (draft.host_bandwidth[rank] > 0)
      builder.SetHostBandwidth(NodeId{static_cast<int32_t>(rank)}, draft.host_bandwidth[rank]);
  for (const int32_t node : draft.reducing) builder.SetReduces(NodeId{node});
  if (draft.grid) builder.SetGrid(*std::move(draft.grid));
  builder.SetOriginal(std::move(draft.original));
  return std::move(builder).Build();
}

void KeepReducing(const Topology& topology, Draft& draft) {
  for (NodeId node : topology.Nodes())
    if (!topology.is_rank(node) && topology.reduces(node)) draft.reducing.push_back(node.value);
}

bool KeepsExpression(const Topology& operand, std::string_view family) {
  // The ranks of a line digraph are counted in the order of the links.
  return !operand.expression().empty() && (family != "line" || HasOrderedLinks(operand));
}

}  // namespace tutti::topo
