#include "tutti/control/isolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "cluster_inputs.h"
#include "tutti/sim/fair_sharing.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Set-up 3 of the testbed: A has two devices a host and as many rings, B and C one.
PolicyInput SetUp3(const ClusterView& view) {
  PolicyInput input{.view = &view, .jobs = {}, .nics = NicChoice::kOwn, .background = {}};
  const std::vector<std::vector<int32_t>> ranks = {{0, 1, 4, 5}, {2, 6}, {3, 7}};
  for (int32_t j = 0; j < 3; ++j)
    input.jobs.push_back({.id = j, .ranks = ranks[static_cast<size_t>(j)], .running = {}});
  return input;
}

// All three are on every link between leaves and spines (A and B have flows by both routes, C too),
// so with weights 2, 1, 1 they have 1/2, 1/4, 1/4 of 100 Mbit/s.
TEST(Isolation, OfTheTestbedByHand) {
  const ClusterView view = Testbed();
  PolicyInput input = SetUp3(view);
  input.jobs[0].weight = 2;
  input.jobs[1].tenant = 5;
  input.jobs[1].guaranteed = 3'125'000;
  const PolicyOutput output = MustDecide("weighted", input);
  const IsolationCertificate certificate = CertifyIsolation(input, output);
  EXPECT_THAT(certificate.faults, IsEmpty());
  EXPECT_EQ(ToText(certificate, view),
            "job 0: at least 6250000 bytes/s, on link 28 (leaf0 -> spine0): 12500000 x 2 / 4\n"
            "job 2: at least 3125000 bytes/s, on link 28 (leaf0 -> spine0): 12500000 x 1 / 4\n"
            "tenant 5: at least 3125000 bytes/s, on link 28 (leaf0 -> spine0): 12500000 x 1 / 4; "
            "guaranteed 3125000\n"
            "no link carries a class that its reservation excludes\n");
}

TEST(Isolation, SaysWhoUsesNoLink) {
  const ClusterView view = Testbed();
  PolicyInput input{.view = &view, .jobs = {}, .background = {}};
  input.jobs.push_back({.id = 4, .ranks = {0, 1}, .running = {}});
  const PolicyOutput output = MustDecide("ffa", input);
  EXPECT_EQ(ToText(CertifyIsolation(input, output), view),
            "job 4: uses no link between hosts\n"
            "no link carries a class that its reservation excludes\n");
}

TEST(Isolation, CountsEveryRouteThatEcmpMayTake) {
  const ClusterView view = TwoRacks(2, 2);
  PolicyInput input = PairsOf(view, 2);
  const IsolationCertificate pinned = CertifyIsolation(input, MustDecide("ffa", input));
  const IsolationCertificate hashed = CertifyIsolation(input, MustDecide("locality-ring", input));
  for (const TenantShare& one : pinned.tenants) EXPECT_EQ(one.share, Rational(12'500'000));
  for (const TenantShare& one : hashed.tenants) EXPECT_EQ(one.share, Rational(6'250'000));
  input.reserved_routes = 1;
  EXPECT_THAT(
      CertifyIsolation(input, MustDecide("locality-ring", input)).faults.front(),
      HasSubstr("(leaf0 -> spine0) is for classes from 1 on, job 0 of class 0 may pass it"));
}

struct SeededFault {
  const char* name;
  std::function<void(PolicyInput&, PolicyOutput&)> seed;
  const char* message;
};

