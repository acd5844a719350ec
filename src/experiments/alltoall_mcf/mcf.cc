#include "mcf.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fabric.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/routing.h"

namespace tutti::mcf {

Result<Network> MakeNetwork(const std::string& expression) {
  Result<Topology> topology = ParseTopology(expression);
  if (!topology) return tl::unexpected(topology.error());
  ConcurrentFlowOptions options;
  options.gap = kFlowGap;
  const Result<HostedFlow> flow = SolveHostedFlow(*topology, options);
  if (!flow) return tl::unexpected(flow.error());
  return Network{*std::move(topology), flow->f_lower, flow->f_upper};
}

Result<Outcome> Route(const Topology& topology, const Method& method, int64_t max_iterations) {
  const Router* router = FindRouter(method.router);
  if (router == nullptr)
    return MakeError(ErrorCode::kNotFound, "no router is named " + std::string(method.router));
  RouterOptions options;
  options.paths = method.paths;
  options.max_iterations = max_iterations;
  const auto before = std::chrono::steady_clock::now();
  Result<Routed> routed = RunRouter(*router, topology, options);
  if (!routed) return tl::unexpected(routed.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  const RoutingReport report = CheckRouting(topology, routed->routing);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(
        ErrorCode::kInfeasible,
        std::string(method.router) + " made a wrong routing: " + report.violations.front().message);
  return Outcome{std::move(routed->routing), report.rate, elapsed.count(),
                 std::move(routed->paths_upper)};
}

ResultCell OverOptimum(const Network& network, const Result<Outcome>& outcome, std::string paper) {
  if (!outcome) return Word(ErrorWord(outcome.error()), std::move(paper));
  return Figure(network.f_upper / outcome->rate, std::move(paper));
}

std::string ErrorWord(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInfeasible:
      return "not defined";
    case ErrorCode::kResourceExhausted:
      return "too large";
    default:
      return error.message;
  }
}

double LimitGigabytes(const Network& network) {
  return (network.topology.num_ranks() - 1) * network.f_upper.ToDouble() *
         static_cast<double>(network.topology.min_bandwidth()) * 1e-9;
}

}  // namespace tutti::mcf
