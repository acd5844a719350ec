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
#include "tutti/coll/bounds.h"
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
  result.algorithm = candidate.has(design::kByExpand) ? "expand" : "bfb";
  result.ranks = candidate.ranks;
  result.degree = candidate.degree;
  result.tl = candidate.tl;
  result.tb = candidate.tb;
  result.diameter = candidate.diameter;
  result.diameter_exact = candidate.diameter_exact;
  result.bidirectional = candidate.has(design::kBidirectional);
  result.reverse_symmetric = candidate.has(design::kReverseSymmetric);
  result.bandwidth_optimal = candidate.tb == BestTb(candidate.ranks);
  result.moore_optimal = candidate.tl == MooreBoundSteps(candidate.ranks, candidate.degree);
  result.reasons = ReasonsOf(candidate);
  return result;
}

// Those of `frontier` that nobody beats in tl and tb, and for equal ones the nicest.
std::vector<const Candidate*> Undominated(const design::Frontier& frontier, uint32_t wanted) {
  std::vector<const Candidate*> kept;
  for (const Candidate* candidate : frontier.candidates()) {  // ascending in (tl, tb)
    if (!candidate->has(wanted)) continue;
    if (!kept.empty() && kept.back()->tb < candidate->tb) continue;
    if (!kept.empty() && kept.back()->tb == candidate->tb) {
      const bool nicer = kept.back()->tl == candidate->tl &&
                         std::make_pair(candidate->diameter, candidate->recipe.size()) <
                             std::make_pair(kept.back()->diameter, kept.back()->recipe.size());
      if (nicer) kept.back() = candidate;
      continue;
    }
    kept.push_back(candidate);
  }
  return kept;
}

std::vector<Design> DesignsOf(const design::Frontier& frontier, bool bidirectional_only) {
  std::vector<Design> designs;
  for (const Candidate* candidate :
       Undominated(frontier, bidirectional_only ? uint32_t{design::kBidirectional} : 0U))
    designs.push_back(ToDesign(*candidate));
  return designs;
}

// Only a bidirectional network can be out of reach: uniring(d,N) always exists.
tl::unexpected<Error> NoneReaches(int32_t ranks, int32_t degree) {
  std::string why, near;
  if (ranks % 2 != 0 && degree % 2 != 0) {
    why = fmt::format("{} ranks times {} ports is odd, and every cable takes two ports", ranks,
                      degree);
    near = fmt::format("{} or {} ranks, or degree {}", ranks - 1, ranks + 1, degree + 1);
  } else {
    why = "no construction reaches it";
    near = fmt::format("degree {}", degree + 1);
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      fmt::format("no bidirectional network of {} ranks with degree {}: {}; near are {}", ranks,
                  degree, why, near));
}

}  // namespace

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
  std::vector<design::BaseEntry> own;
  for (const OwnBase& base : question.bases) {
    Result<design::BaseEntry> entry = design::MeasureBase(base.topology, base.recipe);
    if (!entry) return tl::unexpected(entry.error());
    own.push_back(*std::move(entry));
  }
  design::Search search(std::move(own));
  std::vector<Design> designs =
      DesignsOf(search.All(question.ranks, question.degree), question.bidirectional_only);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (designs.empty()) return NoneReaches(question.ranks, question.degree);
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
      frontiers.push_back({ranks, degree, DesignsOf(frontier, false), DesignsOf(frontier, true)});
      progress.Add(1);
    }
  return frontiers;
}

}  // namespace tutti
