#include "text.h"

#include <cctype>
#include <charconv>
#include <set>

namespace tutti::import {

bool Lines::Next(std::string_view& line) {
  if (done_) return false;
  const size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  if (end == rest_.npos) {
    done_ = true;
    if (line.empty()) return false;
  } else {
    rest_.remove_prefix(end + 1);
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = Trimmed(line); !line.empty(); line = Trimmed(line)) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::string WithoutEscapes(std::string_view line) {
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() &&
           (std::isdigit(static_cast<unsigned char>(line[i + 1])) != 0 || line[i + 1] == ';'))
      ++i;
    if (i + 1 < line.size()) ++i;  // the letter at the end
  }
  return plain;
}

std::string Lower(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<int64_t> Number(std::string_view text, int64_t most) {
  int64_t value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || stop != text.data() + text.size() || text.empty() || text[0] == '-')
    return std::nullopt;
  return value <= most ? std::optional(value) : std::nullopt;
}

std::optional<std::string> NamedTwice(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second) return name;
  return std::nullopt;
}

int JsonNesting(std::string_view text) {
  int depth = 0, most = 0;
  for (char c : text) {
    if (c == '[' || c == '{') most = std::max(most, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return most;
}

}  // namespace tutti::import
