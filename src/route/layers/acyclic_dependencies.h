// The dependencies between links in one layer, kept free of cycles while paths come in.
//
// Model       Link b depends on link a where some path crosses a and then b. All links stand in an
//             order in which every dependency points forward; a path whose dependencies do not fit
//             in any such order is refused and changes nothing.
// Complexity  A path whose dependencies are there already: O(hops). A new dependency moves only the
//             links that stand between its ends [Pearce and Kelly 2007]. Memory 2 bits for each
//             pair of consecutive links and 8 bytes per link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/dependency_index.h"
#include "tutti/base/ids.h"
#include "tutti/graph/digraph.h"

namespace tutti {

class AcyclicDependencies {
 public:
  // `graph` must outlive this.
  explicit AcyclicDependencies(const Digraph& graph);

  // Takes in all dependencies of the paths, or none of them.
  bool Admit(std::span<const std::span<const LinkId>> paths);
  bool Admit(std::span<const LinkId> path) { return Admit(std::span(&path, 1)); }

  // Where a link stands: every dependency points to a later position.
  int32_t position(LinkId link) const { return position_[link.index()]; }

 private:
  bool Insert(LinkId before, LinkId after);
  bool FindForward(LinkId from, LinkId stop_at);
  void FindBackward(LinkId from, int32_t lowest);
  void MoveBehind();

  const Digraph& graph_;
  DependencyIndex dependency_of_;
  std::vector<bool> present_;
  std::vector<bool> closes_cycle_;  // with dependencies that are here to stay
  std::vector<int32_t> position_;

  std::vector<size_t> added_;  // by the paths at hand
  std::vector<bool> visited_;
  std::vector<LinkId> forward_, backward_, stack_;
};

}  // namespace tutti
