// What the parts of `tutti design` hand each other: design.cc asks and chooses, design_files.cc
// writes, design_page.cc draws, design_output.cc prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "html.h"
#include "tutti/design/finder.h"
#include "tutti/design/flow_frontier.h"
#include "tutti/design/workload.h"

namespace tutti::cli {

struct DesignFlags {
  int64_t ranks = 0, degree = 0;
  bool one_way = false, flow = false, by_flow = false, no_database = false;
  std::string collective = "all-reduce", alpha, bandwidth, size, database, output, cables;
  std::vector<std::string> bases;
  int64_t all_up_to = 0;
  std::vector<int32_t> degrees{2, 4, 8, 16};
  double flow_gap = 1e-3;
  int64_t pick = 0;
  HtmlFlag html;
};

// Between what is reached and what is proven possible.
struct FlowLimits {
  Rational lower, upper;
};

// Everything that is shown.
struct ShownDesigns {
  CollectiveKind collective = CollectiveKind::kAllReduce;
  LinkSpec link;  // of every port: that of the times and of the files
  std::vector<Design> designs;
  bool from_database = false;
  std::vector<FlowLimits> flows;        // none, or one a design
  std::optional<FlowFrontier> by_flow;  // --by-flow: where `designs` and `flows` come from
  std::vector<Workload::Size> sizes;    // none without --size
  std::vector<Rational> seconds;        // with sizes, one a design
  Rational bound_seconds;               // with sizes
  std::optional<size_t> best;           // index of the chosen design

  // What TL and TB of the rows are of. An all-to-all is a routing: it has a flow value instead.
  CollectiveKind costed() const {
    return collective == CollectiveKind::kAllToAll ? CollectiveKind::kAllGather : collective;
  }
  DesignCost CostOf(const Design& design) const { return design.CostOf(costed()); }
};

// The least that any network of this size costs: of an all-reduce that of its two halves.
DesignCost BoundOf(const ShownDesigns& shown, const DesignFlags& flags);

struct WrittenFile {
  std::string path;
  std::string what;
};

// PREFIX.topo.json with the chosen design and PREFIX.COLLECTIVE.sched (of all-to-all .routes) with
// what its row was priced for, proven first; the cabling list. Nothing is written before all of it
// is made.
Result<std::vector<WrittenFile>> WriteDesign(const DesignFlags& flags, const ShownDesigns& shown);

// What --html asks for.
Status WriteDesignPage(const DesignFlags& flags, const ShownDesigns& shown);

void PrintDesigns(const DesignFlags& flags, const ShownDesigns& shown,
                  const std::vector<WrittenFile>& written);
void PrintDesignsJson(const DesignFlags& flags, const ShownDesigns& shown,
                      const std::vector<WrittenFile>& written, double seconds);

}  // namespace tutti::cli
