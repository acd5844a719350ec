// tutti flow
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "files.h"
#include "html.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/flow_file.h"
#include "tutti/topo/expression.h"

namespace tutti::cli {
namespace {

struct FlowFlags {
  std::vector<std::string> topologies;
  std::string demand_path, output, start_path;
  ConcurrentFlowOptions options;
  HtmlFlag html;
};

bool IsProven(const ConcurrentFlow& flow) { return flow.f_lower == flow.f_upper; }

std::string GapNote(const ConcurrentFlow& flow, const ConcurrentFlowOptions& options) {
  if (options.exact && IsProven(flow)) return ", the optimum is proven";
  if (options.exact || flow.gap() <= options.gap) return "";
  return " (a limit was hit before the gap asked for)";
}

// Where the optimum itself was asked for, an interval is a no.
int AnswerOf(const ConcurrentFlow& flow, const ConcurrentFlowOptions& options) {
  return options.exact && !IsProven(flow) ? kAnswerIsNo : kDone;
}

// The fraction where it can be read, its size where not.
std::string Optimum(const Rational& f) {
  constexpr size_t kReadable = 60;
  const std::string fraction = f.ToString();
  if (fraction.size() <= kReadable) return fmt::format("{} = {:.10g}", fraction, f.ToDouble());
  return fmt::format("{:.10g} (a fraction of {} digits over {}; --json prints it)", f.ToDouble(),
                     f.NumString().size(), f.DenString().size());
}

double BytesPerSecondOf(const Topology& topology, const Rational& f) {
  return f.ToDouble() * static_cast<double>(topology.min_bandwidth());
}

void Describe(const Topology& topology, const HostedFlow& hosted, Json& out) {
  const ConcurrentFlow& flow = hosted.flow;
  DescribeTopology(topology, out);
  out["f"] = ToJson(hosted.f_lower);
  out["f_upper"] = ToJson(hosted.f_upper);
  out["gap"] = flow.gap();
  out["proven"] = IsProven(flow);
  if (!flow.no_proof.empty()) out["no_proof"] = flow.no_proof;
  if (const auto moore = MooreFlowOf(topology)) out["moore_f"] = ToJson(*moore);
  out["f_bytes_per_s"] = BytesPerSecondOf(topology, hosted.f_lower);
  if (flow.demand.empty())
    out["rank_bytes_per_s"] =
        BytesPerSecondOf(topology, hosted.f_lower) * (topology.num_ranks() - 1);
  out["host_limits"] = topology.has_host_limits();
  out["passes"] = flow.passes;
  out["synthesis_s"] = flow.seconds;
  out["peak_rss_bytes"] = PeakRssBytes();
  out["verified"] = true;
}

void PrintOne(const Topology& topology, const HostedFlow& hosted, const FlowFlags& flags) {
  const ConcurrentFlow& flow = hosted.flow;
  fmt::print("all-to-all on {}, in units of the smallest link ({})\n", NameOf(topology),
             BytesPerSecond(static_cast<double>(topology.min_bandwidth())));
  const auto text = [&](const Rational& f) { return flags.options.exact ? Optimum(f) : Exact(f); };
  fmt::print("  f            {} reached: {} between each pair at once\n", text(hosted.f_lower),
             BytesPerSecond(BytesPerSecondOf(topology, hosted.f_lower)));
  fmt::print("  f at most    {}\n", text(hosted.f_upper));
  if (flow.demand.empty())
    fmt::print(
        "  a rank       {} to all others together{}\n",
        BytesPerSecond(BytesPerSecondOf(topology, hosted.f_lower) * (topology.num_ranks() - 1)),
        topology.has_host_limits() ? ", host limits kept" : "");
  fmt::print("  gap          {:.2g}{}\n", flow.gap(), GapNote(flow, flags.options));
  if (!flow.no_proof.empty()) fmt::print("  no proof     {}\n", flow.no_proof);
  if (const auto moore = MooreFlowOf(topology))
    fmt::print("  limit        {} on any {} ranks of this degree\n", Exact(*moore),
               topology.num_ranks());
  fmt::print("  took         {} in {} passes, {} MiB; both limits checked\n", Seconds(flow.seconds),
             flow.passes, PeakRssBytes() >> 20);
  if (!flags.output.empty()) fmt::print("written to {}\n", flags.output);
  fmt::print("{}", flags.html.Text());
}

// What each link carries at the rate reached: the busiest for its bandwidth all that it can.
std::vector<double> LoadsOf(const Topology& network, const ConcurrentFlow& flow,
                            const std::vector<size_t>& bundle_of) {
  std::vector<double> units(flow.bundles.size());
  for (const std::vector<BundleFlow>& source : flow.flow_from)
    for (const BundleFlow& part : source)
      units[static_cast<size_t>(part.bundle)] += static_cast<double>(part.units);
  double most = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    units[i] /= static_cast<double>(flow.bundles[i].bandwidth);
    most = std::max(most, units[i]);
  }
  std::vector<double> loads;
  for (const LinkId link : network.Links())
    loads.push_back(most > 0 ? units[bundle_of[link.index()]] / most *
                                   static_cast<double>(network.bandwidth(link))
                             : 0);
  return loads;
}

// The bundle of each link.
std::vector<size_t> BundleOfLinks(const Topology& network, const ConcurrentFlow& flow) {
  std::map<std::pair<NodeId, NodeId>, size_t> by_ends;
  for (size_t i = 0; i < flow.bundles.size(); ++i)
    by_ends.emplace(std::pair(flow.bundles[i].tail, flow.bundles[i].head), i);
  std::vector<size_t> bundle_of;
  for (const LinkId link : network.Links())
    bundle_of.push_back(by_ends.at({network.tail(link), network.head(link)}));
  return bundle_of;
}

// Drawn on the network that was solved, whose host limits are links.
void AddFlowToPage(const HostedFlow& hosted, PageData& data) {
  const std::vector<size_t> bundle_of = BundleOfLinks(hosted.network, hosted.flow);
  PageFlow shown{hosted.f_lower,
                 hosted.f_upper,
                 !hosted.flow.demand.empty(),
                 LoadsOf(hosted.network, hosted.flow, bundle_of),
                 {}};
  for (const size_t bundle : bundle_of) shown.length.push_back(hosted.flow.lengths[bundle]);
  data.AddFlow(data.AddNetwork(hosted.network), hosted.network, shown);
}

Result<HostedFlow> SolveAndCheck(const Topology& topology, const ConcurrentFlowOptions& options) {
  Result<HostedFlow> solved = SolveHostedFlow(topology, options);
  if (!solved) return solved;
  if (const Status checked = CheckConcurrentFlow(solved->network, solved->flow); !checked)
    return tl::unexpected(checked.error());
  return solved;
}

// One network: everything that is known of its flow.
int FlowOf(const Program& program, const FlowFlags& flags) {
  std::vector<std::string> inputs = FilesOf(flags.topologies[0]);
  inputs.insert(inputs.end(), {flags.start_path, flags.demand_path});
  if (const Status kept = KeepInputs(flags.output, inputs); !kept) return Report(kept.error());
  if (const Status kept = flags.html.Check(inputs, flags.output); !kept)
    return Report(kept.error());
  const Result<Topology> topology = ParseTopology(flags.topologies[0]);
  if (!topology) return Report(topology.error());
  ConcurrentFlowOptions options = flags.options;
  std::optional<StoredFlow> start;
  if (!flags.start_path.empty()) {
    Result<StoredFlow> stored = ReadFlowFile(flags.start_path);
    if (!stored) return Report(stored.error());
    start = *std::move(stored);
    options.start = start->AsStart();
  }
  const Result<HostedFlow> flow = SolveAndCheck(*topology, options);
  if (!flow) return Report(flow.error());
  if (!flags.output.empty())
    if (const Status written = WriteFlowFile(flags.output, flow->network, flow->flow); !written)
      return Report(written.error());
  PageData data("flow");
  if (flags.html.given()) AddFlowToPage(*flow, data);
  if (const Status written = flags.html.Write(data); !written) return Report(written.error());
  if (!program.json) {
    PrintOne(*topology, *flow, flags);
  } else {
    Json out;
    Describe(*topology, *flow, out);
    Print(out);
  }
  return AnswerOf(flow->flow, options);
}

// Several networks: a row each.
int FlowsOf(const Program& program, const FlowFlags& flags) {
  Table table({"topology", "ranks", "links", "degree", "diameter", "f", "f at most", "gap",
               "of limit", "took"});
  Json out;
  out["rows"] = Json::array();
  int answer = kDone;
  PageData data("flow");
  for (const std::string& expression : flags.topologies)
    if (const Status kept = flags.html.Check(FilesOf(expression), ""); !kept)
      return Report(kept.error());
  for (const std::string& expression : flags.topologies) {
    const Result<Topology> topology = ParseTopology(expression);
    if (!topology) return Report(topology.error());
    const Result<HostedFlow> flow = SolveAndCheck(*topology, flags.options);
    if (!flow) return Report({flow.error().code, expression + ": " + flow.error().message});
    Json row;
    Describe(*topology, *flow, row);
    const auto degree = topology->regular_degree();
    const auto moore = MooreFlowOf(*topology);
    table.AddRow(
        {topology->name(), std::to_string(topology->num_ranks()),
         std::to_string(topology->num_links()), degree ? std::to_string(*degree) : "-",
         std::to_string(row["diameter"].get<int32_t>()),
         fmt::format("{:.6g}", flow->f_lower.ToDouble()),
         fmt::format("{:.6g}", flow->f_upper.ToDouble()), fmt::format("{:.2g}", flow->flow.gap()),
         moore ? Percent((flow->f_lower / *moore).ToDouble()) : "-", Seconds(flow->flow.seconds)});
    out["rows"].push_back(std::move(row));
    answer = std::max(answer, AnswerOf(flow->flow, flags.options));
    if (flags.html.given()) AddFlowToPage(*flow, data);
  }
  if (const Status written = flags.html.Write(data); !written) return Report(written.error());
  if (program.json) {
    Print(out);
  } else {
    fmt::print("{}{}", table.ToString(), flags.html.Text());
  }
  return answer;
}

int Flow(const Program& program, FlowFlags flags) {
  if (!flags.demand_path.empty()) {
    Result<std::vector<int64_t>> demand = ReadDemand(flags.demand_path);
    if (!demand) return Report(demand.error());
    flags.options.demand = *std::move(demand);
    if (flags.options.demand.empty())
      return Report({ErrorCode::kInvalidArgument, flags.demand_path + " holds no demand"});
  }
  if (flags.topologies.size() == 1) return FlowOf(program, flags);
  if (!flags.output.empty() || !flags.start_path.empty())
    return Report(
        {ErrorCode::kInvalidArgument,
         fmt::format("-o and --warm-start are for one topology, got {}", flags.topologies.size())});
  return FlowsOf(program, flags);
}

}  // namespace

