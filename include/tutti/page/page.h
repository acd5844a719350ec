// One self-contained HTML page that shows networks, schedules on a clock, their proof and their
// limit: opened from disk, without a server and without a request to anywhere.
//
// Model       A page is the program of web/ (built, committed and compiled in) and its data: one
//             JSON object, compressed and in base64, whose keys docs/formats/explorer-data.md says.
// Invariants  P1  The same calls give the same bytes on every machine: no clock, no path.
//             P2  No text of the data can end its place in the page or run: it is base64 there,
//                 and the program shows texts as texts.
//             P3  What is too large to be drawn is summed up (kMaxDrawnNodes, kMaxDrawnLinks) or left out
//                 with a sentence that says so (kMaxDrawnTransfers, kMaxEvents); a page always opens.
// Units       Times in whole picoseconds, sizes in bytes, bandwidths in bytes a second.
// Complexity  O(nodes + links + transfers + messages) time and bytes.
// Errors      kResourceExhausted: the data does not fit the compressor.
//
//   PageData data("synth");
//   const int32_t network = data.AddNetwork(topology);
//   data.AddSchedule(network, topology, schedule, {.label = "bfb", .bounds = &bounds, ...});
//   const Result<std::string> html = MakePage(data.ToJson());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti {

// What is wrong with a schedule; `transfer`: index into it, -1 for none.
struct PageFault {
  std::string kind, message;
  int64_t transfer = -1;
};

// What is known of a schedule beside itself.
struct PageSchedule {
  std::string label;
  int64_t size_bytes = 0;             // [M] that times are for
  const Bounds* bounds = nullptr;     // not owned; nullptr: unknown
  const SimReport* report = nullptr;  // with its messages (record_messages); nullptr: not simulated
  SimOptions options = {};            // of `report`
  std::optional<bool> verified = {};  // nullopt: not judged
  std::vector<PageFault> faults = {};
  int64_t num_faults = 0;  // all of them; `faults` may be the first
  std::string note = {};   // e.g. why there is no report; for people
};

// A message as ranks exchanged it, not as it was planned.
struct PageExecuted {
  int32_t from = 0, to = 0, step = 0;
  double start_s = 0, end_s = 0;  // since the ranks began
  double busy_s = 0;              // of these, while data was moved
  double bytes = 0;
};

// Algorithms over sizes.
struct PageCurve {
  std::string name;
  std::vector<int64_t> size_bytes;  // ascending
  std::vector<double> time_s;       // as many
};
struct PageComparison {
  struct Row {
    std::string algorithm;
    int64_t size_bytes = 0;
    double time_s = 0, analytic_s = 0, bound_s = 0;
    int32_t steps = -1;  // -1: timed
  };
  struct Range {
    std::string algorithm;  // the fastest
    int64_t from_bytes = 1;
  };
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::string how;        // times are made, for people
  double bus_factor = 1;  // busbw = size over time x this
  std::vector<Row> rows = {};
  std::vector<PageCurve> curves = {};  // one an algorithm
  PageCurve bound = {};
  std::vector<Range> best = {};                                   // ascending; empty: unknown
  std::vector<std::pair<std::string, std::string>> missing = {};  // algorithm, why it has nothing
};

// Networks of equal size worth wiring: what each costs, and the least that any does.
struct PageDesigns {
  struct Row {
    std::string recipe, algorithm;
    int32_t network = -1;  // of AddNetwork(); -1: too large to be shown beside the others
    int32_t tl = 0, diameter = 0;
    Rational tb;
    bool bidirectional = false;
    std::vector<std::string> reasons = {};
    std::optional<double> time_s = {}, f_lower = {}, f_upper = {};
  };
  int32_t ranks = 0, degree = 0;
  CollectiveKind collective = CollectiveKind::kAllReduce;
  bool one_way = false;
  int32_t tl_bound = 0;
  Rational tb_bound = {};
  std::optional<double> bound_s = {};
  int32_t best = -1;  // row; -1: not asked for
  std::vector<Row> rows = {};
};

// The rate of all-to-all on a network between its two limits, and what proves them.
struct PageFlow {
  Rational f_lower, f_upper;    // in units of the smallest link
  bool demand = false;          // of a demand matrix, not the same for every pair
  std::vector<double> load;     // by link: bytes/s at the rate f_lower
  std::vector<int64_t> length;  // by link: of the certificate behind f_upper
};

// Iterations of a training job, one an algorithm of its collectives.
struct PageTraining {
  enum class Activity : uint8_t { kCompute, kAllToAll, kAllReduce, kTensorAllReduce };
  struct Event {
    Activity activity = Activity::kCompute;
    std::string name;
    int64_t start_ps = 0, end_ps = 0;
  };
  struct Row {
    std::string algorithm;  // or what takes its place: a bound
    int64_t iteration_ps = 0, forward_ps = 0, backward_ps = 0;
    int64_t tensor_ps = 0, all_to_all_ps = 0;
    int64_t exposed_ps = 0, gradients_ps = 0;  // all-reduces of gradients: that show, that run
    std::vector<Event> events = {};
  };
  std::string workload, how;  // for people
  std::vector<Row> rows = {};
};

// What ranks of a communicator did, one operation after the other.
struct PageOperations {
  struct Event {
    int32_t lane = 0;
    int64_t sequence = 0;  // the same in all lanes for one operation
    bool waits = false;    // posted and not yet begun
    int64_t bytes = 0;
    int64_t start_ps = 0, end_ps = 0;  // end >= start >= 0
    std::string name = {};
  };
  std::string title, how;  // for people
  std::vector<std::string> lanes = {};
  std::vector<Event> events = {};
};

class PageData {
 public:
  static constexpr int32_t kMaxDrawnNodes = 4'096;
  static constexpr int32_t kMaxDrawnLinks = 131'072;
  static constexpr int64_t kMaxDrawnTransfers = 2'000'000;
  static constexpr int32_t kMaxGroups = 256;
  static constexpr int64_t kMaxEvents = 200'000;  // of training, or of operations

  // The command that made it, as a headline: "synth".
  explicit PageData(std::string command) : command_(std::move(command)) {}

  // Its index, for the calls below. The same network twice is one.
  int32_t AddNetwork(const Topology& topology);
  // `topology` is the one of AddNetwork().
  void AddLimit(int32_t network, const Topology& topology, CollectiveKind collective,
                const Bounds& bounds);
  void AddSchedule(int32_t network, const Topology& topology, const Schedule& schedule,
                   const PageSchedule& facts);
  // The same schedule as it was executed; its report is not looked at. Where messages go between
  // ranks that no link joins, as through switches, they are drawn on a network of such pairs.
  void AddExecuted(int32_t network, const Topology& topology, const Schedule& schedule,
                   const PageSchedule& facts, const std::vector<PageExecuted>& messages);

  void AddComparison(int32_t network, const PageComparison& comparison);
  void AddDesigns(const PageDesigns& designs);
  void AddTraining(int32_t network, const PageTraining& training);
  void AddOperations(const PageOperations& operations);
  // `topology` is the one of AddNetwork().
  void AddFlow(int32_t network, const Topology& topology, const PageFlow& flow);

  std::string ToJson() const;

 private:
  int32_t KeepNetwork(std::string json);

  std::string command_;
  // JSON texts.
  std::vector<std::string> networks_, limits_, schedules_, flows_;
  std::vector<std::pair<std::string, std::string>> views_;  // key and value of others
};

// The whole page. `json` is an object of docs/formats/explorer-data.md.
Result<std::string> MakePage(std::string_view json);

// The page without data, as built from web/.
std::string_view ExplorerTemplate();

}  // namespace tutti
