// JsonObject: the text of one JSON object, written key by key, for data of millions of numbers that
// needs no tree in memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/json_text.h"
#include "tutti/base/parallel.h"
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
  // An array of value(0), value(1), .., all integers. Several threads call `value`.
  template <class Value>
  void AddColumn(std::string_view key, size_t count, Value value) {
    constexpr size_t kBlock = size_t{1} << 16;  // numbers that one thread writes at a time
    std::vector<std::string> blocks((count + kBlock - 1) / kBlock);
    ParallelFor(std::ssize(blocks), 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const auto at = static_cast<size_t>(block);
        const size_t first = at * kBlock;
        blocks[at] = NumbersJson(first, std::min(count, first + kBlock), value);
      }
    });
    AddRaw(key, ArrayJson(blocks));
  }

  std::string ToString() const { return text_ + '}'; }

 private:
  void Begin(std::string_view key) {
    if (text_.size() > 1) text_ += ',';
    text_ += AsciiJson(key);
    text_ += ':';
  }
  template <class Value>
  static std::string NumbersJson(size_t begin, size_t end, const Value& value) {
    std::string out;
    for (size_t i = begin; i < end; ++i) {
      if (i > begin) out += ',';
      const fmt::format_int digits(static_cast<int64_t>(value(i)));
      out.append(digits.data(), digits.size());
    }
    return out;
  }

  std::string text_ = "{";
};

}  // namespace tutti
