// Lines and words of a text, with line numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::import {

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  // The next line without its end; false at the end of the text.
  bool Next(std::string_view& line);
  int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
  bool done_ = false;
};

std::string_view Trimmed(std::string_view text);
std::vector<std::string_view> Words(std::string_view line);
// ESC [ ... m of terminals taken out.
std::string WithoutEscapes(std::string_view line);
std::string Lower(std::string_view text);
// The first name that stands in the list before.
std::optional<std::string> NamedTwice(const std::vector<std::string>& names);
// Brackets of JSON open at once, at most; those in strings count, too, which only makes it larger.
int JsonNesting(std::string_view text);
inline constexpr int kMaxJsonDepth = 64;
// Digits only.
std::optional<int64_t> Number(std::string_view text, int64_t most);

}  // namespace tutti::import
