#include "json_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "reader.h"
#include "text.h"
#include "tutti/base/json_path.h"

namespace tutti::import {
namespace {

// Follows a parser, and finds the first key that an object has twice.
class KeysOnce {
 public:
  using Json = nlohmann::json;

  void Follow(Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_end || event == Event::array_end) {
      path_.Close();
    } else if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!path_.Key(key) && twice_.empty()) twice_ = path_.Twice(key);
    } else if (event == Event::value) {
      path_.Value();
    } else {
      path_.Open(event == Event::array_start);
    }
  }
  // "$.instances[0]: the key 'id' is twice", or "".
  const std::string& twice() const { return twice_; }

 private:
  JsonPath path_;
  std::string twice_;
};

}  // namespace

Result<nlohmann::json> ParseJsonFile(std::string_view text, const std::string& source) {
  if (JsonNesting(text) > kMaxJsonDepth)
    return FaultIn(source, 0, fmt::format("$: nested deeper than {} levels", kMaxJsonDepth));
  try {
    KeysOnce keys;
    nlohmann::json json = nlohmann::json::parse(
        text, [&keys](int, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
          keys.Follow(event, value);
          return true;
        });
    if (!keys.twice().empty()) return FaultIn(source, 0, keys.twice());
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return FaultIn(source, line, fmt::format("no JSON: syntax error at byte {}", error.byte));
  } catch (const nlohmann::json::out_of_range& error) {  // quotes the digits of the number
    return FaultIn(source, 0, fmt::format("no JSON: {}", error.what()));
  }
}

}  // namespace tutti::import
