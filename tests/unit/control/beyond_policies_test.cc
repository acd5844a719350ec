// Policies beyond the paper: weights, deadlines, admission.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster_inputs.h"
#include "tutti/control/isolation.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

// Of each job the route of its flow from rack 0; that of the way back is the same by symmetry.
std::vector<int32_t> RoutesOf(const PolicyOutput& output) {
  std::vector<int32_t> routes;
  for (const JobStrategy& job : output.jobs) {
    EXPECT_EQ(job.routes.size(), 2u);
    EXPECT_EQ(job.routes[0], job.routes[1]);
    routes.push_back(job.routes[0]);
  }
  return routes;
}

const char* const kSpread =
    "cluster(boxes=16,gpus=4,nics=4,fabric=spine_leaf(4,4),oversubscription=2)";

// Weights 1, 1, 2: demands 12.5 MB/s x weight x 3 / 4. The heavy one is alone on a route, the others
// share the other one: shares as the weights.
TEST(WeightedPolicy, ByHand) {
  const ClusterView view = TwoRacks(3, 2);
  PolicyInput input = PairsOf(view, 3);
  EXPECT_THAT(RoutesOf(MustDecide("ffa", input)), ElementsAre(0, 1, 0));
  EXPECT_THAT(RoutesOf(MustDecide("weighted", input)), ElementsAre(0, 1, 0));
  input.jobs[2].weight = 2;
  const PolicyOutput output = MustDecide("weighted", input);
  EXPECT_THAT(RoutesOf(output), ElementsAre(1, 1, 0));
  EXPECT_EQ(output.largest_excess, 6'250'000);  // 18.75 - 12.5
  const IsolationCertificate certificate = CertifyIsolation(input, output);
  ASSERT_EQ(certificate.tenants.size(), 3u);
  EXPECT_EQ(certificate.tenants[0].share, Rational(6'250'000));
  EXPECT_EQ(certificate.tenants[1].share, Rational(6'250'000));
  EXPECT_EQ(certificate.tenants[2].share, Rational(12'500'000));
}

TEST(WeightedPolicy, OfEqualWeightsIsFairFlowAssignment) {
  const ClusterView view = ViewOf(kSpread);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    PolicyInput input = RandomInput(view, seed);
    input.reserved_routes = 0;
    for (PolicyJob& job : input.jobs) job.weight = static_cast<int32_t>(1 + seed % 5);
    const PolicyOutput weighted = MustDecide("weighted", input), fair = MustDecide("ffa", input);
    for (size_t j = 0; j < input.jobs.size(); ++j)
      EXPECT_EQ(weighted.jobs[j].routes, fair.jobs[j].routes);
  }
}

// Heaviest first is within 4/3 of the best of all assignments of weights to equal routes (Graham's
// bound for longest processing time first).
TEST(WeightedPolicy, IsNearTheBestOfAllAssignments) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto jobs = static_cast<int32_t>(1 + random.Below(8));
    const auto spines = static_cast<int32_t>(2 + random.Below(2));
    const ClusterView view = TwoRacks(std::max(jobs, 2), spines);
    PolicyInput input = PairsOf(view, jobs);
    for (PolicyJob& job : input.jobs) job.weight = static_cast<int32_t>(1 + random.Below(9));
    const auto heaviest = [&](const std::vector<int32_t>& routes) {
      std::vector<int64_t> weights(static_cast<size_t>(spines));
      for (size_t j = 0; j < routes.size(); ++j)
        weights[static_cast<size_t>(routes[j])] += input.jobs[j].weight;
      return *std::max_element(weights.begin(), weights.end());
    };
    int64_t best = std::numeric_limits<int64_t>::max();
    std::vector<int32_t> routes(static_cast<size_t>(jobs));
    for (;;) {
      best = std::min(best, heaviest(routes));
      size_t at = 0;
      while (at < routes.size() && ++routes[at] == spines) routes[at++] = 0;
      if (at == routes.size()) break;
    }
    const int64_t ours = heaviest(RoutesOf(MustDecide("weighted", input)));
    EXPECT_GE(ours, best);
    EXPECT_LE(3 * ours, 4 * best);
  }
}

