#include "asked.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "own_base.h"

namespace tutti::design {

Result<Asked> Ask(const DesignQuestion& question) {
  if (Status status = CheckDesignSize(question.ranks, question.degree); !status)
    return tl::unexpected(status.error());
  const CollectiveKind kind = question.collective;
  if (kind != CollectiveKind::kAllGather && kind != CollectiveKind::kReduceScatter &&
      kind != CollectiveKind::kAllReduce)
    return InvalidArgument(
        fmt::format("networks are compared by all-gather, reduce-scatter and all-reduce, not by {}",
                    Name(kind)));
  Asked asked;
  for (const OwnBase& base : question.bases) {
    Result<BaseEntry> entry = MeasureBase(base.topology, base.recipe);
    if (!entry) return tl::unexpected(entry.error());
    asked.own.push_back(*std::move(entry));
  }
  if (question.bidirectional_only) asked.wanted |= kBidirectional;
  if (!asked.own.empty()) asked.wanted |= kOwn;
  return asked;
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

Design ToDesign(const Candidate& candidate) {
  Design result;
  result.recipe = candidate.recipe;
  // How a base was made need not be known.
  const bool by_bfb = candidate.step == Step::kBase && candidate.has(kByBfb);
  result.algorithm = candidate.has(kByExpand) && !by_bfb ? "expand" : "bfb";
  result.ranks = candidate.ranks;
  result.degree = candidate.degree;
  result.tl = candidate.tl;
  result.tb = candidate.tb;
  result.reduce_scatter = candidate.reduce_scatter;
  result.diameter = candidate.diameter;
  result.diameter_exact = candidate.diameter_exact;
  result.bidirectional = candidate.has(kBidirectional);
  result.reverse_symmetric = candidate.has(kReverseSymmetric);
  result.reasons = ReasonsOf(candidate);
  return result;
}

}  // namespace tutti::design
