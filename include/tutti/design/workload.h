// Which design of a frontier is best for the collectives that a program runs.
//
// Model       A size M is drawn with the given weights; the expected time counts.
//             all-gather, reduce-scatter  TL alpha + TB M / B
//             all-reduce                  twice that
//             all-to-all                  (M / N) / (f B / d): each pair exchanges M / N at the
//             flow
//                                         value f, in units of a link's bandwidth B / d
// Units       Seconds; bytes; B in bytes/s is what all ports of a rank carry together.
// Reference   [direct-connect] Table 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"

namespace tutti {

struct Workload {
  CollectiveKind collective = CollectiveKind::kAllReduce;
  double alpha_s = 10e-6;
  double bandwidth = 12.5e9;  // [B]
  struct Size {
    int64_t bytes = 0;
    double weight = 1;
  };
  std::vector<Size> sizes;
};

// "1MiB", "1MiB,1GiB" or "1MiB:0.7,100MiB:0.3". Weights default to 1 and need not add up to it.
Result<std::vector<Workload::Size>> ParseSizeDistribution(const std::string& text);

// kInvalidArgument: a collective whose time no formula here gives, all-to-all without `flow`.
Result<double> ExpectedSeconds(const Design& design, const Workload& workload,
                               std::optional<double> flow = {});

}  // namespace tutti