// Half of route 0 is taken by others: who is due first gets route 1.
TEST(DeadlinePolicy, ByHand) {
  const ClusterView view = TwoRacks(2, 2);
  PolicyInput input = PairsOf(view, 2);
  input.background.assign(static_cast<size_t>(view.num_links()), 0);
  for (const auto& [from, to] : {std::pair(0, 2), std::pair(2, 0)})
    for (const LinkId link : view.Route(view.RouteSet(from, to), 0))
      input.background[link.index()] = 6'250'000;
  EXPECT_THAT(RoutesOf(MustDecide("deadline", input)), ElementsAre(1, 0));
  input.jobs[0].deadline_ns = 9;
  input.jobs[1].deadline_ns = 5;
  EXPECT_THAT(RoutesOf(MustDecide("deadline", input)), ElementsAre(0, 1));
  EXPECT_THAT(RoutesOf(MustDecide("ffa", input)), ElementsAre(1, 0));
  // A deadline goes before none, and a class before a deadline.
  input.jobs[0].deadline_ns = 0;
  EXPECT_THAT(RoutesOf(MustDecide("deadline", input)), ElementsAre(0, 1));
  input.jobs[0].priority = 1;
  EXPECT_THAT(RoutesOf(MustDecide("deadline", input)), ElementsAre(1, 0));
}

// What a job gets does not depend on jobs of its class that are due later.
TEST(DeadlinePolicy, LaterDeadlinesChangeNothing) {
  const ClusterView view = ViewOf(kSpread);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    PolicyInput input = RandomInput(view, seed);
    input.reserved_routes = 0;
    for (PolicyJob& job : input.jobs) {
      job.priority = 0;
      job.deadline_ns = 1 + (job.id * 7 + 3) % 5;
    }
    const PolicyOutput all = MustDecide("deadline", input);
    const auto last = std::max_element(
        input.jobs.begin(), input.jobs.end(),
        [](const PolicyJob& a, const PolicyJob& b) { return a.deadline_ns < b.deadline_ns; });
    const auto number = static_cast<size_t>(last - input.jobs.begin());
    PolicyInput fewer = input;
    fewer.jobs.erase(fewer.jobs.begin() + static_cast<std::ptrdiff_t>(number));
    const PolicyOutput without = MustDecide("deadline", fewer);
    for (size_t j = 0, k = 0; j < input.jobs.size(); ++j) {
      if (j == number) continue;
      EXPECT_EQ(all.jobs[j].routes, without.jobs[k++].routes);
    }
  }
}

// A job with the earliest deadline of its class gets what it gets alone, which is the best of all
// routes for each of its flows in turn.
TEST(DeadlinePolicy, TheFirstIsServedAsIfAlone) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ClusterView view = TwoRacks(6, 3);
    PolicyInput input = PairsOf(view, 6);
    for (int32_t link = 0; link < view.num_links(); ++link)
      input.background.push_back(static_cast<int64_t>(random.Below(10'000'000)));
    for (PolicyJob& job : input.jobs) job.deadline_ns = 100 - job.id;
    const JobStrategy first = MustDecide("deadline", input).jobs.back();
    PolicyInput alone = input;
    alone.jobs = {input.jobs.back()};
    EXPECT_EQ(first.routes, MustDecide("ffa", alone).jobs[0].routes);
    for (size_t i = 0; i < first.flows.size(); ++i) {
      const auto fullest = [&](int32_t route) {
        int64_t most = 0;
        for (const LinkId link :
             view.Route(view.RouteSet(first.flows[i].from, first.flows[i].to), route))
          most = std::max(most, input.background[link.index()]);
        return most;
      };
      for (int32_t route = 0; route < 3; ++route)
        EXPECT_LE(fullest(first.routes[i]), fullest(route));
    }
  }
}

// 60 of 100 guaranteed to job 0: job 2 has to join 1, and is refused once 1 has as much.
TEST(AdmissionPolicy, ByHand) {
  const ClusterView view = TwoRacks(3, 2);
  PolicyInput input = PairsOf(view, 3);
  input.jobs[0].guaranteed = 7'500'000;
  EXPECT_THAT(RoutesOf(MustDecide("weighted", input)), ElementsAre(0, 1, 0));
  const PolicyOutput admitted = MustDecide("admission", input);
  EXPECT_THAT(RoutesOf(admitted), ElementsAre(0, 1, 1));
  EXPECT_EQ(admitted.largest_excess, 12'500'000);
  input.jobs[1].tenant = 7;
  input.jobs[1].guaranteed = 7'500'000;
  const Result<PolicyOutput> refused = DecideBy("admission", input);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(refused.error().message,
              HasSubstr("job 2 is refused: with it job 0 has 6250000 bytes/s of link"));
  EXPECT_THAT(refused.error().message,
              HasSubstr("(leaf0 -> spine0): 12500000 x 1 / 2, guaranteed 7500000"));
  // A light job takes too little to be refused: 100 x 2 / 3 is enough.
  for (const size_t j : {size_t{0}, size_t{1}}) input.jobs[j].weight = 2;
  EXPECT_THAT(RoutesOf(MustDecide("admission", input)), ElementsAre(0, 1, 0));
  // A job of the guaranteed tenant takes nothing from it.
  for (const size_t j : {size_t{0}, size_t{1}}) input.jobs[j].weight = 1;
  input.jobs[2].tenant = 7;
  EXPECT_THAT(RoutesOf(MustDecide("admission", input)), ElementsAre(0, 1, 1));
}

