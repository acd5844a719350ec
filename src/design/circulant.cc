// Circulants. Of degree 4, theorem 22 gives the offsets of the least diameter, and breadth-first
// broadcast is bandwidth-optimal on all of them (conjecture 1, proved for this degree). Of other
// degrees, offsets are drawn, the best of them changed one at a time, and the result is listed only
// where breadth-first broadcast is bandwidth-optimal on it, which is decided exactly.
#include <fmt/format.h>

#include <algorithm>

#include "base.h"
#include "cyclic.h"
#include "tutti/base/random.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

using Offsets = std::vector<int32_t>;  // ascending, below n / 2; the one of n / 2 is kept apart

// [direct-connect] theorem 22: ceil((sqrt(2 n - 1) - 1) / 2), the least m with 2 m (m + 1) + 1 >=
// n.
int32_t LeastDiameterOfDegreeFour(int32_t ranks) {
  int32_t m = 1;
  while (2 * int64_t{m} * (m + 1) + 1 < ranks) ++m;
  return m;
}

class Draws {
 public:
  Draws(int32_t ranks, int32_t degree)
      : ranks_(ranks),
        halfway_(degree % 2 != 0),
        count_(static_cast<size_t>(degree / 2)),
        largest_((ranks - 1) / 2),
        random_(static_cast<uint64_t>(ranks) * 64 + static_cast<uint64_t>(degree)),
        measure_(ranks) {}

  // Empty where nothing connects.
  Offsets Best() {
    // A third of the tries from scratch, then changes of one offset of the best.
    constexpr int32_t kTries = 96, kFresh = 32;
    // Breadth-first search of large ones takes long, and there are few of them in a question.
    const int32_t tries = std::max(8, std::min(kTries, (kTries << 12) / ranks_));
    if (static_cast<int32_t>(count_) >= largest_ - 1) {
      TryAll();
    } else {
      for (int32_t t = 0; t < tries; ++t) Try(t < kFresh || best_.empty() ? Fresh() : Changed());
    }
    return best_;
  }

  std::vector<int32_t> Links(const Offsets& offsets) const {
    std::vector<int32_t> links;
    for (int32_t offset : offsets) {
      links.push_back(offset);
      links.push_back(ranks_ - offset);
    }
    if (halfway_) links.push_back(ranks_ / 2);
    return links;
  }

  CyclicReach reach() const { return reach_; }

 private:
  // All numbers below n / 2, or all but one.
  void TryAll() {
    for (int32_t left_out = 0; left_out <= largest_; ++left_out) {
      Offsets offsets;
      for (int32_t a = 1; a <= largest_; ++a)
        if (a != left_out) offsets.push_back(a);
      if (offsets.size() == count_) Try(offsets);
    }
  }

  int32_t Draw() {
    return 1 + static_cast<int32_t>(random_.Below(static_cast<uint64_t>(largest_)));
  }

  // With offset 1, which any unit modulo n can be turned into.
  Offsets Fresh() {
    Offsets offsets{1};
    while (offsets.size() < count_) {
      const int32_t drawn = Draw();
      if (std::find(offsets.begin(), offsets.end(), drawn) == offsets.end())
        offsets.push_back(drawn);
    }
    return offsets;
  }

  Offsets Changed() {
    Offsets offsets = best_;
    int32_t drawn = Draw();
    while (std::find(offsets.begin(), offsets.end(), drawn) != offsets.end()) drawn = Draw();
    offsets[random_.Below(count_)] = drawn;
    return offsets;
  }

  void Try(const Offsets& offsets) {
    const std::optional<CyclicReach> reach = measure_.Measure(Links(offsets));
    if (!reach) return;
    if (!best_.empty() &&
        (reach->diameter > reach_.diameter ||
         (reach->diameter == reach_.diameter && reach->total_hops >= reach_.total_hops)))
      return;
    best_ = offsets;
    reach_ = *reach;
  }

  const int32_t ranks_;
  const bool halfway_;
  const size_t count_;
  const int32_t largest_;
  Random random_;
  CyclicMeasure measure_;
  Offsets best_;
  CyclicReach reach_;
};

void Append(int32_t ranks, int32_t degree, Offsets offsets, int32_t diameter,
            std::vector<BaseEntry>& entries) {
  std::sort(offsets.begin(), offsets.end());
  BaseEntry entry;
  entry.recipe = fmt::format("circulant({},{})", ranks, fmt::join(offsets, ","));
  entry.ranks = ranks;
  entry.degree = degree;
  entry.tl = entry.diameter = diameter;
  entry.tb = BestTb(ranks);
  entry.bidirectional = entry.reverse_symmetric = entry.simple = entry.bfb = true;
  entries.push_back(std::move(entry));
}

}  // namespace

void ListCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  // Two ports make a ring, and more than N - 2 leave nothing to choose.
  if (degree < 3 || ranks < degree + 2 || (degree % 2 != 0 && ranks % 2 != 0)) return;
  if (degree == 4) {
    const int32_t m = LeastDiameterOfDegreeFour(ranks);
    // Of six ranks, offset 3 would be half a port; 1 and 2 make the octahedron.
    Append(ranks, degree, ranks == 6 ? Offsets{1, 2} : Offsets{m, m + 1}, m, entries);
    return;
  }
  Draws draws(ranks, degree);
  Offsets offsets = draws.Best();
  if (offsets.empty() || !IsCyclicBalanced(ranks, draws.Links(offsets))) return;
  if (degree % 2 != 0) offsets.push_back(ranks / 2);
  Append(ranks, degree, offsets, draws.reach().diameter, entries);
}

}  // namespace tutti::design
