// Peels the flow of one source into paths, widest first.
//
// Complexity  Each path looks at the links with flow on the paths to its destination.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"

namespace tutti {

// The paths of one source, in order of destinations.
struct SourcePaths {
  std::vector<int32_t> destination;  // of a path
  std::vector<int64_t> weight;
  std::vector<int64_t> first_hop = {0};
  std::vector<int32_t> bundles;
};

class WidestPaths {
 public:
  WidestPaths(std::span<const LinkBundle> bundles, int32_t num_nodes);

  // `flow` conserves what `source` sends, without cycles; it is taken apart whole.
  SourcePaths Extract(const DemandTable& demand, int32_t source, std::span<const BundleFlow> flow,
                      int64_t units_per_demand);

 private:
  struct Arc {
    int32_t bundle, tail;
    int64_t left;
  };

  void Load(std::span<const BundleFlow> flow);
  int64_t Widen(int32_t source, int32_t destination);
  void Unload(std::span<const BundleFlow> flow);

  std::span<const LinkBundle> bundles_;
  std::vector<Arc> arcs_;  // of a node: [first_[node], last_[node]); those with flow left
  std::vector<int32_t> first_, last_;
  // State of a node on the way to the destination at hand.
  std::vector<int64_t> width_;
  std::vector<int32_t> hops_, best_arc_, seen_, cursor_;
  std::vector<int32_t> stack_;
  int32_t search_ = 0;
};

}  // namespace tutti
