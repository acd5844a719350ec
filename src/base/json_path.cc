#include "tutti/base/json_path.h"

#include <fmt/format.h>

namespace tutti {
namespace {

std::string ShownKey(std::string_view key) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (const char c : key.substr(0, kMost)) shown += c >= 0x20 && c < 0x7f ? c : '?';
  return key.size() > kMost ? shown + "..." : shown;
}

}  // namespace

void JsonPath::Value() {
  if (!levels_.empty()) ++levels_.back().values;
}

void JsonPath::Open(bool is_array) {
  Value();
  levels_.emplace_back().is_array = is_array;
}

bool JsonPath::Key(const std::string& key) {
  levels_.back().key = key;
  return levels_.back().keys.insert(key).second;
}

std::string JsonPath::Text() const {
  if (levels_.empty()) return TextOf(0);
  const Level& last = levels_.back();
  const bool begun = last.is_array ? last.values > 0 : !last.keys.empty();
  return TextOf(levels_.size() - (begun ? 0 : 1));
}

std::string JsonPath::Twice(std::string_view key) const {
  return fmt::format("{}: the key '{}' is twice", TextOf(levels_.size() - 1), ShownKey(key));
}

std::string JsonPath::TextOf(size_t levels) const {
  std::string text = "$";
  for (size_t i = 0; i < levels; ++i)
    text += levels_[i].is_array ? fmt::format("[{}]", levels_[i].values - 1)
                                : "." + ShownKey(levels_[i].key);
  return text;
}

}  // namespace tutti
