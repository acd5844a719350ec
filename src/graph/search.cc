#include "search.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace tutti::graph {
namespace {

Digraph Union(const Digraph& first, const Digraph& second) {
  std::vector<Digraph::Arc> arcs;
  for (LinkId link : first.Links()) arcs.emplace_back(first.tail(link), first.head(link));
  const int32_t shift = first.num_nodes();
  for (LinkId link : second.Links())
    arcs.emplace_back(NodeId{second.tail(link).value + shift},
                      NodeId{second.head(link).value + shift});
  // Arcs come sorted by tail, so the links keep their numbers, those of `second` behind.
  return Digraph(first.num_nodes() + second.num_nodes(), arcs);
}

std::vector<uint64_t> Concatenate(const std::vector<uint64_t>& first, size_t first_size,
                                  const std::vector<uint64_t>& second, size_t second_size) {
  if (first.empty() && second.empty()) return {};
  std::vector<uint64_t> both = first;
  both.resize(first_size);
  both.insert(both.end(), second.begin(), second.end());
  both.resize(first_size + second_size);
  return both;
}

GraphColors UnionColors(const Digraph& from, const Digraph& to, const GraphColors& a,
                        const GraphColors& b) {
  const auto size = [](int32_t count) { return static_cast<size_t>(count); };
  return {Concatenate(a.nodes, size(from.num_nodes()), b.nodes, size(to.num_nodes())),
          Concatenate(a.links, size(from.num_links()), b.links, size(to.num_links()))};
}

uint64_t ColorOf(const std::vector<uint64_t>& colors, LinkId link) {
  return colors.empty() ? 0 : colors[link.index()];
}

}  // namespace

PairedSearch::PairedSearch(const Digraph& from, const Digraph& to, const GraphColors& from_colors,
                           const GraphColors& to_colors)
    : from_(from),
      to_(to),
      from_colors_(from_colors),
      to_colors_(to_colors),
      half_(from.num_nodes()),
      both_(Union(from, to)),
      refinement_(both_, UnionColors(from, to, from_colors, to_colors), half_),
      feasible_(refinement_.Refine()) {}

bool PairedSearch::Fix(NodeId node, NodeId candidate) {
  if (refinement_.cell_of(node) != refinement_.cell_of(candidate)) return false;
  if (refinement_.NodesOf(refinement_.cell_of(node)).size() == 2) return true;
  refinement_.Individualize(std::array{node, candidate});
  return refinement_.Refine();
}

std::optional<PairedSearch::Level> PairedSearch::OpenLevel(int32_t shift) const {
  const int32_t cell = refinement_.SmallestCellAbove(2);
  if (cell < 0) return std::nullopt;
  Level level{refinement_.Mark(), NodeId{-1}, {}, 0};
  for (NodeId node : refinement_.NodesOf(cell)) {
    if (node.value >= half_)
      level.candidates.push_back(node);
    else if (level.node.value < 0 || node < level.node)
      level.node = node;
  }
  std::sort(level.candidates.begin(), level.candidates.end());
  // Where all candidates will do (complete graphs, ranks at a switch), the map becomes a rotation.
  const NodeId wanted = InSecond({(level.node.value + shift) % half_});
  std::rotate(level.candidates.begin(),
              std::lower_bound(level.candidates.begin(), level.candidates.end(), wanted),
              level.candidates.end());
  return level;
}

// Every cell holds one node of each graph: that is the map, if links agree.
std::optional<Isomorphism> PairedSearch::ReadOff() const {
  Isomorphism result;
  for (NodeId node : from_.Nodes()) {
    const auto cell = refinement_.NodesOf(refinement_.cell_of(node));
    const NodeId image = cell[0] == node ? cell[1] : cell[0];
    result.node_map.push_back({image.value - half_});
  }
  using Out = std::tuple<NodeId, uint64_t, LinkId>;  // head, colour, link
  result.link_map.resize(static_cast<size_t>(from_.num_links()));
  std::vector<Out> here, there;
  for (NodeId node : from_.Nodes()) {
    here.clear();
    there.clear();
    for (LinkId link : from_.OutLinks(node))
      here.emplace_back(result.node_map[from_.head(link).index()],
                        ColorOf(from_colors_.links, link), link);
    for (LinkId link : to_.OutLinks(result.node_map[node.index()]))
      there.emplace_back(to_.head(link), ColorOf(to_colors_.links, link), link);
    if (here.size() != there.size()) return std::nullopt;
    std::sort(here.begin(), here.end());
    std::sort(there.begin(), there.end());
    for (size_t i = 0; i < here.size(); ++i)
      result.link_map[std::get<LinkId>(here[i]).index()] = std::get<LinkId>(there[i]);
  }
  if (!IsIsomorphism(from_, to_, result, from_colors_, to_colors_)) return std::nullopt;
  return result;
}

IsomorphismSearch PairedSearch::Find(std::optional<std::pair<NodeId, NodeId>> pinned,
                                     int64_t limit) {
  using Outcome = IsomorphismSearch::Outcome;
  IsomorphismSearch search;
  const int64_t before = work();
  const auto finish = [&](Outcome outcome) {
    search.outcome = outcome;
    search.work = work() - before;
    return search;
  };
  if (!feasible_) return finish(Outcome::kNone);
  const size_t root = refinement_.Mark();
  bool alive = !pinned || Fix(pinned->first, InSecond(pinned->second));
  // Maps that move all nodes alike join most of an orbit at once.
  const int32_t shift = pinned ? (pinned->second.value - pinned->first.value + half_) % half_ : 0;
  std::vector<Level> levels;
  for (;;) {
    if (alive) {
      if (std::optional<Level> level = OpenLevel(shift)) {
        levels.push_back(*std::move(level));
      } else if (std::optional<Isomorphism> found = ReadOff()) {
        search.isomorphism = *std::move(found);
        refinement_.Undo(root);
        return finish(Outcome::kFound);
      }
    }
    while (!levels.empty() && levels.back().next == levels.back().candidates.size())
      levels.pop_back();
    if (levels.empty() || work() > limit) {
      refinement_.Undo(root);
      return finish(levels.empty() ? Outcome::kNone : Outcome::kGaveUp);
    }
    Level& level = levels.back();
    refinement_.Undo(level.mark);
    alive = Fix(level.node, level.candidates[level.next++]);
  }
}

}  // namespace tutti::graph
