// What the experiments of [tacos] share: networks with their limits, how an algorithm did on one,
// and the cells that say so.
//
// Model       A schedule is made, proven by the verifier and simulated with eager steps. Links are
//             held, which is the cost that the paper's synthesizer counts (alpha + bytes/bandwidth
//             for each chunk), or pipelined, which is what its simulator does: where sizes are
//             small both are shown. Where an algorithm works with any number of chunks, or on any
//             unwinding of a switch, several are tried and the fastest is kept; which, is said.
//             Basic algorithms run as the paper runs them: tacos_messages.h.
// Limits      `bound` is proven for the network that the schedule runs on. `ideal` is the paper's:
//             2 (n - 1) / n of the size over the bandwidth of the slowest rank, plus the alphas
//             of the longest of the shortest paths. It is no bound and may be beaten.
// Errors      kCancelled, and what the makers say: kInfeasible where no variant can be made.
// Reference   [tacos] section V.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "experiment.h"
#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti::tacos {

inline constexpr double kPercent = 100;

inline constexpr int64_t kGigabyte = 1'000'000'000;
// Chunks a shard that are tried for `ten`: 1, 2, 4, 8 and 16, as far as ranks^2 * chunks stays
// within 2^15, and EvenChunks() of synth/ten.h and its double within twice that; with --large all.
std::vector<int32_t> TenChunks(const Topology& topology, const ExperimentOptions& options);

// Among the chunks of RunFastest: as many as are predicted to be fastest (--chunks auto).
inline constexpr int32_t kAutoChunks = -1;

struct NamedNetwork {
  std::string_view name;  // the paper's
  std::string_view expression;
};
// Networks of figures 1 and 2(a): 64 ranks each. Figure 2 says so; figure 1 does not. What the paper calls a
// 3D hypercube is a 3-D mesh.
inline constexpr int64_t kMotivatingRanks = 64;
std::span<const NamedNetwork> MotivatingNetworks();

struct Network {
  Topology topology;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bounds bounds;

  double BoundSeconds(int64_t size_bytes) const { return bounds.Seconds(size_bytes); }
  double IdealSeconds(int64_t size_bytes) const;
};
Result<Network> MakeNetwork(std::string_view expression,
                            CollectiveKind kind = CollectiveKind::kAllReduce);

struct Outcome {
  double time_s = 0, synthesis_s = 0, bound_s = 0;
  int32_t chunks = 0;   // a shard; 0: what the algorithm takes
  std::string network;  // that it ran on
  SimReport report;
};

struct RunOptions {
  int64_t size_bytes = kGigabyte;
  LinkModel link_model = LinkModel::kHeld;
  bool record = false;  // a trace
};

struct NamedLinkModel {
  LinkModel model;
  std::string_view name;
};
// The paper's simulator first.
inline constexpr std::array<NamedLinkModel, 2> kLinkModels = {
    {{LinkModel::kPipelined, "pipelined"}, {LinkModel::kHeld, "held"}}};

// The fastest over all networks and numbers of chunks, which ascend: on each network they are tried
// until more is slower.
Result<Outcome> RunFastest(std::span<const Network> networks, std::string_view algorithm,
                           std::span<const int32_t> chunks, const RunOptions& options);
inline Result<Outcome> RunFastest(const Network& network, std::string_view algorithm,
                                  std::span<const int32_t> chunks, const RunOptions& options) {
  return RunFastest(std::span(&network, 1), algorithm, chunks, options);
}

// The paper's basic algorithms, as messages. "Ring" is said to be bidirectional (its footnote 3);
// some figures are those of a ring one way.
enum class Basic : uint8_t { kRing, kOneWayRing, kDirect, kRhd, kDbt };
std::string_view Name(Basic basic);  // "Ring"
// All-reduce. `place`: the rank of the network that stands at each place of the algorithm's order;
// empty: in order of numbers.
Result<Outcome> RunBasic(const Network& network, Basic basic, const RunOptions& options,
                         std::span<const NodeId> place = {});
// The paper's order where a network has dimensions of these lengths: the first varies fastest (in
// our numbers the last does).
std::vector<NodeId> FirstDimensionFastest(std::span<const int32_t> lengths);

// An outcome's row: time, bandwidth, times as fast as `slowest_s`, shares of bound and ideal, and
// what it was made with. An error that is not kCancelled is a word.
std::vector<ResultColumn> OutcomeColumns();
struct PaperFigures {
  std::string normalised, of_ideal, synthesis_ms;
};
ResultRow OutcomeRow(std::string label, const Result<Outcome>& outcome, const Network& network,
                     int64_t size_bytes, double normal_s, const PaperFigures& paper = {});

ResultCell Measured(double value, std::string paper = "");
std::string SizeText(int64_t bytes);  // "16 MB"

// Share of all links that are busy, over the time of `outcome` in units of `unit_s`.
ChartSeries UtilisationSeries(std::string name, const Outcome& outcome, double unit_s);
// The same on average: all links over all of its time.
double MeanUtilisation(const Outcome& outcome);

// What each link carries, as a square over (from, to): 1 is `most`, black where there is no link.
// Parallel links add up.
HeatMap LoadMap(const Topology& topology, const std::vector<double>& link_value, double most);

// Averages over what was measured.
class Average {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
  }
  ResultCell Cell(std::string paper = "") const;

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace tutti::tacos
