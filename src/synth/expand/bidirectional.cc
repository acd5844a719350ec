// A.6: half of each shard on a network, the other half on its transpose.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "expand/link_places.h"
#include "tutti/base/check.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/operators.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

// `schedule` of `half` on the links of `both` that are its own: of several with the same ends, spec
// for spec, the first that is not taken.
Result<Schedule> OntoUnion(const Topology& half, const Schedule& schedule, const Topology& both,
                           const expand::LinkPlaces& places, std::vector<char>& taken) {
  std::vector<NodeId> nodes;
  for (NodeId node : half.Nodes()) nodes.push_back(node);
  std::vector<LinkId> links;
  for (LinkId link : half.Links()) {
    int32_t place = 0;
    const auto next = [&] {
      const auto found = places.Find(half.tail(link), half.head(link), place++);
      TUTTI_CHECK(found.has_value());  // the union has a link for each
      return *found;
    };
    LinkId candidate = next();
    while (taken[candidate.index()] || both.spec(candidate) != half.spec(link)) candidate = next();
    taken[candidate.index()] = 1;
    links.push_back(candidate);
  }
  return Rename(schedule, nodes, links, both.Fingerprint());
}

}  // namespace

Result<Expansion> ExpandBidirectional(const Topology& base, const Schedule& forward,
                                      const Schedule& backward) {
  if (const Status status = expand::CheckBase("bidirectional", base, forward); !status)
    return tl::unexpected(status.error());
  const Topology transpose = TransposeTopology(base);
  if (const Status status = expand::CheckBase("bidirectional, the way back,", transpose, backward);
      !status)
    return tl::unexpected(status.error());
  Result<Topology> both = BidirectionalUnion(base);
  if (!both) return tl::unexpected(both.error());
  const expand::LinkPlaces places(*both);
  std::vector<char> taken(static_cast<size_t>(both->num_links()), 0);
  Result<Schedule> there = OntoUnion(base, forward, *both, places, taken);
  if (!there) return tl::unexpected(there.error());
  if (both->num_links() == base.num_links()) return Expansion{*std::move(both), *std::move(there)};
  const Result<Schedule> back = OntoUnion(transpose, backward, *both, places, taken);
  if (!back) return tl::unexpected(back.error());
  Result<Schedule> joined = SplitHalves(*there, *back);
  if (!joined) return tl::unexpected(joined.error());
  joined->algorithm = "expand";
  return Expansion{*std::move(both), *std::move(joined)};
}

Result<Expansion> ExpandBidirectional(const Topology& base, const Schedule& schedule) {
  if (const Status status = expand::CheckBase("bidirectional", base, schedule); !status)
    return tl::unexpected(status.error());
  const Topology transpose = TransposeTopology(base);
  const IsomorphismSearch search = FindIsomorphism(base, transpose);
  if (search.outcome != IsomorphismSearch::Outcome::kFound)
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("bidirectional of a schedule: {} an isomorphism from the network to its "
                    "transpose; give a second schedule, for the way back",
                    search.outcome == IsomorphismSearch::Outcome::kNone ? "there is not"
                                                                        : "no time to find"));
  const Result<Schedule> backward = Rename(schedule, search.isomorphism.node_map,
                                           search.isomorphism.link_map, transpose.Fingerprint());
  if (!backward) return tl::unexpected(backward.error());
  return ExpandBidirectional(base, schedule, *backward);
}

}  // namespace tutti
