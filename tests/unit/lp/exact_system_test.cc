#include "exact_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tutti/base/random.h"

namespace tutti {
namespace {

using Matrix = std::vector<std::vector<ExactSystem::Entry>>;  // columns

// Sums of entry x value by row, or by column.
std::vector<Rational> Product(const Matrix& columns, const std::vector<Rational>& vector,
                              bool transposed) {
  std::vector<Rational> product(columns.size());
  for (size_t j = 0; j < columns.size(); ++j)
    for (const auto& [row, value] : columns[j]) {
      const auto i = static_cast<size_t>(row);
      product[transposed ? j : i] += Rational(value) * vector[transposed ? i : j];
    }
  return product;
}

TEST(ExactSystem, TwoEquationsByHand) {
  // 3 x + y = 1, x - 2 y = 0: x = 2/7, y = 1/7.
  const ExactSystem system({{{0, 3}, {1, 1}}, {{0, 1}, {1, -2}}});
  ASSERT_TRUE(system.is_regular());
  EXPECT_EQ(*system.Solve({1, 0}), (std::vector<Rational>{Rational(2, 7), Rational(1, 7)}));
  // 3 u + v = 1, u - 2 v = 1/2.
  EXPECT_EQ(*system.SolveTransposed({1, Rational(1, 2)}),
            (std::vector<Rational>{Rational(5, 14), Rational(-1, 14)}));
}

TEST(ExactSystem, NothingToSolve) {
  const ExactSystem system({});
  ASSERT_TRUE(system.is_regular());
  EXPECT_TRUE(system.Solve({})->empty());
}

TEST(ExactSystem, SingularMatricesAreToldApart) {
  EXPECT_FALSE(ExactSystem({{{0, 1}, {1, 2}}, {{0, 2}, {1, 4}}}).is_regular());
  EXPECT_FALSE(ExactSystem({{{0, 1}}, {}}).is_regular());
}

TEST(ExactSystem, AMultipleOfAPrimeNeedsAnotherOne) {
  const ExactSystem system({{{0, 2147483647}}});
  ASSERT_TRUE(system.is_regular());
  EXPECT_EQ(*system.Solve({1}), (std::vector<Rational>{Rational(1, 2147483647)}));
}

TEST(ExactSystem, RandomAnswersSatisfyTheirEquations) {
  Random random(5);
  int32_t solved = 0;
  for (int32_t round = 0; round < 60; ++round) {
    const uint64_t size = 1 + random.Below(round < 50 ? 12 : 80);
    // Small entries and such as fill 62 bits.
    const uint64_t most = round % 3 == 0 ? uint64_t{1} << 61 : 5;
    Matrix columns(size);
    for (auto& column : columns)
      for (uint64_t row = 0; row < size; ++row)
        if (random.Below(size) < 4)
          column.push_back(
              {static_cast<int32_t>(row),
               static_cast<int64_t>(random.Below(2 * most)) - static_cast<int64_t>(most)});
    const ExactSystem system(columns);
    if (!system.is_regular()) continue;
    ++solved;
    std::vector<Rational> right;
    for (uint64_t i = 0; i < size; ++i)
      right.emplace_back(static_cast<int64_t>(random.Below(1000)) - 500,
                         static_cast<int64_t>(1 + random.Below(6)));
    for (const bool transposed : {false, true}) {
      const auto answer = transposed ? system.SolveTransposed(right) : system.Solve(right);
      ASSERT_TRUE(answer.has_value());
      EXPECT_EQ(Product(columns, *answer, transposed), right) << size;
    }
  }
  EXPECT_GE(solved, 20);
}

}  // namespace
}  // namespace tutti
