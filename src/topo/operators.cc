#include "tutti/topo/operators.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "families/family.h"

namespace tutti {
namespace {

// The operator `name` applied to `operands` and `sizes`, as if it had been written.
Result<Topology> Apply(const char* name, std::span<const Topology> operands,
                       std::vector<int64_t> sizes) {
  topo::FamilyCall call;
  call.family = topo::FindFamily(name);
  std::string text, expression;
  bool named = true, known = true;
  for (const Topology& operand : operands) {
    text += "," + operand.name();
    expression += "," + operand.expression();
    named = named && !operand.name().empty();
    known = known && topo::KeepsExpression(operand, name);
    call.operands.push_back(operand);
  }
  for (std::string* one : {&text, &expression}) {
    for (int64_t size : sizes) *one += fmt::format(",{}", size);
    *one = fmt::format("{}({})", name, one->substr(1));
  }
  call.sizes = std::move(sizes);
  call.size_columns.assign(call.sizes.size(), 1);
  call.options.resize(call.family->options.size());
  Result<topo::Draft> draft = call.family->build(call);
  if (!draft) {
    // There is no text in which a column would tell anything.
    std::string message = std::move(draft.error().message);
    if (message.starts_with("column 1: ")) message.erase(0, sizeof("column 1: ") - 1);
    return MakeError(draft.error().code, std::move(message));
  }
  Result<Topology> topology =
      topo::FinishDraft(*std::move(draft), 1, known ? expression : std::string());
  if (!topology) return topology;
  TopologyOrigin origin = topology->origin();
  origin.name = named ? text : "";
  return (*std::move(topology)).WithOrigin(std::move(origin));
}

}  // namespace

Result<Topology> LineDigraph(const Topology& base) { return Apply("line", {&base, 1}, {}); }

Result<Topology> DegreeExpansion(const Topology& base, int64_t n) {
  return Apply("degree", {&base, 1}, {n});
}

Result<Topology> CartesianPower(const Topology& base, int64_t n) {
  return Apply("power", {&base, 1}, {n});
}

Result<Topology> CartesianProduct(std::span<const Topology> factors) {
  if (factors.empty()) return InvalidArgument("a product of no networks, wanted at least one");
  return Apply("product", factors, {});
}

Result<Topology> BidirectionalUnion(const Topology& base) {
  return Apply("bidirectional", {&base, 1}, {});
}

Result<Topology> HostForwarding(const Topology& base) {
  return Apply("host_forwarding", {&base, 1}, {});
}

Result<Topology> NicForwarding(const Topology& base) {
  return Apply("nic_forwarding", {&base, 1}, {});
}

Result<Topology> HostLimitsAsLinks(const Topology& base) {
  if (base.has_host_limits()) return HostForwarding(base);
  return base;
}

std::vector<LinePort> LinePorts(const Topology& base) {
  std::vector<LinePort> ports;
  for (NodeId node : base.Nodes()) {
    for (LinkId link : base.OutLinks(node)) ports.push_back({node, base.head(link), link});
    for (size_t loop = 0; loop < base.self_loops(node).size(); ++loop)
      ports.push_back({node, node, std::nullopt});
  }
  return ports;
}

}  // namespace tutti
