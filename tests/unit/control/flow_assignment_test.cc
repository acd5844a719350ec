#include "tutti/control/flow_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tutti/base/random.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `routes` single links between two racks.
FlowProblem Parallel(std::vector<int64_t> capacity) {
  FlowProblem problem{
      .capacity = std::move(capacity), .background = {}, .route_sets = {{}}, .flows = {}};
  for (size_t i = 0; i < problem.capacity.size(); ++i)
    problem.route_sets[0].push_back({{LinkId{static_cast<int32_t>(i)}}, 0});
  return problem;
}

FlowAssignment MustAssign(const FlowProblem& problem) {
  Result<FlowAssignment> assignment = AssignFlows(problem);
  EXPECT_TRUE(assignment) << assignment.error().message;
  return std::move(assignment).value_or(FlowAssignment{});
}

// Two jobs with two flows each, two routes: by turns, each job has one on each.
TEST(FlowAssignment, GivesEachRouteAFlowOfEachJob) {
  FlowProblem problem = Parallel({100, 100});
  for (const int32_t job : {0, 0, 1, 1}) problem.flows.push_back({.job = job, .demand = 60});
  const FlowAssignment assignment = MustAssign(problem);
  // 0's first: route 0. 1's first: route 1, emptier. 0's second: 60 on both, but it has one on 0.
  EXPECT_THAT(assignment.route, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(assignment.load, ElementsAre(120, 120));
  EXPECT_EQ(assignment.largest_excess, 20);
}

TEST(FlowAssignment, CountsWhatOthersSend) {
  FlowProblem problem = Parallel({100, 100});
  problem.background = {75, 0};
  problem.flows = {{.demand = 50}, {.demand = 50}};
  EXPECT_THAT(MustAssign(problem).route, ElementsAre(1, 1));
  EXPECT_THAT(MustAssign(problem).load, ElementsAre(75, 100));
}

// Runs on route 0 beside 10 of background, where route 1 is free: 10 of 100 is worth moving for, 4
// is not.
TEST(FlowAssignment, MovesRunningFlowsForATwentiethOnly) {
  for (const int64_t background : {4, 5, 10}) {
    FlowProblem problem = Parallel({100, 100});
    problem.background = {background, 0};
    problem.flows = {{.demand = 100, .running = 0}};
    EXPECT_THAT(MustAssign(problem).route, ElementsAre(background < 5 ? 0 : 1)) << background;
  }
}

FlowProblem RandomProblem(Random& random, int32_t max_flows) {
  FlowProblem problem;
  const auto links = static_cast<int32_t>(2 + random.Below(6));
  for (int32_t i = 0; i < links; ++i) {
    problem.capacity.push_back(static_cast<int64_t>(50 + random.Below(100)));
    problem.background.push_back(static_cast<int64_t>(random.Below(40)));
  }
  for (uint64_t sets = 1 + random.Below(3); sets > 0; --sets) {
    std::vector<RouteOption>& options = problem.route_sets.emplace_back();
    for (uint64_t routes = 2 + random.Below(3); routes > 0; --routes) {
      RouteOption& route = options.emplace_back();
      for (uint64_t hops = 1 + random.Below(2); hops > 0; --hops)
        route.links.push_back(
            LinkId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(links)))});
      if (!options.front().links.empty() && options.size() > 1)
        route.reserved_from = static_cast<int32_t>(random.Below(3));
    }
  }
  for (uint64_t flows = 1 + random.Below(static_cast<uint64_t>(max_flows)); flows > 0; --flows)
    problem.flows.push_back(
        {.job = static_cast<int32_t>(random.Below(3)),
         .priority = 0,
         .demand = static_cast<int64_t>(random.Below(60)),
         .route_set = static_cast<int32_t>(random.Below(problem.route_sets.size()))});
  for (FlowRequest& flow : problem.flows) flow.priority = flow.job % 3;
  return problem;
}

// The rules again, word by word and slowly.
std::vector<int32_t> ByTheWords(const FlowProblem& problem) {
  std::vector<int64_t> load = problem.background;
  std::vector<int32_t> route(problem.flows.size(), -1);
  int32_t lowest = std::numeric_limits<int32_t>::max();
  for (const auto& options : problem.route_sets)
    for (const RouteOption& option : options)
      if (option.reserved_from > 0) lowest = std::min(lowest, option.reserved_from);
  const auto fit = [&](const std::function<bool(int32_t)>& in_pass) {
    for (int32_t k = 0; k < static_cast<int32_t>(problem.flows.size()); ++k)
      for (int32_t job = 0; job < 3; ++job) {
        int32_t number = 0;
        for (size_t i = 0; i < problem.flows.size(); ++i) {
          const FlowRequest& flow = problem.flows[i];
          if (flow.job != job || number++ != k || !in_pass(flow.priority)) continue;
          const auto& options = problem.route_sets[static_cast<size_t>(flow.route_set)];
          std::vector<std::tuple<int64_t, int64_t, int32_t>> keys;
          for (size_t r = 0; r < options.size(); ++r) {
            if (options[r].reserved_from > flow.priority) continue;
            int64_t excess = std::numeric_limits<int64_t>::min(), own = 0;
            for (const LinkId link : options[r].links)
              excess = std::max(excess,
                                load[link.index()] + flow.demand - problem.capacity[link.index()]);
            for (size_t other = 0; other < problem.flows.size(); ++other)
              own += problem.flows[other].job == job &&
                     problem.flows[other].route_set == flow.route_set &&
                     route[other] == static_cast<int32_t>(r);
            keys.emplace_back(excess, own, static_cast<int32_t>(r));
          }
          route[i] = std::get<2>(*std::min_element(keys.begin(), keys.end()));
          for (const LinkId link : options[static_cast<size_t>(route[i])].links)
            load[link.index()] += flow.demand;
        }
      }
  };
  fit([&](int32_t priority) { return priority < lowest; });
  for (int32_t priority = 2; priority >= 0; --priority)
    fit([&](int32_t own) { return own == priority && own >= lowest; });
  return route;
}

