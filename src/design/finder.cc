#include "tutti/design/finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "own_base.h"
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

Design ToDesign(const Candidate& candidate) {
  Design result;
  result.recipe = candidate.recipe;
  // Of a base nothing need be known how it was made.
  const bool by_bfb = candidate.step == design::Step::kBase && candidate.has(design::kByBfb);
  result.algorithm = candidate.has(design::kByExpand) && !by_bfb ? "expand" : "bfb";
  result.ranks = candidate.ranks;
  result.degree = candidate.degree;
  result.tl = candidate.tl;
  result.tb = candidate.tb;
  result.reduce_scatter = candidate.reduce_scatter;
  result.diameter = candidate.diameter;
  result.diameter_exact = candidate.diameter_exact;
  result.bidirectional = candidate.has(design::kBidirectional);
  result.reverse_symmetric = candidate.has(design::kReverseSymmetric);
  result.reasons = ReasonsOf(candidate);
  return result;
}

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
    designs.push_back(ToDesign(*one.candidate));
  }
  return designs;
}

// What the asker's own bases do not reach, or else a bidirectional network: uniring(d,N) always
// exists.
tl::unexpected<Error> NoneReaches(const DesignQuestion& question) {
  const int32_t ranks = question.ranks, degree = question.degree;
  const std::string which = question.bidirectional_only ? "bidirectional network" : "network";
  if (!question.bases.empty())
    return InvalidArgument(
        fmt::format("no {} of {} ranks with degree {} can be made of {}: expansions multiply its "
                    "ranks and may add to its degree, which is {}",
                    which, ranks, degree, question.bases.front().recipe,
                    question.bases.front().topology.regular_degree().value_or(0)));
  std::string why, near;
  if (ranks % 2 != 0 && degree % 2 != 0) {
    why = fmt::format("{} ranks times {} ports is odd, and every cable takes two ports", ranks,
                      degree);
    near = fmt::format("{} or {} ranks, or degree {}", ranks - 1, ranks + 1, degree + 1);
  } else {
    why = "no construction reaches it";
    near = fmt::format("degree {}", degree + 1);
  }
  return InvalidArgument(fmt::format("no {} of {} ranks with degree {}: {}; near are {}", which,
                                     ranks, degree, why, near));
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
  if (Status status = CheckDesignSize(question.ranks, question.degree); !status)
    return tl::unexpected(status.error());
  const CollectiveKind kind = question.collective;
  if (kind != CollectiveKind::kAllGather && kind != CollectiveKind::kReduceScatter &&
      kind != CollectiveKind::kAllReduce)
    return InvalidArgument(
        fmt::format("networks are compared by all-gather, reduce-scatter and all-reduce, not by {}",
                    Name(kind)));
  std::vector<design::BaseEntry> own;
  for (const OwnBase& base : question.bases) {
    Result<design::BaseEntry> entry = design::MeasureBase(base.topology, base.recipe);
    if (!entry) return tl::unexpected(entry.error());
    own.push_back(*std::move(entry));
  }
  uint32_t wanted = question.bidirectional_only ? uint32_t{design::kBidirectional} : 0U;
  if (!own.empty()) wanted |= design::kOwn;
  design::Search search(std::move(own));
  std::vector<Design> designs =
      DesignsOf(search.All(question.ranks, question.degree), kind, wanted);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (designs.empty()) return NoneReaches(question);
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
