#include "tutti/base/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

namespace tutti {
namespace {

TEST(UnitsTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(ParseSizeBytes("64MiB").value(), int64_t{64} << 20);
  EXPECT_EQ(ParseSizeBytes("1KB").value(), 1000);
  EXPECT_EQ(ParseSizeBytes("1e9").value(), 1'000'000'000);
  EXPECT_EQ(ParseSizeBytes("8M").value(), int64_t{8} << 20);
  EXPECT_EQ(ParseBandwidth("25Gbit/s").value(), 3'125'000'000);
  EXPECT_EQ(ParseBandwidth("35GiB/s").value(), int64_t{35} << 30);
  EXPECT_EQ(ParseBandwidth("1.5GB/s").value(), 1'500'000'000);
  EXPECT_EQ(ParseDurationPs("0.5us").value(), 500'000);
  EXPECT_EQ(ParseDurationPs("0").value(), 0);
}

TEST(UnitsTest, NamesWhatIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& bad : std::initializer_list<Case>{{"nanGB/s", "not a number"},
                                                     {"-1GB/s", "not a number"},
                                                     {"infGB/s", "not a number"},
                                                     {"5GX/s", "unknown unit"},
                                                     {"1bit/s", "whole number of bytes a second"},
                                                     {"1e300GB/s", "too large"}}) {
    const auto parsed = ParseBandwidth(bad.text);
    ASSERT_FALSE(parsed.has_value()) << bad.text;
    EXPECT_NE(parsed.error().message.find(bad.message), std::string::npos)
        << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(bad.text), std::string::npos);
  }
  EXPECT_NE(ParseDurationPs("5").error().message.find("has no unit"), std::string::npos);
}

TEST(UnitsTest, FormatsWhatParsesBack) {
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{1000}, int64_t{1024},
                        int64_t{3'125'000'000}, int64_t{35} << 30, int64_t{50'000'000'000}}) {
    EXPECT_EQ(ParseSizeBytes(FormatSize(value)).value(), value) << FormatSize(value);
    EXPECT_EQ(ParseBandwidth(FormatBandwidth(value)).value(), value) << FormatBandwidth(value);
    EXPECT_EQ(ParseDurationPs(FormatDurationPs(value)).value(), value) << FormatDurationPs(value);
  }
  EXPECT_EQ(FormatSize(int64_t{64} << 20), "64MiB");
  EXPECT_EQ(FormatBandwidth(50'000'000'000), "50GB/s");
  EXPECT_EQ(FormatDurationPs(500'000), "500ns");
}

}  // namespace
}  // namespace tutti
