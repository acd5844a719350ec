// RAS: the text protocol by which NCCL's users ask what a job does, spoken by the daemon, so that their clients and
// dashboards work unchanged.
//
// Model       Lines of a client, "\n" or "\r\n", words in any case:
//               CLIENT PROTOCOL n    -> SERVER PROTOCOL 2
//               TIMEOUT seconds      -> OK (answers are there at once: nothing is waited for)
//               SET FORMAT text|json -> OK
//               STATUS, VERBOSE STATUS -> the report, and the end of the connection
//               MONITOR [lifecycle|trace|all, ...] -> OK, then events as they happen
//             anything else          -> ERROR: ...
// Trust       Any bytes.
// Reference   NCCL user guide, "RAS" (port 28028)
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics.h"
#include "text_server.h"

namespace tutti::service {

struct RasRank {
  int32_t rank = 0;
  std::string host = {};
  int32_t process = -1;  // -1: of another host
  int32_t device = -1;
  bool is_active = false;   // its communicator runs
  int32_t async_error = 0;  // with NCCL's numbers
  bool has_left = false;
  int64_t issued = 0, completed = 0;
  std::array<int64_t, kNumKinds> counts{};  // of ranks of this host
  std::string waits_for = {};               // the call, where it waits for others
  // For one that is missing: it has not come, or called fewer operations than others.
  std::string why_missing = {};
};

struct RasCommunicator {
  std::string label = {}, tenant = {}, state = {}, error = {};
  uint64_t hash = 0;
  int32_t size = 0;
  std::vector<RasRank> ranks = {};
  std::vector<RasRank> missing = {};
};

struct RasReport {
  std::string version = {};  // of Tutti
  std::string host = {};
  int64_t real_ns = 0;  // CLOCK_REALTIME
  std::vector<RasCommunicator> communicators = {};
  double collection_s = 0;
};

std::string RasText(const RasReport& report, bool verbose);
std::string RasJson(const RasReport& report);

enum class RasGroup : uint8_t { kLifecycle = 1, kTrace = 2 };
struct RasEvent {
  RasGroup group = RasGroup::kLifecycle;
  std::string event = {};  // "PEER_DEAD"
  std::string tenant = {};
  std::string host = {};
  int32_t process = -1;  // -1: it is of no process
  std::string details = {};
  int64_t real_ns = 0;
};
std::string RasEventText(const RasEvent& event, bool json);

class RasProtocol final : public TextProtocol {
 public:
  explicit RasProtocol(std::function<RasReport()> report,
                       std::function<bool(const std::string&)> sees)
      : report_(std::move(report)), sees_(std::move(sees)) {}

  bool Hear(std::string& in, std::string& out) override;
  bool is_patient() const override { return groups_ != 0; }
  // What this client is to read of it.
  void Tell(const RasEvent& event, std::string& out) const;

 private:
  // False: the last.
  bool Take(std::string_view line, std::string& out);

  std::function<RasReport()> report_;
  std::function<bool(const std::string& tenant)> sees_;
  bool json_ = false;
  uint8_t groups_ = 0;  // that it monitors
};

}  // namespace tutti::service
