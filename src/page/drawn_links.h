// The links that a page draws: those of the network, or of one that is too large all links from one
// group of nodes to another as one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "grouping.h"

namespace tutti {

bool IsGrouped(const Topology& topology);

// All links from one group to another are one, in order of groups.
struct GroupLinks {
  std::map<std::pair<int32_t, int32_t>, size_t> index;
  std::vector<std::pair<int32_t, int32_t>> ends;
  std::vector<int64_t> links, bandwidth;
};

GroupLinks SumLinks(const Topology& topology, const Grouping& grouping);

// Values by link, summed up where links are drawn as one.
std::vector<double> OnDrawnLinks(const Topology& topology, std::vector<double> values);

}  // namespace tutti
