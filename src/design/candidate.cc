#include "candidate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/check.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

bool CostsTheSameBothWays(const Candidate& candidate) {
  return candidate.reduce_scatter.tl == candidate.tl && candidate.reduce_scatter.tb == candidate.tb;
}

// `expanded` says what an expansion makes of a cost: of the all-gather's, and of the
// reduce-scatter's, which is the all-gather's on the transpose.
template <class Expanded>
Candidate Expand(const Candidate& base, Step step, int32_t times, const Expanded& expanded) {
  const ExpansionCost cost = expanded({base.ranks, base.degree, base.tl, base.tb});
  Candidate candidate;
  candidate.ranks = static_cast<int32_t>(cost.ranks);
  candidate.degree = cost.degree;
  candidate.tl = cost.tl;
  candidate.tb = cost.tb;
  candidate.reduce_scatter = {cost.tl, cost.tb};
  if (!CostsTheSameBothWays(base)) {
    const ExpansionCost back =
        expanded({base.ranks, base.degree, base.reduce_scatter.tl, base.reduce_scatter.tb});
    candidate.reduce_scatter = {back.tl, back.tb};
  }
  candidate.step = step;
  candidate.times = times;
  return candidate;
}

// For a bidirectional network, see CanLine.
void MarkLineByBfb(Candidate& candidate) {
  if (candidate.has(kBidirectional | kByBfb | kBranches)) candidate.properties |= kLineByBfb;
}

bool Before(const Candidate* a, const Candidate* b) {
  if (a->ranks != b->ranks) return a->ranks > b->ranks;
  return a->recipe < b->recipe;
}

// The factors of a product, which a power in it stands for times over.
void AppendFactors(const Candidate& candidate, std::vector<const Candidate*>& factors) {
  if (candidate.step == Step::kProduct) {
    factors.insert(factors.end(), candidate.operands.begin(), candidate.operands.end());
  } else if (candidate.step == Step::kPower && candidate.has(kFactor)) {
    for (int32_t time = 0; time < candidate.times; ++time)
      AppendFactors(*candidate.operands[0], factors);
  } else {
    factors.push_back(&candidate);
  }
}

// product(power(G,2),H) of G, G, H; power(G,2) of G, G.
std::string RecipeOfProduct(const std::vector<const Candidate*>& factors) {
  std::string list;
  size_t kinds = 0;
  for (size_t i = 0; i < factors.size(); ++kinds) {
    size_t j = i;
    while (j < factors.size() && factors[j]->recipe == factors[i]->recipe) ++j;
    list += (list.empty() ? "" : ",");
    list +=
        j - i == 1 ? factors[i]->recipe : fmt::format("power({},{})", factors[i]->recipe, j - i);
    i = j;
  }
  return kinds == 1 ? list : fmt::format("product({})", list);
}

std::string CostText(const Candidate& candidate) {
  const bool optimal = candidate.tb == BestTb(candidate.ranks);
  std::string text =
      fmt::format("{} ranks of degree {}, TL {}, TB {}{}", candidate.ranks, candidate.degree,
                  candidate.tl, candidate.tb.ToString(), optimal ? " (bandwidth-optimal)" : "");
  if (!CostsTheSameBothWays(candidate))
    text += fmt::format(", of the reduce-scatter TL {}, TB {}", candidate.reduce_scatter.tl,
                        candidate.reduce_scatter.tb.ToString());
  return text;
}

}  // namespace

Candidate MakeBase(const BaseEntry& entry, std::string_view reference) {
  Candidate candidate;
  candidate.ranks = entry.ranks;
  candidate.degree = entry.degree;
  candidate.tl = entry.tl;
  candidate.tb = entry.tb;
  candidate.reduce_scatter = entry.reduce_scatter.value_or(DesignCost{entry.tl, entry.tb});
  TUTTI_CHECK(!entry.reduce_scatter || (!entry.reverse_symmetric && !entry.bidirectional));
  candidate.diameter = entry.diameter;
  candidate.recipe = entry.recipe;
  candidate.reference = reference;
  if (entry.expand) candidate.properties |= kByExpand;
  if (entry.line_by_bfb) candidate.properties |= kLineByBfb;
  if (entry.branches && entry.degree >= 2) candidate.properties |= kBranches;
  if (entry.bidirectional) candidate.properties |= kBidirectional;
  if (entry.reverse_symmetric) candidate.properties |= kReverseSymmetric;
  if (!entry.self_loops) candidate.properties |= kNoSelfLoops;
  if (entry.bfb) candidate.properties |= kByBfb;
  const Rational best_tb = BestTb(entry.ranks);
  if (entry.bfb && entry.simple && entry.tb == best_tb && candidate.reduce_scatter.tb == best_tb)
    candidate.properties |= kFactor;
  MarkLineByBfb(candidate);
  return candidate;
}

