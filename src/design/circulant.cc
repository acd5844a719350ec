// Circulants. Of degree 4, theorem 22 gives the offsets of the least diameter, and breadth-first
// broadcast is bandwidth-optimal on all of them (conjecture 1, proved for this degree). Of other
// degrees, and with links one way only, offsets are drawn, the best of them changed one at a time,
// and only what breadth-first broadcast is bandwidth-optimal on counts, which is decided exactly.
// Links one way have far lower diameters: steps add up in all directions instead of cancelling.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base.h"
#include "cyclic.h"
#include "tutti/base/random.h"

namespace tutti::design {
namespace {

// Offsets below n / 2, where +a and -a are one offset; n / 2 itself is kept apart.
using Offsets = std::vector<int32_t>;

// [direct-connect] theorem 22: ceil((sqrt(2 n - 1) - 1) / 2), the least m with 2 m (m + 1) + 1 >=
// n.
int32_t LeastDiameterOfDegreeFour(int32_t ranks) {
  int32_t m = 1;
  while (2 * int64_t{m} * (m + 1) + 1 < ranks) ++m;
  return m;
}

enum class Links {
  kBothWays,  // of each offset and its opposite; of odd degree also of n / 2
  kOneWay,
};

// Draws offsets for the least diameter, then the fewest hops, among networks on which breadth-first
// broadcast is bandwidth-optimal.
class Draws {
 public:
  Draws(int32_t ranks, int32_t degree, Links links)
      : ranks_(ranks),
        both_ways_(links == Links::kBothWays),
        halfway_(both_ways_ && degree % 2 != 0),
        count_(static_cast<size_t>(both_ways_ ? degree / 2 : degree)),
        largest_(both_ways_ ? (ranks - 1) / 2 : ranks - 1),
        random_(static_cast<uint64_t>(ranks) * 64 + static_cast<uint64_t>(degree)),
        measure_(ranks) {}

  // No offsets where none was found.
  struct Drawn {
    Offsets offsets;
    CyclicReach reach;
  };
  Drawn Best() {
    // A third of the tries from scratch, then changes of one offset of the best.
    constexpr int32_t kTries = 96, kFresh = 32;
    // Breadth-first search of large ones takes long, and there are few of them in a question.
    const int32_t tries = std::max(8, std::min(kTries, (kTries << 12) / ranks_));
    if (static_cast<int32_t>(count_) >= largest_ - 1) {
      TryAll();
    } else {
      for (int32_t t = 0; t < tries; ++t) Try(t < kFresh || better_.empty() ? Fresh() : Changed());
    }
    // Almost all are balanced, so only the best are asked.
    while (!better_.empty() && !IsCyclicBalanced(ranks_, LinksOf(better_.back().offsets)))
      better_.pop_back();
    if (better_.empty()) return {};
    std::sort(better_.back().offsets.begin(), better_.back().offsets.end());
    return better_.back();
  }

 private:
  std::vector<int32_t> LinksOf(const Offsets& offsets) const {
    if (!both_ways_) return offsets;
    std::vector<int32_t> links;
    for (int32_t offset : offsets) {
      links.push_back(offset);
      links.push_back(ranks_ - offset);
    }
    if (halfway_) links.push_back(ranks_ / 2);
    return links;
  }

  // All the numbers there are, or all but one.
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
    Offsets offsets = better_.back().offsets;
    int32_t drawn = Draw();
    while (std::find(offsets.begin(), offsets.end(), drawn) != offsets.end()) drawn = Draw();
    offsets[random_.Below(count_)] = drawn;
    return offsets;
  }

  void Try(const Offsets& offsets) {
    const std::optional<CyclicReach> reach = measure_.Measure(LinksOf(offsets));
    if (!reach) return;
    if (better_.empty() ||
        std::make_pair(reach->diameter, reach->total_hops) <
            std::make_pair(better_.back().reach.diameter, better_.back().reach.total_hops))
      better_.push_back({offsets, *reach});
  }

  const int32_t ranks_;
  const bool both_ways_, halfway_;
  const size_t count_;
  const int32_t largest_;
  Random random_;
  CyclicMeasure measure_;
  std::vector<Drawn> better_;  // each beats those before it
};

// Reversed by x -> -x.
void AppendCirculant(int32_t ranks, int32_t degree, const Offsets& offsets, int32_t diameter,
                     std::vector<BaseEntry>& entries) {
  entries.push_back(Optimal(fmt::format("circulant({},{})", ranks, fmt::join(offsets, ",")), ranks,
                            degree, diameter));
  entries.back().bidirectional = true;
}

}  // namespace

void ListCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  // Two ports make a ring, and more than N - 2 leave nothing to choose.
  if (degree < 3 || ranks < degree + 2 || (degree % 2 != 0 && ranks % 2 != 0)) return;
  if (degree == 4) {
    const int32_t m = LeastDiameterOfDegreeFour(ranks);
    // With six ranks, offset 3 would be half a port; 1 and 2 make the octahedron.
    AppendCirculant(ranks, degree, ranks == 6 ? Offsets{1, 2} : Offsets{m, m + 1}, m, entries);
    return;
  }
  auto [offsets, reach] = Draws(ranks, degree, Links::kBothWays).Best();
  if (offsets.empty()) return;
  if (degree % 2 != 0) offsets.push_back(ranks / 2);
  AppendCirculant(ranks, degree, offsets, reach.diameter, entries);
}

void ListDirectedCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree < 2 || ranks < degree + 2) return;
  const Draws::Drawn best = Draws(ranks, degree, Links::kOneWay).Best();
  const Offsets& offsets = best.offsets;
  if (offsets.empty()) return;
  std::string generators;
  for (int32_t offset : offsets) generators += fmt::format(",{},0", offset);
  entries.push_back(Optimal(fmt::format("cayley({},1,1{})", ranks, generators), ranks, degree,
                            best.reach.diameter));
  entries.back().bidirectional = std::all_of(offsets.begin(), offsets.end(), [&](int32_t offset) {
    return std::binary_search(offsets.begin(), offsets.end(), ranks - offset);
  });
}

}  // namespace tutti::design
