// [direct-connect] figure 9: an iteration of Switch Transformers on rings, tori and our networks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "alltoall_mcf/circulant_flow.h"
#include "baselines.h"
#include "direct.h"
#include "frontier.h"
#include "networks.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/training/switch_transformer.h"
#include "tutti/training/training.h"

namespace tutti {
namespace direct_figure9 {
namespace {

constexpr int64_t kAlphaPs = 10'000'000;                 // 10 us
constexpr int64_t kRankBytesPerSecond = 12'500'000'000;  // 100 Gbit/s over all ports
constexpr double kFlowGap = 1e-3;
constexpr std::array<int64_t, 4> kBuckets = {1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

// What the text says of the figure; the bars themselves carry no numbers.
struct PaperClaim {
  const char *all_to_all, *iteration;  // over those of the paper's networks
  const char* share;                   // all-to-all of the iteration, %
};
struct Case {
  const char* model;
  int32_t ranks, side;  // the torus is side x side
  PaperClaim ring, torus, best;
};
constexpr std::array<Case, 2> kCases = {{
    {"switch-base-256", 256, 16, {"8", "4", ""}, {"2", "1.5", ""}, {"", "", ""}},
    {"switch-c-2048", 1024, 32, {"27", "9", "91"}, {"3.3", "1.7", "58"}, {"", "", "30"}},
}};
constexpr const char* kSaidOverBound = "<= 1.05";

// A network as training sees it.
struct Fabric {
  std::string name;
  DesignCost all_reduce;
  Rational flow;  // in units of a link
};

int64_t WholePs(const Rational& ps) { return std::llround(ps.ToDouble()); }

TrainingTimeline Train(const std::vector<TrainingStep>& steps, int32_t ranks,
                       const Fabric& fabric) {
  const Rational ps_per_byte(kPicosecondsPerSecond, kRankBytesPerSecond);
  const Rational reduce_latency = Rational(kAlphaPs) * Rational(fabric.all_reduce.tl);
  const Rational reduce_per_byte = fabric.all_reduce.tb * ps_per_byte;
  // M/N over f B/d.
  const Rational exchange_per_byte =
      ps_per_byte * Rational(direct::kTableDegree) / (Rational(ranks) * fabric.flow);
  const CollectiveTimes times{
      .all_reduce_ps =
          [&](int64_t bytes) {
            return WholePs(reduce_latency + reduce_per_byte * Rational(bytes));
          },
      .all_to_all_ps = [&](int64_t bytes) { return WholePs(exchange_per_byte * Rational(bytes)); }};
  return SimulateTrainingWithBestBucket(steps, times, kBuckets);
}

// A square torus looks the same along every link, so that shortest paths load all links alike.
Result<Rational> TorusFlow(const std::string& expression) {
  const Result<Topology> torus = ParseTopology(expression);
  if (!torus) return tl::unexpected(torus.error());
  const NodeId origin{0};
  return Rational(direct::kTableDegree, CountHops(*torus, std::span(&origin, 1)).total_hops);
}

struct Row {
  Fabric fabric;
  TrainingTimeline line;
};

// The design with the shortest iteration. Flows that distances alone allow say which can be it;
// only of those the flow is computed.
Result<Row> BestOf(const std::vector<Design>& designs, const std::vector<TrainingStep>& steps) {
  struct Expectation {
    const Design* design;
    int64_t iteration_ps;
  };
  std::vector<Expectation> hopes;
  for (const Design& design : designs) {
    const Result<Topology> topology = ParseTopology(design.recipe);
    if (!topology) return tl::unexpected(topology.error());
    const Rational most(topology->num_links(), CountHops(*topology).total_hops);
    const Fabric fabric{design.recipe, design.CostOf(CollectiveKind::kAllReduce), most};
    hopes.push_back({&design, Train(steps, design.ranks, fabric).iteration_ps});
  }
  std::stable_sort(hopes.begin(), hopes.end(), [](const Expectation& a, const Expectation& b) {
    return a.iteration_ps < b.iteration_ps;
  });
  std::optional<Row> best;
  for (const auto& [design, hoped_ps] : hopes) {
    if (best && hoped_ps >= best->line.iteration_ps) break;
    const Result<Topology> topology = ParseTopology(design->recipe);
    if (!topology) return tl::unexpected(topology.error());
    const Result<direct::Flow> flow = direct::ComputeFlow(*topology, kFlowGap);
    if (!flow) return tl::unexpected(flow.error());
    Row row{{design->recipe, design->CostOf(CollectiveKind::kAllReduce), flow->lower}, {}};
    row.line = Train(steps, design->ranks, row.fabric);
    if (!best || row.line.iteration_ps < best->line.iteration_ps) best = std::move(row);
  }
  return *std::move(best);
}

// The networks of one case: ring, torus, the best of the frontier, the limit.
Result<std::vector<Row>> RunCase(const Case& test, const std::vector<TrainingStep>& steps) {
  const int32_t n = test.ranks;
  const Rational best_tb(n - 1, n);
  std::vector<Row> rows;
  const auto add = [&](std::string name, int32_t tl, const Result<Rational>& flow) -> Status {
    if (!flow) return tl::unexpected(flow.error());
    Fabric fabric{std::move(name), {2 * tl, Rational(2) * best_tb}, *flow};
    TrainingTimeline line = Train(steps, n, fabric);
    rows.push_back({std::move(fabric), std::move(line)});
    return {};
  };
  const Result<Rational> ring = direct::CirculantFlow(n, 1, direct::ShiftedRingStride(n));
  if (const Status done = add("shifted ring", n - 1, ring); !done)
    return tl::unexpected(done.error());
  const std::string torus = fmt::format("torus({0},{0})", test.side);
  if (const Status done = add(torus, 2 * (test.side - 1), TorusFlow(torus)); !done)
    return tl::unexpected(done.error());

  const Result<std::vector<Design>> frontier = direct::FrontierOf(n, CollectiveKind::kAllReduce);
  if (!frontier) return tl::unexpected(frontier.error());
  const Result<Row> best = BestOf(*frontier, steps);
  if (!best) return tl::unexpected(best.error());
  rows.push_back(*best);
  if (const Status done = add("limit", MooreBoundSteps(n, direct::kTableDegree),
                              MooreFlow(n, direct::kTableDegree));
      !done)
    return tl::unexpected(done.error());
  return rows;
}

ResultTable TableOf(const Case& test, const std::vector<Row>& rows) {
  const auto ms = [](const char* name) {
    return ResultColumn{.name = name, .unit = "ms", .digits = 1};
  };
  ResultTable table{.title = fmt::format("{} on {} ranks: one iteration", test.model, test.ranks),
                    .label_name = "network",
                    .columns = {ms("iteration"),
                                ms("compute"),
                                ms("all-to-all"),
                                ms("exposed all-reduce"),
                                {.name = "bucket", .unit = "MB"},
                                {.name = "all-to-all over ours", .digits = 1},
                                {.name = "iteration over ours", .digits = 1},
                                {.name = "all-to-all share", .unit = "%"},
                                {.name = "over the limit", .digits = 3}}};
  if (rows.empty()) return table;
  const TrainingTimeline& ours = rows[2].line;
  const TrainingTimeline& limit = rows[3].line;
  const std::array<PaperClaim, 4> said = {test.ring, test.torus, test.best, PaperClaim{"", "", ""}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const TrainingTimeline& line = rows[i].line;
    const auto in_ms = [](int64_t ps) { return direct::Figure(Rational(ps, 1'000'000'000)); };
    table.rows.push_back(
        {rows[i].fabric.name,
         {in_ms(line.iteration_ps), in_ms(line.compute_ps), in_ms(line.all_to_all_ps),
          in_ms(line.exposed_all_reduce_ps), direct::Figure(Rational(line.bucket_bytes, 1'000'000)),
          direct::Figure(Rational(line.all_to_all_ps, ours.all_to_all_ps), said[i].all_to_all),
          direct::Figure(Rational(line.iteration_ps, ours.iteration_ps), said[i].iteration),
          direct::Figure(Rational(100 * line.all_to_all_ps, line.iteration_ps), said[i].share),
          direct::Figure(Rational(line.iteration_ps, limit.iteration_ps),
                         i == 2 ? kSaidOverBound : "")}});
  }
  return table;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ExperimentResult result;
  ProgressScope progress("models of figure 9", kCases.size());
  for (const Case& test : kCases) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (!direct::WithinSize(options, test.ranks)) {
      result.tables.push_back(TableOf(test, {}));
      continue;
    }
    const Result<SwitchTransformer> model = FindSwitchTransformer(test.model);
    if (!model) return tl::unexpected(model.error());
    const Result<std::vector<TrainingStep>> steps =
        MakeTrainingSteps(*model, TrainingBatch{}, test.ranks, kA100Tf32);
    if (!steps) return tl::unexpected(steps.error());
    const Result<std::vector<Row>> rows = RunCase(test, *steps);
    if (!rows) return tl::unexpected(rows.error());
    result.tables.push_back(TableOf(test, *rows));
    progress.Add(1);
  }
  result.notes = {
      "Layer times come from a model of the accelerator (a roofline of an A100: half of the TF32 "
      "peak, its memory bandwidth, 5 us a kernel), since the paper's traces of an A100 are not "
      "public; fp32 activations and gradients, 2048 sequences of 512 tokens (decoder 114), evenly "
      "routed.",
      "All-reduce 2 (TL alpha + TB M/B), all-to-all M/N over f B/d, alpha = 10 us, B = 100 Gbit/s; "
      "one collective at a time, gradients in buckets of the best of 1, 10, 100, 1000 MB.",
      "The torus runs the traditional schedule, the ring goes round once; ours is the network of "
      "the frontier with the shortest iteration. The paper gives ratios in words and draws bars "
      "without numbers; models other than these two are only drawn."};
  return result;
}

}  // namespace
}  // namespace direct_figure9

Experiment DirectFigure9() {
  return {"direct-fig9", "[direct-connect] figure 9",
          "training of Switch Transformers on 256 and 1024 ranks: rings, tori, our networks",
          direct_figure9::Run};
}

}  // namespace tutti
