// Numbers for the pairs of consecutive links (a, b), where b leaves the node that a enters: dense,
// those of one link a next to each other.
#pragma once

#include <cstddef>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/graph/digraph.h"

namespace tutti {

class DependencyIndex {
 public:
  // `graph` must outlive this.
  explicit DependencyIndex(const Digraph& graph) : graph_(graph) {
    for (const LinkId link : graph.Links()) {
      first_.push_back(size_);
      size_ += static_cast<size_t>(graph.OutLinks(graph.head(link)).size());
    }
  }

  size_t size() const { return size_; }
  size_t operator()(LinkId before, LinkId after) const {
    const LinkId first = graph_.OutLinks(graph_.head(before))[0];
    return first_[before.index()] + static_cast<size_t>(after.value - first.value);
  }

 private:
  const Digraph& graph_;
  std::vector<size_t> first_;  // a link: of its pairs
  size_t size_ = 0;
};

}  // namespace tutti
