// Distance-regularity of an undirected graph, by counting.
//
// Model       A graph is distance-regular when for any x and y at distance i the number b_i of
//             neighbours of y that are farther from x than y, and the number c_i of those nearer,
//             depend on i only. Undirected: every link has one reverse. No parallel links.
// Complexity  O(s (n + m) + m log m): a breadth-first search from each of the s sources, in
//             parallel once the first has been counted, where most other graphs already fail.
// Reference   [direct-connect] F.3: such graphs have bandwidth-optimal schedules by BFB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/graph/digraph.h"

namespace tutti {

// {b_0, .., b_(D-1); c_1, .., c_D} of diameter D.
struct IntersectionArray {
  std::vector<int32_t> b, c;

  std::string ToString() const;  // "{4,1;1,4}"
  friend bool operator==(const IntersectionArray&, const IntersectionArray&) = default;
};

struct DistanceRegularity {
  std::optional<IntersectionArray> array;
  // When there is none, a pair that shows it: a link without a reverse or with a parallel one, two
  // nodes without a way, or two whose counts are not those of an earlier pair at their distance.
  NodeId from{0}, to{0};
};

DistanceRegularity CheckDistanceRegular(const Digraph& graph);
// Counts from these nodes only, which decides it when every node is the image of one of them under
// an automorphism. At least one.
DistanceRegularity CheckDistanceRegular(const Digraph& graph, std::span<const NodeId> sources);

}  // namespace tutti
