// What several routers need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Where among `bundles` (BundlesOf) the link is.
inline size_t BundleOf(std::span<const LinkBundle> bundles, const Topology& topology, LinkId link) {
  const auto before = [](const LinkBundle& a, const LinkBundle& b) {
    return a.head != b.head ? a.head < b.head : a.tail < b.tail;
  };
  const LinkBundle ends{topology.tail(link), topology.head(link), 0};
  return static_cast<size_t>(std::lower_bound(bundles.begin(), bundles.end(), ends, before) -
                             bundles.begin());
}

// Chunks of a unit of demand for weights that are no small fractions: halves, thirds, ... up to
// sixteenths are whole, rounding costs less than 1e-8, and all units together stay in 62 bits.
inline int64_t FineUnits(const DemandTable& demand) {
  int64_t units = int64_t{720'720} * 1024;  // 720,720: the least common multiple of 1 .. 16
  while (units > 1 && demand.Total() > (WideInteger{1} << 62) / units) units /= 2;
  return units;
}

}  // namespace tutti
