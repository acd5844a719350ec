#include "tutti/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tutti/base/random.h"

namespace tutti {
namespace {

TEST(JsonText, IsWhatJsonWritesByHand) {
  EXPECT_EQ(QuotedJson(""), R"("")");
  EXPECT_EQ(QuotedJson("a \"b\" \\ /"), R"("a \"b\" \\ /")");
  EXPECT_EQ(QuotedJson("\b\f\n\r\t\x01\x1f"), R"("\b\f\n\r\t\u0001\u001f")");
  EXPECT_EQ(QuotedJson("\xC3\xA9 \xF0\x9F\x98\x80"), "\"\xC3\xA9 \xF0\x9F\x98\x80\"");
  EXPECT_EQ(QuotedJson("\xC3\xA9 \xF0\x9F\x98\x80", JsonCharacters::kAscii),
            R"("\u00e9 \ud83d\ude00")");
  EXPECT_EQ(QuotedJson("a\xFF\xE2\x82z"), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

// The library that reads what we write says the same of any bytes.
TEST(JsonText, IsWhatTheLibraryWrites) {
  Random random(1);
  // Bytes at which the rules of UTF-8 change.
  constexpr unsigned char kBytes[] = {0x00, 0x1F, '"',  '\\', 'a',  0x7E, 0x7F, 0x80, 0x8F,
                                      0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                      0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random.Below(12); left > 0; --left)
      text += static_cast<char>(kBytes[random.Below(std::size(kBytes))]);
    const nlohmann::json json(text);
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    ASSERT_EQ(QuotedJson(text), json.dump(-1, ' ', false, kReplace)) << round;
    ASSERT_EQ(QuotedJson(text, JsonCharacters::kAscii), json.dump(-1, ' ', true, kReplace))
        << round;
  }
}

}  // namespace
}  // namespace tutti
