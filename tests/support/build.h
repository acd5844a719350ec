// Networks and collectives that tests build by hand, without the parser of expressions: a fault there
// cannot hide one elsewhere.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti::test_support {

// What is wrong ends the test's program: there is no network to go on with.
inline Topology MustBuild(Topology::Builder builder) {
  Result<Topology> built = std::move(builder).Build();
  if (!built) {
    ADD_FAILURE() << built.error().message;
    std::abort();
  }
  return *std::move(built);
}

inline Collective MustMake(CollectiveKind kind, int32_t num_ranks,
                           Collective::Options options = {}) {
  Result<Collective> made = Collective::Make(kind, num_ranks, std::move(options));
  if (!made) {
    ADD_FAILURE() << made.error().message;
    std::abort();
  }
  return *std::move(made);
}

// The first link between two nodes; the test fails where there is none.
inline LinkId LinkOf(const Topology& topology, int32_t tail, int32_t head) {
  for (const LinkId link : topology.OutLinks(NodeId{tail}))
    if (topology.head(link) == NodeId{head}) return link;
  ADD_FAILURE() << "no link " << tail << " -> " << head;
  return LinkId{0};
}

}  // namespace tutti::test_support
