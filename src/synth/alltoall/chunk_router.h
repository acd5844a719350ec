// ChunkRouter: paths through a network in steps for chunks with one destination each, so that the
// busiest carriers of all steps together are as little busy as a search finds.
//
// Model       A chunk is at its source before step 0; in each step it waits, or crosses one link.
//             Sought is the least sum over steps of the busiest carrier's time. Chunk after chunk
//             is taken out and sent anew over the way that adds least to
//               sum over steps of d log2(sum over carriers of 2^(time / d)),
//             which comes close to that sum as d shrinks from pass to pass. The best of all passes
//             is kept.
// Exactness   Doubles guide the search; what a schedule costs is counted afterwards (sched/cost.h).
//             Only sums, products and tables of doubles: the same paths on any machine.
// Complexity  A pass looks at no more than steps x links a chunk, and only at nodes from which the
//             destination is still in reach. Memory 4 bytes a chunk and step, twice.
// Threads     One.
// Reference   [alltoall-mcf] 3.1.3, of which it is the whole-number form; the potential is that of
//             [Plotkin, Shmoys, Tardos 1995].
#pragma once

#include <cstdint>
#include <vector>

#include "alltoall/step_network.h"
#include "tutti/base/ids.h"
#include "tutti/base/random.h"

namespace tutti::tsmcf {

struct Chunk {
  NodeId source{0}, destination{0};
  int32_t begin = 0, end = 0;  // units of the shard
  int64_t weight = 1;          // >= 1
};

struct RouterLimits {
  int32_t steps = 0;   // at least as many as hops between any source and destination
  int32_t detour = 0;  // hops more than the shortest path that a chunk may take
  int64_t work = 0;    // links looked at, after which no new pass begins
  double enough = 0;   // an objective that cannot be better
  uint64_t seed = 1;
  const std::vector<std::vector<bool>>* flow_links =
      nullptr;  // [source][link] a chunk may use; all
};

class ChunkRouter {
 public:
  // `network` and what `limits` points at must outlive the router.
  ChunkRouter(const StepNetwork& network, std::vector<Chunk> chunks, const RouterLimits& limits);

  // Ends early when cancelled (base/cancel.h).
  void Run();
  // After Run(): of chunk c in each step the link, or kWaits.
  const int32_t* WayOf(size_t chunk) const { return best_.data() + chunk * steps_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  int64_t work() const { return work_; }  // links looked at
  double objective() const { return best_objective_; }

  static constexpr int32_t kWaits = -1;

 private:
  double Objective() const;
  void SetSharpness(double sharpness);
  void Put(const Chunk& chunk, const int32_t* way, int64_t sign);
  void UseWeight(int64_t weight);
  double CostOf(size_t step, int32_t link) const;
  // The cheapest way into `way_`; its cost.
  double FindWay(const Chunk& chunk);
  double CostOfWay(const Chunk& chunk, const int32_t* way);
  bool Pass(std::vector<uint32_t>& order, bool first, Random& random);

  const StepNetwork& network_;
  std::vector<Chunk> chunks_;
  RouterLimits limits_;
  size_t steps_, carriers_;

  std::vector<int32_t> way_of_, best_;  // [chunk][step]
  double best_objective_ = 0;
  std::vector<int64_t> load_;   // [step][carrier], in weight
  std::vector<double> heat_;    // [step][carrier]: members x 2^(time / d), up to a factor a step
  std::vector<double> total_;   // [step]: sum of heat
  std::vector<double> origin_;  // [step]: the time that heat is counted from
  double sharpness_ = 1;        // [d]
  int64_t weight_ = 0;
  std::vector<double> growth_;  // [carrier]: 2^(time of weight_ / d) - 1
  double hop_cost_ = 0;
  int64_t work_ = 0;

  // Scratch of FindWay.
  std::vector<double> cost_, next_cost_;  // [node]
  std::vector<int32_t> seen_;             // [node]: the level that set the cost
  std::vector<int32_t> came_by_;          // [step][node]: link, or kWaits
  std::vector<int32_t> way_;              // [step]
  std::vector<NodeId> level_, next_level_;
  int32_t stamp_ = 0;
};

}  // namespace tutti::tsmcf
