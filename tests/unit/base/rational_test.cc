#include "tutti/base/rational.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tutti/base/random.h"

namespace tutti {
namespace {

TEST(RationalTest, IsInLowestTermsWithAPositiveDenominator) {
  EXPECT_EQ(Rational(6, -8).ToString(), "-3/4");
  EXPECT_EQ(Rational(10, 5).ToString(), "2");
  EXPECT_EQ((Rational(1, 3) + Rational(1, 6)).ToString(), "1/2");
  EXPECT_EQ((Rational(1, 3) * Rational(3, 7) / Rational(2, 7)).ToString(), "1/2");
}

TEST(RationalTest, ParsesFractionsDecimalsAndExponentsExactly) {
  EXPECT_EQ(Rational::Parse("0.1"), Rational(1, 10));
  EXPECT_EQ(Rational::Parse("-2/6"), Rational(-1, 3));
  EXPECT_EQ(Rational::Parse("1.25e2"), Rational(125));
  EXPECT_EQ(Rational::Parse("5e-3"), Rational(1, 200));
  for (const char* bad : {"", "-", "1/0", "nan", "inf", " 1", "1 ", "1e", "0x10", "1//2", "+1"})
    EXPECT_FALSE(Rational::Parse(bad).has_value()) << bad;
}

TEST(RationalTest, DoesNotOverflow) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  const Rational square = Rational(big) * Rational(big);
  EXPECT_EQ(square.ToString(), "85070591730234615847396907784232501249");
  EXPECT_FALSE(square.Num64().has_value());
  EXPECT_EQ(square / Rational(big), Rational(big));
}

TEST(RationalTest, RoundsTowardsTheNamedSide) {
  EXPECT_EQ(Rational(7, 2).Floor(), Rational(3));
  EXPECT_EQ(Rational(7, 2).Ceil(), Rational(4));
  EXPECT_EQ(Rational(-7, 2).Floor(), Rational(-4));
  EXPECT_EQ(Rational(4).Ceil(), Rational(4));
}

TEST(RationalProperty, FieldLawsHoldOverSeeds) {
  Random random(7);
  const auto draw = [&random] {
    return Rational(static_cast<int64_t>(random.Below(2001)) - 1000,
                    static_cast<int64_t>(random.Below(1000)) + 1);
  };
  for (int i = 0; i < 2000; ++i) {
    const Rational a = draw(), b = draw(), c = draw();
    EXPECT_EQ((a + b) * c, a * c + b * c);
    EXPECT_EQ(a - b + b, a);
    EXPECT_EQ(a<b, b> a);
    if (!b.is_zero()) {
      EXPECT_EQ(a / b * b, a);
    }
    EXPECT_EQ(Rational::Parse(a.ToString()), a);
  }
}

}  // namespace
}  // namespace tutti
