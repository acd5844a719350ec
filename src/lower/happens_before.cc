#include "happens_before.h"

#include <algorithm>

#include "tutti/base/index.h"

namespace tutti::lower {

HappensBefore::HappensBefore(const MachineIndex& index) : index_(index) {
  size_t total = 0;
  for (int32_t s = 0; s < index.num_streams(); ++s) {
    const int32_t rank = index.rank(s);
    size_t width = 0;
    for (int32_t t = index.first_stream(rank); t < index.num_streams() && index.rank(t) == rank;
         ++t)
      ++width;
    for (size_t i = 0; i < index.stream(s).actions.size(); ++i) {
      first_clock_.push_back(total);
      total += width;
    }
  }
  first_clock_.push_back(total);
  clocks_.assign(total, -1);
}

void HappensBefore::Start(int32_t action) {
  const int32_t stream = index_.stream_of(action), i = index_.index_of(action);
  const int32_t first = index_.first_stream(index_.rank(stream));
  const size_t width = first_clock_[Index(action) + 1] - first_clock_[Index(action)];
  int32_t* own = clock(action);
  const auto learn = [&](int32_t other) {
    const int32_t* known = clock(other);
    for (size_t s = 0; s < width; ++s) own[s] = std::max(own[s], known[s]);
    const auto at = Index(index_.stream_of(other) - first);
    own[at] = std::max(own[at], index_.index_of(other));
  };
  if (i > 0) learn(action - 1);
  for (const Dependency& dep : index_.at(action).after)
    learn(index_.action(first + dep.stream, dep.instruction));
}

void HappensBefore::Touch(int32_t earlier, int32_t later) {
  if (earlier == later) return;
  const int32_t stream = index_.stream_of(earlier);
  const int32_t first = index_.first_stream(index_.rank(stream));
  if (clock(later)[stream - first] >= index_.index_of(earlier)) return;
  suspects_.insert(static_cast<uint64_t>(later) << 32 | static_cast<uint32_t>(earlier));
}

void HappensBefore::MarkEarlier(int32_t later, std::vector<char>& marked) const {
  // The sender of a message to `later` has begun, perhaps not ended (it may pass on piece by
  // piece): only what precedes it is known to have ended. Whoever sent to an action that has ended
  // is done with what it sent.
  struct Visit {
    int32_t action;
    bool begun_only;
  };
  std::vector<Visit> open{{later, false}};
  std::vector<char> seen(marked.size(), 0);
  while (!open.empty()) {
    const Visit visit = open.back();
    open.pop_back();
    const char level = visit.begun_only ? 1 : 2;
    if (seen[Index(visit.action)] >= level) continue;
    seen[Index(visit.action)] = level;
    if (visit.action != later && !visit.begun_only) marked[Index(visit.action)] = 1;
    const int32_t stream = index_.stream_of(visit.action), i = index_.index_of(visit.action);
    if (i > 0) open.push_back({visit.action - 1, false});
    for (const Dependency& dep : index_.at(visit.action).after)
      open.push_back(
          {index_.action(index_.first_stream(index_.rank(stream)) + dep.stream, dep.instruction),
           false});
    const int32_t sender = index_.SenderOf(visit.action);
    if (sender >= 0 && !visit.begun_only) open.push_back({sender, visit.action == later});
  }
}

std::vector<std::pair<int32_t, int32_t>> HappensBefore::Races(size_t limit) const {
  std::vector<uint64_t> sorted(suspects_.begin(), suspects_.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<int32_t, int32_t>> races;
  std::vector<char> marked;
  int32_t current = -1;
  for (const uint64_t suspect : sorted) {
    const auto later = static_cast<int32_t>(suspect >> 32);
    const auto earlier = static_cast<int32_t>(suspect & 0xffffffffu);
    if (later != current) {
      marked.assign(Index(index_.num_actions()), 0);
      MarkEarlier(later, marked);
      current = later;
    }
    if (marked[Index(earlier)] == 0) races.emplace_back(earlier, later);
    if (races.size() >= limit) break;
  }
  return races;
}

}  // namespace tutti::lower