// One fault away from strategies that hold: each is found, by what it breaks.
TEST(Isolation, FindsEverySeededFault) {
  const std::vector<SeededFault> faults = {
      {"a flow of a low class on a reserved route",
       [](PolicyInput&, PolicyOutput& out) { out.jobs[1].routes[0] = 0; },
       "(leaf0 -> spine0) is for classes from 1 on, job 1 of class 0 may pass it"},
      {"the same by ECMP", [](PolicyInput&, PolicyOutput& out) { out.jobs[1].routes[0] = kByEcmp; },
       "is for classes from 1 on, job 1 of class 0 may pass it"},
      {"a class that fell", [](PolicyInput& in, PolicyOutput&) { in.jobs[0].priority = 0; },
       "is for classes from 1 on, job 0 of class 0 may pass it"},
      {"a reservation that rose", [](PolicyInput& in, PolicyOutput&) { in.reserved_from = 2; },
       "is for classes from 2 on, job 0 of class 1 may pass it"},
      {"a guarantee above the share",
       [](PolicyInput& in, PolicyOutput&) { in.jobs[2].guaranteed = 12'500'000; },
       "job 2 has 6250000 bytes/s on link 29 (leaf0 -> spine1), guaranteed 12500000"},
      {"a weight that grew", [](PolicyInput& in, PolicyOutput&) { in.jobs[1].weight = 9; },
       "job 2 has 1250000 bytes/s on link 29 (leaf0 -> spine1), guaranteed 4000000"},
      {"a route that does not exist",
       [](PolicyInput&, PolicyOutput& out) { out.jobs[1].routes[1] = 2; },
       "flow 1 of job 1 takes route 2 of 2"},
      {"a route below all", [](PolicyInput&, PolicyOutput& out) { out.jobs[1].routes[1] = -2; },
       "flow 1 of job 1 takes route -2 of 2"},
      {"a route too few", [](PolicyInput&, PolicyOutput& out) { out.jobs[2].routes.pop_back(); },
       "job 2 has 4 flows and 3 routes"},
      {"a flow too few",
       [](PolicyInput&, PolicyOutput& out) {
         out.jobs[2].routes.pop_back();
         out.jobs[2].flows.pop_back();
       },
       "job 2 has no flow for the edge from rank 7 to 3 of ring 1"},
      {"a flow twice",
       [](PolicyInput&, PolicyOutput& out) {
         out.jobs[2].routes.push_back(1);
         out.jobs[2].flows.push_back(out.jobs[2].flows[0]);
       },
       "job 2 has a flow from rank 3 to 7 in ring 0, which has no such edge"},
      {"a port of another host",
       [](PolicyInput&, PolicyOutput& out) { out.jobs[1].flows[0].from_port = 0; },
       "flow 0 of job 1 goes from port 0 to port 6, which are not on the hosts of ranks 2 and 6"},
      {"a port that is none",
       [](PolicyInput&, PolicyOutput& out) { out.jobs[1].flows[0].to_port = 99; },
       "flow 0 of job 1 goes from port 2 to port 99"},
      {"a rank of another job",
       [](PolicyInput&, PolicyOutput& out) { out.jobs[1].rings[0][0] = 3; },
       "ring 0 of job 1 is not of its ranks"},
      {"a strategy too few", [](PolicyInput&, PolicyOutput& out) { out.jobs.pop_back(); },
       "2 strategies of 3 jobs"}};
  const ClusterView view = Testbed();
  PolicyInput input = SetUp3(view);
  input.jobs[0].priority = 1;
  input.reserved_routes = 1;
  input.channels = 2;
  input.jobs[2].guaranteed = 4'000'000;
  const PolicyOutput output = MustDecide("pfa", input);
  EXPECT_THAT(CertifyIsolation(input, output).faults, IsEmpty());
  for (const SeededFault& fault : faults) {
    SCOPED_TRACE(fault.name);
    PolicyInput bad_input = input;
    PolicyOutput bad_output = output;
    fault.seed(bad_input, bad_output);
    const IsolationCertificate certificate = CertifyIsolation(bad_input, bad_output);
    EXPECT_FALSE(certificate.holds());
    std::string all;
    for (const std::string& one : certificate.faults) all += one + "\n";
    EXPECT_THAT(all, HasSubstr(fault.message));
  }
}

// In a fat tree a link may belong to a reserved and to an open route: the route is named.
TEST(Isolation, NamesTheRouteWhereItsLinksAreShared) {
  const ClusterView view = ViewOf("fat_tree(4)");
  PolicyInput input{.view = &view, .jobs = {}, .background = {}, .reserved_routes = 1};
  input.jobs.push_back({.id = 0, .ranks = {0, 2}, .running = {}});  // one pod
  PolicyOutput output = MustDecide("pfa", input);
  EXPECT_TRUE(CertifyIsolation(input, output).holds());
  output.jobs[0].routes[0] = 0;
  const IsolationCertificate certificate = CertifyIsolation(input, output);
  EXPECT_THAT(
      certificate.faults,
      ElementsAre("route 0 is for classes from 1 on, flow 0 of job 0 of class 0 may take it"));
}

