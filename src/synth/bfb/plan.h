// What a BFB schedule is before its transfers: the time of every step and the number of units a
// shard is cut into. Threads share the model; the results do not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bfb/balance.h"
#include "bfb/layers.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

// The problem of a step is often the one that the receiver before had in that step: keeps the last
// solution of every step. Results are a function of the problem alone, so this changes no byte.
template <class Solution>
class StepMemo {
 public:
  template <class Solve>
  const Solution& Get(int32_t step, const LoadProblem& problem, const Solve& solve) {
    const auto s = static_cast<size_t>(step);
    if (s >= last_.size()) last_.resize(s + 1);
    Entry& entry = last_[s];
    if (!entry.solution || !(entry.problem == problem)) {
      entry.problem = problem;
      entry.solution = solve(problem);
    }
    return *entry.solution;
  }

 private:
  struct Entry {
    LoadProblem problem;
    std::optional<Solution> solution;
  };
  std::vector<Entry> last_;
};

// Receivers of one thread, one after the other until the user interrupts.
class ReceiverBlock {
 public:
  ReceiverBlock(int64_t first, int64_t last, ProgressScope& progress)
      : next_(static_cast<int32_t>(first)),
        last_(static_cast<int32_t>(last)),
        progress_(progress) {}

  std::optional<NodeId> Next() {
    if (next_ == last_ || CancelRequested()) return std::nullopt;
    progress_.Add(1);
    return NodeId{next_++};
  }

 private:
  int32_t next_, last_;
  ProgressScope& progress_;
};

// A network as BFB sees it.
struct BfbModel {
  BfbModel(const Topology& topology, const Collective& collective, int64_t size_bytes);
  // Rank 0's only, where all others are known to fare alike.
  void LookAtRank0Only() { num_receivers = 1; }

  // Calls visit(step, problem) for every step in which `receiver` gets something.
  template <class Visit>
  void ForEachStep(NodeId receiver, SourceLayers& layers, LoadProblem& problem,
                   const Visit& visit) const {
    layers.Load(receiver);
    problem.link_class.clear();
    if (!equal_links)
      for (LinkId link : table.topology.InLinks(receiver))
        problem.link_class.push_back(class_of_link[link.index()]);
    for (int32_t step = 0; step < layers.num_steps(); ++step) {
      layers.MakeProblem(step, problem);
      if (problem.num_groups() > 0) visit(step, problem);
    }
  }

  // Hands blocks of receivers to visit_block in parallel. `task` is a literal, for the progress
  // display. kCancelled when the user interrupts.
  Status ForEachBlock(const char* task,
                      const std::function<void(ReceiverBlock&)>& visit_block) const;

  InLinkTable table;
  int32_t num_receivers;
  Rational shards_in_size;  // M in shards
  bool equal_links = true;  // all of one bandwidth and one alpha
  bool equal_alphas = true;
  // Unequal links: the different ones. Times are seconds where alphas differ; with equal ones alpha
  // is left out and the shard is one byte, so that nothing depends on the size.
  std::vector<LinkCost> costs;
  std::vector<int32_t> class_of_link;
};

struct BfbPlan {
  int32_t units_per_shard = 1;
  bool exact = true;  // no finer units save anything
  // Per step what the slowest link takes in whole units: shards on equal links, otherwise in the
  // time of the model's costs.
  std::vector<Rational> step_time;
  Rational exact_time;  // of all steps together, in units as fine as it takes
};
// How many units a shard is cut into: so many, or the fewest that are exact, or at most so many.
struct BfbUnits {
  int32_t wanted = 0;  // 0: any
  int64_t most = 0;
};
BfbUnits BfbUnitsFor(const Topology& topology, const Collective& collective,
                     const SynthOptions& options);
Result<BfbPlan> MakeBfbPlan(const BfbModel& model, const BfbUnits& units);
// Says what coarse units cost, where they were chosen; of two halves the one that loses more.
void NoteUnits(const BfbPlan& plan, const SynthOptions& options);

// One receiver in one step in units of the plan.
std::vector<Piece> SolveInUnits(const BfbModel& model, const LoadProblem& problem,
                                int64_t units_per_shard);

}  // namespace tutti
