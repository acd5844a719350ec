#include "tutti/service/daemon.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core.h"
#include "tutti/base/file.h"

namespace tutti::service {
namespace {

using Json = nlohmann::json;

// Takes fields out of an object and says which were wrong, or are left over.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  template <class Value>
  void Take(const char* key, Value& into) {
    known_.insert(key);
    if (!object_.contains(key) || !fault_.empty()) return;
    try {
      into = object_.at(key).get<Value>();
    } catch (const Json::exception&) {
      Blame(key, object_.at(key).dump());
    }
  }
  void TakeCount(const char* key, int64_t least, int64_t most, int64_t& into) {
    known_.insert(key);
    if (!object_.contains(key) || !fault_.empty()) return;
    const Json& value = object_.at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most)
      fault_ = fmt::format("{}{}: got {}, wanted {} to {}", place_, key, value.dump(), least, most);
    else
      into = value.get<int64_t>();
  }
  Status Finish() {
    if (fault_.empty())
      for (const auto& [key, value] : object_.items())
        if (known_.count(key) == 0) fault_ = fmt::format("{}{}: is no field", place_, key);
    if (!fault_.empty()) return InvalidArgument(fault_);
    return {};
  }

 private:
  void Blame(const char* key, const std::string& got) {
    fault_ = fmt::format("{}{}: got {}", place_, key, got);
  }

  const Json& object_;
  std::string place_, fault_;
  std::set<std::string> known_;
};

Result<TenantOptions> ReadTenant(const Json& json, const std::string& place) {
  if (!json.is_object()) return InvalidArgument(place + "is no object");
  TenantOptions tenant;
  Fields fields(json, place);
  constexpr int64_t kMostWeight = 64, kMostCount = 1 << 20;
  int64_t weight = tenant.weight, processes = tenant.processes, ranks = tenant.ranks;
  fields.Take("name", tenant.name);
  fields.Take("token", tenant.token);
  fields.Take("users", tenant.users);
  fields.TakeCount("weight", 1, kMostWeight, weight);
  fields.TakeCount("memory_bytes", 1, INT64_MAX, tenant.memory_bytes);
  fields.TakeCount("processes", 1, kMostCount, processes);
  fields.TakeCount("ranks", 1, kMostCount, ranks);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (tenant.name.empty()) return InvalidArgument(place + "name: is missing");
  if (tenant.token.empty() && tenant.users.empty())
    return InvalidArgument(place + "needs a token, users, or both");
  tenant.weight = static_cast<int32_t>(weight);
  tenant.processes = static_cast<int32_t>(processes);
  tenant.ranks = static_cast<int32_t>(ranks);
  return tenant;
}

Result<DaemonOptions> Read(const Json& json) {
  if (!json.is_object()) return InvalidArgument("is no JSON object");
  DaemonOptions options;
  Fields fields(json, "");
  constexpr int64_t kMostPort = 65535;
  int64_t port = 0;
  Json tenants = Json::array();
  fields.Take("socket", options.socket);
  fields.Take("admin", options.admin);
  fields.Take("listen", options.listen);
  fields.TakeCount("port", 0, kMostPort, port);
  fields.Take("host", options.host);
  fields.Take("anybody", options.anybody);
  fields.Take("tenants", tenants);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  options.port = static_cast<uint16_t>(port);
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
  Result<std::unique_ptr<Core>> core = Core::Start(filled);
  if (!core) return tl::unexpected(core.error());
  return Daemon(std::move(*core));
}

const DaemonOptions& Daemon::options() const { return core_->options(); }
std::string Daemon::address() const { return core_->address(); }
void Daemon::Run() { core_->Run(); }
void Daemon::Stop() const { core_->Stop(); }

}  // namespace tutti::service
