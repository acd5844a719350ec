// Layers of DF-SSSP [Domke, Hoefler, Nagel 2011]: all paths start in the first layer; while it has
// a cycle, the cycle's dependency that the fewest paths bring is cut and those paths move to the
// next layer; then the next layer in the same way.
#include <algorithm>
#include <vector>

#include "layers/dependency_index.h"
#include "layers/registry.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

class LayerCleaner {
 public:
  LayerCleaner(const Topology& topology, Routing& routing)
      : graph_(topology.graph()),
        routing_(routing),
        dependency_of_(topology.graph()),
        users_(dependency_of_.size()) {
    routing_.layer.assign(static_cast<size_t>(routing.num_paths()), 0);
    routing_.num_layers = routing.num_paths() == 0 ? 0 : 1;
  }

  Status Run() {
    for (int32_t layer = 0; layer < routing_.num_layers; ++layer)
      if (const Status status = Clean(static_cast<int16_t>(layer)); !status) return status;
    return {};
  }

 private:
  template <class Visit>  // (dependency)
  void ForDependencies(PathId path, const Visit& visit) const {
    const std::span<const LinkId> hops = routing_.Hops(path);
    for (size_t i = 1; i < hops.size(); ++i) visit(dependency_of_(hops[i - 1], hops[i]));
  }

  // Depth-first search; a link is open while it is on the way to the one at hand.
  Status Clean(int16_t layer) {
    ListUsers(layer);
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(static_cast<size_t>(graph_.num_links()), kNew);
    std::vector<int32_t> next_out(state.size(), 0);
    std::vector<LinkId> way;
    for (const LinkId root : graph_.Links()) {
      if (state[root.index()] != kNew) continue;
      way.assign(1, root);
      state[root.index()] = kOpen;
      while (!way.empty()) {
        const LinkId link = way.back();
        const IdRange<LinkId> outs = graph_.OutLinks(graph_.head(link));
        int32_t& out = next_out[link.index()];
        if (out == outs.size()) {
          state[link.index()] = kDone;
          way.pop_back();
          continue;
        }
        const LinkId next = outs[out];
        if (users_[dependency_of_(link, next)] == 0 || state[next.index()] == kDone) {
          ++out;
        } else if (state[next.index()] == kNew) {
          ++out;
          state[next.index()] = kOpen;
          way.push_back(next);
        } else {
          if (CancelRequested()) return MakeError(ErrorCode::kCancelled, "interrupted");
          if (const Status cut = Cut(layer, way, next); !cut) return cut;
          // The search goes back to where the way still holds.
          size_t kept = 1;
          while (kept < way.size() && users_[dependency_of_(way[kept - 1], way[kept])] > 0) ++kept;
          for (size_t i = kept; i < way.size(); ++i) {
            state[way[i].index()] = kNew;
            next_out[way[i].index()] = 0;
          }
          way.resize(kept);
        }
      }
    }
    return {};
  }

  void ListUsers(int16_t layer) {
    std::fill(users_.begin(), users_.end(), 0);
    const IdRange<PathId> paths(0, static_cast<int32_t>(routing_.num_paths()));
    for (const PathId path : paths)
      if (routing_.layer[path.index()] == layer)
        ForDependencies(path, [&](size_t dependency) { ++users_[dependency]; });
    first_user_.assign(users_.size() + 1, 0);
    for (size_t i = 0; i < users_.size(); ++i) first_user_[i + 1] = first_user_[i] + users_[i];
    user_.resize(static_cast<size_t>(first_user_.back()));
    std::vector<int64_t> next(first_user_.begin(), first_user_.end() - 1);
    for (const PathId path : paths)
      if (routing_.layer[path.index()] == layer)
        ForDependencies(path, [&](size_t dependency) {
          user_[static_cast<size_t>(next[dependency]++)] = path;
        });
  }

  // Cuts the cycle that `closing`, a link of the way, makes with the links behind it.
  Status Cut(int16_t layer, const std::vector<LinkId>& way, LinkId closing) {
    size_t weakest = dependency_of_(way.back(), closing);
    for (size_t i = way.size(); i-- > 1 && way[i] != closing;) {
      const size_t dependency = dependency_of_(way[i - 1], way[i]);
      if (users_[dependency] < users_[weakest]) weakest = dependency;
    }
    if (layer + 1 >= kMaxRoutingLayers)
      return MakeError(ErrorCode::kInfeasible, "needs more layers than can be counted");
    for (int64_t i = first_user_[weakest]; i < first_user_[weakest + 1]; ++i) {
      const PathId path = user_[static_cast<size_t>(i)];
      if (routing_.layer[path.index()] != layer) continue;
      routing_.layer[path.index()] = static_cast<int16_t>(layer + 1);
      ForDependencies(path, [&](size_t dependency) { --users_[dependency]; });
    }
    routing_.num_layers = layer + 2;
    return {};
  }

  const Digraph& graph_;
  Routing& routing_;
  DependencyIndex dependency_of_;
  std::vector<int64_t> users_;  // a dependency: paths of the layer at hand that bring it
  std::vector<int64_t> first_user_;
  std::vector<PathId> user_;
};

Status AssignDfsssp(const Topology& topology, Routing& routing) {
  return LayerCleaner(topology, routing).Run();
}

}  // namespace

Layering DfssspLayering() {
  return {"dfsssp", "all paths in one layer, cut where cycles are weakest, the rest in the next",
          AssignDfsssp};
}

}  // namespace tutti
