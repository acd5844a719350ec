// tutti design: what -o and --cables write.
#include <fmt/format.h>

#include <utility>

#include "design.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/design/cabling.h"
#include "tutti/route/router.h"
#include "tutti/store/routing_store.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/json.h"
#include "tutti/verify/routing.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

// A schedule, proven, that costs what the row says.
Result<Schedule> MakeSchedule(const ShownDesigns& shown, const Design& design,
                              const Topology& topology) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(design.algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective = Collective::Make(shown.collective, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  Result<Schedule> schedule = RunSynthesizer(**synthesizer, topology, *collective, {});
  if (!schedule) return schedule;
  const VerifyReport report = Verify(topology, *collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the {} schedule is not correct: {}; nothing was written",
                                 Name(shown.collective), report.violations.front().message));
  return schedule;
}

std::string TextOf(const ShownDesigns& shown, const Design& design, const StepCost& cost) {
  const DesignCost promised = design.CostOf(shown.collective);
  std::string text =
      fmt::format("{}, verified: TL {}, TB {}", Name(shown.collective), cost.tl, Exact(cost.tb));
  // A shard is cut into a million pieces at most, which may be too few for an exact balance.
  if (cost.tl != promised.tl || cost.tb != promised.tb)
    text += fmt::format(
        "; not the TL {}, TB {} of the row, which takes finer pieces than a "
        "schedule has",
        promised.tl, Exact(promised.tb));
  return text;
}

// The routing whose rate is the flow value of the row.
Result<Routing> MakeRouting(const DesignFlags& flags, const Topology& topology, Rational& rate) {
  RouterOptions options;
  options.gap = flags.flow_gap;
  Result<Routed> routed = RunRouter(*FindRouter("mcf"), topology, options);
  if (!routed) return tl::unexpected(routed.error());
  const RoutingReport report = CheckRouting(topology, routed->routing);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the routing is not correct: {}; nothing was written",
                                 report.violations.front().message));
  rate = report.rate;
  return std::move(routed->routing);
}

Result<std::vector<WrittenFile>> WriteNetwork(const DesignFlags& flags, const ShownDesigns& shown,
                                              const Design& design, const Topology& topology) {
  std::vector<WrittenFile> written{{flags.output + ".topo.json", "network"}};
  if (shown.collective == CollectiveKind::kAllToAll) {
    Rational rate;
    const Result<Routing> routing = MakeRouting(flags, topology, rate);
    if (!routing) return tl::unexpected(routing.error());
    written.push_back({flags.output + ".all-to-all.routes",
                       fmt::format("all-to-all as a routing, verified: f {}", Exact(rate))});
    if (Status status = WriteRoutingFile(written.back().path, topology, *routing); !status)
      return tl::unexpected(status.error());
  } else {
    const Result<Schedule> schedule = MakeSchedule(shown, design, topology);
    if (!schedule) return tl::unexpected(schedule.error());
    written.push_back({fmt::format("{}.{}.sched", flags.output, Name(shown.collective)),
                       TextOf(shown, design, AnalyticCost(topology, *schedule))});
    if (Status status = WriteScheduleFile(written.back().path, topology, *schedule); !status)
      return tl::unexpected(status.error());
  }
  if (Status status = WriteTopologyFile(written.front().path, topology); !status)
    return tl::unexpected(status.error());
  return written;
}

}  // namespace

Result<std::vector<WrittenFile>> WriteDesign(const DesignFlags& flags, const ShownDesigns& shown) {
  std::vector<WrittenFile> written;
  if (flags.output.empty() && flags.cables.empty()) return written;
  const Design& design = shown.designs[*shown.best];
  const Result<Topology> topology = NetworkWithLinks(design.recipe, shown.link);
  if (!topology) return tl::unexpected(topology.error());
  const bool two_way = !flags.one_way;
  std::vector<CableRun> runs;
  if (!flags.cables.empty()) {
    Result<std::vector<CableRun>> cabling = CablingOf(*topology, two_way);
    if (!cabling) return tl::unexpected(cabling.error());
    runs = *std::move(cabling);
  }
  if (!flags.output.empty()) {
    Result<std::vector<WrittenFile>> files = WriteNetwork(flags, shown, design, *topology);
    if (!files) return files;
    written = *std::move(files);
  }
  if (flags.cables.empty()) return written;
  if (Status status = WriteFileAtomically(flags.cables, CablingCsv(runs, two_way)); !status)
    return tl::unexpected(status.error());
  written.push_back(
      {flags.cables, fmt::format("{} {}", runs.size(), two_way ? "cables" : "one-way fibres")});
  return written;
}

}  // namespace tutti::cli
