#include "tutti/base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tutti {
namespace {

constexpr size_t kPage = 4096, kMost = 5 * kPage;

// As many bytes as there are, from the start of a page on, all different within 251.
struct PagesOfBytes {
  explicit PagesOfBytes(uint8_t first) : bytes(kMost + 3 * kPage) {
    start = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(bytes.data()) + kPage - 1) /
                                         kPage * kPage);
    for (size_t i = 0; i < kMost + kPage; ++i) start[i] = static_cast<std::byte>((first + i) % 251);
  }
  std::vector<std::byte> bytes;
  std::byte* start;
};

TEST(CopyTest, LiesBadlyLessThanALineOfVectorsBehind) {
  const PagesOfBytes from(0), to(0);
  const auto badly = [&](ptrdiff_t behind, size_t bytes) {
    return LiesBadlyForCopies(to.start + kPage + behind, from.start, bytes);
  };
  EXPECT_FALSE(badly(0, kMost));
  EXPECT_TRUE(badly(1, kMost));
  EXPECT_TRUE(badly(16, kMost));
  EXPECT_TRUE(badly(31, kMost));
  EXPECT_FALSE(badly(32, kMost));
  EXPECT_FALSE(badly(-1, kMost));
  EXPECT_TRUE(badly(16, 2048));
  EXPECT_FALSE(badly(16, 2047));
}

// Every way to copy does what std::memcpy does, and writes nothing else.
TEST(CopyTest, EveryByteWhereverTheyLie) {
  const PagesOfBytes from(7);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{200},
                             size_t{2047}, size_t{2048}, size_t{5000}, kMost - 128})
    for (size_t source = 0; source < 3; ++source)
      for (size_t target = 0; target < 70; ++target)
        for (const auto& copy : {CopyMemory, MoveMemory, CopyPastCache}) {
          PagesOfBytes to(100);
          std::vector<std::byte> wanted(to.start, to.start + kMost);
          std::memcpy(wanted.data() + target, from.start + source, bytes);
          copy(to.start + target, from.start + source, bytes);
          EndCopiesPastCache();
          ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), to.start))
              << bytes << " bytes from " << source << " to " << target;
        }
}

TEST(CopyTest, WhatOverlapsIsMoved) {
  for (const ptrdiff_t by : {-4100, -64, -1, 0, 1, 16, 64, 4100})
    for (const size_t bytes : {size_t{3}, size_t{100}, size_t{5000}}) {
      PagesOfBytes pages(3);
      std::byte* from = pages.start + 2 * kPage;
      std::vector<std::byte> wanted(pages.start, pages.start + kMost);
      std::memmove(wanted.data() + 2 * kPage + by, wanted.data() + 2 * kPage, bytes);
      MoveMemory(from + by, from, bytes);
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), pages.start)) << bytes << " by " << by;
    }
}

TEST(CopyTest, NothingHasNoAddress) {
  CopyMemory(nullptr, nullptr, 0);
  MoveMemory(nullptr, nullptr, 0);
  CopyPastCache(nullptr, nullptr, 0);
  std::byte one{7}, other{9};
  CopyMemory(&one, &other, 0);
  EXPECT_EQ(one, std::byte{7});
}

}  // namespace
}  // namespace tutti
