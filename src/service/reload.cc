// Daemon::Core::Reload: another configuration, while everything runs.
#include <algorithm>
#include <string>
#include <vector>

#include "core.h"

namespace tutti::service {
namespace {

void NoteUnlike(bool is_same, const char* field, std::vector<std::string>& unlike) {
  if (!is_same) unlike.emplace_back(field);
}

bool IsSamePlace(const PortOptions& a, const PortOptions& b) { return a.listen == b.listen; }

}  // namespace

std::vector<std::string> Daemon::Core::Reload(const DaemonOptions& options) {
  std::vector<std::string> unlike;
  // Left out, it is as it was.
  const auto is_same = [](const auto& wanted, const auto& is) {
    return wanted == std::decay_t<decltype(wanted)>{} || wanted == is;
  };
  NoteUnlike(is_same(options.socket, options_.socket), "socket", unlike);
  NoteUnlike(is_same(options.admin, options_.admin), "admin", unlike);
  NoteUnlike(is_same(options.listen, options_.listen), "listen", unlike);
  NoteUnlike(is_same(options.port, options_.port), "port", unlike);
  NoteUnlike(is_same(options.host, options_.host), "host", unlike);
  NoteUnlike(options.nics == options_.nics, "nics", unlike);
  NoteUnlike(IsSamePlace(options.metrics, options_.metrics), "metrics.listen", unlike);
  NoteUnlike(IsSamePlace(options.ras, options_.ras), "ras.listen", unlike);
  options_.anybody = options.anybody;
  for (const auto& [from, into] :
       {std::pair(&options.metrics, &options_.metrics), std::pair(&options.ras, &options_.ras)}) {
    into->token = from->token;
    into->users = from->users;
    into->remote = from->remote;
  }
  options_.tenants = options.tenants;
  for (const TenantOptions& wanted : options.tenants) {
    const auto found = std::find_if(tenants_.begin(), tenants_.end(), [&](const auto& tenant) {
      return !tenant->is_anybody && tenant->options.name == wanted.name;
    });
    if (found == tenants_.end())
      AddTenant(wanted);
    else
      (*found)->options = wanted;
  }
  for (const auto& tenant : tenants_) {
    const bool stays = tenant->is_anybody
                           ? options_.anybody
                           : std::any_of(options.tenants.begin(), options.tenants.end(),
                                         [&](const TenantOptions& wanted) {
                                           return wanted.name == tenant->options.name;
                                         });
    if (stays) continue;
    // Nobody comes as this tenant any more; what it has counts until it is given back.
    if (!tenant->is_anybody) tenant->options.users.clear();
    tenant->options.token.clear();
    for (const auto& session : sessions_)
      if (session->tenant() == tenant.get())
        session->Close("its tenant is no longer in the configuration");
  }
  next_tick_ns_ = 0;  // who was closed is removed
  turns_are_old_ = true;
  return unlike;
}

}  // namespace tutti::service
