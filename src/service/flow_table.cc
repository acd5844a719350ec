#include "flow_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace tutti::service {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxPort = 65535, kMaxChannel = 1 << 20;

std::optional<int64_t> IntegerOf(const Json& object, const char* key, int64_t most) {
  if (!object.contains(key) || !object[key].is_number_integer()) return std::nullopt;
  const auto value = object[key].get<int64_t>();
  if (value < 0 || value > most) return std::nullopt;
  return value;
}

// Nothing there: any.
std::optional<uint32_t> AddressOf(const Json& object, const char* key) {
  if (!object.contains(key)) return INADDR_ANY;
  in_addr address{};
  if (!object[key].is_string() ||
      inet_pton(AF_INET, object[key].get_ref<const std::string&>().c_str(), &address) != 1)
    return std::nullopt;
  return ntohl(address.s_addr);
}

// [first, how many]
bool TakePorts(const Json& ports, TcpPorts& into) {
  if (!ports.is_array() || ports.size() != 2 || !ports[0].is_number_integer() ||
      !ports[1].is_number_integer())
    return false;
  const auto first = ports[0].get<int64_t>(), count = ports[1].get<int64_t>();
  if (first < 1 || first > kMaxPort || count < 1 || count > kMaxPort + 1 - first) return false;
  into = {static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
  return true;
}

// A list of them: those of other routes.
bool TakeOthers(const Json& flow, TcpSource& source) {
  constexpr size_t kMostOthers = 1024;
  if (!flow.contains("others")) return true;
  if (!flow["others"].is_array() || flow["others"].size() > kMostOthers) return false;
  for (const Json& ports : flow["others"])
    if (!TakePorts(ports, source.others.emplace_back())) return false;
  return true;
}

}  // namespace

Result<FlowTable> FlowTable::Parse(const std::string& text, int32_t num_ranks) {
  FlowTable table;
  if (text.empty()) return table;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("flows") || !json["flows"].is_array())
    return InvalidArgument("flows: no JSON object with a list \"flows\"");
  for (size_t i = 0; i < json["flows"].size(); ++i) {
    const Json& flow = json["flows"][i];
    const auto fault = [i](const std::string& what) {
      return InvalidArgument(fmt::format("flows[{}]: {}", i, what));
    };
    if (!flow.is_object()) return fault("is no object");
    const auto from = IntegerOf(flow, "from", num_ranks - 1),
               to = IntegerOf(flow, "to", num_ranks - 1);
    if (!from || !to || *from == *to)
      return fault(fmt::format("from and to: wanted two of the ranks 0 to {}", num_ranks - 1));
    const auto channel = flow.contains("channel") ? IntegerOf(flow, "channel", kMaxChannel) : 0;
    if (!channel) return fault("channel: wanted a number from 0 on");
    FlowPath path;
    const auto source = AddressOf(flow, "source"), target = AddressOf(flow, "target");
    if (!source) return fault("source: wanted an IPv4 address");
    if (!target) return fault("target: wanted an IPv4 address");
    path.source.address = *source;
    path.target = *target;
    if (flow.contains("ports")) {
      TcpPorts ports;
      if (!TakePorts(flow["ports"], ports))
        return fault("ports: wanted [FIRST, COUNT], of 1 to 65535");
      path.source.first_port = ports.first;
      path.source.num_ports = ports.count;
    }
    if (!TakeOthers(flow, path.source))
      return fault("others: wanted a list of [FIRST, COUNT], of 1 to 65535");
    const bool is_new =
        table.flows_
            .emplace(std::tuple(static_cast<int32_t>(*from), static_cast<int32_t>(*to),
                                static_cast<int32_t>(*channel)),
                     path)
            .second;
    if (!is_new)
      return fault(fmt::format("{} -> {} channel {} is there twice", *from, *to, *channel));
  }
  return table;
}

}  // namespace tutti::service
