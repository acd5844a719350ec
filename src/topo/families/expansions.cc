// Expansions: larger networks of known performance from small ones ([direct-connect] appendix D;
// the Cartesian product is in operators.cc).
#include <utility>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

// The heads of each node's ports, links before self-loops: all that a line digraph depends on.
using Heads = std::vector<std::vector<int32_t>>;

Heads HeadsOf(const Topology& topology) {
  Heads heads;
  for (NodeId node : topology.Nodes()) {
    heads.emplace_back();
    for (LinkId link : topology.OutLinks(node)) heads.back().push_back(topology.head(link).value);
    heads.back().insert(heads.back().end(), topology.self_loops(node).size(), node.value);
  }
  return heads;
}

int64_t CountHeads(const Heads& heads) {
  int64_t ports = 0;
  for (const std::vector<int32_t>& out : heads) ports += static_cast<int64_t>(out.size());
  return ports;
}

// Ports of the line digraph.
int64_t CountWalksOfTwo(const Heads& heads) {
  int64_t walks = 0;
  for (const std::vector<int32_t>& out : heads)
    for (int32_t head : out) walks += static_cast<int64_t>(heads[static_cast<size_t>(head)].size());
  return walks;
}

Heads LineOf(const Heads& heads) {
  std::vector<int32_t> first{0};  // the number of each node's first port
  for (const std::vector<int32_t>& out : heads)
    first.push_back(first.back() + static_cast<int32_t>(out.size()));
  Heads line;
  for (const std::vector<int32_t>& out : heads)
    for (int32_t head : out) {
      line.emplace_back();
      const auto at = static_cast<size_t>(head);
      for (int32_t port = first[at]; port < first[at + 1]; ++port) line.back().push_back(port);
    }
  return line;
}

}  // namespace

// Definition 12. The ranks are the links and self-loops of G, by their tails; u -> v sends to every
// v -> w. Link parameters are those of G, which must be homogeneous.
Result<Draft> BuildLine(const FamilyCall& call) {
  constexpr int64_t kMaxTimes = 64;
  const Topology& base = call.operands[0];
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  if (!call.sizes.empty() && call.options[0]) return call.Fault("k stands there twice");
  const int64_t times = call.sizes.empty() ? call.options[0].value_or(1) : call.sizes[0];
  if (times < 1 || times > kMaxTimes) return call.Fault("wanted 1 <= k <= 64");
  if (base.has_switches()) return call.Fault("the network has switches; unwind it first");
  if (Status status = CheckNoHostLimits(call); !status) return tl::unexpected(status.error());
  if (!base.is_homogeneous())
    return call.Fault("the links of the network differ in bandwidth or alpha, wanted all alike");
  Heads heads = HeadsOf(base);
  if (CountHeads(heads) == 0) return call.Fault("the network has no links");
  const LinkSpec spec = call.links.Override(
      base.num_links() > 0 ? base.spec(LinkId{0}) : base.self_loops(NodeId{0})[0], 0);
  for (int64_t time = 1;; ++time) {
    Result<Draft> draft = call.Start(CountHeads(heads), 0, CountWalksOfTwo(heads), 1);
    if (!draft) return draft;
    heads = LineOf(heads);
    if (time < times) continue;
    for (size_t node = 0; node < heads.size(); ++node)
      for (int32_t head : heads[node]) draft->AddLink(static_cast<int64_t>(node), head, spec);
    return draft;
  }
}

// Definition 13. Node v becomes n v, .., n v + n - 1; each link u -> v one from every u_i to every
// v_j.
Result<Draft> BuildDegree(const FamilyCall& call) {
  const Topology& base = call.operands[0];
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  if (base.has_switches()) return call.Fault("the network has switches; unwind it first");
  if (Status status = CheckNoHostLimits(call); !status) return tl::unexpected(status.error());
  for (NodeId node : base.Nodes())
    if (!base.self_loops(node).empty())
      return call.Fault("the network has self-loops, wanted none ([direct-connect] D.2)");
  const int64_t n = call.sizes[0];
  Result<Draft> draft = call.Start(SaturatingMul(base.num_nodes(), n), 0,
                                   SaturatingMul(base.num_links(), SaturatingMul(n, n)), 1);
  if (!draft) return draft;
  for (LinkId link : base.Links())
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        draft->AddLink(base.tail(link).value * n + i, base.head(link).value * n + j,
                       call.links.Override(base.spec(link), 0));
  return draft;
}

}  // namespace tutti::topo
