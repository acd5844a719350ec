// [alltoall-mcf] section 6: layers that routings need to be free of deadlock, and what fewer cost.
#include "tutti/route/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "mcf.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/layers.h"

namespace tutti {
namespace mcf_layers {
namespace {

using namespace mcf;

constexpr std::array<const char*, 9> kNetworks = {"bipartite(4)",
                                                  "hypercube(3)",
                                                  "twisted_hypercube(3)",
                                                  "torus(3,3,3)",
                                                  "without(torus(3,3,3),links=3)",
                                                  "without(torus(3,3,3),nodes=3)",
                                                  "genkautz(4,50)",
                                                  "genkautz(4,100)",
                                                  "genkautz(8,81)"};
constexpr std::array<Method, 5> kMethods = {{{"MCF-extP", "mcf-extp"},
                                             {"pMCF (disjoint)", "pmcf", PathSet::kDisjoint},
                                             {"EwSP", "ewsp"},
                                             {"SSSP", "sssp"},
                                             {"native", "native"}}};
constexpr int32_t kMaxTraded = 4;
constexpr double kGap = 1e-3;

Result<int32_t> LayersOf(const Topology& topology, const Routing& routing,
                         const Layering& layering) {
  Routing layered = routing;
  if (const Status assigned = AssignLayers(layering, topology, kMaxRoutingLayers, layered);
      !assigned)
    return tl::unexpected(assigned.error());
  if (const Status judged = CheckLayers(topology, layered); !judged)
    return tl::unexpected(judged.error());
  return layered.num_layers;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{
      .title = "Layers that a routing takes", .label_name = "network, routing", .columns = {}};
  for (const Layering& layering : Layerings())
    table.columns.push_back({.name = std::string(layering.name)});
  ResultTable trade{.title = "Throughput and layers together: rate over that of the best flow",
                    .label_name = "network",
                    .columns = {}};
  for (int32_t layers = 1; layers <= kMaxTraded; ++layers)
    trade.columns.push_back(
        {.name = fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"), .digits = 4});
  int32_t most = 0;
  int32_t max_for_rate = 0;
  for (const char* expression : kNetworks) {
    const Result<Topology> topology = ParseTopology(expression);
    if (!topology) return tl::unexpected(topology.error());
    if (!WithinSize(options, topology->num_ranks())) continue;
    for (const Method& method : kMethods) {
      const Result<Outcome> outcome = Route(*topology, method, 0);
      if (!outcome) return tl::unexpected(outcome.error());
      ResultRow row{fmt::format("{}, {}", expression, method.name), {}};
      for (const Layering& layering : Layerings()) {
        const Result<int32_t> layers = LayersOf(*topology, outcome->routing, layering);
        if (!layers && layers.error().code != ErrorCode::kInfeasible)
          return tl::unexpected(layers.error());
        row.cells.push_back(layers ? Figure(*layers) : Word("none"));
        if (layers && layering.name == "lash-sequential") most = std::max(most, *layers);
      }
      table.rows.push_back(std::move(row));
      if (method.router != "mcf-extp") continue;

      const Result<Network> network = MakeNetwork(expression);
      if (!network) return tl::unexpected(network.error());
      ResultRow traded{expression, {}};
      int32_t enough = 0;
      for (int32_t layers = 1; layers <= kMaxTraded; ++layers) {
        const Result<Routing> within = RouteWithinLayers(*topology, outcome->routing, layers, kGap);
        if (!within) {
          if (within.error().code != ErrorCode::kInfeasible) return tl::unexpected(within.error());
          traded.cells.push_back(Word("none found"));
          continue;
        }
        if (const Status judged = CheckLayers(*topology, *within); !judged)
          return tl::unexpected(judged.error());
        const Rational share = RoutingRate(*topology, *within) / network->f_upper;
        if (enough == 0 && share >= Rational(99, 100)) enough = layers;
        traded.cells.push_back(Figure(share));
      }
      trade.rows.push_back(std::move(traded));
      max_for_rate = std::max(max_for_rate, enough == 0 ? kMaxTraded + 1 : enough);
    }
  }
  ResultTable claim{
      .title = "What the paper says", .label_name = "quantity", .columns = {{.name = "layers"}}};
  if (!table.rows.empty())
    claim.rows = {
        {"routes chosen for layers, 99 % of the rate: the most of all",
         {Figure(max_for_rate, "<= 4")}},
        {"lash-sequential on routes chosen before: the most of all", {Figure(most, "<= 4")}}};
  ExperimentResult result;
  result.tables = {claim, table, trade};
  result.notes = {
      "Every layer's dependencies are judged to be free of cycles. lash gives all paths of a pair "
      "one layer; \"none\": they circle among themselves. The paper does not define its "
      "LASH-sequential; ours goes path by path, the shortest first.",
      fmt::format("Fewer layers: the paths that find a place are weighed anew, to within {} % of "
                  "the best split over them; 1 is the proven limit of the flow.",
                  kGap * 100)};
  return result;
}

}  // namespace
}  // namespace mcf_layers

Experiment McfLayers() {
  return {"mcf-layers", "[alltoall-mcf] section 6",
          "layers that keep routings from deadlock, and the rate that fewer layers leave",
          mcf_layers::Run};
}

}  // namespace tutti
