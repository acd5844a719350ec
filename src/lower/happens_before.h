// Which of two actions surely ends before the other starts: the order that program order,
// dependencies and messages give, whatever the depth of the connections.
//
// Within a rank vector clocks answer at once. What they cannot prove is suspected, and decided in
// the end by a search through the other ranks.
// Complexity  Start(): O(streams of the rank). Races(): O(actions) a suspected action.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "machine_index.h"

namespace tutti::lower {

class HappensBefore {
 public:
  explicit HappensBefore(const MachineIndex& index);

  // In an order in which they may start. What action waits for has started (and ended) before.
  void Start(int32_t action);
  // Notes that `earlier` touched a cell before `later` did, in the same rank.
  void Touch(int32_t earlier, int32_t later);
  // Pairs that only chance has put in order; at most `limit`, sorted.
  std::vector<std::pair<int32_t, int32_t>> Races(size_t limit) const;

 private:
  int32_t* clock(int32_t action) {
    return clocks_.data() + first_clock_[static_cast<size_t>(action)];
  }
  // Marks all actions that surely end before `later` starts.
  void MarkEarlier(int32_t later, std::vector<char>& marked) const;

  const MachineIndex& index_;
  std::vector<size_t> first_clock_;  // of each action
  std::vector<int32_t> clocks_;      // for each stream of the rank: the last action known done
  std::unordered_set<uint64_t> suspects_;  // later << 32 | earlier; sorted before use
};

}  // namespace tutti::lower
