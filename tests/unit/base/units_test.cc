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

TEST(UnitsTest, ReadsTheSpellingsOfOtherTools) {
  for (const char* text : {"50GB/s", "50 GB/s", " 50\tGB/s ", "50GBps", "400Gbit/s", "400Gb/s",
                           "400Gbps", "400 Gbps", "5e10", "50000MB/s", "50000000kB/s"})
    EXPECT_EQ(ParseBandwidth(text).value(), 50'000'000'000) << text;
  // As nccl-tests: a bare letter is binary. With B it is a power of 1000.
  for (const char* text : {"1k", "1K", "1KiB", "1 KiB", "1024", "1024B"})
    EXPECT_EQ(ParseSizeBytes(text).value(), 1024) << text;
  for (const char* text : {"1m", "1M", "1MiB"})
    EXPECT_EQ(ParseSizeBytes(text).value(), 1 << 20) << text;
  for (const char* text : {"1g", "1G", "1GiB"})
    EXPECT_EQ(ParseSizeBytes(text).value(), 1 << 30) << text;
  EXPECT_EQ(ParseSizeBytes("1T").value(), int64_t{1} << 40);
  for (const char* text : {"1kB", "1KB", "1e3", "1 KB"})
    EXPECT_EQ(ParseSizeBytes(text).value(), 1000) << text;
  for (const char* text : {"0.5us", "0.5 us", "0.5\u00b5s", "0.5\u03bcs", "500 ns"})
    EXPECT_EQ(ParseDurationPs(text).value(), 500'000) << text;
}

TEST(UnitsTest, RefusesWhatMayBeBitsOrBytes) {
  for (const char* text : {"1Mb", "1mb", "64 mb", "1gb", "1Gib"}) {
    const auto parsed = ParseSizeBytes(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().message.find("bits or bytes: write "), std::string::npos)
        << parsed.error().message;
  }
  for (const char* text : {"50gb/s", "50G", "50g", "50gbps", "50GB", "50Gb", "50gbit/s"}) {
    const auto parsed = ParseBandwidth(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().message.find("write Gbit/s or GB/s"), std::string::npos)
        << parsed.error().message;
  }
}

TEST(UnitsTest, ReadableTextIsShort) {
  EXPECT_EQ(ReadableBandwidth(50'000'000'000), "50GB/s");
  EXPECT_EQ(ReadableBandwidth(33'333'333'333), "33.333 GB/s");
  EXPECT_EQ(ReadableBandwidth(1'234'567), "1234567B/s");
  EXPECT_EQ(ReadableBandwidth(3'125'000'000), "3125MB/s");
  EXPECT_EQ(ReadableSize(int64_t{64} << 20), "64MiB");
  EXPECT_EQ(ReadableSize(33'333'333'333), "31.044 GiB");
  EXPECT_EQ(ReadableSize(1000), "1KB");
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
