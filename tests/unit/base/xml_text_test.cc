#include "tutti/base/xml_text.h"

#include <gtest/gtest.h>

#include <string>

#include "tutti/base/random.h"

namespace tutti {
namespace {

TEST(XmlText, IsWhatXmlWritesByHand) {
  EXPECT_EQ(EscapedXml(""), "");
  EXPECT_EQ(EscapedXml("<a b=\"c\">&amp;'"), "&lt;a b=&quot;c&quot;&gt;&amp;amp;'");
  EXPECT_EQ(EscapedXml("\xC3\xA9\t\n\x01."), "\xC3\xA9   .");
  EXPECT_EQ(EscapedXml("a\xFF\xE2\x82z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(UnescapedXml("&lt;&amp;amp;&quot;&gt; &apos; &"), "<&amp;\"> &apos; &");
}

TEST(XmlText, ComesBack) {
  Random random(1);
  const std::string characters = "<>&\"';alqtugmp";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random.Below(16); left > 0; --left)
      text += characters[random.Below(characters.size())];
    const std::string escaped = EscapedXml(text);
    EXPECT_EQ(escaped.find_first_of("<>\""), std::string::npos) << text;
    ASSERT_EQ(UnescapedXml(escaped), text);
  }
}

}  // namespace
}  // namespace tutti
