#include "hierarchy/routes.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "tutti/base/check.h"
#include "tutti/base/index.h"

namespace tutti::mpi {

namespace {

int HolderInside(Range group, int holder) {
  return group.contains(holder) ? holder : group.begin + holder % group.size();
}

// The ranges of equal numbers in a list whose equal numbers stand together.
std::vector<Range> RunsOf(const std::vector<int>& numbers) {
  std::vector<Range> runs;
  for (int i = 0; i < static_cast<int>(numbers.size()); ++i) {
    if (i == 0 || numbers[Index(i)] != numbers[Index(i - 1)]) runs.push_back({i, i});
    runs.back().end = i + 1;
  }
  return runs;
}

size_t RunAround(const std::vector<Range>& runs, int position) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [position](Range run) { return run.contains(position); });
  TUTTI_CHECK(found != runs.end());
  return static_cast<size_t>(found - runs.begin());
}

// The run of `held` whose holder at the next level is `holder`; empty when there is none.
Range HeldFor(const std::vector<int>& held, const std::vector<int>& next_holder, int holder) {
  const auto first = std::partition_point(held.begin(), held.end(),
                                          [&](int d) { return next_holder[Index(d)] < holder; });
  const auto last = std::partition_point(first, held.end(),
                                         [&](int d) { return next_holder[Index(d)] == holder; });
  return {static_cast<int>(first - held.begin()), static_cast<int>(last - held.begin())};
}

}  // namespace

Routes::Routes(const Groups& groups, int rank, Levels levels) {
  const size_t given = groups.levels.size();
  const std::span<const std::vector<int>> used =
      levels == Levels::kAll ? std::span(groups.levels)
                             : std::span(groups.levels).subspan(given - std::min<size_t>(given, 1));
  const int size = groups.size;

  rank_.resize(Index(size));
  std::iota(rank_.begin(), rank_.end(), 0);
  std::stable_sort(rank_.begin(), rank_.end(), [&](int a, int b) {
    for (auto level = used.rbegin(); level != used.rend(); ++level) {
      if ((*level)[Index(a)] != (*level)[Index(b)]) return (*level)[Index(a)] < (*level)[Index(b)];
    }
    return false;
  });
  position_ = static_cast<int>(std::find(rank_.begin(), rank_.end(), rank) - rank_.begin());

  // All groups of each level, as ranges of positions; the last level is one group.
  std::vector<std::vector<Range>> runs;
  for (const std::vector<int>& level : used) {
    std::vector<int> numbers(Index(size));
    for (int p = 0; p < size; ++p) numbers[Index(p)] = level[Index(rank_[Index(p)])];
    runs.push_back(RunsOf(numbers));
  }
  if (runs.empty() || runs.back().size() > 1) runs.push_back({Range{0, size}});
  for (const std::vector<Range>& level : runs)
    groups_.push_back(level[RunAround(level, position_)]);

  const int num = num_levels();
  std::vector<std::vector<int>> holder(Index(num), std::vector<int>(Index(size)));
  std::iota(holder.back().begin(), holder.back().end(), 0);
  for (int l = num - 2; l >= 0; --l) {
    for (int d = 0; d < size; ++d) {
      holder[Index(l)][Index(d)] = HolderInside(groups_[Index(l)], holder[Index(l + 1)][Index(d)]);
    }
  }
  std::vector<int> order(Index(size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    for (int l = 1; l < num; ++l) {
      if (holder[Index(l)][Index(a)] != holder[Index(l)][Index(b)]) {
        return holder[Index(l)][Index(a)] < holder[Index(l)][Index(b)];
      }
    }
    return false;
  });
  bundles_.resize(Index(groups_[0].size()));
  for (const int d : order) bundles_[Index(holder[0][Index(d)] - groups_[0].begin)].push_back(d);
  held_.resize(Index(num));
  held_[0] = bundles_[Index(position_ - groups_[0].begin)];
  for (int l = 1; l < num; ++l) {
    for (const int d : held_[Index(l - 1)]) {
      if (holder[Index(l)][Index(d)] == position_) held_[Index(l)].push_back(d);
    }
  }

  phases_.resize(Index(num));
  for (int l = 1; l < num; ++l) {
    Phase& phase = phases_[Index(l)];
    std::vector<Range> inside;  // the groups of level l - 1 in mine of level l
    for (const Range run : runs[Index(l - 1)]) {
      if (groups_[Index(l)].contains(run.begin)) inside.push_back(run);
    }
    const size_t mine = RunAround(inside, position_);
    const std::vector<int>& held = held_[Index(l - 1)];
    phase.kept = HeldFor(held, holder[Index(l)], position_);
    for (size_t t = 1; t < inside.size(); ++t) {
      const Range source = inside[(mine + inside.size() - t) % inside.size()];
      Step step{.receive = {.from = HolderInside(source, position_), .sources = source},
                .sends = {static_cast<int>(phase.sends.size()), 0}};
      const Range target = inside[(mine + t) % inside.size()];
      for (int to = target.begin; to < target.end; ++to) {
        if (HolderInside(groups_[Index(l - 1)], to) != position_) continue;
        phase.sends.push_back({.to = to, .held = HeldFor(held, holder[Index(l)], to)});
      }
      step.sends.end = static_cast<int>(phase.sends.size());
      phase.steps.push_back(step);
    }
  }
}

}  // namespace tutti::mpi
