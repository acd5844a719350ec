// Where the ranks of a cluster stand, and the routes between its racks: what policies decide from.
//
// Model       A host is what its ranks' names begin with, up to the first '.'; a rank without a '.'
//             in its name is its own. Switches named after a host are inside it, the others are the
//             fabric. The rack of a rank is the fabric switch that it reaches over the fewest links
//             (ties: the lowest number); racks that a switch joins which is next to a rack, but is
//             not the top of three levels, are one pod. Between two racks all shortest paths through
//             the fabric are its routes, in the order of their links; flows inside a rack have one
//             route, through the rack's switch alone.
// Complexity  Make(): O(links + hops of all routes). Memory: those hops.
// Errors      kInvalidArgument: a rank that reaches no fabric switch, two racks without a route,
//             more than 2^25 hops in all.
// Threads     Immutable.
// Reference   [mccs] 4.3 "Topology-aware collaborative scheduling".
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Numbers from 0; rack and host count over the whole cluster, the device within its host.
struct RankPlace {
  int32_t pod = 0, rack = 0, host = 0, device = 0;
  friend auto operator<=>(const RankPlace&, const RankPlace&) = default;
};

class ClusterView {
 public:
  static Result<ClusterView> Make(const Topology& topology);

  int32_t num_ranks() const { return static_cast<int32_t>(places_.size()); }
  int32_t num_racks() const { return num_racks_; }
  int32_t num_hosts() const { return static_cast<int32_t>(first_rank_.size()) - 1; }
  int32_t num_links() const { return static_cast<int32_t>(bandwidth_.size()); }
  const RankPlace& place(int32_t rank) const { return places_[static_cast<size_t>(rank)]; }
  int64_t bandwidth(LinkId link) const { return bandwidth_[link.index()]; }
  std::span<const int64_t> bandwidths() const { return bandwidth_; }
  // "leaf0 -> spine1"
  const std::string& link_name(LinkId link) const { return link_name_[link.index()]; }
  // The ranks of a host in the order of their devices.
  std::span<const int32_t> RanksOf(int32_t host) const;

  // A set of routes, by the racks of both ends; 1 route without hops where they are one rack.
  int32_t RouteSet(int32_t from_rank, int32_t to_rank) const {
    return place(from_rank).rack * num_racks_ + place(to_rank).rack;
  }
  int32_t NumRoutes(int32_t route_set) const {
    const auto set = static_cast<size_t>(route_set);
    return first_route_[set + 1] - first_route_[set];
  }
  // The links of the fabric that it passes.
  std::span<const LinkId> Route(int32_t route_set, int32_t route) const;
  // The links of a rank's port, from it to the switch of its rack and back.
  std::span<const LinkId> Up(int32_t rank) const;
  std::span<const LinkId> Down(int32_t rank) const;
  // Bytes/s that a rank's port carries up and down: its slowest link.
  int64_t PortBandwidth(int32_t rank) const { return port_bandwidth_[static_cast<size_t>(rank)]; }
  // All links from one port to another.
  std::vector<LinkId> Path(int32_t from_rank, int32_t to_rank, int32_t route) const;

 private:
  friend class ClusterViewMaker;
  int32_t num_racks_ = 0;
  std::vector<RankPlace> places_;
  std::vector<int64_t> bandwidth_, port_bandwidth_;
  std::vector<std::string> link_name_;
  std::vector<int32_t> first_rank_, ranks_of_host_;
  std::vector<int32_t> first_route_;  // by route set
  std::vector<int32_t> first_hop_;    // by route
  std::vector<LinkId> hops_;
  std::vector<int32_t> first_up_, first_down_;  // by rank
  std::vector<LinkId> up_, down_;
};

}  // namespace tutti
