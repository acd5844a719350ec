// tutti flow
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "common.h"
#include "tutti/base/file.h"
#include "tutti/synth/concurrent_flow.h"
#include "tutti/topo/expression.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string topology, demand_path, output;
  ConcurrentFlowOptions options;
};

// The file of `-o`: docs/formats/flow.md.
std::string FlowFileText(const Topology& topology, const ConcurrentFlow& flow) {
  Json file;
  file["format"] = "tutti-flow";
  file["version"] = 1;
  file["topology"] = topology.name();
  file["topology_fingerprint"] = fmt::format("{:016x}", topology.Fingerprint());
  file["f"] = ToJson(flow.f_lower);
  file["f_upper"] = ToJson(flow.f_upper);
  file["units_per_demand"] = flow.units_per_demand;
  if (!flow.demand.empty()) file["demand"] = flow.demand;
  Json& bundles = file["bundles"] = Json::array();
  for (const LinkBundle& bundle : flow.bundles)
    bundles.push_back({bundle.tail.value, bundle.head.value, bundle.bandwidth});
  file["lengths"] = flow.lengths;
  Json& flows = file["flow_from"] = Json::array();
  for (const auto& from : flow.flow_from) {
    Json list = Json::array();
    for (const auto& [bundle, units] : from) list.push_back({bundle, units});
    flows.push_back(std::move(list));
  }
  return file.dump() + "\n";
}

int Flow(const Program& program, Flags flags) {
  const Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return Report(topology.error());
  if (!flags.demand_path.empty()) {
    Result<std::vector<int64_t>> demand = ReadDemand(flags.demand_path);
    if (!demand) return Report(demand.error());
    flags.options.demand = *std::move(demand);
    if (flags.options.demand.empty())
      return Report({ErrorCode::kInvalidArgument, flags.demand_path + " holds no demand"});
  }
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(*topology, flags.options);
  if (!flow) return Report(flow.error());
  if (const Status checked = CheckConcurrentFlow(*topology, *flow); !checked)
    return Report(checked.error());
  if (!flags.output.empty())
    if (const Status written = WriteFileAtomically(flags.output, FlowFileText(*topology, *flow));
        !written)
      return Report(written.error());

  int64_t least = topology->bandwidth(LinkId{0});
  for (LinkId link : topology->Links()) least = std::min(least, topology->bandwidth(link));
  const double bytes_per_second = flow->f_lower.ToDouble() * static_cast<double>(least);
  if (program.json) {
    Json out;
    DescribeTopology(*topology, out);
    out["f"] = ToJson(flow->f_lower);
    out["f_upper"] = ToJson(flow->f_upper);
    out["gap"] = flow->gap();
    out["f_bytes_per_s"] = bytes_per_second;
    out["passes"] = flow->passes;
    out["synthesis_s"] = flow->seconds;
    out["peak_rss_bytes"] = PeakRssBytes();
    out["verified"] = true;
    Print(out);
    return kDone;
  }
  fmt::print("all-to-all on {}, in units of the smallest link ({})\n", topology->name(),
             BytesPerSecond(static_cast<double>(least)));
  fmt::print("  f            {} reached: {} between each pair at once\n", Exact(flow->f_lower),
             BytesPerSecond(bytes_per_second));
  fmt::print("  f at most    {}\n", Exact(flow->f_upper));
  fmt::print("  gap          {:.2g}{}\n", flow->gap(),
             flow->gap() <= (flags.options.exact ? 0 : flags.options.gap) ? ""
             : flags.options.exact ? " (no proof of the optimum was found)"
                                   : " (a limit was hit before the gap asked for)");
  fmt::print("  took         {} in {} passes, {} MiB; both limits checked\n",
             Seconds(flow->seconds), flow->passes, PeakRssBytes() >> 20);
  if (!flags.output.empty()) fmt::print("written to {}\n", flags.output);
  return kDone;
}

}  // namespace

void AddFlow(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "flow", "The rate of all-to-all that a network carries, proven from both sides",
      "tutti flow 'genkautz(4,100)' --gap 1e-4");
  command->add_option("topology", flags->topology, "Expression or path of a .json file")
      ->required();
  command
      ->add_option("--gap", flags->options.gap,
                   "Stop when reached and possible rate differ by at most this part")
      ->capture_default_str();
  command->add_flag("--exact", flags->options.exact,
                    "Prove the optimum as a fraction, on networks with few kinds of links");
  command
      ->add_option("--passes", flags->options.max_passes,
                   "Stop after so many passes over all sources at the latest")
      ->capture_default_str();
  command
      ->add_option("--seconds", flags->options.max_seconds,
                   "Stop after so many seconds at the latest; 0: no limit")
      ->capture_default_str();
  command->add_option("--demand", flags->demand_path,
                      "File with the square matrix of bytes between ranks (CSV or blanks)");
  command->add_option("-o,--output", flags->output, "Write flow and lengths as JSON to this file");
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Flow(program, *flags); }; });
}

}  // namespace tutti::cli
