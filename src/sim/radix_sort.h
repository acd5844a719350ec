// Stable sort of many items by a 64-bit key of at least 0: eleven bits a pass, passes that change
// nothing left out. O(n) time a pass, n items of scratch. For the times of millions of messages.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::sim {

template <class Item, class Key>
void RadixSort(std::vector<Item>& items, Key key) {
  constexpr int kBits = 11, kPasses = 6;
  constexpr size_t kBuckets = size_t{1} << kBits;
  const auto digit = [&key](const Item& item, int pass) {
    return static_cast<size_t>(static_cast<uint64_t>(key(item)) >> (kBits * pass)) & (kBuckets - 1);
  };
  if (items.size() < kBuckets / 8)
    return std::stable_sort(items.begin(), items.end(),
                            [&key](const Item& a, const Item& b) { return key(a) < key(b); });
  std::vector<std::array<size_t, kBuckets>> counts(kPasses);
  bool sorted = true;
  for (size_t i = 0; i < items.size(); ++i) {
    sorted = sorted && (i == 0 || key(items[i - 1]) <= key(items[i]));
    for (int pass = 0; pass < kPasses; ++pass)
      ++counts[static_cast<size_t>(pass)][digit(items[i], pass)];
  }
  if (sorted) return;
  std::vector<Item> scratch(items.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    std::array<size_t, kBuckets>& next = counts[static_cast<size_t>(pass)];
    if (next[digit(items[0], pass)] == items.size()) continue;
    size_t first = 0;
    for (size_t& count : next) {
      const size_t size = count;
      count = first;
      first += size;
    }
    for (const Item& item : items) scratch[next[digit(item, pass)]++] = item;
    items.swap(scratch);
  }
}

}  // namespace tutti::sim
