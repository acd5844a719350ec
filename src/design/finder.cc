#include "tutti/design/finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "asked.h"
#include "search.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using design::Candidate;

// Searching keeps about this much a rank at a time, mostly for generalized Kautz digraphs.
constexpr double kBytesPerRank = 600;

DesignCost CostFor(CollectiveKind collective, DesignCost all_gather,
                   const DesignCost& reduce_scatter) {
  if (collective == CollectiveKind::kReduceScatter) return reduce_scatter;
  if (collective != CollectiveKind::kAllReduce) return all_gather;
  return {all_gather.tl + reduce_scatter.tl, all_gather.tb + reduce_scatter.tb};
}

struct Priced {
  DesignCost cost;
  const Candidate* candidate;
};

// The cheaper first, and of equal ones the nicer.
bool Before(const Priced& a, const Priced& b) {
  if (a.cost.tl != b.cost.tl) return a.cost.tl < b.cost.tl;
  if (a.cost.tb != b.cost.tb) return a.cost.tb < b.cost.tb;
  const Candidate &x = *a.candidate, &y = *b.candidate;
  if (x.diameter != y.diameter) return x.diameter < y.diameter;
  if (x.recipe.size() != y.recipe.size()) return x.recipe.size() < y.recipe.size();
  return x.recipe < y.recipe;
}

// Those with the properties wanted that nobody beats in tl and tb of the collective.
std::vector<Design> DesignsOf(const design::Frontier& frontier, CollectiveKind collective,
                              uint32_t wanted) {
  std::vector<Priced> priced;
  for (const Candidate* candidate : frontier.candidates())
    if (candidate->has(wanted))
      priced.push_back(
          {CostFor(collective, {candidate->tl, candidate->tb}, candidate->reduce_scatter),
           candidate});
  std::sort(priced.begin(), priced.end(), Before);
  std::vector<Design> designs;
  const Rational* least = nullptr;
  for (const Priced& one : priced) {
    if (least != nullptr && one.cost.tb >= *least) continue;
    least = &one.cost.tb;
    designs.push_back(design::ToDesign(*one.candidate));
  }
  return designs;
}

}  // namespace

DesignCost Design::CostOf(CollectiveKind collective) const {
  return CostFor(collective, {tl, tb}, reduce_scatter);
}

Status CheckDesignSize(int64_t ranks, int64_t degree) {
  if (degree < 1 || degree > kMaxDesignDegree)
    return InvalidArgument(
        fmt::format("degree {}: wanted 1 <= degree <= {}", degree, kMaxDesignDegree));
  if (ranks < 2) return InvalidArgument(fmt::format("{} ranks: wanted at least 2", ranks));
  if (ranks > kMaxDesignRanks)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format(
            "{} ranks: the search would take about {:.0f} GiB and an all-gather has at least "
            "{:.2g} transfers; wanted at most {} ranks",
            ranks, static_cast<double>(ranks) * kBytesPerRank / (1 << 30),
            static_cast<double>(ranks) * static_cast<double>(ranks - 1), kMaxDesignRanks));
  return {};
}

Status MeasureDiameters(std::vector<Design>& designs) {
  for (Design& design : designs) {
    if (design.diameter_exact) continue;
    const Result<Topology> topology = ParseTopology(design.recipe);
    if (!topology) return tl::unexpected(topology.error());
    design.diameter = Diameter(*topology);
    design.diameter_exact = true;
  }
  return {};
}

Result<std::vector<Design>> FindFrontier(const DesignQuestion& question) {
  Result<design::Asked> asked = design::Ask(question);
  if (!asked) return tl::unexpected(asked.error());
  design::Search search(std::move(asked->own));
  std::vector<Design> designs =
      DesignsOf(search.All(question.ranks, question.degree), question.collective, asked->wanted);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (designs.empty()) return design::NoneReaches(question);
  if (Status status = MeasureDiameters(designs); !status) return tl::unexpected(status.error());
  return designs;
}

Result<std::vector<SizedFrontier>> FindAllFrontiers(const std::vector<int32_t>& degrees,
                                                    int32_t max_ranks) {
  for (int32_t degree : degrees)
    if (Status status = CheckDesignSize(max_ranks, degree); !status)
      return tl::unexpected(status.error());
  design::Search search;
  search.Prefetch(degrees, max_ranks);
  std::vector<SizedFrontier> frontiers;
  ProgressScope progress("design", static_cast<int64_t>(degrees.size()) * max_ranks);
  for (int32_t degree : degrees)
    for (int32_t ranks = 2; ranks <= max_ranks; ++ranks) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const design::Frontier& frontier = search.All(ranks, degree);
      frontiers.push_back(
          {ranks, degree, DesignsOf(frontier, CollectiveKind::kAllGather, 0),
           DesignsOf(frontier, CollectiveKind::kReduceScatter, 0),
           DesignsOf(frontier, CollectiveKind::kAllReduce, 0),
           DesignsOf(frontier, CollectiveKind::kAllGather, design::kBidirectional)});
      progress.Add(1);
    }
  return frontiers;
}

}  // namespace tutti
