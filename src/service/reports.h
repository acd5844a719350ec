// Reports: what operators ask of the daemon, as JSON (docs/formats/service.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "admin.h"
#include "core.h"

namespace tutti::service {

class Reports {
 public:
  explicit Reports(Daemon::Core& core) : core_(core) {}
  // {"error": ...} where the request cannot be met.
  void Answer(const std::string& request, AdminReply reply);

 private:
  using Json = nlohmann::json;

  Json Status() const;
  Json Tenants() const;
  Json Communicators() const;
  Json Pending() const;
  Json Trace(const Json& request) const;
  void TraceChunks(const Json& request, const AdminReply& reply);
  Json TraceOf(const ServiceCommunicator& communicator, bool with_chunks) const;
  Json SetQuota(const Json& request);
  void Reconfigure(const Json& request, const AdminReply& reply);
  Json SetGates(const Json& request);
  Json Follow(const Json& request);
  Json Announce(const Json& request);

  Daemon::Core& core_;
};

}  // namespace tutti::service
