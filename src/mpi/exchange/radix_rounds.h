// RadixRounds: which blocks travel in which round of TuNA and which place a forwarded block has:
// plain arithmetic in the number of ranks P and the radix r.
//
// Model       A rank numbers the blocks it holds by the distance they still have to travel at the
//             start: block i of rank p starts as p's block for rank p - i (mod P). Round (x, z), z
//             = 1 .. r - 1, moves all blocks whose digit x in base r is z by z r^x ranks down; what
//             arrives takes the numbers of what left. Rounds of one digit are independent of each
//             other; digits go from low to high.
// Rows        The blocks of a round are runs [start, start + r^x), start = h r^(x+1) + z r^x, h =
//             0, 1, ...
//
//               sent      the first of a row starts its way here; the others came in an earlier
//                         round
//               received  those of row h = 0 have arrived: block i is what rank p + i had for p.
//                         All others are forwarded by a later round.
// Slots       Block z r^x, alone in its first row position, travels once (a *direct* block) and is
//             never stored. There are K of them, one per round, so P - (K + 1) slots hold
//             everything on its way; block i has slot i - 1 - (direct blocks up to i).
// Example     P = 8, r = 2: direct 1, 2, 4; slots: 3 -> 0, 5 -> 1, 6 -> 2, 7 -> 3.
// Complexity  O(1) per block, O(digits) per round.
// Threads     Immutable.
// Reference   [tuna] section III; its text counts dx = ceil(log_r o), which must be floor, and its
//             listing tests "digit is 1" where "digit is z" is meant.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tutti::mpi {

struct RadixRound {
  int64_t step = 1;   // r^x
  int64_t first = 1;  // z r^x: the distance it covers, and its smallest block
};

class RadixRounds {
 public:
  // A radix above `size` is one of `size`; below 2 it is 2.
  RadixRounds(int64_t size, int64_t radix)
      : size_(size), radix_(std::max<int64_t>(2, std::min(radix, size))) {}

  int64_t size() const { return size_; }
  int64_t radix() const { return radix_; }

  // [K]
  int64_t num_rounds() const {
    int64_t rounds = 0;
    for (int64_t step = 1; step < size_; step *= radix_) {
      rounds += std::min(radix_ - 1, (size_ - 1) / step);
    }
    return rounds;
  }

  // [B] = P - (K + 1)
  int64_t num_slots() const { return size_ - (num_rounds() + 1); }

  // In order: all values of digit 0, then of digit 1, ... Legal for less than num_rounds() times.
  RadixRound After(RadixRound round) const {
    round.first += round.step;
    if (round.first == round.step * radix_) round.step = round.first;
    return round;
  }

  int64_t NumBlocks(RadixRound round) const {
    const int64_t period = round.step * radix_;
    const int64_t rest = size_ % period - round.first;
    return size_ / period * round.step + std::clamp<int64_t>(rest, 0, round.step);
  }
  // Those that have arrived after this round.
  int64_t NumArrived(RadixRound round) const { return std::min(round.step, size_ - round.first); }

  // Calls use(start, end, first_slot) for every row in ascending order; block i > start of the row
  // has slot first_slot + i - start, and so has `start` unless it is the direct block.
  template <class Use>
  void ForEachRow(RadixRound round, const Use& use) const {
    int64_t not_slots = 1;  // block 0 and the direct blocks up to `start`
    int64_t direct = 1;     // the next one
    int64_t direct_step = 1;
    for (int64_t start = round.first; start < size_; start += round.step * radix_) {
      while (direct <= start) {
        ++not_slots;
        direct += direct_step;
        if (direct == direct_step * radix_) direct_step = direct;
      }
      use(start, std::min(start + round.step, size_), start - not_slots);
    }
  }

 private:
  int64_t size_;
  int64_t radix_;
};

}  // namespace tutti::mpi
