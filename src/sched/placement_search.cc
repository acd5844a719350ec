#include "tutti/sched/placement_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using Order = std::vector<NodeId>;

// The best order so far, and what others cost.
class Tries {
 public:
  Tries(const std::function<Result<Rational>(std::span<const NodeId>)>& seconds_of,
        int64_t max_tries)
      : seconds_of_(seconds_of), max_tries_(max_tries) {}

  bool over() const { return found_.tries >= max_tries_ || CancelRequested(); }
  // What it takes; nothing where it has no price.
  std::optional<Rational> Price(const Order& order) {
    ++found_.tries;
    const Result<Rational> price = seconds_of_(order);
    if (!price) return std::nullopt;
    if (found_.ranks.empty() || *price < found_.seconds) {
      found_.seconds = *price;
      found_.ranks = order;
    }
    return *price;
  }
  // Also says why it has no price.
  Status Start(const Order& order) {
    ++found_.tries;
    const Result<Rational> price = seconds_of_(order);
    if (!price) return tl::unexpected(price.error());
    found_.ranks = order;
    found_.seconds = *price;
    found_.first_seconds = *price;
    return {};
  }
  bool has_any() const { return !found_.ranks.empty(); }
  FoundPlacement& found() { return found_; }

 private:
  const std::function<Result<Rational>(std::span<const NodeId>)>& seconds_of_;
  int64_t max_tries_;
  FoundPlacement found_;
};

// Places in [0, used) x [0, n), each pair once, drawn anew each time.
std::vector<std::pair<size_t, size_t>> Exchanges(size_t used, size_t n, Random& random) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t a = 0; a < used; ++a)
    for (size_t b = a + 1; b < n; ++b) pairs.emplace_back(a, b);
  for (size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[random.Below(i)]);
  return pairs;
}

// Until no exchange takes less. What is not used need not be in order here.
void Improve(Order order, Rational seconds, size_t used, Random& random, Tries& tries) {
  for (bool better = true; better && !tries.over();) {
    better = false;
    for (const auto& [a, b] : Exchanges(used, order.size(), random)) {
      if (tries.over()) return;
      std::swap(order[a], order[b]);
      const std::optional<Rational> price = tries.Price(order);
      if (price && *price < seconds) {
        seconds = *price;
        better = true;
      } else {
        std::swap(order[a], order[b]);
      }
    }
  }
}

// Every choice and order of the used ones: each is tried where the rest ascends.
void TryAll(Order& order, size_t at, size_t used, Tries& tries) {
  if (tries.over()) return;
  if (at == used) {
    tries.Price(order);
    return;
  }
  for (size_t next = at; next < order.size(); ++next) {
    std::rotate(order.begin() + static_cast<int64_t>(at),
                order.begin() + static_cast<int64_t>(next),
                order.begin() + static_cast<int64_t>(next) + 1);
    TryAll(order, at + 1, used, tries);
    std::rotate(order.begin() + static_cast<int64_t>(at),
                order.begin() + static_cast<int64_t>(at) + 1,
                order.begin() + static_cast<int64_t>(next) + 1);
  }
}

// An order drawn anew: its used places, and what is left behind them.
Order Drawn(Order order, size_t used, Random& random) {
  for (size_t i = 0; i < used; ++i) std::swap(order[i], order[i + random.Below(order.size() - i)]);
  return order;
}

bool AreFew(size_t n, size_t used) {
  int64_t count = 1;
  for (size_t i = 0; i < used; ++i) {
    count *= static_cast<int64_t>(n - i);
    if (count > PlacementSearch::kAllUpTo) return false;
  }
  return true;
}

}  // namespace

Result<FoundPlacement> FindPlacement(
    const std::vector<Order>& starts, int32_t num_used,
    const std::function<Result<Rational>(std::span<const NodeId>)>& seconds_of,
    const PlacementSearch& search) {
  TUTTI_CHECK(!starts.empty());
  const size_t n = starts[0].size();
  const auto used = static_cast<size_t>(num_used);
  TUTTI_CHECK(used <= n);
  const bool are_few = AreFew(n, used);
  Tries tries(seconds_of, are_few ? PlacementSearch::kAllUpTo + 1 : search.max_tries);
  const Status listed = tries.Start(starts[0]);
  if (!listed && listed.error().code != ErrorCode::kInfeasible)
    return tl::unexpected(listed.error());
  FoundPlacement& found = tries.found();
  if (are_few) {
    Order order = starts[0];
    std::sort(order.begin(), order.end());
    TryAll(order, 0, used, tries);
    found.is_least = true;
  } else {
    for (size_t i = 1; i < starts.size(); ++i) tries.Price(starts[i]);
    Random random(search.seed);
    while (!tries.has_any() && !tries.over()) tries.Price(Drawn(starts[0], used, random));
    if (tries.has_any()) Improve(found.ranks, found.seconds, used, random, tries);
    while (!tries.over()) {
      // An eighth of the places, at least three, so that no exchange undoes it at once.
      Order order = found.ranks;
      for (size_t draws = std::max<size_t>(3, used / 8); draws > 0; --draws)
        std::swap(order[random.Below(used)], order[random.Below(n)]);
      if (const std::optional<Rational> price = tries.Price(order))
        Improve(std::move(order), *price, used, random, tries);
    }
  }
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (!tries.has_any()) return tl::unexpected(listed.error());
  std::sort(found.ranks.begin() + static_cast<int64_t>(used), found.ranks.end());
  return std::move(found);
}

}  // namespace tutti
