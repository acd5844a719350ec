// dor: dimension-ordered routing on tori and meshes: the first dimension as far as needed, then the
// second, and so on, each the shorter way round. Where both directions of some dimensions are equally
// long half of the data goes up in all of them and half goes down. Of parallel links the one that
// carries least.
//
// Complexity  O(hops x degree).
// Reference   [Dally, Towles 2004]; [alltoall-mcf] 5.1.
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/network.h"

namespace tutti {
namespace {

class GridRouter {
 public:
  GridRouter(const Topology& topology, const GridShape& grid)
      : topology_(topology),
        grid_(grid),
        stride_(grid.dims.size(), 1),
        load_(static_cast<size_t>(topology.num_links()), 0) {
    for (size_t i = grid.dims.size(); i-- > 1;) stride_[i - 1] = stride_[i] * grid.dims[i];
  }

  // 2 where some dimension has two equally short paths.
  int64_t units() const {
    for (const int32_t length : grid_.dims)
      if (HasTie(length)) return 2;
    return 1;
  }

  Status AddPair(int32_t source, int32_t destination, int64_t weight, RoutingBuilder& builder) {
    std::vector<int32_t> steps;  // of each dimension, signed
    bool tie = false;
    for (size_t i = 0; i < grid_.dims.size(); ++i) {
      const int32_t length = grid_.dims[i];
      const int32_t ahead = Coordinate(destination, i) - Coordinate(source, i);
      const int32_t up = ahead < 0 ? ahead + length : ahead;
      const bool goes_up = grid_.wraps ? 2 * up <= length : ahead >= 0;
      steps.push_back(goes_up ? up : up - length);
      tie = tie || (HasTie(length) && 2 * up == length);
    }
    if (!tie) return AddPath(source, steps, weight, builder);
    if (const Status up = AddPath(source, steps, weight / 2, builder); !up) return up;
    for (size_t i = 0; i < steps.size(); ++i)
      if (HasTie(grid_.dims[i]) && 2 * steps[i] == grid_.dims[i]) steps[i] = -steps[i];
    return AddPath(source, steps, weight - weight / 2, builder);
  }

 private:
  bool HasTie(int32_t length) const { return grid_.wraps && length > 2 && length % 2 == 0; }
  int32_t Coordinate(int32_t rank, size_t i) const { return rank / stride_[i] % grid_.dims[i]; }

  Status AddPath(int32_t at, const std::vector<int32_t>& steps, int64_t weight,
                 RoutingBuilder& builder) {
    hops_.clear();
    for (size_t i = 0; i < steps.size(); ++i)
      for (int32_t left = steps[i]; left != 0; left += left > 0 ? -1 : 1) {
        const int32_t length = grid_.dims[i], here = Coordinate(at, i);
        const int32_t there = (here + (left > 0 ? 1 : length - 1)) % length;
        const int32_t next = at + (there - here) * stride_[i];
        const LinkId link = FreestLink(NodeId{at}, NodeId{next});
        if (link.value < 0)
          return MakeError(
              ErrorCode::kInfeasible,
              fmt::format("dimension-ordered routing needs a link from rank {} to rank "
                          "{}, which '{}' lacks",
                          topology_.node_name(NodeId{at}), topology_.node_name(NodeId{next}),
                          topology_.name()));
        load_[link.index()] += weight;
        hops_.push_back(link);
        at = next;
      }
    builder.AddPath(hops_, weight);
    return {};
  }

  LinkId FreestLink(NodeId tail, NodeId head) const {
    LinkId best{-1};
    for (const LinkId link : topology_.OutLinks(tail)) {
      if (topology_.head(link) != head) continue;
      if (best.value < 0 || load_[link.index()] * topology_.bandwidth(best) <
                                load_[best.index()] * topology_.bandwidth(link))
        best = link;
    }
    return best;
  }

  const Topology& topology_;
  const GridShape& grid_;
  std::vector<int32_t> stride_;
  std::vector<WideInteger> load_;
  std::vector<LinkId> hops_;
};

}  // namespace

Result<Routed> RouteDor(const Topology& topology, const RouterOptions& options) {
  const std::optional<GridShape>& grid = topology.grid();
  if (!grid)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("dimension-ordered routing is for tori and meshes, '{}' is none",
                                 topology.name()));
  const DemandTable demand(topology.num_ranks(), options.demand);
  GridRouter router(topology, *grid);
  const int64_t units = router.units();
  RoutingBuilder builder(topology.num_ranks(), units);
  for (const NodeId source : topology.Ranks()) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    for (const NodeId destination : topology.Ranks()) {
      const int64_t weight = demand(source.value, destination.value) * units;
      if (weight > 0)
        if (const Status added = router.AddPair(source.value, destination.value, weight, builder);
            !added)
          return tl::unexpected(added.error());
      builder.EndPair();
    }
  }
  return Routed{std::move(builder).Finish()};
}

}  // namespace tutti
