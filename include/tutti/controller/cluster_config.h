// ClusterConfig: what a controller is told of its cluster: the network, how hosts are reached, how switches choose
// routes, and what tenants may expect.
//
// Model       Hosts are listed in the order of the network's (tutti/control/cluster_view.h: hosts number from 0 as
//             their first ranks do); a host's NICs in the order of its devices. Route k between two racks is
//             taken by connections whose source port is in the k-th range.
// Format      JSON, docs/formats/controller.md.
// Errors      kInvalidArgument names the field; those of the topology.
// Reference   [mccs] 4.3, 5
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/control/cluster_view.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/topology.h"

namespace tutti::controller {

struct HostConfig {
  std::string name;
  std::string admin = {};  // socket of its daemon for operators; empty: it attaches itself
  std::vector<std::string> nics = {};  // IPv4 address of each device's NIC
};

struct PortRange {
  uint16_t first = 0, count = 0;
};

struct TenantConfig {
  int32_t priority = 0;  // [class], more is better
  int32_t weight = 1;    // 1 to 10^6: its share of a link beside others' weights
  // Bytes/s on every link that it uses, which `admission` keeps; 0: nothing.
  int64_t guaranteed = 0;
  int64_t deadline_ns =
      0;  // when its work should be done, which `deadline` goes by; 0: no deadline
};

// Which policy decides, and what it is told.
struct PolicyChoice {
  std::string name = "ffa";
  int32_t channels = 0;  // rings a communicator; 0: tutti/control/policy.h
  int32_t reserved_routes = 0, reserved_from = 1;
  uint64_t seed = 0;
  // Beside the rings schedules of few steps, for the sizes at which they take less.
  bool by_size = false;
  std::vector<int64_t> background = {};  // bytes/s of others by link; empty: none
};

struct ClusterConfig {
  Topology topology;
  ClusterView view;
  std::vector<HostConfig> hosts;
  std::vector<PortRange> routes = {};
  std::map<std::string, TenantConfig> tenants = {};  // others: class 0
  PolicyChoice policy = {};

  // The rank of the network that a device of a host is; -1: there is none.
  int32_t RankOf(int32_t host, int32_t device) const;
  const std::string& NicOf(int32_t rank) const;
};

Result<ClusterConfig> ParseClusterConfig(const std::string& text, const ParseLimits& limits = {});
// Read from a file; errors name it.
Result<ClusterConfig> ReadClusterConfig(const std::string& path);

}  // namespace tutti::controller
