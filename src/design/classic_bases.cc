// Bases whose cost is a closed formula. All but Kautz and de Bruijn are bandwidth-optimal.
#include <fmt/format.h>

#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

// base^exponent, or 0 above `limit`.
int64_t Power(int64_t base, int32_t exponent, int64_t limit) {
  int64_t power = 1;
  for (int32_t i = 0; i < exponent; ++i)
    if (power *= base; power > limit) return 0;
  return power;
}

BaseEntry OptimalBidirectional(std::string recipe, int32_t ranks, int32_t degree,
                               int32_t diameter) {
  BaseEntry entry = Optimal(std::move(recipe), ranks, degree, diameter);
  entry.bidirectional = true;
  return entry;
}

}  // namespace

BaseEntry Optimal(std::string recipe, int32_t ranks, int32_t degree, int32_t diameter) {
  BaseEntry entry;
  entry.recipe = std::move(recipe);
  entry.ranks = ranks;
  entry.degree = degree;
  entry.tl = entry.diameter = diameter;
  entry.tb = BestTb(ranks);
  entry.bfb = entry.simple = entry.reverse_symmetric = true;
  return entry;
}

void ListComplete(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (ranks == degree + 1)
    entries.push_back(OptimalBidirectional(fmt::format("complete({})", ranks), ranks, degree, 1));
}

// Step 1 fills every link; in step 2 the d - 1 others of the same side come over all d links alike.
void ListBipartite(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree >= 2 && ranks == 2 * degree)
    entries.push_back(OptimalBidirectional(fmt::format("bipartite({})", degree), ranks, degree, 2));
}

void ListHamming(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  for (int32_t digits = 2; digits <= degree; ++digits)
    if (degree % digits == 0 && Power(degree / digits + 1, digits, ranks) == ranks)
      entries.push_back(OptimalBidirectional(
          fmt::format("hamming({},{})", digits, degree / digits + 1), ranks, degree, digits));
}

void ListRings(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  BaseEntry uni = Optimal(fmt::format("uniring({},{})", degree, ranks), ranks, degree, ranks - 1);
  uni.simple = degree == 1;
  uni.branches = false;
  uni.bidirectional = ranks == 2;
  entries.push_back(std::move(uni));
  if (degree % 2 != 0 || ranks < 3) return;
  BaseEntry bi =
      OptimalBidirectional(fmt::format("biring({},{})", degree, ranks), ranks, degree, ranks / 2);
  bi.simple = degree == 2;
  entries.push_back(std::move(bi));
}

// The n-th line digraph of K_{d+1}: each line adds a step and, in M/B, one over the ranks before
// it.
void ListKautz(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree < 2) return;
  int64_t size = degree + 1;
  Rational tb = BestTb(degree + 1);
  for (int32_t lines = 1; size < ranks; ++lines) {
    tb += Rational(1, size);
    size *= degree;
    if (size != ranks) continue;
    BaseEntry entry;
    entry.recipe = fmt::format("kautz({},{})", degree, lines);
    entry.ranks = ranks;
    entry.degree = degree;
    entry.tl = entry.diameter = lines + 1;
    entry.tb = tb;
    entry.bfb = entry.simple = entry.reverse_symmetric = entry.line_by_bfb = true;
    entries.push_back(std::move(entry));
  }
}

// The line digraphs of K_d with self-loops, which takes M/B itself: a port of each rank is idle.
void ListDebruijn(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree < 2) return;
  int64_t size = degree;
  Rational tb = 1;
  for (int32_t digits = 1; size <= ranks; ++digits) {
    if (size == ranks) {
      BaseEntry entry;
      entry.recipe = fmt::format("debruijn({},{})", degree, digits);
      entry.ranks = ranks;
      entry.degree = degree;
      entry.tl = entry.diameter = digits;
      entry.tb = tb;
      entry.bfb = entry.reverse_symmetric = entry.self_loops = entry.line_by_bfb = true;
      entry.bidirectional = digits == 1;
      entries.push_back(std::move(entry));
    }
    tb += Rational(1, size);
    size *= degree;
  }
}

// The one rank that is no in-neighbour is heard of over all d links alike in step 2.
void ListDircirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (ranks != degree + 2 || degree < 2) return;
  entries.push_back(Optimal(fmt::format("dircirculant({})", degree), ranks, degree, 2));
}

}  // namespace tutti::design
