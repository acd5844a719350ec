#include "pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

std::vector<std::byte> Entries(const std::byte* table, DataType type) {
  return {table, table + Pattern::kPeriod * SizeOf(type)};
}

// The exactness that the model promises, by the kernels themselves: any order, the same bits.
TEST(PatternTest, TheReductionIsExactInEveryOrder) {
  Random random(1);
  for (int t = 0; t < 7; ++t)
    for (int o = 0; o < 5; ++o)
      for (const int32_t n : {1, 2, 16, 300}) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        SCOPED_TRACE(std::string(Name(type)) + " " + std::string(Name(op)) + " " +
                     std::to_string(n));
        const Pattern pattern(type, op, true, n);
        std::vector<int32_t> order(static_cast<size_t>(n));
        for (int32_t r = 0; r < n; ++r) order[static_cast<size_t>(r)] = r;
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
        std::vector<std::byte> sum = Entries(pattern.Contribution(order[0]), type);
        for (size_t i = 1; i < order.size(); ++i)
          FindReduceKernel(type, op)(sum.data(), pattern.Contribution(order[i]), sum.data(),
                                     Pattern::kPeriod);
        if (op == ReduceOp::kAvg) FindDivideKernel(type)(sum.data(), Pattern::kPeriod, n);
        EXPECT_EQ(sum, Entries(pattern.Reduction(), type));
      }
}

TEST(PatternTest, CountsEachElementThatDiffers) {
  const Pattern pattern(DataType::kFloat32, ReduceOp::kSum, false, 2);
  constexpr int64_t kFirst = 5000, kCount = 3 * Pattern::kPeriod;
  std::vector<uint32_t> data(kCount);
  const std::byte* table = pattern.Contribution(1);
  pattern.Fill(data.data(), table, kFirst, kCount);
  EXPECT_EQ(pattern.Differing(data.data(), table, kFirst, kCount), 0);
  for (const size_t at : {0u, 8000u, 8001u, 24'572u}) data[at] ^= 1u;
  EXPECT_EQ(pattern.Differing(data.data(), table, kFirst, kCount), 4);
  pattern.FillInverted(data.data(), table, kFirst, kCount);
  EXPECT_EQ(pattern.Differing(data.data(), table, kFirst, kCount), kCount);
}

TEST(PatternTest, DataAtAWrongPlaceOrOfAnotherRankDiffer) {
  const Pattern pattern(DataType::kInt64, ReduceOp::kSum, false, 2);
  constexpr int64_t kCount = 1000;
  std::vector<int64_t> data(kCount);
  pattern.Fill(data.data(), pattern.Contribution(0), 0, kCount);
  for (const int64_t shift : {int64_t{1}, int64_t{1000}, Pattern::kPeriod, 4 * Pattern::kPeriod})
    EXPECT_EQ(pattern.Differing(data.data(), pattern.Contribution(0), shift, kCount), kCount);
  EXPECT_EQ(pattern.Differing(data.data(), pattern.Contribution(1), 0, kCount), kCount);
}

}  // namespace
}  // namespace tutti