TEST(FlowAssignment, FollowsItsRulesToTheLetter) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const FlowProblem problem = RandomProblem(random, 12);
    const FlowAssignment assignment = MustAssign(problem);
    EXPECT_EQ(assignment.route, ByTheWords(problem));
    // No reserved route is used by a lower class, and loads are the sums.
    std::vector<int64_t> load = problem.background;
    for (size_t i = 0; i < problem.flows.size(); ++i) {
      const FlowRequest& flow = problem.flows[i];
      const RouteOption& route = problem.route_sets[static_cast<size_t>(flow.route_set)]
                                                   [static_cast<size_t>(assignment.route[i])];
      EXPECT_LE(route.reserved_from, flow.priority);
      for (const LinkId link : route.links) load[link.index()] += flow.demand;
    }
    EXPECT_EQ(load, assignment.load);
  }
}

// Among parallel routes alike, greedy is at most one demand from the best of all assignments, and
// the best itself where demands are equal.
TEST(FlowAssignment, IsNearTheBestOfAllAssignments) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const size_t routes = 2 + random.Below(2);
    FlowProblem problem = Parallel(std::vector<int64_t>(routes, 100));
    const size_t flows = 1 + random.Below(8);
    const bool equal = random.Below(2) == 0;
    int64_t largest = 0;
    for (size_t i = 0; i < flows; ++i) {
      const int64_t demand = equal ? 40 : static_cast<int64_t>(1 + random.Below(80));
      largest = std::max(largest, demand);
      problem.flows.push_back({.job = static_cast<int32_t>(random.Below(3)), .demand = demand});
    }
    int64_t best = std::numeric_limits<int64_t>::max();
    size_t all = 1;
    for (size_t i = 0; i < flows; ++i) all *= routes;
    for (size_t code = 0; code < all; ++code) {
      std::vector<int64_t> load(routes);
      size_t rest = code;
      for (const FlowRequest& flow : problem.flows) {
        load[rest % routes] += flow.demand;
        rest /= routes;
      }
      best = std::min(best, *std::max_element(load.begin(), load.end()));
    }
    const std::vector<int64_t> load = MustAssign(problem).load;
    const int64_t ours = *std::max_element(load.begin(), load.end());
    EXPECT_GE(ours, best);
    EXPECT_LE(ours, equal ? best : best + largest);
  }
}

TEST(FlowAssignment, DemandsAreSharesOfTheNarrowerPort) {
  const std::vector<int32_t> from = {0, 0, 0, 1}, to = {1, 2, 2, 2};
  const std::vector<int64_t> bandwidth = {100, 1000, 200};
  EXPECT_THAT(FlowDemands(from, to, bandwidth), ElementsAre(33, 33, 33, 66));
}

TEST(FlowAssignment, RefusesWhatIsNoProblem) {
  const auto message = [](const FlowProblem& problem) {
    const Result<FlowAssignment> assignment = AssignFlows(problem);
    return assignment ? std::string("accepted") : assignment.error().message;
  };
  FlowProblem good = Parallel({100, 100});
  good.flows = {{.demand = 1}};
  EXPECT_EQ(message(good), "accepted");
  FlowProblem bad = good;
  bad.flows[0].demand = -1;
  EXPECT_THAT(message(bad), HasSubstr("flow 0 wants -1 bytes/s"));
  bad = good;
  bad.flows[0].route_set = 1;
  EXPECT_THAT(message(bad), HasSubstr("names route set 1, which has no routes"));
  bad = good;
  bad.flows[0].running = 2;
  EXPECT_THAT(message(bad), HasSubstr("runs on route 2 of 2"));
  bad = good;
  bad.background = {1};
  EXPECT_THAT(message(bad), HasSubstr("background of 1 links, wanted 2"));
  bad = good;
  bad.route_sets[0][1].links = {LinkId{2}};
  EXPECT_THAT(message(bad), HasSubstr("passes link 2, wanted 0 to 1"));
}

}  // namespace
}  // namespace tutti
