#include "tutti/graph/farthest.h"

#include <algorithm>
#include <limits>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

constexpr size_t kFewSources = 256;
constexpr int kRounds = 8;
constexpr size_t kSample = 16;  // searched from where all would be too many

// What is known of the farthest target from each source.
class Limits {
 public:
  Limits(std::span<const NodeId> sources, const DistanceSearches& searches)
      : sources_(sources),
        searches_(searches),
        min_(sources.size(), 0),
        max_(sources.size(), std::numeric_limits<int64_t>::max()),
        searched_(sources.size(), false) {}

  // Rounds that leave sources out, until none is left.
  void Narrow() {
    const auto farthest_from = searches_.make_farthest_from();
    for (int round = 0; round < kRounds && !CancelRequested(); ++round) {
      const size_t next = round % 2 == 0 ? FarthestLeft() : Middle();
      if (next == sources_.size()) return;
      const int64_t farthest = farthest_from(sources_[next]);
      Take(next, farthest);
      const std::vector<int64_t> to = searches_.distances_to(sources_[next]);
      for (size_t i = 0; i < sources_.size(); ++i) {
        const int64_t distance = to[sources_[i].index()];
        min_[i] = std::max(min_[i], distance);
        max_[i] = std::min(max_[i], distance + farthest);
        min_of_all_ = std::max(min_of_all_, distance);
      }
    }
  }

  // Searches from the sources that are left, or from those that may be farthest.
  FarthestRange Finish(int64_t max_searches) {
    std::vector<size_t> left;
    for (size_t i = 0; i < sources_.size(); ++i)
      if (IsLeft(i)) left.push_back(i);
    if (static_cast<int64_t>(left.size()) > max_searches && left.size() > kSample) {
      std::stable_sort(left.begin(), left.end(),
                       [this](size_t a, size_t b) { return max_[a] > max_[b]; });
      left.resize(kSample);
    }
    std::vector<int64_t> found(left.size());
    ParallelFor(static_cast<int64_t>(left.size()), 4, [&](int64_t begin, int64_t end) {
      const auto farthest_from = searches_.make_farthest_from();
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        if (CancelRequested()) return;
        found[i] = farthest_from(sources_[left[i]]);
      }
    });
    for (size_t i = 0; i < left.size(); ++i) Take(left[i], found[i]);
    FarthestRange range{min_of_all_, min_of_all_};
    for (size_t i = 0; i < sources_.size(); ++i)
      if (IsLeft(i)) range.most = std::max(range.most, max_[i]);
    return range;
  }

 private:
  bool IsLeft(size_t i) const { return !searched_[i] && max_[i] > min_of_all_; }

  void Take(size_t i, int64_t farthest) {
    searched_[i] = true;
    min_of_all_ = std::max(min_of_all_, farthest);
  }

  // sources_.size() where none is left.
  size_t FarthestLeft() const {
    size_t found = sources_.size();
    for (size_t i = 0; i < sources_.size(); ++i)
      if (IsLeft(i) && (found == sources_.size() || max_[i] > max_[found])) found = i;
    return found;
  }

  // Among those not searched from: near to all that are known to be far apart.
  size_t Middle() const {
    if (FarthestLeft() == sources_.size()) return sources_.size();
    size_t found = sources_.size();
    for (size_t i = 0; i < sources_.size(); ++i)
      if (!searched_[i] && (found == sources_.size() || min_[i] < min_[found])) found = i;
    return found;
  }

  std::span<const NodeId> sources_;
  const DistanceSearches& searches_;
  std::vector<int64_t> min_, max_;  // of the farthest target from each source
  std::vector<bool> searched_;
  int64_t min_of_all_ = 0;
};

}  // namespace

FarthestRange FindFarthest(std::span<const NodeId> sources, const DistanceSearches& searches,
                           int64_t max_searches) {
  const auto all = static_cast<int64_t>(sources.size());
  Limits limits(sources, searches);
  if (sources.size() <= kFewSources || !searches.distances_to) return limits.Finish(all);
  limits.Narrow();
  return limits.Finish(max_searches);
}

}  // namespace tutti
