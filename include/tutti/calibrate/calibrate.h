// Measures a network between ranks, and says it as a topology.
//
// Model       Pairs of ranks exchange messages in rounds of disjoint pairs (a tournament: N - 1 rounds,
//             N where N is odd), so that 64 ranks take minutes. In a pair, one rank sends and the other
//             answers with a byte; only the first one's clock is read. With t(1) and t(L), the median
//             times of one byte and of L: alpha = t(1) / 2, bandwidth = L / (t(L) - t(1)). All pairs
//             of a round are at it together: what they share in the middle of the network counts.
//             Then each rank alone sends to all others at once, and receives from all: what its own
//             links share. At last all ranks send to all others: what ranks share in the middle of the
//             network, and what is lost where several flows meet.
// Units       Seconds, bytes a second.
// Spread      median, and an interval that holds the true median in at least 95 of 100 such
//             measurements, by order statistics: nothing is assumed of the distribution. `high` of a
//             bandwidth is infinite where the intervals of t(1) and t(L) meet.
//             A pair whose long messages are not slower than its short ones is measured again, three
//             times at most, with twice as many repetitions each time (30 or more): work of others on
//             the hosts may have delayed the short ones. What is written is the measurement that told.
// Complexity  5 N + 1 runs of `repeats` repetitions, where none is repeated; O(N^2) memory, at most kMaxRanks
//             ranks.
// Errors      those of the runs; kInfeasible: a pair whose long messages are not slower than its short
//             ones, however often measured, named (`large_bytes` is too small for this network).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/runtime/executor.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Spread {
  double median = 0, low = 0, high = 0;
};
// `values`: one or more. low and high are the extremes where there are fewer than six.
Spread SpreadOf(std::vector<double> values);

struct PairMeasure {
  int32_t from = 0, to = 0;
  Spread alpha_s, bandwidth;
};
struct RankMeasure {
  Spread out, in;  // bytes/s, to and from all others at once, alone
  Spread all;      // bytes/s, each way, while all ranks send to all others
};

struct CalibrateOptions {
  static constexpr int32_t kMaxRanks = 512;
  int32_t num_ranks = 2;
  int64_t large_bytes = 4 << 20;
  int32_t warmup = 2, repeats = 15;
  double hang_timeout_s = 30;
};

struct Calibration {
  CalibrateOptions options;
  std::vector<PairMeasure> pairs;  // every ordered pair, by from, then to
  std::vector<RankMeasure> ranks;
};

// Executes a plan and gives every rank's time of every iteration (RunReport::rank_times).
using PlanRunner = std::function<Result<RunReport>(const Plan& plan, const RunOptions& options)>;

Result<Calibration> Calibrate(const CalibrateOptions& options, const PlanRunner& run);

// Every pair a link with its medians. A rank has a host limit where all its links together carried less
// than nine tenths of what they carry one by one: the least of what it sent and received, alone and
// while all did.
// kInfeasible: a figure beyond what links may have.
Result<Topology> ToTopology(const Calibration& calibration);

// Every figure with its interval, for people: the "source" of a topology file.
std::string DescribeCalibration(const Calibration& calibration, const std::string& where);

}  // namespace tutti
