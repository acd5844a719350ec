// What the experiments of [tuna] share: all-to-all-v algorithms run for real over a simulated
// machine.
//
// Model       SimGrid's smpirun runs the program tutti-mpi-sweep-smpi, which lies beside `tutti`,
// on
//             a platform of data/platforms: the same code as real MPI programs run, in simulated
//             time. The same points give the same times on every machine.
// Units       Seconds, bytes.
// Complexity  P ranks live in one process: about 0.1 ms of a core a message.
// Errors      kNotFound: no smpirun on the PATH, or no such program (says where it was looked for).
//             kIo: smpirun failed, with its own words. kCancelled.
// Threads     One simulation at a time; it takes one core.
// Reference   [tuna] sections V and VI; docs/results/tuna.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "tutti/base/result.h"
#include "tutti/reproduce/experiment.h"

namespace tutti::tuna {

// As tutti-mpi-sweep takes it.
struct Point {
  std::string distribution = "uniform";
  int64_t size = 0;
  std::string algorithm;
};

struct Measured {
  Point point;
  double seconds = 0;  // of the slowest rank
  // Means over the ranks.
  double prepare_s = 0, metadata_s = 0, data_s = 0, copy_s = 0, rearrange_s = 0, inter_node_s = 0;
  int64_t temporary_bytes = 0, messages = 0;  // the most of a rank
};

// A machine: how many ranks, how many of them a node.
struct Machine {
  std::string platform;  // of data/platforms
  int64_t ranks = 0;

  // 32 as in the paper, fewer where that would be fewer than four nodes.
  int64_t RanksANode() const;
};

// In the order of the points.
Result<std::vector<Measured>> Simulate(const Machine& machine, std::span<const Point> points);

// The usual number of ranks, or the largest the options leave in; with --large four times as many.
int64_t RanksFor(const ExperimentOptions& options);

// All sizes with all algorithms.
std::vector<Point> Grid(std::span<const int64_t> sizes, const std::vector<std::string>& algorithms,
                        const std::string& distribution = "uniform");

// 2, 4, 8, ... below P, and P.
std::vector<int64_t> Radices(int64_t ranks);
std::vector<std::string> TunaOf(std::span<const int64_t> radices);

// What programs have without Tutti: all at once in round-robin order (MPICH's older default),
// at most 32 at once (MPICH), one at a time (Open MPI).
inline constexpr std::string_view kAllAtOnce = "spread-out";
inline constexpr std::string_view kWindow = "scattered:b=32";
inline constexpr std::string_view kOneAtATime = "pairwise";

// The fastest of those of this size whose algorithm begins with one of the names; null: none.
const Measured* Fastest(std::span<const Measured> all, int64_t size,
                        const std::vector<std::string_view>& names);
const Measured* Slowest(std::span<const Measured> all, int64_t size, std::string_view name);

// Microseconds, as exact as they were printed.
ResultCell Microseconds(double seconds, std::string paper = "");
// a / b.
ResultCell Ratio(double a, double b, std::string paper = "");

// How it was measured; the first note of every experiment.
std::string SimulationNote(int64_t ranks);

}  // namespace tutti::tuna
