// without(G): a network with named cables, and random nodes and cables, taken away.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "families/family.h"
#include "syntax.h"
#include "tutti/base/random.h"
#include "tutti/graph/distance.h"
#include "tutti/topo/properties.h"

namespace tutti::topo {
namespace {

// A node by its number or by its name; nullopt: there is none.
std::optional<NodeId> FindNode(const Topology& topology, std::string_view text) {
  int32_t number = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc() && stop == text.data() + text.size() && text[0] != '-')
    return number < topology.num_nodes() ? std::optional(NodeId{number}) : std::nullopt;
  for (NodeId node : topology.Nodes())
    if (topology.node_name(node) == text) return node;
  return std::nullopt;
}

struct Endpoints {
  NodeId from{0}, to{0};
};

// "a-b", where names may hold a '-' themselves.
Result<Endpoints> EndsOf(const FamilyCall& call, const NamedCable& cable) {
  const Topology& base = call.operands[0];
  const std::string_view text = cable.text;
  std::vector<Endpoints> found;
  for (size_t at = text.find('-'); at != text.npos; at = text.find('-', at + 1)) {
    const auto from = FindNode(base, text.substr(0, at));
    const auto to = FindNode(base, text.substr(at + 1));
    if (from && to) found.push_back({*from, *to});
  }
  if (found.size() == 1) return found[0];
  const auto fault = [&](const std::string& message) {
    return FaultAt(cable.column, fmt::format("link={}: {}", Shown(text), message));
  };
  if (found.size() > 1) return fault("several pairs of nodes are called so; give their numbers");
  const size_t dash = text.find('-');
  if (dash == text.npos || text.find('-', dash + 1) != text.npos)
    return fault("wanted two nodes of the network such as 0-1, by number or by name");
  const std::string_view one = text.substr(0, dash);
  const std::string_view missing = FindNode(base, one) ? text.substr(dash + 1) : one;
  return fault(fmt::format("the network has no node '{}'; its {} nodes are 0 to {}", Shown(missing),
                           base.num_nodes(), base.num_nodes() - 1));
}

// What to say of a cable that is not there.
std::string MissingText(const Topology& base, const Endpoints& ends, bool taken) {
  const std::string& from = base.node_name(ends.from);
  const std::string& to = base.node_name(ends.to);
  if (taken) return fmt::format("'{}' and '{}' have no further cable", from, to);
  for (LinkId link : base.OutLinks(ends.to))
    if (base.head(link) == ends.from)
      return fmt::format("no link leads from '{0}' to '{1}', only from '{1}' to '{0}'", from, to);
  constexpr size_t kShown = 8;
  std::vector<std::string> heads;
  for (LinkId link : base.OutLinks(ends.from)) {
    const std::string& name = base.node_name(base.head(link));
    if (std::find(heads.begin(), heads.end(), name) == heads.end()) heads.push_back(name);
  }
  const bool more = heads.size() > kShown;
  if (more) heads.resize(kShown);
  return fmt::format("no link leads from '{}' to '{}'; '{}' is linked to {}{}", from, to, from,
                     fmt::join(heads, ", "), more ? ", ..." : "");
}

// Which links are those of the cables that link= names, each of a cable once. A cable is both
// directions, or the one link from the first node to the second where it has no reverse.
Result<std::vector<char>> NamedLinks(const FamilyCall& call, const std::vector<Cable>& cables) {
  const Topology& base = call.operands[0];
  std::vector<char> gone(static_cast<size_t>(base.num_links()), 0);
  for (const NamedCable& named : call.cables) {
    const Result<Endpoints> ends = EndsOf(call, named);
    if (!ends) return tl::unexpected(ends.error());
    const auto leads = [&](LinkId link) {
      return base.tail(link) == ends->from && base.head(link) == ends->to;
    };
    const Cable* found = nullptr;
    bool taken = false;
    for (const Cable& cable : cables) {
      if (!leads(cable.there) && !(cable.back && leads(*cable.back))) continue;
      if (gone[cable.there.index()]) {
        taken = true;
        continue;
      }
      found = &cable;
      break;
    }
    if (found == nullptr)
      return FaultAt(named.column, fmt::format("link={}: {}", Shown(named.text),
                                               MissingText(base, *ends, taken)));
    gone[found->there.index()] = 1;
    if (found->back) gone[found->back->index()] = 1;
  }
  return gone;
}

// One draw of without(): which nodes and links are gone.
struct Puncture {
  std::vector<char> node_gone, link_gone;
};

// The first `count` of `items` become a uniform draw without replacement.
template <class Item>
void DrawFirst(std::vector<Item>& items, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) std::swap(items[i], items[i + random.Below(items.size() - i)]);
}

