// What the experiments of [tuna] share: all-to-all-v algorithms run for real over a simulated
// machine.
//
// Model       SimGrid's smpirun runs the program tutti-mpi-sweep-smpi, which lies beside `tutti`,
//             on a platform of data/platforms: the same code as real MPI programs run, in simulated
//             time. Messages inside a node cost less than those between nodes
//             (docs/adr/0027-local-and-remote-messages.md). The same points give the same times on
//             every machine, so points once simulated may be kept in a folder
//             (ExperimentOptions::simulated), in files named by a hash of program and platform.
// Units       Seconds, bytes.
// Complexity  P ranks live in one process: 20 us of a core a message at P = 256, 56 us where P =
//             1024 ranks send all messages at once, because SMPI walks the list of all eager
//             messages under way when one arrives (150 us without what is preloaded,
//             src/mpi/programs/simgrid_nodes.cc).
// Errors      kNotFound: no smpirun on the PATH, no such program or nothing that charges messages
//             inside a node (says where it was looked for). kIo: smpirun failed, with its own
//             words. kCancelled.
// Threads     Two simulations at once where there are two cores, a core each.
// Reference   [tuna] sections V and VI; docs/results/tuna.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiment.h"
#include "tutti/base/result.h"

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

// What a message inside a node costs: what the platform says of it, what one between nodes does
// (SMPI's own model), or 50 ns and 0.1 ns a byte on each side.
enum class LocalMessages : uint8_t { kOfPlatform, kAsRemote, kCheap };

// A machine: how many ranks, how many of them a node.
struct Machine {
  std::string platform;  // of data/platforms
  int64_t ranks = 0;
  int64_t ranks_per_node = 0;  // 0: the usual
  LocalMessages local = LocalMessages::kOfPlatform;

  // Usually 32 as in the paper, fewer where that would be fewer than four nodes.
  int64_t RanksPerNode() const;
  int64_t Nodes() const { return ranks / RanksPerNode(); }
};

struct Simulation {
  Machine machine;
  std::vector<Point> points;
};

// The points of each simulation, in their order.
Result<std::vector<std::vector<Measured>>> SimulateAll(std::span<const Simulation> simulations,
                                                       const ExperimentOptions& options);

// Runs a program that lies beside `tutti` on the machine; what it printed on both streams.
Result<std::string> RunSimulated(const Machine& machine, std::string_view program,
                                 std::span<const std::string> arguments,
                                 std::span<const std::string> environment = {});

// The usual numbers of ranks, 256 to `largest`, that the options leave in, ascending; where those
// are fewer than three, the largest, half and a quarter of it.
std::vector<int64_t> RanksUpTo(int64_t largest, const ExperimentOptions& options);

// Whether the buffers of all ranks, which live in one process, fit an ordinary machine's memory.
bool FitsMemory(int64_t ranks, int64_t size, const ExperimentOptions& options);

// The baselines whose P (P - 1) messages are simulated; the others, which take over half an hour
// each, are bounded by DirectFloor.
std::vector<std::string> SimulatedBaselines(int64_t ranks, int64_t size,
                                            const ExperimentOptions& options);

// No algorithm that sends each block of `size` bytes at most, uniformly drawn, as a message of its
// own takes less: the overheads of the messages that a rank sends and receives, inside its node and
// between nodes, and its bytes by the gap of a byte, all means over the ranks.
Result<double> DirectFloor(const Machine& machine, int64_t size);

// All sizes with all algorithms.
std::vector<Point> Grid(std::span<const int64_t> sizes, const std::vector<std::string>& algorithms,
                        const std::string& distribution = "uniform");

// 2, 4, 8, ... below P, and P.
std::vector<int64_t> Radices(int64_t ranks);
// A few: 4, 8, 16 and the square root of P; below 1024 ranks, where it may be the best, 2.
std::vector<int64_t> FewRadices(int64_t ranks);
std::vector<std::string> TunaOf(std::span<const int64_t> radices);
// K of [tuna] section III-C: messages of blocks that a rank sends, one a round.
int64_t MessagesOfTuna(int64_t ranks, int64_t radix);
// The hierarchical forms with parameters that are among their best.
std::vector<std::string> Hierarchical(const Machine& machine);

// What programs have without Tutti: all at once in round-robin order (MPICH's older default),
// at most 32 at once (MPICH), one at a time (Open MPI).
inline constexpr std::string_view kAllAtOnce = "spread-out";
inline constexpr std::string_view kWindow = "scattered:b=32";
inline constexpr std::string_view kOneAtATime = "pairwise";
// No algorithm at all is faster than the busiest link; nothing is sent for it.
inline constexpr std::string_view kNetworkFloor = "network-floor";

// How it was measured; the first note of every experiment.
std::string SimulationNote();

}  // namespace tutti::tuna
