// Host limits as links, so that whatever knows links keeps to them ([alltoall-mcf] figure 2). Ranks
// keep their numbers; switches of G come next, then the NICs. Links of a host have alpha 0.
// Self-loops, which carry nothing, are left out.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

// Gives each limited rank `nics_a_rank` NICs: links come into the first and leave the last.
Result<Draft> BuildWithNics(const FamilyCall& call, int32_t nics_a_rank) {
  const Topology& base = call.operands[0];
  if (!base.has_host_limits())
    return call.Fault("the network has no host limits; give it some with host_bw=");
  if (call.host_bandwidth || call.reducing)
    return call.Fault("host_bw= and reduces= belong to the network inside");
  int64_t limited = 0;
  for (NodeId rank : base.Ranks()) limited += base.host_bandwidth(rank) ? 1 : 0;
  Result<Draft> draft =
      call.Start(base.num_ranks(), base.num_nodes() - base.num_ranks() + limited * nics_a_rank,
                 base.num_links() + limited * 2, 1);
  if (!draft) return draft;
  std::vector<int32_t> in, out;  // where links into and out of each node of G end and begin
  for (NodeId node : base.Nodes()) {
    draft->names.push_back(base.node_name(node));
    in.push_back(node.value);
    out.push_back(node.value);
  }
  int32_t next = base.num_nodes();
  for (NodeId rank : base.Ranks()) {
    const auto bandwidth = base.host_bandwidth(rank);
    if (!bandwidth) continue;
    in[rank.index()] = next;
    out[rank.index()] = next + nics_a_rank - 1;
    next += nics_a_rank;
    const std::string& name = base.node_name(rank);
    draft->names.push_back(name + (nics_a_rank == 1 ? ":nic" : ":in"));
    if (nics_a_rank == 2) draft->names.push_back(name + ":out");
    const LinkSpec host{.bandwidth = *bandwidth, .alpha_ps = 0};
    draft->AddLink(in[rank.index()], rank.value, host);
    draft->AddLink(rank.value, out[rank.index()], host);
  }
  draft->num_switches = next - base.num_ranks();
  KeepReducing(base, *draft);
  for (LinkId link : base.Links())
    draft->AddLink(out[base.tail(link).index()], in[base.head(link).index()],
                   call.links.Override(base.spec(link), 0));
  return draft;
}

}  // namespace

// All links come into one NIC and leave another; between them lies the host.
Result<Draft> BuildHostForwarding(const FamilyCall& call) { return BuildWithNics(call, 2); }

// One NIC has all links, and only what begins or ends at the rank goes to the host.
Result<Draft> BuildNicForwarding(const FamilyCall& call) { return BuildWithNics(call, 1); }

}  // namespace tutti::topo
