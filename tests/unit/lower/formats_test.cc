#include "tutti/lower/formats.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schedules.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers

TEST(LoweringFormatsTest, EachHasANameOfItsOwnAndTakesOneKindOfInput) {
  std::set<std::string_view> names;
  for (const LoweringFormat& format : LoweringFormats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_FALSE(format.description.empty()) << format.name;
    EXPECT_EQ(format.extension.front(), '.') << format.name;
    EXPECT_NE(format.schedule == nullptr, format.routing == nullptr) << format.name;
    EXPECT_EQ(FindLoweringFormat(format.name), &format);
  }
  EXPECT_EQ(FindLoweringFormat("nope"), nullptr);
}

TEST(LoweringFormatsTest, OptionsOfOneNameAreOneOption) {
  std::set<std::string_view> names;
  for (const FormatOption* option : LoweringFormatOptions())
    EXPECT_TRUE(names.insert(option->name).second) << option->name;
}

TEST(LoweringFormatsTest, EveryFormatOfSchedulesWritesARingWithItsFallbacks) {
  const Topology ring = UniRing(3);
  for (const LoweringFormat& format : LoweringFormats()) {
    if (format.schedule == nullptr) continue;
    const Result<LoweredText> lowered = format.schedule(ring, RingAllGather(ring), {});
    ASSERT_TRUE(lowered.has_value()) << format.name << ": " << lowered.error().message;
    EXPECT_NE(lowered->text.empty(), lowered->files.empty()) << format.name;
  }
}

TEST(LoweringFormatsTest, ValuesOutsideTheirRangeAreNamed) {
  FormatOptionValues values;
  const FormatOption option{"blocks", "", "8"};
  EXPECT_EQ(*values.Count(option, 1, 10), 8);
  for (const char* text : {"", "0", "11", "3x", "-1", "99999999999"}) {
    values.Set("blocks", text);
    const Result<int32_t> count = values.Count(option, 1, 10);
    ASSERT_FALSE(count.has_value()) << text;
    EXPECT_EQ(count.error().message,
              "--blocks is '" + std::string(text) + "'; accepted are whole numbers from 1 to 10");
  }
}

}  // namespace
}  // namespace tutti
