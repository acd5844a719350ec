// tutti topo show | list
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "tutti/base/units.h"
#include "tutti/coll/bounds.h"
#include "tutti/graph/distance_regular.h"
#include "tutti/synth/concurrent_flow.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::cli {
namespace {

constexpr CollectiveKind kShown[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduce,    CollectiveKind::kGather,
                                     CollectiveKind::kScatter,   CollectiveKind::kAllToAll};

std::string DegreeText(const Topology& topology) {
  if (const auto degree = topology.regular_degree()) return fmt::format("{} (regular)", *degree);
  int32_t least = topology.in_degree(NodeId{0}), most = least;
  for (NodeId node : topology.Nodes())
    for (int32_t degree : {topology.in_degree(node), topology.out_degree(node)}) {
      least = std::min(least, degree);
      most = std::max(most, degree);
    }
  return fmt::format("{} to {} (not regular)", least, most);
}

std::string LinkText(const Topology& topology) {
  if (topology.num_links() == 0) return "none";
  LinkSpec slow = topology.spec(LinkId{0}), fast = slow;
  for (LinkId link : topology.Links()) {
    slow.bandwidth = std::min(slow.bandwidth, topology.bandwidth(link));
    fast.bandwidth = std::max(fast.bandwidth, topology.bandwidth(link));
    fast.alpha_ps = std::min(fast.alpha_ps, topology.alpha_ps(link));
    slow.alpha_ps = std::max(slow.alpha_ps, topology.alpha_ps(link));
  }
  const auto range = [](const std::string& low, const std::string& high) {
    return low == high ? low : low + " to " + high;
  };
  return range(FormatBandwidth(slow.bandwidth), FormatBandwidth(fast.bandwidth)) + ", alpha " +
         range(FormatDurationPs(fast.alpha_ps), FormatDurationPs(slow.alpha_ps));
}

std::string HostText(const Topology& topology) {
  int64_t low = 0, high = 0;
  int32_t limited = 0;
  for (NodeId rank : topology.Ranks())
    if (const auto bandwidth = topology.host_bandwidth(rank)) {
      low = limited == 0 ? *bandwidth : std::min(low, *bandwidth);
      high = std::max(high, *bandwidth);
      ++limited;
    }
  return fmt::format("{} of {} ranks limited to {}{} each way", limited, topology.num_ranks(),
                     FormatBandwidth(low), low == high ? "" : " to " + FormatBandwidth(high));
}

// The array of an undirected distance-regular network; nullopt also where the count would take too
// long.
std::optional<IntersectionArray> ArrayOf(const Topology& topology, const NodeOrbits& orbits) {
  constexpr int64_t kMostSteps = 100'000'000;  // about a second
  const auto sources = static_cast<int64_t>(orbits.representatives.size());
  const int64_t steps = sources * (int64_t{topology.num_nodes()} + topology.num_links());
  if (topology.has_switches() || topology.num_ranks() == 1 || steps > kMostSteps)
    return std::nullopt;
  for (NodeId node : topology.Nodes())
    if (!topology.self_loops(node).empty()) return std::nullopt;
  return CheckDistanceRegular(topology.graph(), orbits.representatives).array;
}

// Moore-bound steps, where they are defined.
struct MooreSteps {
  std::optional<int32_t> directed, bidirectional;
};

MooreSteps MooreStepsOf(const Topology& topology, bool is_bidirectional) {
  MooreSteps steps;
  const auto degree = topology.regular_degree();
  if (!degree || *degree == 0 || topology.has_switches()) return steps;
  steps.directed = MooreBoundSteps(topology.num_ranks(), *degree);
  if (is_bidirectional)
    steps.bidirectional = BidirectionalMooreBoundSteps(topology.num_ranks(), *degree);
  return steps;
}

std::string MooreText(const MooreSteps& steps) {
  std::string text;
  if (steps.directed) text += fmt::format("; Moore bound {} (TL*)", *steps.directed);
  if (steps.bidirectional)
    text += fmt::format(", {} with each link both ways (TL**)", *steps.bidirectional);
  return text;
}

// The flow of all-to-all, as close as about a second allows; nothing where that is not close.
std::optional<HostedFlow> AffordableFlow(const Topology& topology) {
  constexpr int64_t kMaxVisits = 100'000'000, kFewestPasses = 5;
  const int64_t visits =
      int64_t{topology.num_ranks()} * (int64_t{topology.num_nodes()} + topology.num_links());
  if (topology.num_ranks() < 2 || kMaxVisits / visits < kFewestPasses) return std::nullopt;
  ConcurrentFlowOptions options;
  options.max_passes = static_cast<int32_t>(std::min<int64_t>(kMaxVisits / visits, 1000));
  Result<HostedFlow> flow = SolveHostedFlow(topology, options);
  return flow ? std::optional(*std::move(flow)) : std::nullopt;
}

// The limits of all-to-all where the flow's lengths prove more than the bound's own.
void Tighten(const HostedFlow& flow, Bounds& bounds) {
  if (!bounds.f_upper || flow.f_upper >= *bounds.f_upper) return;
  const Rational factor = *bounds.f_upper / flow.f_upper;
  bounds.seconds_per_byte *= factor;
  bounds.tb *= factor;
  bounds.f_upper = flow.f_upper;
  bounds.bandwidth_reason = "lengths of the concurrent flow";
  bounds.cut.reset();
}

int Show(const Program& program, const std::string& expression, const std::string& output) {
  const Result<Topology> topology = ParseTopology(expression);
  if (!topology) return Report(topology.error());
  Json out;
  DescribeTopology(*topology, out);
  out["homogeneous"] = topology->is_homogeneous();
  out["bidirectional"] = IsBidirectional(*topology);
  out["max_in_bandwidth_Bps"] = topology->max_in_bandwidth();
  const NodeOrbits orbits = FindNodeOrbits(*topology);
  out["vertex_transitive"] = orbits.num_orbits() == 1 ? Json(true)
                             : orbits.proven          ? Json(false)
                                                      : Json(nullptr);
  const std::optional<IntersectionArray> array = ArrayOf(*topology, orbits);
  if (array) out["intersection_array"] = {{"b", array->b}, {"c", array->c}};
  const MooreSteps moore = MooreStepsOf(*topology, out["bidirectional"].get<bool>());
  if (moore.directed) out["moore_steps"] = *moore.directed;
  if (moore.bidirectional) out["moore_steps_bidirectional"] = *moore.bidirectional;
  const std::optional<Rational> moore_flow = MooreFlowOf(*topology);
  if (moore_flow) out["moore_f"] = ToJson(*moore_flow);
  Table table({"collective", "steps >=", "latency >=", "TB >= (M/B)", "seconds a GB >=", "because"},
              Table::Last::kProse);
  Json bounds_json = Json::object();
  for (CollectiveKind kind : kShown) {
    const Result<Collective> coll = Collective::Make(kind, topology->num_ranks());
    if (!coll) return Report(coll.error());
    Result<Bounds> bounds = ComputeBounds(*topology, *coll);
    if (!bounds) return Report(bounds.error());
    std::optional<HostedFlow> flow;
    if (kind == CollectiveKind::kAllToAll) flow = AffordableFlow(*topology);
    if (flow) Tighten(*flow, *bounds);
    const double latency_s =
        static_cast<double>(bounds->latency_ps) / static_cast<double>(kPicosecondsPerSecond);
    table.AddRow({std::string(Name(kind)), std::to_string(bounds->steps), Seconds(latency_s),
                  Exact(bounds->tb),
                  fmt::format("{:.6g}", bounds->seconds_per_byte.ToDouble() * 1e9),
                  bounds->bandwidth_reason});
    Json row;
    row["tl_bound"] = bounds->steps;
    row["latency_s"] = latency_s;
    row["tb_bound"] = ToJson(bounds->tb);
    row["seconds_per_byte"] = ToJson(bounds->seconds_per_byte);
    row["reason"] = bounds->bandwidth_reason;
    if (flow) row["f"] = ToJson(flow->f_lower);
    if (bounds->f_upper) row["f_upper"] = ToJson(*bounds->f_upper);
    if (flow) row["gap"] = 1 - (flow->f_lower / *bounds->f_upper).ToDouble();
    bounds_json[std::string(Name(kind))] = row;
  }
  out["bounds"] = bounds_json;
  if (!output.empty())
    if (const Status written = WriteTopologyFile(output, *topology); !written)
      return Report(written.error());
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}\n", topology->name());
  fmt::print("  ranks        {}{}\n", topology->num_ranks(),
             topology->has_switches()
                 ? fmt::format(" and {} switches", topology->num_nodes() - topology->num_ranks())
                 : "");
  fmt::print("  links        {} ({}), {}\n", topology->num_links(),
             IsBidirectional(*topology) ? "each with its reverse" : "directed",
             LinkText(*topology));
  if (topology->has_host_limits()) fmt::print("  hosts        {}\n", HostText(*topology));
  fmt::print("  degree       {}\n", DegreeText(*topology));
  fmt::print("  diameter     {} hops{}\n", out["diameter"].get<int32_t>(), MooreText(moore));
  fmt::print("  symmetry     {}\n",
             orbits.num_orbits() == 1
                 ? "vertex-transitive"
                 : fmt::format("{}{} classes of alike nodes", orbits.proven ? "" : "at most ",
                               orbits.num_orbits()));
  if (array) fmt::print("  distances    distance-regular, {}\n", array->ToString());
  if (moore_flow)
    fmt::print("  all-to-all   f at most {} on any {} ranks of this degree\n", Exact(*moore_flow),
               topology->num_ranks());
  fmt::print("  B            {} into the best-connected rank\n\n",
             FormatBandwidth(topology->max_in_bandwidth()));
  fmt::print("{}", table.ToString());
  if (!output.empty()) fmt::print("\nwritten to {}\n", output);
  return kDone;
}