TEST(AdmissionPolicy, NamesTheNicAndItsOwnGuarantee) {
  const ClusterView view = TwoRacks(2, 2);
  PolicyInput input = PairsOf(view, 1);
  input.jobs[0].guaranteed = 12'500'001;
  EXPECT_THAT(DecideBy("admission", input).error().message,
              HasSubstr("job 0 is refused: with it job 0 has 12500000 bytes/s of link"));
  // Two jobs at one NIC.
  input = PairsOf(view, 2);
  input.jobs[0].guaranteed = 10'000'000;
  input.jobs[1].ranks = {0, 3};
  const std::string message = DecideBy("admission", input).error().message;
  EXPECT_THAT(message, HasSubstr("-> leaf0): 12500000 x 1 / 2, guaranteed 10000000"));
}

// A running job is never moved, and a link that broke before is not the newcomer's fault elsewhere.
TEST(AdmissionPolicy, LeavesWhatRuns) {
  const ClusterView view = TwoRacks(4, 2);
  PolicyInput input = PairsOf(view, 4);
  for (const size_t j : {size_t{0}, size_t{1}, size_t{2}}) input.jobs[j].running = {0, 0};
  input.jobs[0].guaranteed = 9'000'000;
  EXPECT_THAT(RoutesOf(MustDecide("admission", input)), ElementsAre(0, 0, 0, 1));
}

// Whether the job that asks can be let in, by trying all routes of all of its flows.
bool SomeRoutesHold(const PolicyInput& input, const PolicyOutput& placed, size_t asks) {
  PolicyOutput trial = placed;
  JobStrategy& job = trial.jobs[asks];
  job.routes.assign(job.flows.size(), 0);
  for (;;) {
    if (CertifyIsolation(input, trial).holds()) return true;
    size_t at = 0;
    for (; at < job.flows.size(); ++at) {
      const RingFlow& flow = job.flows[at];
      if (++job.routes[at] <
          input.view->NumRoutes(input.view->RouteSet(flow.from_port, flow.to_port)))
        break;
      job.routes[at] = 0;
    }
    if (at == job.flows.size()) return false;
  }
}

TEST(AdmissionPolicy, RefusesOnlyWhatNoRoutesWouldHold) {
  int32_t admitted = 0, refused = 0;
  const ClusterView view = ViewOf(
      "cluster(boxes=24,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(3,2),oversubscription=8)");
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    PolicyInput input = RandomInput(view, seed);
    input.channels = 1;
    for (PolicyJob& job : input.jobs) {
      job.ranks.resize(std::min<size_t>(job.ranks.size(), 4));
      job.priority = input.reserved_routes > 0 ? job.priority : 0;
      job.guaranteed = static_cast<int64_t>(random.Below(4)) * 4'000'000;
    }
    if (input.jobs.size() < 2) continue;
    // All but the last are in, as far as they can be.
    const PolicyJob last = input.jobs.back();
    input.jobs.pop_back();
    const Result<PolicyOutput> others = DecideBy("admission", input);
    if (!others) continue;
    for (size_t j = 0; j < input.jobs.size(); ++j) input.jobs[j].running = others->jobs[j].routes;
    input.jobs.push_back(last);
    const Result<PolicyOutput> output = DecideBy("admission", input);
    PolicyOutput placed = MustDecide("locality-ring", input);
    for (size_t j = 0; j + 1 < input.jobs.size(); ++j) placed.jobs[j] = others->jobs[j];
    EXPECT_LE(placed.jobs.back().flows.size(), 8u);
    EXPECT_EQ(output.has_value(), SomeRoutesHold(input, placed, input.jobs.size() - 1));
    PolicyInput turned = input;
    std::reverse(turned.jobs.begin(), turned.jobs.end());
    const Result<PolicyOutput> again = DecideBy("admission", turned);
    ASSERT_EQ(again.has_value(), output.has_value());
    if (!output) {
      EXPECT_EQ(again.error().message, output.error().message);
      ++refused;
      EXPECT_EQ(output.error().code, ErrorCode::kInfeasible);
      continue;
    }
    EXPECT_EQ(again->jobs.front().routes, output->jobs.back().routes);
    ++admitted;
    EXPECT_THAT(CertifyIsolation(input, *output).faults, Eq(std::vector<std::string>()));
    for (size_t j = 0; j + 1 < input.jobs.size(); ++j)
      EXPECT_EQ(output->jobs[j].routes, others->jobs[j].routes);
  }
  EXPECT_GE(admitted, 20);
  EXPECT_GE(refused, 20);
}

}  // namespace
}  // namespace tutti
