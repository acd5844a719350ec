// What simulations preload: messages inside a node cost less than those between nodes. SMPI itself
// charges a send (smpi/os, smpi/ois) and a receive (smpi/or) by the size alone.
//
// Model       Between two hosts the settings of the platform, SECONDS and SECONDS A BYTE. Inside a
//             host a send and a receive each take the host's properties tutti_local_seconds (the
//             native algorithm work) and tutti_local_byte_seconds (the copy into memory that the
//             node shares, and the copy out of it) for each byte; the way between is the host's
//             loopback link. A host without these properties: as between hosts.
//             docs/adr/0027-local-and-remote-messages.md
// Threads     One, as smpirun's ranks.
// Errors      Exit code 2 and a line on stderr: a setting or property that is no number, or a
//             setting that differs by size.
#include <smpi/smpi.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <xbt/config.hpp>

namespace {

using simgrid::s4u::Host;

struct Cost {
  double seconds = 0, a_byte = 0;
  double Of(size_t bytes) const { return seconds + a_byte * static_cast<double>(bytes); }
};

[[noreturn]] void Refuse(const std::string& name, const std::string& value, const char* wanted) {
  std::fprintf(stderr, "tutti: error: the platform's %s is '%s', wanted %s\n", name.c_str(),
               value.c_str(), wanted);
  std::exit(2);
}

Cost Setting(const char* name) {
  const auto value = simgrid::config::get_value<std::string>(name);
  Cost cost;
  int used = 0;
  const int read = std::sscanf(value.c_str(), "0:%lf:%lf%n", &cost.seconds, &cost.a_byte, &used);
  if (read != 2 || static_cast<size_t>(used) != value.size())
    Refuse(name, value, "0:SECONDS:SECONDS_A_BYTE for all sizes");
  return cost;
}

// All hosts that have local costs of their own.
class LocalCosts {
 public:
  LocalCosts() {
    for (const Host* host : simgrid::s4u::Engine::get_instance()->get_all_hosts()) {
      const char* seconds = host->get_property("tutti_local_seconds");
      const char* a_byte = host->get_property("tutti_local_byte_seconds");
      if (seconds == nullptr && a_byte == nullptr) continue;
      costs_[host] = {Number("tutti_local_seconds", seconds),
                      Number("tutti_local_byte_seconds", a_byte)};
    }
  }
  // Null: messages inside this host cost what those between hosts do.
  const Cost* Of(const Host* host) const {
    const auto found = costs_.find(host);
    return found == costs_.end() ? nullptr : &found->second;
  }

 private:
  static double Number(const char* name, const char* text) {
    if (text == nullptr) Refuse(name, "", "seconds");
    char* end = nullptr;
    const double number = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= 0)) Refuse(name, text, "seconds");
    return number;
  }

  std::unordered_map<const Host*, Cost> costs_;
};

void Charge() {
  const LocalCosts local;
  for (const auto& [operation, setting] :
       std::array<std::pair<SmpiOperation, const char*>, 3>{{{SmpiOperation::SEND, "smpi/os"},
                                                             {SmpiOperation::ISEND, "smpi/ois"},
                                                             {SmpiOperation::RECV, "smpi/or"}}}) {
    smpi_register_op_cost_callback(operation, [local, remote = Setting(setting)](
                                                  size_t bytes, const Host* from, const Host* to) {
      const Cost* inside = from == to ? local.Of(from) : nullptr;
      return (inside != nullptr ? *inside : remote).Of(bytes);
    });
  }
}

// When the loader has read this library; SimGrid, which it needs, is there before it.
const bool registered = [] {
  simgrid::s4u::Engine::on_platform_created_cb(Charge);
  return true;
}();

}  // namespace
