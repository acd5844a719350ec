// What breadth-first broadcast costs on a Cayley digraph, counted in microseconds.
//
// Model       Every rank sees the same network, so one receiver, the identity, says all: an element
//             that is a shortest word of t letters arrives in step t, over those in-links that are
//             last letters of such words, and the step takes U_t = max over sets S of in-links of
//             (elements served only within S) / |S|. One search of N d table look-ups counts that.
// Exactness   Costs are integers: steps and U_1 + U_2 + ... in units of 1 / lcm(1 .. d) shard.
// Reference   [direct-connect] 6.1 (1), theorem 19.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/topo/metacyclic.h"

namespace tutti {

inline constexpr int32_t kMaxRanks = 4096;
inline constexpr int32_t kMaxDegree = 10;

using Generators = std::vector<int32_t>;

// The products g x of all elements, g by g.
class LeftProducts {
 public:
  explicit LeftProducts(const MetacyclicGroup& group) : size_(static_cast<size_t>(group.size())) {
    table_.reserve(size_ * size_);
    for (int32_t g = 0; g < group.size(); ++g)
      for (int32_t x = 0; x < group.size(); ++x)
        table_.push_back(static_cast<uint16_t>(group.Multiply(g, x)));
  }
  const uint16_t* Row(int32_t g) const { return table_.data() + static_cast<size_t>(g) * size_; }

 private:
  size_t size_;
  std::vector<uint16_t> table_;
};

struct Cost {
  int32_t tl = 0;
  int64_t units = 0;
};

// The cheapest known for each number of steps.
class Records {
 public:
  explicit Records(int32_t ranks) : least_(static_cast<size_t>(ranks), kNone) {}
  // Nothing of at least so many steps and units would be new.
  bool Beats(int32_t tl, int64_t units) const {
    return tl >= static_cast<int32_t>(least_.size()) || least_[static_cast<size_t>(tl)] <= units;
  }
  void Add(const Cost& cost) {
    for (auto tl = static_cast<size_t>(cost.tl); tl < least_.size(); ++tl)
      least_[tl] = std::min(least_[tl], cost.units);
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> least_;
};

class Evaluator {
 public:
  Evaluator(int32_t ranks, int32_t degree)
      : ranks_(ranks),
        degree_(degree),
        step_of_(static_cast<size_t>(ranks), 0),
        mask_(static_cast<size_t>(ranks), 0),
        order_(static_cast<size_t>(ranks), 0) {
    for (int32_t i = 2; i <= degree; ++i) units_per_shard_ = std::lcm(units_per_shard_, i);
  }

  // Units of 1 / lcm(1 .. d) shard; a bandwidth-optimal all-gather takes OptimalUnits() of them.
  int64_t units_per_shard() const { return units_per_shard_; }
  Rational Tb(int64_t units) const { return {units * degree_, units_per_shard_ * ranks_}; }
  int64_t OptimalUnits() const { return (ranks_ - 1) * units_per_shard_ / degree_; }

  // False where the digraph is not connected or `records` already beats it.
  bool Evaluate(const LeftProducts& products, const Generators& generators, const Records& records,
                Cost& cost) {
    Start(generators);
    cost = {};
    int32_t begin = 0, end = degree_;
    for (int32_t step = 1;; ++step) {
      cost.units += StepUnits(begin, end);
      cost.tl = step;
      if (end == ranks_ - 1) return !records.Beats(cost.tl, cost.units);
      const int64_t rest = ranks_ - 1 - end;
      const int64_t units = cost.units + (rest * units_per_shard_ + degree_ - 1) / degree_;
      if (begin == end || records.Beats(step + StepsFor(rest, end - begin), units)) return false;
      const int32_t next = Spread(products, generators, step + 1, begin, end);
      begin = end;
      end = next;
    }
  }

