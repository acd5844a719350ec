#include "networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "direct.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti::direct {
namespace {

// Table 7. The paper prints BiRing(1,4) in the third row of N = 512; a bidirectional ring has an
// even degree, and TL 11 and degree 4 are those of UniRing(1,4).
constexpr std::array<PrintedNetwork, 21> kNetworks = {{
    {32, "line(bipartite(4))", "3", "1.000", "3", "5.71e-2"},
    {32, "distreg(ag24minus)", "4", "0.969", "4", "5.26e-2"},
    {64, "genkautz(4,64)", "3", "1.312", "3", "2.17e-2"},
    {64, "line(debruijn_mod(4,2))", "4", "1.000", "4", "2.21e-2"},
    {64, "power(diamond,2)", "6", "0.984", "6", "1.87e-2"},
    {128, "line(bipartite(4),2)", "4", "1.031", "4", "9.89e-3"},
    {128, "line(distreg(ag24minus))", "5", "1.000", "5", "9.26e-3"},
    {128, "product(biring(2,8),power(uniring(1,4),2))", "10", "0.992", "10", "5.21e-3"},
    {256, "debruijn(4,4)", "4", "1.328", "4", "4.04e-3"},
    {256, "line(debruijn_mod(4,2),2)", "5", "1.016", "5", "4.10e-3"},
    {256, "line(power(diamond,2))", "7", "1.000", "7", "3.62e-3"},
    {256, "power(debruijn_mod(2,4),2)", "10", "0.996", "8", "2.94e-3"},
    {512, "line(bipartite(4),3)", "5", "1.039", "5", "1.88e-3"},
    {512, "line(distreg(ag24minus),2)", "6", "1.008", "6", "1.78e-3"},
    {512, "line(product(power(uniring(1,4),3),uniring(1,2)))", "11", "1.000", "11", "1.12e-3"},
    {512, "product(power(uniring(1,4),3),uniring(1,8))", "16", "0.998", "16", "5.58e-4"},
    {1024, "genkautz(4,1024)", "5", "1.332", "5", "8.01e-4"},
    {1024, "line(circulant(16,3,4),3)", "6", "1.020", "6", "8.12e-4"},
    {1024, "line(power(diamond,2),2)", "8", "1.004", "8", "7.34e-4"},
    {1024, "line(power(debruijn_mod(2,4),2))", "11", "1.000", "9", "6.18e-4"},
    {1024, "power(product(uniring(1,4),uniring(1,8)),2)", "20", "0.999", "20", "2.79e-4"},
}};
constexpr std::array<PrintedNetwork, 6> kBounds = {{
    {32, "", "3", "0.969", "3", "5.80e-2"},
    {64, "", "3", "0.984", "3", "2.42e-2"},
    {128, "", "4", "0.992", "4", "1.00e-2"},
    {256, "", "4", "0.996", "4", "4.39e-3"},
    {512, "", "5", "0.998", "5", "1.90e-3"},
    {1024, "", "5", "0.999", "5", "8.57e-4"},
}};

}  // namespace

std::span<const PrintedNetwork> PrintedNetworks() { return kNetworks; }
std::span<const PrintedNetwork> PrintedBounds() { return kBounds; }

Result<Flow> ComputeFlow(const Topology& topology, double gap) {
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, {.gap = gap});
  if (!flow) return tl::unexpected(flow.error());
  if (const Status proven = CheckConcurrentFlow(topology, *flow); !proven)
    return tl::unexpected(proven.error());
  return Flow{flow->f_lower, flow->f_upper};
}

Result<NetworkFigures> MeasureNetwork(std::string_view recipe, std::string_view algorithm) {
  const Result<Topology> topology = ParseTopology(recipe);
  if (!topology) {
    const tl::unexpected<Error> why(topology.error());
    return NetworkFigures{why, why, why};
  }
  NetworkFigures figures{MeasureSchedule(*topology, CollectiveKind::kAllGather, algorithm),
                         Diameter(*topology), Flow{}};
  if (!CancelRequested()) figures.flow = ComputeFlow(*topology);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return figures;
}

}  // namespace tutti::direct