// Beside the links that are `named`. False when too few cables would be left.
bool DrawPuncture(const Topology& base, const std::vector<Cable>& cables,
                  const std::vector<char>& named, size_t num_links, size_t num_nodes,
                  Random& random, Puncture& puncture) {
  puncture.node_gone.assign(static_cast<size_t>(base.num_nodes()), 0);
  puncture.link_gone = named;
  std::vector<NodeId> nodes;
  for (NodeId node : base.Nodes()) nodes.push_back(node);
  DrawFirst(nodes, num_nodes, random);
  for (size_t i = 0; i < num_nodes; ++i) puncture.node_gone[nodes[i].index()] = 1;
  std::vector<Cable> left;
  for (const Cable& cable : cables)
    if (!named[cable.there.index()] && !puncture.node_gone[base.tail(cable.there).index()] &&
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
    if (!base.is_rank(node) && base.reduces(node)) draft->reducing.push_back(number[node.index()]);
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

// Nothing is drawn: whether it stays connected is for the topology to say.
Result<Draft> BuildNamedOnly(const FamilyCall& call, const std::vector<char>& named) {
  const Topology& base = call.operands[0];
  const Puncture puncture{std::vector<char>(static_cast<size_t>(base.num_nodes()), 0), named};
  Result<Draft> draft = BuildPunctured(call, puncture, Renumber(puncture.node_gone));
  if (draft && call.cables.empty()) {
    draft->grid = base.grid();
    if (!call.ChangesLinks()) draft->original = base.origin().original;
  }
  return draft;
}

}  // namespace

// The named cables go first, then nodes are drawn, then cables among what is left. A draw that
// disconnects the network, or leaves no rank, is drawn again.
Result<Draft> BuildWithout(const FamilyCall& call) {
  constexpr int kDraws = 1000;
  const Topology& base = call.operands[0];
  const int64_t links = call.options[0].value_or(0);
  const int64_t nodes = call.options[1].value_or(0);
  const std::vector<Cable> cables = CablesOf(base);
  if (nodes >= base.num_nodes())
    return call.Fault(
        fmt::format("nodes={} of {}: at least one must stay", nodes, base.num_nodes()));
  const Result<std::vector<char>> named = NamedLinks(call, cables);
  if (!named) return tl::unexpected(named.error());
  if (links > static_cast<int64_t>(cables.size() - call.cables.size()))
    return call.Fault(fmt::format("links={}: the network has {} cables{}", links, cables.size(),
                                  call.cables.empty() ? "" : ", those that link= names included"));
  if (links == 0 && nodes == 0) return BuildNamedOnly(call, *named);
  Random random(static_cast<uint64_t>(call.options[2].value_or(1)));
  Puncture puncture;
  for (int draw = 0; draw < kDraws; ++draw) {
    if (!DrawPuncture(base, cables, *named, static_cast<size_t>(links), static_cast<size_t>(nodes),
                      random, puncture))
      continue;
    const std::vector<int32_t> number = Renumber(puncture.node_gone);
    const bool has_rank = std::any_of(number.begin(), number.begin() + base.num_ranks(),
                                      [](int32_t node) { return node >= 0; });
    if (!has_rank || !IsConnected(base, puncture, number)) continue;
    return BuildPunctured(call, puncture, number);
  }
  return call.Fault(
      fmt::format("every one of {} draws without {} cables and {} nodes left the "
                  "network disconnected; remove less or try another seed",
                  kDraws, links, nodes));
}

}  // namespace tutti::topo
