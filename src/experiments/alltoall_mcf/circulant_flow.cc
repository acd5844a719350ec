#include "circulant_flow.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "tutti/base/check.h"

namespace tutti::direct {
namespace {

// Strides of each kind on shortest paths to all ranks: g(x) <= a x + b (1 - x) everywhere.
struct Strides {
  int64_t a = 0, b = 0;
};

// Paths that are shortest where a stride a is `length_a` long and a stride b `length_b`; of equally
// long ones those with the fewest strides of the kind that `few_a` says.
Strides ShortestPathStrides(int32_t ranks, int32_t a, int32_t b, int64_t length_a, int64_t length_b,
                            bool few_a) {
  using Key = std::pair<int64_t, int64_t>;  // length, strides of the kind to save
  const auto n = static_cast<size_t>(ranks);
  std::vector<Key> best(n, {std::numeric_limits<int64_t>::max(), 0});
  std::vector<Strides> strides(n);
  using Entry = std::pair<Key, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  best[0] = {0, 0};
  queue.push({{0, 0}, 0});
  while (!queue.empty()) {
    const Entry entry = queue.top();
    queue.pop();
    const auto at = static_cast<size_t>(entry.second);
    if (entry.first != best[at]) continue;
    for (const bool is_a : {true, false}) {
      const int32_t stride = is_a ? a : b;
      for (const int32_t step : {stride, ranks - stride}) {
        const auto to = static_cast<size_t>((entry.second + step) % ranks);
        const Key key = {entry.first.first + (is_a ? length_a : length_b),
                         entry.first.second + (is_a == few_a ? 1 : 0)};
        if (key >= best[to]) continue;
        best[to] = key;
        strides[to] = strides[at];
        ++(is_a ? strides[to].a : strides[to].b);
        queue.push({key, static_cast<int32_t>(to)});
      }
    }
  }
  Strides total;
  for (const Strides& way : strides) {
    total.a += way.a;
    total.b += way.b;
  }
  return total;
}

}  // namespace

Result<Rational> CirculantFlow(int32_t ranks, int32_t a, int32_t b) {
  const bool four_neighbours = ranks >= 5 && a > 0 && b > 0 && a < ranks && b < ranks && a != b &&
                               a + b != ranks && 2 * a != ranks && 2 * b != ranks;
  if (!four_neighbours || std::gcd(std::gcd(a, b), ranks) != 1)
    return InvalidArgument(fmt::format(
        "circulant({},{},{}) is not connected with four neighbours a rank", ranks, a, b));
  // The line of x = 0 (strides a for nothing) rises, that of x = 1 falls; each is taken with the
  // ways that save what costs something.
  Strides rising = ShortestPathStrides(ranks, a, b, 0, 1, true);
  Strides falling = ShortestPathStrides(ranks, a, b, 1, 0, false);
  // At its ends g is the number of strides of the other kind alone. Where no line rises or none
  // falls the largest g stands at an end.
  if (rising.a <= rising.b) return Rational(2, rising.b);
  if (falling.b <= falling.a) return Rational(2, falling.a);
  for (;;) {
    // b + (a - b) x of both lines: where they meet.
    const int64_t up = rising.a - rising.b, down = falling.b - falling.a;
    TUTTI_CHECK(up > 0 && down > 0);
    const Rational x = Rational(falling.b - rising.b, up + down);
    const Rational meeting = Rational(rising.b) + Rational(up) * x;
    const std::optional<int64_t> p = x.Num64(), q = x.Den64();
    TUTTI_CHECK(p && q);
    const Strides at = ShortestPathStrides(ranks, a, b, *p, *q - *p, true);
    if (Rational(at.a) * x + Rational(at.b) * (Rational(1) - x) == meeting)
      return Rational(2) / meeting;
    if (at.a == at.b) return Rational(2, at.a);
    (at.a > at.b ? rising : falling) = at;
  }
}

}  // namespace tutti::direct
