#include "tutti/verify/routing.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "support/build.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::LinkOf;
using testing::HasSubstr;

// On a ring of four: neighbours directly, the others half each way round.
Routing OnRingOfFour(const Topology& ring) {
  RoutingBuilder builder(4, 2);
  for (int32_t s = 0; s < 4; ++s)
    for (int32_t d = 0; d < 4; ++d) {
      const int32_t next = (s + 1) % 4, before = (s + 3) % 4;
      if (d == next || d == before) builder.AddPath(std::vector{LinkOf(ring, s, d)}, 2);
      if (d == (s + 2) % 4) {
        builder.AddPath(std::vector{LinkOf(ring, s, next), LinkOf(ring, next, d)}, 1);
        builder.AddPath(std::vector{LinkOf(ring, s, before), LinkOf(ring, before, d)}, 1);
      }
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.topology_fingerprint = ring.Fingerprint();
  return routing;
}

TEST(CheckRouting, AcceptsByHandAndCountsTheRate) {
  const Topology ring = *ParseTopology("ring(4)");
  const Routing routing = OnRingOfFour(ring);
  const RoutingReport report = CheckRouting(ring, routing);
  EXPECT_TRUE(report.verified());
  EXPECT_EQ(report.paths, 16);
  EXPECT_EQ(report.longest_path, 2);
  // A link carries its own pair whole and halves of two others.
  EXPECT_EQ(report.rate, Rational(1, 2));
  EXPECT_EQ(report.rate, RoutingRate(ring, routing));
}

// Every rank sends three blocks and receives three; what passes by does not count.
TEST(CheckRouting, HostLimitsCapTheRate) {
  for (const char* expression : {"ring(4,bw=4GB/s,host_bw=4GB/s)", "ring(4,bw=4GB/s,host_bw=3GB/s)",
                                 "ring(4,bw=4GB/s,host_bw=8GB/s)"}) {
    const Topology ring = *ParseTopology(expression);
    const RoutingReport report = CheckRouting(ring, OnRingOfFour(ring));
    EXPECT_TRUE(report.verified());
    const Rational of_host = Rational(*ring.host_bandwidth(NodeId{2}), 4'000'000'000) / Rational(3);
    EXPECT_EQ(report.rate, std::min(of_host, Rational(1, 2))) << expression;
  }
}

struct Case {
  const char* what;
  std::function<void(const Topology&, Routing&)> spoil;
  RoutingFault kind;
  const char* message;
};

// Paths 0 and 1 lead from 0 to 1 and, over 1, from 0 to 2; hops 0 and 1, 2.
TEST(CheckRouting, NamesEverySingleFault) {
  const Topology ring = *ParseTopology("ring(4)");
  const Case cases[] = {
      {"ranks", [](const Topology&, Routing& r) { r.num_ranks = 5; }, RoutingFault::kWrongTopology,
       "the routing is of 5 ranks, the network has 4"},
      {"fingerprint", [](const Topology&, Routing& r) { r.topology_fingerprint ^= 1; },
       RoutingFault::kWrongTopology, "made for another network"},
      {"demand size",
       [](const Topology&, Routing& r) {
         r.demand = {1, 2};
       },
       RoutingFault::kStructure, "has 2 entries, 4 ranks need 16"},
      {"negative demand",
       [](const Topology&, Routing& r) {
         r.demand.assign(16, 1);
         r.demand[1] = -1;
       },
       RoutingFault::kStructure, "the demand from rank 0 to rank 1 is -1"},
      {"units", [](const Topology&, Routing& r) { r.units_per_demand = 0; },
       RoutingFault::kStructure, "units per demand must be >= 1"},
      {"R1", [](const Topology&, Routing& r) { r.first_path[3] = 99; }, RoutingFault::kStructure,
       "R1: first_path must have 17 entries and ascend from 0 to 16"},
      {"R1 size", [](const Topology&, Routing& r) { r.first_path.pop_back(); },
       RoutingFault::kStructure, "R1"},
      {"R2", [](const Topology&, Routing& r) { r.first_hop[1] = -1; }, RoutingFault::kStructure,
       "R2: first_hop"},
      {"no such link", [](const Topology&, Routing& r) { r.hops[2] = LinkId{77}; },
       RoutingFault::kBrokenPath, "path 1 from rank 0 to rank 2, hop 1: there is no link 77"},
      {"negative link", [](const Topology&, Routing& r) { r.hops[0] = LinkId{-1}; },
       RoutingFault::kBrokenPath, "there is no link -1"},
      {"chain", [](const Topology& t, Routing& r) { r.hops[2] = LinkOf(t, 3, 2); },
       RoutingFault::kBrokenPath, "(3 -> 2) does not leave rank 1"},
      {"wrong end", [](const Topology& t, Routing& r) { r.hops[0] = LinkOf(t, 0, 3); },
       RoutingFault::kBrokenPath, "path 0 from rank 0 to rank 1 ends at rank 3"},
      {"node twice", [](const Topology& t, Routing& r) { r.hops[2] = LinkOf(t, 1, 0); },
       RoutingFault::kNodeTwice, "path 1 from rank 0 to rank 2, hop 1: visits rank 0 twice"},
      {"too little", [](const Topology&, Routing& r) { r.weight[0] = 1; }, RoutingFault::kSplit,
       "the weights of the 1 paths from rank 0 to rank 1 sum to 1 units, its demand is 2"},
      {"weight 0",
       [](const Topology&, Routing& r) {
         r.weight[1] = 0;
         r.weight[2] = 2;
       },
       RoutingFault::kSplit, "path 1 from rank 0 to rank 2 has the weight 0"},
      {"path without demand",
       [](const Topology&, Routing& r) {
         r.demand.assign(16, 1);
         r.demand[1] = 0;
       },
       RoutingFault::kSplit, "from rank 0 to rank 1 sum to 2 units, its demand is 0"},
      {"pair without path", [](const Topology&, Routing& r) { r.first_path[2] = 0; },
       RoutingFault::kSplit, "the weights of the 0 paths from rank 0 to rank 1 sum to 0"},
      {"units overflow", [](const Topology&, Routing& r) { r.units_per_demand = int64_t{1} << 62; },
       RoutingFault::kSplit, "from rank 0 to rank 1 sum to 2"},
      {"layers", [](const Topology&, Routing& r) { r.layer = {0}; }, RoutingFault::kStructure,
       "R4: layers of 1 paths, there are 16"},
      {"layer",
       [](const Topology&, Routing& r) {
         r.layer.assign(16, 0);
         r.num_layers = 2;
         r.layer[0] = 2;
       },
       RoutingFault::kLayer, "path 0 from rank 0 to rank 1 is in layer 2 of 2"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    Routing routing = OnRingOfFour(ring);
    one.spoil(ring, routing);
    const RoutingReport report = CheckRouting(ring, routing);
    ASSERT_FALSE(report.verified());
    EXPECT_EQ(Name(report.violations.front().kind), Name(one.kind));
    EXPECT_THAT(report.violations.front().message, HasSubstr(one.message));
    EXPECT_EQ(report.rate, Rational(0));
  }
}

TEST(CheckRouting, CountsAllFaultsKeepsTheFirstOnAnyNumberOfThreads) {
  const Topology complete = *ParseTopology("complete(40)");
  RoutingBuilder builder(40, 1);
  for (int32_t s = 0; s < 40; ++s)
    for (int32_t d = 0; d < 40; ++d) {
      if (s != d) builder.AddPath(std::vector{LinkOf(complete, s, d)}, 2);
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.topology_fingerprint = complete.Fingerprint();
  for (const int threads : {1, 4}) {
    SetNumThreads(threads);
    const RoutingReport report = CheckRouting(complete, routing, {.max_violations = 3});
    EXPECT_EQ(report.num_violations, 40 * 39);
    ASSERT_EQ(report.violations.size(), 3U);
    EXPECT_THAT(report.violations[2].message, HasSubstr("from rank 0 to rank 3"));
  }
  SetNumThreads(0);
}

TEST(CheckRouting, RefusesLoadsBeyond63Bits) {
  const Topology path = *ParseTopology("uniring(1,3)");
  const int64_t half = int64_t{1} << 62;
  RoutingBuilder builder(3, half);
  for (int32_t s = 0; s < 3; ++s)
    for (int32_t d = 0; d < 3; ++d) {
      const LinkId first = LinkOf(path, s, (s + 1) % 3);
      if (d == (s + 1) % 3) builder.AddPath(std::vector{first}, half);
      if (d == (s + 2) % 3) builder.AddPath(std::vector{first, LinkOf(path, (s + 1) % 3, d)}, half);
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.topology_fingerprint = path.Fingerprint();
  const RoutingReport report = CheckRouting(path, routing);
  ASSERT_EQ(report.num_violations, 1);
  EXPECT_EQ(report.violations.front().kind, RoutingFault::kOverflow);
}

TEST(CheckRouting, ProvesNothingOnceInterrupted) {
  const Topology ring = *ParseTopology("ring(4)");
  RequestCancel();
  const RoutingReport report = CheckRouting(ring, OnRingOfFour(ring));
  ResetCancel();
  EXPECT_TRUE(report.cancelled);
  EXPECT_FALSE(report.verified());
}

}  // namespace
}  // namespace tutti
