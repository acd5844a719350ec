// [tacos] figure 1: what each link carries in an all-reduce of 1 GB.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace tacos_figure1 {
namespace {

using namespace tacos;

constexpr int64_t kSize = kGigabyte;
constexpr std::array<Basic, 3> kBasics = {Basic::kDirect, Basic::kRhd, Basic::kRing};
constexpr const char* kOwn = "TACOS (-a ten)";
// The paper's red boxes.
constexpr std::array<std::string_view, 4> kAware = {"Direct", "Ring", kOwn, kOwn};

struct Load {
  std::string algorithm;
  const SimReport* report;
  double most = 0, mean = 0;  // of all links, in the size
  int64_t idle = 0;           // links
};

Load LoadOf(std::string algorithm, const SimReport& report) {
  Load load{.algorithm = std::move(algorithm), .report = &report};
  for (double bytes : report.link_bytes) {
    const double value = bytes / static_cast<double>(kSize);
    load.most = std::max(load.most, value);
    load.mean += value / static_cast<double>(report.link_bytes.size());
    load.idle += value == 0 ? 1 : 0;
  }
  return load;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{.title = "Bytes over a link in an all-reduce of 1 GB, in units of 1 GB",
                    .label_name = "network, algorithm",
                    .columns = {{.name = "busiest link", .digits = 3},
                                {.name = "mean", .digits = 3},
                                {.name = "busiest / mean", .digits = 2},
                                {.name = "of the network's worst", .unit = "%", .digits = 1},
                                {.name = "idle links"},
                                {.name = "least loaded"}}};
  ExperimentResult result{.charts_a_row = static_cast<int32_t>(kBasics.size()) + 1};
  for (size_t i = 0; i < MotivatingNetworks().size(); ++i) {
    if (!WithinSize(options, kMotivatingRanks)) break;
    const NamedNetwork& named = MotivatingNetworks()[i];
    const Result<Network> network = MakeNetwork(named.expression);
    if (!network) return tl::unexpected(network.error());
    std::vector<Outcome> outcomes;
    std::vector<Load> loads;
    for (Basic basic : kBasics) {
      Result<Outcome> outcome = RunBasic(*network, basic, {});
      if (!outcome) return tl::unexpected(outcome.error());
      outcomes.push_back(*std::move(outcome));
    }
    Result<Outcome> own = RunFastest(*network, "ten", TenChunks(network->topology, options), {});
    if (!own) return tl::unexpected(own.error());
    outcomes.push_back(*std::move(own));
    for (size_t k = 0; k < outcomes.size(); ++k)
      loads.push_back(
          LoadOf(k < kBasics.size() ? std::string(Name(kBasics[k])) : kOwn, outcomes[k].report));
    double worst = 0;
    size_t best = 0;
    for (size_t k = 0; k < loads.size(); ++k) {
      worst = std::max(worst, loads[k].most);
      // What is equally good and called aware by the paper is named.
      const bool equal = loads[k].most <= loads[best].most * (1 + 1e-9);
      if (loads[k].most < loads[best].most * (1 - 1e-9) ||
          (equal && loads[k].algorithm == kAware[i]))
        best = k;
    }
    for (size_t k = 0; k < loads.size(); ++k) {
      const Load& load = loads[k];
      const bool aware = load.algorithm == kAware[i];
      table.rows.push_back(
          {fmt::format("{} {}: {}", named.name, named.expression, load.algorithm),
           {Measured(load.most), Measured(load.mean), Measured(load.most / load.mean),
            Measured(100 * load.most / worst), Figure(load.idle),
            Word(k == best ? "least" : "-", aware ? "least" : "")}});
      result.charts.push_back({.title = fmt::format("{} on {}", load.algorithm, named.name),
                               .x_label = "to rank",
                               .y_label = "from rank",
                               .heat = LoadMap(network->topology, load.report->link_bytes,
                                               worst * static_cast<double>(kSize))});
      result.charts.back().heat->low = "no bytes over the link";
      result.charts.back().heat->high = "as many as over the network's busiest";
    }
  }
  result.tables = {table};
  result.notes = {
      "Direct, RHD and Ring are made and proven on the network they are meant for; their messages "
      "then cross the real one on fixed shortest paths, hop by hop, merged with nothing on the "
      "way, "
      "as the paper's simulator does it. Ring is bidirectional (the paper's footnote 3), in the "
      "order of the ranks.",
      "The paper draws 64 x 64 cells (to, from) for each, the load normalised to the network's "
      "largest, black where there is no link, and marks those that are topology-aware; it prints "
      "no figures. 'least' stands where the busiest link carries least of all four, and as the "
      "paper's word where it marks the algorithm as topology-aware.",
      "Paths between which shortest ones leave a choice are ours; the paper does not say its own."};
  return result;
}

}  // namespace
}  // namespace tacos_figure1

Experiment TacosFigure1() {
  return {"tacos-fig1", "[tacos] figure 1",
          "what each link carries in an all-reduce of 1 GB: basic algorithms on four networks",
          tacos_figure1::Run};
}

}  // namespace tutti
