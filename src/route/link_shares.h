// Parallel links: which of a bundle's links a path takes.
//
// Model       Each link of a bundle has a share of the bundle's load in proportion to its
//             bandwidth. Paths fill one link after the other; a path that does not fit into what is
//             left of a link is split there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

class LinkShares {
 public:
  // `load`: what all paths put on each bundle. kResourceExhausted: does not fit in 63 bits.
  static Result<LinkShares> Make(const Topology& topology, std::span<const LinkBundle> bundles,
                                 const std::vector<WideInteger>& load);

  // By which weights have to be multiplied so that shares are whole.
  int64_t factor() const { return factor_; }
  // One path of the pair at hand, over bundles, in units before the factor.
  void AddPath(std::span<const int32_t> bundles, int64_t weight, RoutingBuilder& builder);

 private:
  LinkShares() = default;

  int64_t factor_ = 1;
  std::vector<LinkId> links_;     // of a bundle: [first_[b], first_[b + 1])
  std::vector<int64_t> left_;     // of the share of each of links_
  std::vector<int32_t> first_;    //
  std::vector<int32_t> filling_;  // of a bundle: the link at hand
  std::vector<LinkId> hops_;
};

}  // namespace tutti
