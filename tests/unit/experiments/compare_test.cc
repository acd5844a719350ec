#include <gtest/gtest.h>

#include "experiment.h"

namespace tutti {
namespace {

TEST(CompareTest, OursAgreesToThePapersLastDigit) {
  struct Case {
    Rational ours;
    const char* paper;
    bool agrees;
    const char* text;
  };
  const Case cases[] = {
      {Rational(5), "5", true, "="},
      {Rational(6), "5", false, "+1"},
      {Rational(4), "5", false, "-1"},
      {Rational(63, 64), "0.984", true, "="},  // 0.984375
      {Rational(62, 64), "0.984", false, "-1.55 %"},
      {Rational(21, 16), "1.312", true, "="},  // 1.3125, exactly between 1.312 and 1.313
      {Rational(21, 16), "1.313", true, "="},
      {Rational(8, 5), "8/5", true, "="},
      {Rational(8001, 5000), "8/5", false, "+0.01 %"},  // a fraction is exact
      {Rational::FromDouble(5.7143e-2), "5.71e-2", true, "="},
      {Rational::FromDouble(5.7061e-2), "5.71e-2", true, "="},
      {Rational::FromDouble(5.7040e-2), "5.71e-2", false, "-0.11 %"},
      {Rational(2), "<= 2", true, "holds"},
      {Rational(2001, 1000), "<= 2", false, "+0.05 %"},
      {Rational(1, 1000), "< 0.01", true, "holds"},
      {Rational(1, 100), "< 0.01", false, "+0.00 %"},
      {Rational(1, 10), "61.1", false, "611 times less"},
      {Rational(1222, 10), "0.1", false, "1.22e+03 times more"},
      {Rational(0), "0", true, "="},
  };
  for (const Case& c : cases) {
    const std::optional<Comparison> comparison = Compare({.ours = c.ours, .paper = c.paper});
    ASSERT_TRUE(comparison.has_value()) << c.paper;
    EXPECT_EQ(comparison->agrees, c.agrees) << c.ours.ToString() << " and " << c.paper;
    EXPECT_EQ(comparison->text, c.text) << c.ours.ToString() << " and " << c.paper;
  }
}

TEST(CompareTest, WhatIsKnownBetweenLimitsAgreesWhereTheyMeetThePapersDigits) {
  const Rational low(36146, 10'000'000), high(36157, 10'000'000);
  EXPECT_TRUE(Compare({.ours = low, .limit = high, .paper = "3.62e-3"})->agrees);
  EXPECT_TRUE(Compare({.ours = low, .limit = high, .paper = "3.61e-3"})->agrees);
  EXPECT_FALSE(Compare({.ours = low, .limit = high, .paper = "3.60e-3"})->agrees);
  EXPECT_FALSE(Compare({.ours = low, .limit = high, .paper = "3.63e-3"})->agrees);
}

TEST(CompareTest, WordsAreEqualOrDiffer) {
  EXPECT_EQ(Compare({.text = "circulant", .paper = "circulant"})->text, "=");
  EXPECT_EQ(Compare({.text = "line graph", .paper = "circulant"})->text, "differs");
  EXPECT_FALSE(Compare({.text = "none", .paper = "1.5"}).has_value());
  EXPECT_FALSE(Compare({.ours = Rational(1), .paper = "n/a"}).has_value());
  EXPECT_FALSE(Compare({.ours = Rational(1)}).has_value());
  EXPECT_FALSE(Compare({.paper = "1"}).has_value());
}

TEST(CompareTest, FiguresAreWrittenAsTheirColumnSays) {
  const ResultCell cell{.ours = Rational(4, 7)};
  EXPECT_EQ(OursText(cell, {.name = "x", .digits = 3}), "0.571");
  EXPECT_EQ(OursText(cell, {.name = "x", .style = FigureStyle::kScientific, .digits = 2}),
            "5.71e-01");
  EXPECT_EQ(OursText(cell, {.name = "x", .style = FigureStyle::kExact}), "4/7");
  EXPECT_EQ(OursText({.text = "none"}, {.name = "x"}), "none");
}

}  // namespace
}  // namespace tutti
