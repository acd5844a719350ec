// What the experiments of [alltoall-mcf] share: routings made by name, judged and timed, beside the
// certified optimum of their network.
//
// Model       The paper's fabric: links of 25 Gbit/s, 100 Gbit/s between a host and its NIC. The
//             all-to-all time of a routing is that of its busiest link, 1 / rate, which "over the
//             optimum" compares with the upper limit of the flow: never less than 1.
// Errors      kCancelled and what the makers say.
// Reference   [alltoall-mcf] section 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "experiment.h"
#include "tutti/base/result.h"
#include "tutti/route/router.h"
#include "tutti/topo/topology.h"

namespace tutti::mcf {

inline constexpr double kFlowGap = 1e-4;

// The optimum lies between both, at most kFlowGap apart; host limits are kept.
struct Network {
  Topology topology;
  Rational f, f_upper;
};
Result<Network> MakeNetwork(const std::string& expression);

// A way to make a routing.
struct Method {
  std::string_view name;    // the paper's
  std::string_view router;  // ours
  PathSet paths = PathSet::kDisjoint;
};

struct Outcome {
  Routing routing;
  Rational rate;
  double seconds = 0;  // to make it
  // No choice among the paths that the method chooses from has a higher rate; where it proves one.
  std::optional<Rational> rate_upper;
};
// A routing that the judge accepts. `max_iterations` is for integer programs.
Result<Outcome> Route(const Topology& topology, const Method& method, int64_t max_iterations);

// Time over the optimum: f_upper / rate. Errors but kCancelled are words.
ResultCell OverOptimum(const Network& network, const Result<Outcome>& outcome,
                       std::string paper = "");

// The word for an error that is no cancellation.
std::string ErrorWord(const Error& error);

}  // namespace tutti::mcf
