// Which design of a frontier is best for the collectives that a program runs.
//
// Model       A size M is drawn with the given weights; the expected time counts. All links are
//             alike, and B = d x the bandwidth of one is what all ports of a rank carry together.
//             all-gather, reduce-scatter, all-reduce  TL alpha + TB M / B, with what the collective
//                         itself costs on the design (Design::CostOf): exactly AnalyticSeconds of
//                         its schedule on that network
//             all-to-all  (M / N) / (f B / d): each pair exchanges M / N at the flow value f, in
//                         units of a link's bandwidth
// Units       Seconds and bytes, exact.
// Reference   [direct-connect] Table 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Workload {
  CollectiveKind collective = CollectiveKind::kAllReduce;
  LinkSpec link;  // of every port, each way
  struct Size {
    int64_t bytes = 0;
    Rational weight = 1;
  };
  std::vector<Size> sizes;
};

// "1MiB", "1MiB,1GiB" or "1MiB:0.7,100MiB:0.3". Weights default to 1 and need not add up to it.
Result<std::vector<Workload::Size>> ParseSizeDistribution(const std::string& text);

// kInvalidArgument: a collective whose time no formula here gives, all-to-all without `flow`.
Result<Rational> ExpectedSeconds(const Design& design, const Workload& workload,
                                 std::optional<Rational> flow = {});

// The network of a recipe with these links, whatever links the recipe says. It keeps its recipe
// for a name, with the links in it where expressions can say them. Errors as of ParseTopology.
Result<Topology> NetworkWithLinks(const std::string& recipe, const LinkSpec& link);

}  // namespace tutti
