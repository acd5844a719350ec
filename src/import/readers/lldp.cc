// `lldpctl -f json` (or json0): the switch at the other end of each interface of one host, whose
// own name does not stand there.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "json_file.h"
#include "reader.h"
#include "text.h"

namespace tutti::import {
namespace {

using Json = nlohmann::json;

// json0 has lists of one element where json has the element.
const Json& Single(const Json& json) {
  return json.is_array() && json.size() == 1 ? json[0] : json;
}

class LldpReader {
 public:
  explicit LldpReader(const std::string& source) : source_(source) {
    facts_ = {.source = source, .format = "lldp"};
  }

  Result<Facts> Read(std::string_view text) {
    const Result<Json> parsed = ParseJsonFile(text, source_);
    if (!parsed) return tl::unexpected(parsed.error());
    const Json& json = *parsed;
    if (!json.is_object() || !json.contains("lldp")) return Fault("$", "wanted the object lldp");
    const Json& lldp = Single(json["lldp"]);
    if (!lldp.is_object() || !lldp.contains("interface"))
      return Fault("$.lldp", "no interface has a neighbour");
    const Json& all = lldp["interface"];
    const Json list = all.is_array() ? all : Json::array({all});
    for (size_t i = 0; i < list.size(); ++i)
      if (Status status = ReadInterfaces(list[i], fmt::format("$.lldp.interface[{}]", i)); !status)
        return tl::unexpected(status.error());
    if (facts_.cables.empty()) return Fault("$.lldp.interface", "no interface has a neighbour");
    return std::move(facts_);
  }

 private:
  tl::unexpected<Error> Fault(const std::string& path, const std::string& message) const {
    return FaultIn(source_, 0, fmt::format("{}: {}", path, message));
  }

  // {"eth0": {...}}, or {"name": "eth0", ...} of json0.
  Status ReadInterfaces(const Json& json, const std::string& path) {
    if (!json.is_object()) return Fault(path, "wanted an object");
    if (json.contains("chassis")) return ReadInterface(json.value("name", Json()), json, path);
    for (const auto& [name, inside] : json.items()) {
      if (!inside.is_object()) return Fault(path, "wanted an object for each interface");
      if (Status status = ReadInterface(name, inside, path); !status) return status;
    }
    return {};
  }

  Status ReadInterface(const Json& name, const Json& json, const std::string& path) {
    if (!name.is_string() || !IsNodeName(name.get<std::string>()))
      return Fault(path, "wanted the name of an interface, of printable characters");
    if (static_cast<int64_t>(facts_.cables.size()) >= kMaxBoxDevices)
      return Fault(path, fmt::format("more than {} interfaces", kMaxBoxDevices));
    const std::string nic = name.get<std::string>();
    if (!seen_.insert(nic).second) return Fault(path, fmt::format("'{}' stands there twice", nic));
    const std::string neighbour = NameOf(Single(json.value("chassis", Json::object())));
    if (!IsNodeName(neighbour))
      return Fault(path + ".chassis",
                   fmt::format("the neighbour of {} has no printable name", nic));
    facts_.cables.push_back(
        {.a = {.is_switch = false, .nic = nic}, .b = {.node = neighbour}, .place = {source_, 0}});
    return {};
  }

  // {"leaf1": {...}}, {"name": [{"value": "leaf1"}], ...} of json0, or one without a name: its id.
  static std::string NameOf(const Json& chassis) {
    if (!chassis.is_object() || chassis.empty()) return "";
    for (const char* key : {"name", "id"}) {
      if (!chassis.contains(key)) continue;
      const Json& value = Single(chassis[key]);
      if (value.is_string()) return value.get<std::string>();
      if (value.is_object() && value.contains("value") && value["value"].is_string())
        return value["value"].get<std::string>();
    }
    return chassis.size() == 1 ? chassis.begin().key() : "";
  }

  const std::string& source_;
  std::set<std::string> seen_;
  Facts facts_;
};

}  // namespace

bool LooksLikeLldp(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{' &&
         text.substr(0, 1 << 12).find("\"lldp\"") != text.npos;
}

Result<Facts> ReadLldp(std::string_view text, const std::string& source) {
  return LldpReader(source).Read(text);
}

}  // namespace tutti::import
