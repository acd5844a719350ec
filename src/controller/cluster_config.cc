#include "tutti/controller/cluster_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "background.h"
#include "config_fields.h"
#include "tutti/base/file.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;
using service::ConfigFields;

constexpr int64_t kMaxPort = 65535, kMaxCount = 1 << 20;

Result<HostConfig> ReadHost(const Json& json, const std::string& place) {
  if (!json.is_object()) return InvalidArgument(place + "is no object");
  HostConfig host;
  ConfigFields fields(json, place);
  fields.Take("name", host.name);
  fields.Take("admin", host.admin);
  fields.Take("nics", host.nics);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (host.name.empty()) return InvalidArgument(place + "name: is missing");
  return host;
}

Status ReadHosts(const Json& json, ClusterConfig& config) {
  if (!json.is_array()) return InvalidArgument("hosts: is no list");
  const int32_t wanted = config.view.num_hosts();
  if (json.size() != static_cast<size_t>(wanted))
    return InvalidArgument(
        fmt::format("hosts: {} are listed, the network has {}", json.size(), wanted));
  for (int32_t i = 0; i < wanted; ++i) {
    const std::string place = fmt::format("hosts[{}].", i);
    Result<HostConfig> host = ReadHost(json[static_cast<size_t>(i)], place);
    if (!host) return tl::unexpected(host.error());
    const size_t devices = config.view.RanksOf(i).size();
    if (!host->nics.empty() && host->nics.size() != devices)
      return InvalidArgument(fmt::format("{}nics: {} are listed, the host has {} devices", place,
                                         host->nics.size(), devices));
    for (const HostConfig& other : config.hosts)
      if (other.name == host->name)
        return InvalidArgument(fmt::format("{}name: '{}' is there twice", place, host->name));
    config.hosts.push_back(std::move(*host));
  }
  return {};
}

Status ReadRoutes(const Json& json, ClusterConfig& config) {
  if (!json.is_array()) return InvalidArgument("routes: is no list");
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string place = fmt::format("routes[{}].", i);
    if (!json[i].is_object()) return InvalidArgument(place + "is no object");
    std::vector<int64_t> ports;
    ConfigFields fields(json[i], place);
    fields.Take("ports", ports);
    if (Status read = fields.Finish(); !read) return read;
    if (ports.size() != 2 || ports[0] < 1 || ports[0] > kMaxPort || ports[1] < 1 ||
        ports[1] > kMaxPort + 1 - ports[0])
      return InvalidArgument(place + "ports: wanted [FIRST, COUNT], of 1 to 65535");
    config.routes.push_back({static_cast<uint16_t>(ports[0]), static_cast<uint16_t>(ports[1])});
  }
  int32_t most = 0;
  for (int32_t a = 0; a < config.view.num_racks(); ++a)
    for (int32_t b = 0; b < config.view.num_racks(); ++b)
      most = std::max(most, config.view.NumRoutes(a * config.view.num_racks() + b));
  if (!config.routes.empty() && config.routes.size() < static_cast<size_t>(most))
    return InvalidArgument(
        fmt::format("routes: {} are listed, the network has up to {} between racks",
                    config.routes.size(), most));
  return {};
}

Status ReadTenants(const Json& json, ClusterConfig& config) {
  if (!json.is_object()) return InvalidArgument("tenants: is no object");
  for (const auto& [name, of_tenant] : json.items()) {
    const std::string place = fmt::format("tenants.{}.", name);
    if (!of_tenant.is_object()) return InvalidArgument(place + "is no object");
    TenantConfig tenant;
    ConfigFields fields(of_tenant, place);
    fields.TakeCount("class", 0, kMaxCount, tenant.priority);
    fields.TakeCount("weight", 1, 1'000'000, tenant.weight);
    fields.TakeCount("guaranteed", 0, INT64_MAX, tenant.guaranteed);
    fields.TakeCount("deadline_ns", 0, INT64_MAX, tenant.deadline_ns);
    if (Status read = fields.Finish(); !read) return read;
    config.tenants[name] = tenant;
  }
  return {};
}

}  // namespace

int32_t ClusterConfig::RankOf(int32_t host, int32_t device) const {
  if (host < 0 || host >= view.num_hosts()) return -1;
  const auto ranks = view.RanksOf(host);
  if (device < 0 || static_cast<size_t>(device) >= ranks.size()) return -1;
  return ranks[static_cast<size_t>(device)];
}

const std::string& ClusterConfig::NicOf(int32_t rank) const {
  static const std::string kNone;
  const RankPlace& place = view.place(rank);
  const std::vector<std::string>& nics = hosts[static_cast<size_t>(place.host)].nics;
  return nics.empty() ? kNone : nics[static_cast<size_t>(place.device)];
}

Result<ClusterConfig> ParseClusterConfig(const std::string& text, const ParseLimits& limits) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return InvalidArgument("is no JSON object");
  std::string expression;
  Json hosts = Json::array(), routes = Json::array(), tenants = Json::object(),
       background = Json::object();
  PolicyChoice policy;
  ConfigFields fields(json, "");
  fields.Take("topology", expression);
  fields.Take("hosts", hosts);
  fields.Take("routes", routes);
  fields.Take("tenants", tenants);
  fields.Take("policy", policy.name);
  fields.TakeCount("channels", 0, 1024, policy.channels);
  fields.TakeCount("reserved_routes", 0, kMaxCount, policy.reserved_routes);
  fields.TakeCount("reserved_from", 1, kMaxCount, policy.reserved_from);
  fields.TakeCount("seed", 0, INT64_MAX, policy.seed);
  fields.Take("by_size", policy.by_size);
  fields.Take("background", background);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  Result<Topology> topology = ParseTopology(expression, limits);
  if (!topology) return Within("topology", topology.error());
  Result<ClusterView> view = ClusterView::Make(*topology);
  if (!view) return Within("topology", view.error());
  Result<std::vector<int64_t>> loads = ReadBackground(background, *view);
  if (!loads) return tl::unexpected(loads.error());
  policy.background = std::move(*loads);
  ClusterConfig config{.topology = std::move(*topology),
                       .view = std::move(*view),
                       .hosts = {},
                       .policy = std::move(policy)};
  for (const Status& status :
       {ReadHosts(hosts, config), ReadRoutes(routes, config), ReadTenants(tenants, config)})
    if (!status) return tl::unexpected(status.error());
  return config;
}

Result<ClusterConfig> ReadClusterConfig(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  Result<ClusterConfig> config = ParseClusterConfig(*text);
  if (!config) return Within(path, config.error());
  return config;
}

}  // namespace tutti::controller
