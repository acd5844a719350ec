// topograph's graph JSON: instances with the switches above them, the closest first.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "json_file.h"
#include "reader.h"
#include "text.h"

namespace tutti::import {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxLayers = 16;

class TopographReader {
 public:
  explicit TopographReader(const std::string& source) : source_(source) {
    facts_ = {.source = source, .format = "topograph", .is_tree = true};
  }

  Result<Facts> Read(std::string_view text) {
    const Result<Json> parsed = ParseJsonFile(text, source_);
    if (!parsed) return tl::unexpected(parsed.error());
    const Json& json = *parsed;
    if (!json.is_object() || !json.contains("instances") || !json["instances"].is_array())
      return Fault("$", "wanted an object with the list instances");
    const Json& instances = json["instances"];
    if (instances.empty()) return Fault("$.instances", "no instance stands there");
    if (static_cast<int64_t>(instances.size()) > kMaxFacts)
      return Fault("$.instances", fmt::format("more than {} instances", kMaxFacts));
    for (size_t i = 0; i < instances.size(); ++i)
      if (Status status = ReadInstance(instances[i], fmt::format("$.instances[{}]", i)); !status)
        return tl::unexpected(status.error());
    return std::move(facts_);
  }

 private:
  tl::unexpected<Error> Fault(const std::string& path, const std::string& message) const {
    return FaultIn(source_, 0, fmt::format("{}: {}", path, message));
  }

  Result<std::string> NameAt(const Json& json, const std::string& path) const {
    if (!json.is_string() || !IsNodeName(json.get<std::string>()))
      return Fault(path, "wanted a name of printable characters");
    return json.get<std::string>();
  }

  Status ReadInstance(const Json& json, const std::string& path) {
    if (!json.is_object() || !json.contains("id")) return Fault(path, "wanted the field id");
    const Result<std::string> id = NameAt(json["id"], path + ".id");
    if (!id) return tl::unexpected(id.error());
    if (!hosts_.emplace(*id, path).second)
      return Fault(path + ".id", fmt::format("'{}' is {}, too", *id, hosts_[*id]));
    const Json layers = json.value("network_layers", Json::array());
    if (!layers.is_array() || layers.empty() || layers.size() > kMaxLayers)
      return Fault(path + ".network_layers",
                   fmt::format("wanted a list of 1 to {} switches, the closest first", kMaxLayers));
    std::string below = *id;
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string at = fmt::format("{}.network_layers[{}]", path, i);
      const Result<std::string> above = NameAt(layers[i], at);
      if (!above) return tl::unexpected(above.error());
      if (i > 0 && *above == below) return Fault(at, "a switch below itself");
      if (Status status = Add(below, i > 0, *above, at); !status) return status;
      below = *above;
    }
    return {};
  }

  // Several instances say the same of the switches above them.
  Status Add(const std::string& below, bool is_switch, const std::string& above,
             const std::string& path) {
    if (is_switch) {
      const auto [known, is_new] = above_.emplace(below, std::pair(above, path));
      if (!is_new && known->second.first != above)
        return Fault(path, fmt::format("switch '{}' is below '{}' here and below '{}' at {}", below,
                                       above, known->second.first, known->second.second));
      if (!is_new) return {};
    }
    facts_.cables.push_back({.a = {.node = below, .is_switch = is_switch},
                             .b = {.node = above},
                             .place = {source_, 0}});
    return {};
  }

  const std::string& source_;
  std::map<std::string, std::string> hosts_;
  std::map<std::string, std::pair<std::string, std::string>> above_;
  Facts facts_;
};

}  // namespace

bool LooksLikeTopograph(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{' && text.find("\"network_layers\"") != text.npos;
}

Result<Facts> ReadTopograph(std::string_view text, const std::string& source) {
  return TopographReader(source).Read(text);
}

}  // namespace tutti::import