BaseEntry TransposeOf(const BaseEntry& entry) {
  TUTTI_CHECK(entry.reduce_scatter.has_value());
  BaseEntry transpose = entry;
  transpose.recipe = fmt::format("transpose({})", entry.recipe);
  transpose.tl = entry.reduce_scatter->tl;
  transpose.tb = entry.reduce_scatter->tb;
  transpose.reduce_scatter = {entry.tl, entry.tb};
  return transpose;
}

// The mapped schedule costs what theorem 7 says. Breadth-first broadcast on the line digraph costs
// the same where each step has a rank whose shards come back to it at another step or not at all
// over the busiest link (theorem 10 forgets that no rank sends to itself): in a bidirectional
// network and its line digraphs one in d does, d >= 2; elsewhere it may cost less.
bool CanLine(const Candidate& base) {
  return base.has(kBranches) && (base.has(kByExpand) || base.has(kByBfb | kLineByBfb));
}

// A line digraph has a self-loop only where its base has one, and the transpose of a line digraph
// is the line digraph of the transpose.
Candidate MakeLine(const Candidate& base) {
  TUTTI_CHECK(CanLine(base));
  const bool again = base.step == Step::kLine;
  Candidate line = Expand(base, Step::kLine, again ? base.times + 1 : 1,
                          [](const ExpansionCost& cost) { return LineCost(cost); });
  line.operands = {again ? base.operands[0] : &base};
  line.diameter = base.diameter + 1;
  line.diameter_exact = base.diameter_exact;
  line.properties = base.properties &
                    (kReverseSymmetric | kNoSelfLoops | kByExpand | kBranches | kLineByBfb | kOwn);
  if (base.has(kByBfb | kLineByBfb)) line.properties |= kByBfb;
  const std::string& inner = line.operands[0]->recipe;
  line.recipe = line.times == 1 ? fmt::format("line({})", inner)
                                : fmt::format("line({},{})", inner, line.times);
  return line;
}

bool CanDegree(const Candidate& base) {
  return base.has(kNoSelfLoops) && (base.has(kByExpand) || base.has(kFactor | kBidirectional));
}

// Theorem 11: one step more. Of a bidirectional factor, breadth-first broadcast does better: in
// G*n, the sources at distance t of u_i are the n copies of those of u, each of whose shards comes
// from the n copies of the rank it came from, 1/n each, so all links stay equally loaded; and the n
// - 1 other copies of u, at distance 2 over every link alike, since u's neighbours all hear u in
// step 1. So all steps are balanced, and there are max(D, 2) of them.
Candidate MakeDegree(const Candidate& base, int32_t n) {
  TUTTI_CHECK(CanDegree(base) && n >= 2);
  Candidate degree = Expand(base, Step::kDegree, n,
                            [n](const ExpansionCost& cost) { return DegreeCost(cost, n); });
  degree.operands = {&base};
  degree.properties = base.properties & (kBidirectional | kReverseSymmetric | kNoSelfLoops | kOwn);
  if (base.has(kBidirectional)) {
    degree.diameter = std::max(base.diameter, 2);
    degree.diameter_exact = base.diameter_exact;
  } else {
    // The copies of u are as far from it as the shortest closed walk through u is long, and that
    // is at most one link more than the diameter.
    degree.diameter = base.diameter + 1;
    degree.diameter_exact = false;
  }
  const int32_t mapped_tl = degree.tl;
  if (base.has(kFactor | kBidirectional)) {
    degree.tl = degree.reduce_scatter.tl = degree.diameter;
    degree.properties |= kByBfb | kFactor;
  }
  if (base.has(kByExpand) && degree.tl == mapped_tl) degree.properties |= kByExpand;
  degree.properties |= kBranches;
  MarkLineByBfb(degree);
  degree.recipe = fmt::format("degree({},{})", base.recipe, n);
  return degree;
}