int List(const Program& program) {
  if (program.json) {
    Json out;
    for (const FamilyInfo& family : TopologyFamilies()) {
      Json row = {
          {"name", family.name}, {"signature", family.signature}, {"summary", family.summary}};
      for (const FamilyMember& member : family.members)
        row["members"].push_back({{"name", member.name}, {"summary", member.summary}});
      out["families"].push_back(std::move(row));
    }
    Print(out);
    return kDone;
  }
  Table table({"expression", "what it is"}, Table::Last::kProse);
  for (const FamilyInfo& family : TopologyFamilies()) {
    table.AddRow({std::string(family.signature), std::string(family.summary)});
    for (const FamilyMember& member : family.members)
      table.AddRow(
          {fmt::format("  {}({})", family.name, member.name), std::string(member.summary)});
  }
  fmt::print("{}", table.ToString());
  return kDone;
}

}  // namespace

void AddTopo(Program& program) {
  CLI::App* topo = program.app.add_subcommand("topo", "Networks: show, convert and list them");
  topo->require_subcommand(1);
  struct Flags {
    std::string expression, output;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* show = program.AddCommand(
      topo, "show", "Sizes, degrees, diameter, symmetry, bounds of every collective",
      "tutti topo show 'torus(4,4,bw=50GB/s,alpha=0.5us)'");
  show->add_option("topology", flags->expression, "Expression or path of a .json file")->required();
  show->add_option("-o,--output", flags->output, "Also write the topology as JSON to this file");
  show->callback([&program, flags] {
    program.action = [&program, flags] { return Show(program, flags->expression, flags->output); };
  });
  CLI::App* list =
      program.AddCommand(topo, "list", "Every topology family and operator", "tutti topo list");
  list->callback([&program] { program.action = [&program] { return List(program); }; });
}

}  // namespace tutti::cli