  // The units that breadth-first broadcast takes on the line digraph, one step more than here. In
  // it, rank (u, v) hears in step t + 1 of all links into each element that u hears of in step t,
  // but for itself, which stands among those in the step in which u would hear of v.
  int64_t LineUnits(const LeftProducts& products, const Generators& generators,
                    const Generators& inverses) {
    Start(generators);
    int64_t units = units_per_shard_;
    int32_t begin = 0, end = degree_;
    for (int32_t step = 1; begin != end; ++step) {
      CountWithin(begin, end);
      for (size_t set = 1; set < NumSets(); ++set) within_[set] *= degree_;
      int64_t worst = 0;
      for (int32_t inverse : inverses) {
        const auto self = static_cast<size_t>(inverse);
        const bool is_here = step_of_[self] == base_ + step;
        int64_t most = 0;
        for (size_t set = 1; set < NumSets(); ++set) {
          const bool within = is_here && (mask_[self] & ~set) == 0;
          most = std::max(most, (within_[set] - (within ? 1 : 0)) * UnitsOver(set));
        }
        worst = std::max(worst, most);
      }
      units += worst;
      const int32_t next = Spread(products, generators, step + 1, begin, end);
      begin = end;
      end = next;
    }
    return units;
  }
  Rational LineTb(int64_t units) const { return {units, units_per_shard_ * ranks_}; }
  int64_t OptimalLineUnits() const {
    return (int64_t{ranks_} * degree_ - 1) * units_per_shard_ / degree_;
  }

  // Sum over all elements of the letters of their shortest words; N^2 where not connected.
  int64_t TotalLetters(const LeftProducts& products, const Generators& generators) {
    Start(generators);
    int64_t total = 0;
    int32_t begin = 0, end = degree_;
    for (int32_t step = 1; begin != end; ++step) {
      total += int64_t{step} * (end - begin);
      const int32_t next = Spread(products, generators, step + 1, begin, end);
      begin = end;
      end = next;
    }
    return end == ranks_ - 1 ? total : int64_t{ranks_} * ranks_;
  }

 private:
  void Start(const Generators& generators) {
    base_ += kMaxRanks;
    step_of_[0] = base_;
    for (size_t i = 0; i < generators.size(); ++i) {
      const auto x = static_cast<size_t>(generators[i]);
      step_of_[x] = base_ + 1;
      mask_[x] = static_cast<uint16_t>(1U << i);
      order_[i] = static_cast<uint16_t>(x);
    }
  }

  // Elements of the next step: one letter in front of those of this one. Ends keep their masks.
  int32_t Spread(const LeftProducts& products, const Generators& generators, int32_t step,
                 int32_t begin, int32_t end) {
    const int64_t now = base_ + step;
    int32_t next = end;
    for (int32_t generator : generators) {
      const uint16_t* row = products.Row(generator);
      for (int32_t i = begin; i < end; ++i) {
        const size_t from = order_[static_cast<size_t>(i)];
        const size_t to = row[from];
        if (step_of_[to] < base_) {
          step_of_[to] = now;
          mask_[to] = mask_[from];
          order_[static_cast<size_t>(next++)] = static_cast<uint16_t>(to);
        } else if (step_of_[to] == now) {
          mask_[to] |= mask_[from];
        }
      }
    }
    return next;
  }

  size_t NumSets() const { return size_t{1} << degree_; }
  int64_t UnitsOver(size_t set) const { return units_per_shard_ / std::popcount(set); }

  // For every set of in-links, how many elements of a step are served only within it.
  void CountWithin(int32_t begin, int32_t end) {
    std::fill_n(within_.begin(), NumSets(), 0);
    for (int32_t i = begin; i < end; ++i) ++within_[mask_[order_[static_cast<size_t>(i)]]];
    for (size_t bit = 1; bit < NumSets(); bit <<= 1)
      for (size_t set = 0; set < NumSets(); ++set)
        if (set & bit) within_[set] += within_[set ^ bit];
  }

  int64_t StepUnits(int32_t begin, int32_t end) {
    CountWithin(begin, end);
    int64_t most = 0;
    for (size_t set = 1; set < NumSets(); ++set)
      most = std::max(most, within_[set] * UnitsOver(set));
    return most;
  }

  // The least steps that reach `rest` more when the last step reached `last`.
  int32_t StepsFor(int64_t rest, int64_t last) const {
    int32_t steps = 0;
    while (rest > 0 && last > 0 && steps < ranks_) {
      last *= degree_;
      rest -= last;
      ++steps;
    }
    return steps;
  }

  int32_t ranks_, degree_;
  int64_t units_per_shard_ = 1;
  int64_t base_ = 0;  // step_of_ below it: not seen in this search
  std::vector<int64_t> step_of_;
  std::vector<uint16_t> mask_, order_;
  std::array<int64_t, size_t{1} << kMaxDegree> within_{};
};

}  // namespace tutti