Candidate MakePower(const Candidate& base, int32_t n) {
  TUTTI_CHECK(base.has(kByExpand) && n >= 2);
  const bool again = base.step == Step::kPower;
  Candidate power = Expand(base, Step::kPower, again ? base.times * n : n,
                           [n](const ExpansionCost& cost) { return PowerCost(cost, n); });
  power.operands = {again ? base.operands[0] : &base};
  power.diameter = base.diameter * n;
  power.diameter_exact = base.diameter_exact;
  power.properties =
      base.properties & (kBidirectional | kReverseSymmetric | kNoSelfLoops | kFactor | kOwn);
  power.properties |= kByExpand;
  if (power.has(kFactor)) power.properties |= kByBfb;
  power.properties |= kBranches;
  MarkLineByBfb(power);
  power.recipe = fmt::format("power({},{})", power.operands[0]->recipe, power.times);
  return power;
}

uint32_t PropertiesOfProduct(const Candidate& a, const Candidate& b) {
  const uint32_t both =
      a.properties & b.properties & (kBidirectional | kReverseSymmetric | kNoSelfLoops | kFactor);
  return both | ((a.properties | b.properties) & kOwn) | kByBfb | kBranches |
         ((both & kBidirectional) != 0 ? kLineByBfb : 0U);
}

Candidate MakeProduct(const Candidate& a, const Candidate& b) {
  TUTTI_CHECK(a.has(kFactor) && b.has(kFactor));
  // On a factor breadth-first broadcast takes the diameter and the best TB there is, both ways.
  Candidate product = Expand(a, Step::kProduct, 1, [&b](const ExpansionCost& cost) {
    const ExpansionCost costs[] = {cost, {b.ranks, b.degree, b.tl, b.tb}};
    return ProductCost(costs);
  });
  AppendFactors(a, product.operands);
  AppendFactors(b, product.operands);
  std::sort(product.operands.begin(), product.operands.end(), Before);
  product.diameter = a.diameter + b.diameter;
  product.diameter_exact = a.diameter_exact && b.diameter_exact;
  product.properties = PropertiesOfProduct(a, b);
  // synth/expand runs breadth-first broadcast on a product, but maps the schedule of a power.
  const bool one_kind = product.operands.front()->recipe == product.operands.back()->recipe;
  if (!one_kind || product.operands.front()->has(kByExpand)) product.properties |= kByExpand;
  product.recipe = RecipeOfProduct(product.operands);
  return product;
}

bool CanBidirectional(const Candidate& base) {
  return base.has(kReverseSymmetric | kByExpand) && !base.has(kBidirectional);
}

Candidate MakeBidirectional(const Candidate& base) {
  TUTTI_CHECK(CanBidirectional(base));
  Candidate both = Expand(base, Step::kBidirectional, 1,
                          [](const ExpansionCost& cost) { return BidirectionalCost(cost); });
  both.operands = {&base};
  // At most that of the base; how much less takes building it.
  both.diameter = base.diameter;
  both.diameter_exact = false;
  both.properties = (base.properties & (kNoSelfLoops | kOwn)) | kBidirectional | kReverseSymmetric |
                    kByExpand | kBranches;
  both.recipe = fmt::format("bidirectional({})", base.recipe);
  return both;
}

std::vector<std::string> ReasonsOf(const Candidate& candidate) {
  std::vector<std::string> reasons;
  const Candidate* last = nullptr;
  for (const Candidate* operand : candidate.operands) {
    if (last != nullptr && operand->recipe == last->recipe) continue;
    last = operand;
    for (std::string& reason : ReasonsOf(*operand)) reasons.push_back(std::move(reason));
  }
  std::string why;
  switch (candidate.step) {
    case Step::kBase:
      why = fmt::format("base ({})", candidate.reference);
      break;
    case Step::kLine:
      why = fmt::format("each line digraph adds a step and 1/N (theorem {})",
                        candidate.has(kByBfb) ? "10" : "7");
      break;
    case Step::kDegree:
      why = candidate.has(kByExpand)
                ? fmt::format("{} copies of each rank; one step more (theorem 11)", candidate.times)
                : fmt::format(
                      "{} copies of each rank; the copies hear each other in step 2 over all "
                      "links alike, so breadth-first broadcast needs no step more",
                      candidate.times);
      break;
    case Step::kPower:
      why = fmt::format("{} dimensions, a shard goes through them in turn (theorem 12)",
                        candidate.times);
      break;
    case Step::kProduct:
      why = "breadth-first broadcast on the product of bandwidth-optimal factors (theorem 13)";
      break;
    case Step::kBidirectional:
      why = "half of each shard over the links, half over their reverses (A.6)";
      break;
  }
  reasons.push_back(fmt::format("{}: {}; {}", candidate.recipe, CostText(candidate), why));
  return reasons;
}

}  // namespace tutti::design
