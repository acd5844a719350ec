#include "tutti/design/flow_frontier.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "asked.h"
#include "search.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/graph/distance.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

struct Contender {
  Design design;
  DesignCost cost;
  Topology topology;
  Rational most;  // f is at most that
};

bool NoWorse(const DesignCost& a, const DesignCost& b) { return a.tl <= b.tl && a.tb <= b.tb; }

// All links alike: every pair takes up at least its distance of what all links carry.
Rational FlowByDistances(const Topology& topology) {
  int64_t distances = 0;
  for (NodeId rank : topology.Ranks())
    for (const int32_t distance : DistancesFrom(topology.graph(), rank)) distances += distance;
  return {topology.num_links(), distances};
}

Result<std::vector<Contender>> ContendersFor(const DesignQuestion& question) {
  Result<design::Asked> asked = design::Ask(question);
  if (!asked) return tl::unexpected(asked.error());
  design::Search search(std::move(asked->own));
  std::vector<Contender> contenders;
  for (const design::Candidate* candidate : search.Every(question.ranks, question.degree)) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (!candidate->has(asked->wanted)) continue;
    Design design = design::ToDesign(*candidate);
    Result<Topology> topology = ParseTopology(design.recipe);
    if (!topology) return tl::unexpected(topology.error());
    const DesignCost cost = design.CostOf(question.collective);
    const Rational most = FlowByDistances(*topology);
    contenders.push_back({std::move(design), cost, *std::move(topology), most});
  }
  if (contenders.empty()) return design::NoneReaches(question);
  // Who may carry most comes first, so that few of the others need a flow.
  std::sort(contenders.begin(), contenders.end(), [](const Contender& a, const Contender& b) {
    return std::tie(b.most, a.cost.tl, a.cost.tb, a.design.recipe) <
           std::tie(a.most, b.cost.tl, b.cost.tb, b.design.recipe);
  });
  return contenders;
}

struct Solved {
  DesignWithFlow entry;
  DesignCost cost;
};

// Ascending as the frontier is, those that nobody before them rules out.
std::vector<DesignWithFlow> Undominated(std::vector<Solved> solved) {
  std::sort(solved.begin(), solved.end(), [](const Solved& a, const Solved& b) {
    return std::tie(a.cost.tl, a.cost.tb, b.entry.f_lower, a.entry.design.recipe) <
           std::tie(b.cost.tl, b.cost.tb, a.entry.f_lower, b.entry.design.recipe);
  });
  std::vector<DesignWithFlow> kept;
  for (size_t i = 0; i < solved.size(); ++i) {
    bool proven = true;
    for (size_t j = 0; j < solved.size() && proven; ++j) {
      const bool before = j < i ? NoWorse(solved[j].cost, solved[i].cost)
                                : j > i && NoWorse(solved[j].cost, solved[i].cost) &&
                                      !NoWorse(solved[i].cost, solved[j].cost);
      proven = !before || solved[j].entry.f_upper < solved[i].entry.f_lower;
    }
    if (proven) kept.push_back(solved[i].entry);
  }
  return kept;
}

}  // namespace

Result<FlowFrontier> FindFlowFrontier(const DesignQuestion& question, double gap) {
  Result<std::vector<Contender>> contenders = ContendersFor(question);
  if (!contenders) return tl::unexpected(contenders.error());
  FlowFrontier frontier;
  frontier.looked_at = static_cast<int32_t>(contenders->size());
  std::vector<Solved> solved;
  ProgressScope progress("flows", static_cast<int64_t>(contenders->size()));
  for (Contender& contender : *contenders) {
    progress.Add(1);
    const bool beaten = std::any_of(solved.begin(), solved.end(), [&](const Solved& other) {
      return NoWorse(other.cost, contender.cost) && other.entry.f_lower >= contender.most;
    });
    if (beaten) continue;
    ConcurrentFlowOptions options;
    options.gap = gap;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(contender.topology, options);
    if (!flow) return tl::unexpected(flow.error());
    solved.push_back(
        {{std::move(contender.design), flow->f_lower, std::min(flow->f_upper, contender.most)},
         contender.cost});
  }
  frontier.solved = static_cast<int32_t>(solved.size());
  frontier.designs = Undominated(std::move(solved));
  std::vector<Design> designs;
  for (const DesignWithFlow& one : frontier.designs) designs.push_back(one.design);
  if (Status status = MeasureDiameters(designs); !status) return tl::unexpected(status.error());
  for (size_t i = 0; i < designs.size(); ++i) frontier.designs[i].design = std::move(designs[i]);
  return frontier;
}

}  // namespace tutti
