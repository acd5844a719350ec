#include "tutti/service/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "config_fields.h"
#include "core.h"
#include "tutti/base/file.h"

namespace tutti::service {
namespace {

using Json = nlohmann::json;

Result<TenantOptions> ReadTenant(const Json& json, const std::string& place) {
  if (!json.is_object()) return InvalidArgument(place + "is no object");
  TenantOptions tenant;
  ConfigFields fields(json, place);
  constexpr int64_t kMaxWeight = 64, kMaxCount = 1 << 20;
  fields.Take("name", tenant.name);
  fields.Take("token", tenant.token);
  fields.Take("users", tenant.users);
  fields.Take("devices", tenant.devices);
  fields.TakeCount("weight", 1, kMaxWeight, tenant.weight);
  fields.TakeCount("memory_bytes", 1, INT64_MAX, tenant.memory_bytes);
  fields.TakeCount("processes", 1, kMaxCount, tenant.processes);
  fields.TakeCount("ranks", 1, kMaxCount, tenant.ranks);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (tenant.name.empty()) return InvalidArgument(place + "name: is missing");
  if (tenant.token.empty() && tenant.users.empty())
    return InvalidArgument(place + "needs a token, users, or both");
  for (const int32_t device : tenant.devices)
    if (device < 0 || device >= kMaxCount)
      return InvalidArgument(
          fmt::format("{}devices: got {}, wanted 0 to {}", place, device, kMaxCount - 1));
  return tenant;
}

// `standard`: where it is where nothing else is said.
Result<PortOptions> ReadPort(const Json& json, const std::string& name, const char* standard) {
  if (!json.is_object()) return InvalidArgument(name + ": is no object");
  PortOptions port{.listen = standard};
  ConfigFields fields(json, name + ".");
  fields.Take("listen", port.listen);
  fields.Take("token", port.token);
  fields.Take("users", port.users);
  fields.Take("remote", port.remote);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  return port;
}

Result<TlsOptions> ReadTls(const Json& json) {
  if (!json.is_object()) return InvalidArgument("tls: is no object");
  TlsOptions tls;
  ConfigFields fields(json, "tls.");
  fields.Take("certificate", tls.certificate);
  fields.Take("key", tls.key);
  fields.Take("authority", tls.authority);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (tls.certificate.empty() || tls.key.empty() || tls.authority.empty())
    return InvalidArgument("tls: wanted certificate, key and authority, all three");
  return tls;
}

Result<DaemonOptions> Read(const Json& json) {
  if (!json.is_object()) return InvalidArgument("is no JSON object");
  DaemonOptions options;
  ConfigFields fields(json, "");
  constexpr int64_t kMaxPort = 65535;
  Json tenants = Json::array();
  fields.Take("socket", options.socket);
  fields.Take("admin", options.admin);
  fields.Take("listen", options.listen);
  fields.TakeCount("port", 0, kMaxPort, options.port);
  fields.Take("host", options.host);
  fields.Take("nics", options.nics);
  fields.TakeCount("runtimes", 1, kMostRuntimes, options.runtimes);
  fields.Take("anybody", options.anybody);
  fields.Take("tenants", tenants);
  for (const auto& [key, standard, port] :
       {std::tuple("metrics", "127.0.0.1:9464", &options.metrics),
        std::tuple("ras", "127.0.0.1:28028", &options.ras)}) {
    fields.Leave(key);
    if (!json.contains(key)) continue;
    Result<PortOptions> read = ReadPort(json[key], key, standard);
    if (!read) return tl::unexpected(read.error());
    *port = std::move(*read);
  }
  fields.Leave("tls");
  if (json.contains("tls")) {
    Result<TlsOptions> tls = ReadTls(json["tls"]);
    if (!tls) return tl::unexpected(tls.error());
    options.tls = std::move(*tls);
  }
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (!tenants.is_array()) return InvalidArgument("tenants: is no list");
  std::set<std::string> names;
  for (size_t i = 0; i < tenants.size(); ++i) {
    Result<TenantOptions> tenant = ReadTenant(tenants[i], fmt::format("tenants[{}].", i));
    if (!tenant) return tl::unexpected(tenant.error());
    if (!names.insert(tenant->name).second)
      return InvalidArgument(fmt::format("tenants[{}].name: '{}' is there twice", i, tenant->name));
    options.tenants.push_back(std::move(*tenant));
  }
  return options;
}

}  // namespace

int32_t DefaultRuntimes(int32_t cores) {
  constexpr int32_t kCoresEach = 4, kMost = 4;
  return std::clamp(cores / kCoresEach, 1, kMost);
}

std::string DefaultFolder() {
  const char* of_user = std::getenv("XDG_RUNTIME_DIR");
  return of_user != nullptr && *of_user != '\0' ? std::string(of_user) + "/tutti" : "/run/tutti";
}

Result<DaemonOptions> ReadDaemonOptions(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return InvalidArgument(path + ": is no JSON");
  Result<DaemonOptions> options = Read(json);
  if (!options) return Within(path, options.error());
  return options;
}

Daemon::Daemon(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Daemon::Daemon(Daemon&&) noexcept = default;
Daemon& Daemon::operator=(Daemon&&) noexcept = default;
Daemon::~Daemon() = default;

Result<Daemon> Daemon::Start(const DaemonOptions& options) {
  DaemonOptions filled = options;
  if (filled.socket.empty()) filled.socket = DefaultFolder() + "/tuttid.sock";
  if (filled.admin.empty()) filled.admin = DefaultFolder() + "/admin.sock";
  if (filled.runtimes == 0)
    filled.runtimes = DefaultRuntimes(static_cast<int32_t>(std::thread::hardware_concurrency()));
  Result<std::unique_ptr<Core>> core = Core::Start(filled);
  if (!core) return tl::unexpected(core.error());
  return Daemon(std::move(*core));
}

const DaemonOptions& Daemon::options() const { return core_->options(); }
const std::string& Daemon::host() const { return core_->host(); }
std::string Daemon::address() const { return core_->address(); }
std::vector<std::string> Daemon::Reload(const DaemonOptions& options) {
  return core_->Reload(options);
}
void Daemon::Run() { core_->Run(); }
void Daemon::Stop() const { core_->Stop(); }

}  // namespace tutti::service
