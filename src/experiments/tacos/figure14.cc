// [tacos] figure 14: the all-gather of a 3 x 3 mesh, step by step.
#include <fmt/format.h>

#include <string>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace tacos_figure14 {
namespace {

using namespace tacos;

constexpr const char* kMesh = "mesh(3,3)";

Result<ExperimentResult> Run(const ExperimentOptions&) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const Result<Network> network = MakeNetwork(kMesh, CollectiveKind::kAllGather);
  if (!network) return tl::unexpected(network.error());
  const Topology& mesh = network->topology;
  const Result<const Synthesizer*> ten = FindSynthesizer("ten");
  if (!ten) return tl::unexpected(ten.error());
  const Result<Collective> all_gather =
      Collective::Make(CollectiveKind::kAllGather, mesh.num_ranks());
  if (!all_gather) return tl::unexpected(all_gather.error());
  const Result<Schedule> schedule = RunSynthesizer(**ten, mesh, *all_gather, {.chunks = 1});
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(mesh, *all_gather, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule on {} is not correct: {}", mesh.name(),
                                 report.violations.front().message));

  ResultTable table{
      .title = "What each step sends: shard: from > to",
      .label_name = "t",
      .columns = {{.name = "links used"}, {.name = "of 24", .unit = "%"}, {.name = "sends"}}};
  HeatMap map{.columns = schedule->num_steps, .cells = {}, .column_names = {}, .row_names = {}};
  map.words.resize(static_cast<size_t>(mesh.num_links()) *
                   static_cast<size_t>(schedule->num_steps));
  for (const LinkId link : mesh.Links())
    map.row_names.push_back(fmt::format("{} > {}", mesh.tail(link).value, mesh.head(link).value));
  for (int32_t step = 0; step < schedule->num_steps; ++step) {
    std::string sends;
    int64_t used = 0;
    for (const Transfer& transfer : schedule->transfers) {
      if (transfer.step != step) continue;
      ++used;
      sends += fmt::format("{}{}: {} > {}", sends.empty() ? "" : ", ", transfer.shard.value,
                           mesh.tail(transfer.link).value, mesh.head(transfer.link).value);
      map.words[transfer.link.index() * static_cast<size_t>(schedule->num_steps) +
                static_cast<size_t>(step)] = std::to_string(transfer.shard.value);
    }
    table.rows.push_back(
        {std::to_string(step),
         {Figure(used), Measured(100.0 * static_cast<double>(used) / mesh.num_links()),
          Word(sends)}});
  }
  ResultTable summary{
      .title = "The all-gather of a 3 x 3 mesh",
      .label_name = "quantity",
      .columns = {{.name = "figure", .digits = 0}},
      .rows = {{"steps", {Figure(schedule->num_steps)}},
               {"steps that none goes below", {Figure(network->bounds.steps)}},
               {"shards into a corner over its links, rounded up",
                {Figure((mesh.num_ranks() - 1 + 1) / 2)}},
               {"transfers", {Figure(static_cast<int64_t>(schedule->transfers.size()))}}}};
  return ExperimentResult{
      .tables = {summary, table},
      .notes =
          {"Made by -a ten with one chunk a shard, and proven. Ranks are row-major: 4 is the "
           "centre. 8 shards have to come into each corner over two links, so no schedule has "
           "fewer than 4 steps of whole shards.",
           "The paper draws its own schedule and says of it that no two sends share a link and "
           "that links idle at t = 3, because not all chunks can arrive at the same time; it "
           "prints no figures. The drawing is of steps and links, with the shard in each cell."},
      .charts = {{.title = "All-gather of mesh(3,3): the shard on each link in each step",
                  .x_label = "step",
                  .y_label = "link",
                  .heat = map}}};
}

}  // namespace
}  // namespace tacos_figure14

Experiment TacosFigure14() {
  return {"tacos-fig14", "[tacos] figure 14",
          "the all-gather that TACOS makes for a 3 x 3 mesh, step by step", tacos_figure14::Run};
}

}  // namespace tutti
