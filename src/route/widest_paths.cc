#include "widest_paths.h"

#include <algorithm>
#include <limits>

#include "tutti/base/check.h"

namespace tutti {

WidestPaths::WidestPaths(std::span<const LinkBundle> bundles, int32_t num_nodes)
    : bundles_(bundles),
      first_(static_cast<size_t>(num_nodes), 0),
      last_(first_.size(), 0),
      width_(first_.size(), 0),
      hops_(first_.size(), 0),
      best_arc_(first_.size(), -1),
      seen_(first_.size(), 0),
      cursor_(first_.size(), 0) {}

void WidestPaths::Load(std::span<const BundleFlow> flow) {
  const auto head = [this](const BundleFlow& part) {
    return bundles_[static_cast<size_t>(part.bundle)].head.index();
  };
  for (const BundleFlow& part : flow) ++last_[head(part)];
  int32_t next = 0;
  for (const BundleFlow& part : flow) {
    const size_t node = head(part);
    if (last_[node] == 0) continue;  // placed already
    first_[node] = next;
    next += last_[node];
    last_[node] = 0;
    cursor_[node] = first_[node];
  }
  arcs_.resize(flow.size());
  for (const BundleFlow& part : flow) {
    const size_t node = head(part);
    arcs_[static_cast<size_t>(cursor_[node]++)] = {
        part.bundle, bundles_[static_cast<size_t>(part.bundle)].tail.value, part.units};
    last_[node] = cursor_[node];
  }
}

void WidestPaths::Unload(std::span<const BundleFlow> flow) {
  for (const BundleFlow& part : flow) {
    const size_t node = bundles_[static_cast<size_t>(part.bundle)].head.index();
    first_[node] = last_[node] = 0;
  }
}

// The width of the widest path, of the fewest hops among them; best_arc_ leads back over it. Looks
// at nodes in an order in which each comes behind those that feed it.
int64_t WidestPaths::Widen(int32_t source, int32_t destination) {
  ++search_;
  const auto open = [this](int32_t node) {
    const auto v = static_cast<size_t>(node);
    seen_[v] = search_;
    cursor_[v] = first_[v];
    width_[v] = 0;
    hops_[v] = 0;
    stack_.push_back(node);
  };
  open(destination);
  while (!stack_.empty()) {
    const int32_t node = stack_.back();
    const auto v = static_cast<size_t>(node);
    if (node == source) {
      width_[v] = std::numeric_limits<int64_t>::max();
      stack_.pop_back();
      continue;
    }
    if (cursor_[v] < last_[v]) {
      const int32_t tail = arcs_[static_cast<size_t>(cursor_[v]++)].tail;
      if (seen_[static_cast<size_t>(tail)] != search_) open(tail);
      continue;
    }
    for (int32_t a = first_[v]; a < last_[v]; ++a) {
      const Arc& arc = arcs_[static_cast<size_t>(a)];
      const auto u = static_cast<size_t>(arc.tail);
      const int64_t width = std::min(width_[u], arc.left);
      if (width < width_[v] || (width == width_[v] && hops_[u] + 1 >= hops_[v])) continue;
      width_[v] = width;
      hops_[v] = hops_[u] + 1;
      best_arc_[v] = a;
    }
    stack_.pop_back();
  }
  return width_[static_cast<size_t>(destination)];
}

SourcePaths WidestPaths::Extract(const DemandTable& demand, int32_t source,
                                 std::span<const BundleFlow> flow, int64_t units_per_demand) {
  Load(flow);
  SourcePaths paths;
  std::vector<int32_t> on_path;
  for (int32_t destination = 0; destination < static_cast<int32_t>(first_.size()); ++destination) {
    int64_t wanted = demand(source, destination) * units_per_demand;
    while (wanted > 0) {
      const int64_t weight = std::min(wanted, Widen(source, destination));
      TUTTI_CHECK(weight > 0);  // a flow that conserves brings what is wanted
      wanted -= weight;
      on_path.clear();
      for (int32_t at = destination; at != source;) {
        const auto v = static_cast<size_t>(at);
        Arc& arc = arcs_[static_cast<size_t>(best_arc_[v])];
        on_path.push_back(arc.bundle);
        at = arc.tail;
        arc.left -= weight;
        if (arc.left == 0) std::swap(arc, arcs_[static_cast<size_t>(--last_[v])]);
      }
      paths.destination.push_back(destination);
      paths.weight.push_back(weight);
      paths.bundles.insert(paths.bundles.end(), on_path.rbegin(), on_path.rend());
      paths.first_hop.push_back(static_cast<int64_t>(paths.bundles.size()));
    }
  }
  Unload(flow);
  return paths;
}

}  // namespace tutti