void AddFlow(Program& program) {
  auto flags = std::make_shared<FlowFlags>();
  Command command =
      program.AddCommand(program.line.root(), "flow",
                         "The rate of all-to-all that a network carries, proven from both sides",
                         "tutti flow 'genkautz(4,100)' --gap 1e-4\n"
                         "  tutti flow 'genkautz(4,60)' 'xpander(4,12)' 'random_regular(4,60)'");
  command
      .AddOption("topology", flags->topologies,
                 "Expression or path of a .json file; several make a table")
      .Required();
  command
      .AddOption("--gap", flags->options.gap,
                 "Stop when reached and possible rate differ by at most this part")
      .WithinReal(0, 0.999999)
      .ShowDefault();
  command.AddFlag(
      "--exact", flags->options.exact,
      "Prove the optimum itself, as a fraction: up to about 100 ranks, more where they are "
      "alike");
  command
      .AddOption("--passes", flags->options.max_passes,
                 "Stop after so many passes over all sources at the latest")
      .WithinReal(0, 1 << 30)
      .ShowDefault();
  command
      .AddOption("--time-limit,--seconds", flags->options.max_seconds,
                 "Stop after so many seconds at the latest; 0: no limit")
      .WithinReal(0, 1e9)
      .ShowDefault();
  command.AddOption("--demand", flags->demand_path,
                    "File with the square matrix of bytes between ranks (CSV or blanks)");
  command.AddOption("--warm-start", flags->start_path,
                    "Start from the flow in this file, of a network with most of the same nodes "
                    "and links, as after the loss of a link");
  command.AddOption("-o,--output", flags->output, "Write flow and lengths as JSON to this file");
  flags->html.AddTo(command);
  command.Runs([&program, flags] { return Flow(program, *flags); });
}

}  // namespace tutti::cli