// The shares again, from the words of the header: for every link, over all jobs.
std::map<TenantKey, Rational> ByTheWords(const PolicyInput& input, const PolicyOutput& output) {
  std::map<TenantKey, Rational> least;
  for (int32_t number = 0; number < input.view->num_links(); ++number) {
    const LinkId link{number};
    int64_t all = 0;
    std::map<TenantKey, int64_t> own;
    for (size_t j = 0; j < input.jobs.size(); ++j) {
      bool uses = false;
      for (size_t i = 0; i < output.jobs[j].flows.size(); ++i) {
        const RingFlow& flow = output.jobs[j].flows[i];
        const int32_t set = input.view->RouteSet(flow.from_port, flow.to_port);
        for (int32_t r = 0; r < input.view->NumRoutes(set); ++r) {
          if (output.jobs[j].routes[i] != kByEcmp && output.jobs[j].routes[i] != r) continue;
          const std::vector<LinkId> path = input.view->Path(flow.from_port, flow.to_port, r);
          uses = uses || std::count(path.begin(), path.end(), link) > 0;
        }
      }
      if (!uses) continue;
      all += input.jobs[j].weight;
      own[KeyOfTenant(input.jobs[j])] += input.jobs[j].weight;
    }
    for (const auto& [tenant, weight] : own) {
      const Rational share(input.view->bandwidth(link) * weight, all);
      const auto [at, is_new] = least.emplace(tenant, share);
      if (!is_new && share < at->second) at->second = share;
    }
  }
  return least;
}

TEST(Isolation, SharesAreWhatTheWordsSay) {
  const ClusterView view =
      ViewOf("cluster(boxes=8,gpus=4,nics=4,fabric=spine_leaf(4,2),oversubscription=2)");
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const PolicyInput input = RandomInput(view, seed);
    for (const char* policy : {"weighted", "deadline", "admission", "pfa", "locality-ring"}) {
      SCOPED_TRACE(policy);
      const PolicyOutput output = MustDecide(policy, input);
      const IsolationCertificate certificate = CertifyIsolation(input, output);
      if (std::string_view(policy) != "locality-ring") {
        EXPECT_THAT(certificate.faults, IsEmpty());
      }
      const std::map<TenantKey, Rational> expected = ByTheWords(input, output);
      size_t with_links = 0;
      for (const TenantShare& one : certificate.tenants) {
        if (one.link.value < 0) continue;
        ++with_links;
        EXPECT_EQ(one.share, expected.at(one.tenant));
        EXPECT_EQ(one.share, Rational(one.capacity) * Rational(one.weight, one.weights));
      }
      EXPECT_EQ(with_links, expected.size());
    }
  }
}

// What the certificate promises, max-min sharing by weights gives: a job of weight w as w users of
// one weight each, all busy.
TEST(Isolation, WeightedSharingGivesAtLeastTheShares) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ClusterView view = TwoRacks(8, static_cast<int32_t>(1 + random.Below(4)));
    PolicyInput input = PairsOf(view, static_cast<int32_t>(1 + random.Below(8)));
    for (PolicyJob& job : input.jobs) job.weight = static_cast<int32_t>(1 + random.Below(5));
    for (const char* policy : {"weighted", "ffa", "deadline"}) {
      SCOPED_TRACE(policy);
      const PolicyOutput output = MustDecide(policy, input);
      FairSharing sharing({view.bandwidths().begin(), view.bandwidths().end()});
      std::vector<std::vector<int32_t>> users(input.jobs.size());
      for (size_t j = 0; j < input.jobs.size(); ++j) {
        const JobStrategy& job = output.jobs[j];
        for (int32_t unit = 0; unit < input.jobs[j].weight; ++unit) {
          // Of one direction.
          std::vector<ResourceUse> uses;
          for (const LinkId link :
               view.Path(job.flows[0].from_port, job.flows[0].to_port, job.routes[0]))
            uses.push_back({link.value, 1});
          users[j].push_back(sharing.Add(uses));
        }
      }
      sharing.Update();
      const IsolationCertificate certificate = CertifyIsolation(input, output);
      ASSERT_EQ(certificate.tenants.size(), input.jobs.size());
      for (size_t j = 0; j < input.jobs.size(); ++j) {
        double rate = 0;
        for (const int32_t user : users[j]) rate += sharing.rate(user);
        EXPECT_GE(rate, certificate.tenants[j].share.ToDouble() * (1 - 1e-12));
      }
    }
  }
}

}  // namespace
}  // namespace tutti
