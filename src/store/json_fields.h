// JSON as the readers of this room want it: parsed with every fault named, and objects read field
// by field. For .cc files only: the JSON library stays in this room.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

// kCorrupt: a syntax error (line and column), a key twice, nested too deep.
Result<nlohmann::json> ParseJson(std::string_view text);

// 16 hexadecimal digits. kCorrupt.
Result<uint64_t> ParseFingerprint(const std::string& text);

// Lists of ranks, as `groups` in the files: kCorrupt names `where`. What else groups must be is looked at by
// Collective::Make. And the key with its value.
Result<std::vector<std::vector<NodeId>>> ParseGroups(const nlohmann::json& lists,
                                                     std::string_view where, int32_t num_ranks);
std::string GroupsToJson(const std::vector<std::vector<NodeId>>& groups);

// Rows of one number >= 0 a rank. kCorrupt: "`where` must be ...".
Result<std::vector<int64_t>> ParseDemand(const nlohmann::json& rows, std::string_view where,
                                         size_t num_ranks);

// One object of the file; collects the first fault, so that reading needs no check a line.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) Fault("must be an object");
  }

  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  bool ok() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }
  void Fault(const std::string& what) {
    if (fault_.empty()) fault_ = path_.empty() ? "the file " + what : path_ + " " + what;
  }
  // Refuses keys that nobody asked for.
  void Accept(const std::vector<std::string_view>& keys) {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        Fault(fmt::format("has an unknown key '{}'; accepted are {}", key, fmt::join(keys, ", ")));
  }

  const nlohmann::json& Get(const char* key) {
    static const nlohmann::json kNull;
    if (has(key)) return object_[key];
    Fault(fmt::format("lacks the key '{}'", key));
    return kNull;
  }
  int64_t Integer(const char* key, int64_t low, int64_t high) {
    const nlohmann::json& value = Get(key);
    if (ok() && !IsWithin(value, low, high))
      Fault(fmt::format("has {} = {}; accepted are whole numbers {} .. {}", key, Shorten(value),
                        low, high));
    return ok() ? value.get<int64_t>() : low;
  }
  std::string String(const char* key) {
    const nlohmann::json& value = Get(key);
    if (ok() && !value.is_string())
      Fault(fmt::format("has {} = {}; accepted is a string", key, Shorten(value)));
    return ok() ? value.get<std::string>() : std::string();
  }
  // The index of the string among `names`.
  size_t OneOf(const char* key, const std::vector<std::string_view>& names) {
    const std::string value = String(key);
    const auto at = std::find(names.begin(), names.end(), value);
    if (ok() && at == names.end())
      Fault(fmt::format("has {} = '{}'; accepted are {}", key, value, fmt::join(names, ", ")));
    return ok() ? static_cast<size_t>(at - names.begin()) : 0;
  }

  static bool IsWithin(const nlohmann::json& value, int64_t low, int64_t high) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return false;
    return low <= value.get<int64_t>() && value.get<int64_t>() <= high;
  }

 private:
  static std::string Shorten(const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
  }

  const nlohmann::json& object_;
  std::string path_, fault_;
};

}  // namespace tutti
