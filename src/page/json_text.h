// JsonObject: the text of one JSON object, written key by key, for data of millions of numbers that
// needs no tree in memory.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/json_text.h"
#include "tutti/base/rational.h"

namespace tutti {

// In ASCII, whatever the encoding of the file that it comes to stand in.
inline std::string AsciiJson(std::string_view text) {
  return QuotedJson(text, JsonCharacters::kAscii);
}
// "[a,b]" of the texts of values.
std::string ArrayJson(const std::vector<std::string>& values);

// The same of the texts that `json` makes of values.
template <class Value, class Json>
std::string ArrayOf(const std::vector<Value>& values, Json json) {
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(json(value));
  return ArrayJson(texts);
}

// Times in pages are whole picoseconds.
int64_t Picoseconds(double seconds);

// {"exact": "num/den", "value": a decimal}.
std::string RationalJson(const Rational& value);

class JsonObject {
 public:
  void AddText(std::string_view key, std::string_view value) { AddRaw(key, AsciiJson(value)); }
  void AddInt(std::string_view key, int64_t value) { AddRaw(key, std::to_string(value)); }
  // Nine digits; a number that JSON has no word for becomes null.
  void AddReal(std::string_view key, double value);
  // `json` is the text of a value.
  void AddRaw(std::string_view key, std::string_view json) {
    Begin(key);
    text_ += json;
  }
  // An array of value(0), value(1), .., all integers.
  template <class Value>
  void AddColumn(std::string_view key, size_t count, Value value) {
    Begin(key);
    text_ += '[';
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) text_ += ',';
      const fmt::format_int digits(static_cast<int64_t>(value(i)));
      text_.append(digits.data(), digits.size());
    }
    text_ += ']';
  }

  std::string ToString() const { return fmt::format("{{{}}}", text_); }

 private:
  void Begin(std::string_view key) {
    if (!text_.empty()) text_ += ',';
    text_ += AsciiJson(key);
    text_ += ':';
  }

  std::string text_;
};

}  // namespace tutti
