#include "radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tutti/base/random.h"

namespace tutti::sim {
namespace {

TEST(RadixSortProperty, AgreesWithStableSort) {
  using Item = std::pair<uint64_t, int>;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    // Few or many different keys, in few or all of their 64 bits.
    const uint64_t mask = ~uint64_t{0} >> random.Below(64) << random.Below(20);
    std::vector<Item> items;
    for (uint64_t i = random.Below(2000); i > 0; --i)
      items.emplace_back(random.Next() & mask, static_cast<int>(i));
    std::vector<Item> sorted = items;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Item& a, const Item& b) { return a.first < b.first; });
    RadixSort(items, [](const Item& item) { return item.first; });
    EXPECT_EQ(items, sorted);
  }
}

}  // namespace
}  // namespace tutti::sim
