#include "tutti/base/json_path.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti {
namespace {

TEST(JsonPath, SaysWhatWasBegunLast) {
  JsonPath path;
  EXPECT_EQ(path.Text(), "$");
  path.Open(false);
  EXPECT_EQ(path.Text(), "$");
  EXPECT_TRUE(path.Key("gpus"));
  EXPECT_EQ(path.Text(), "$.gpus");
  path.Open(true);
  EXPECT_EQ(path.Text(), "$.gpus");
  path.Value();
  EXPECT_EQ(path.Text(), "$.gpus[0]");
  path.Open(false);
  EXPECT_EQ(path.Text(), "$.gpus[1]");
  EXPECT_EQ(path.depth(), 3u);
  EXPECT_TRUE(path.Key("ops"));
  path.Open(true);
  path.Open(true);
  path.Value();
  path.Value();
  EXPECT_EQ(path.Text(), "$.gpus[1].ops[0][1]");
  path.Close();
  EXPECT_EQ(path.Text(), "$.gpus[1].ops[0]");
  path.Close();
  EXPECT_TRUE(path.Key("id"));
  path.Value();
  EXPECT_EQ(path.Text(), "$.gpus[1].id");
  path.Close();
  EXPECT_EQ(path.Text(), "$.gpus[1]");
  path.Close();
  path.Close();
  EXPECT_EQ(path.Text(), "$");
  EXPECT_EQ(path.depth(), 0u);
}

TEST(JsonPath, AKeyIsTwiceInOneObjectOnly) {
  JsonPath path;
  path.Open(false);
  EXPECT_TRUE(path.Key("a"));
  path.Open(true);
  for (int object = 0; object < 2; ++object) {
    path.Open(false);
    EXPECT_TRUE(path.Key("a"));
    path.Value();
    EXPECT_TRUE(path.Key("b"));
    path.Value();
    EXPECT_FALSE(path.Key("a"));
    EXPECT_EQ(path.Twice("a"),
              object == 0 ? "$.a[0]: the key 'a' is twice" : "$.a[1]: the key 'a' is twice");
    path.Value();
    path.Close();
  }
  path.Close();
  EXPECT_FALSE(path.Key("a"));
  EXPECT_EQ(path.Twice("a"), "$: the key 'a' is twice");
}

TEST(JsonPath, KeysAreCutAndPrintable) {
  JsonPath path;
  path.Open(false);
  path.Key("a\nb\xC3\xA9");
  EXPECT_EQ(path.Text(), "$.a?b??");
  path.Key(std::string(61, 'x'));
  EXPECT_EQ(path.Text(), "$." + std::string(60, 'x') + "...");
  EXPECT_EQ(path.Twice("\x7F"), "$: the key '?' is twice");
}

// An oracle: the paths of all values, written down by a walk over the finished tree.
TEST(JsonPath, IsThatOfEachValueOfAText) {
  using Json = nlohmann::ordered_json;
  const std::string text =
      R"({"a":[1,[2,{}],{"b":null,"c":[[],[true]]}],"d":{"e":{"f":"x"}},"g":[]})";
  std::vector<std::string> wanted, got;
  const auto walk = [&](const auto& self, const Json& json, const std::string& at) -> void {
    wanted.push_back(at);
    size_t i = 0;
    for (const auto& [key, value] : json.items())
      if (json.is_array())
        self(self, value, at + "[" + std::to_string(i++) + "]");
      else if (json.is_object())
        self(self, value, at + "." + key);
  };
  walk(walk, Json::parse(text), "$");
  JsonPath path;
  const auto follow = [&](int, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::key) {
      path.Key(value.get<std::string>());
    } else if (event == Event::object_end || event == Event::array_end) {
      path.Close();
    } else {
      if (event == Event::value) path.Value();
      if (event != Event::value) path.Open(event == Event::array_start);
      got.push_back(path.Text());
    }
    return true;
  };
  EXPECT_FALSE(Json::parse(text, follow).is_discarded());
  EXPECT_EQ(got, wanted);
}

}  // namespace
}  // namespace tutti
