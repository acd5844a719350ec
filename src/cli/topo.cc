// tutti topo show | import | list
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "diameter.h"
#include "files.h"
#include "html.h"
#include "topo_import.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/graph/distance_regular.h"
#include "tutti/page/network_svg.h"
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
  return range(ReadableBandwidth(slow.bandwidth), ReadableBandwidth(fast.bandwidth)) + ", alpha " +
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
                     ReadableBandwidth(low), low == high ? "" : " to " + ReadableBandwidth(high));
}

// The array of an undirected distance-regular network; nullopt also where the count would take too
// long.
std::optional<IntersectionArray> ArrayOf(const Topology& topology, const NodeOrbits& orbits) {
  constexpr int64_t kMaxSteps = 100'000'000;  // about a second
  const auto sources = static_cast<int64_t>(orbits.representatives.size());
  const int64_t steps = sources * (int64_t{topology.num_nodes()} + topology.num_links());
  if (topology.has_switches() || topology.num_ranks() == 1 || steps > kMaxSteps)
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

// What is shown of a network beside its bounds.
struct NetworkFacts {
  bool bidirectional = false;
  FarthestRange diameter;
  NodeOrbits orbits;
  std::optional<IntersectionArray> array;
  MooreSteps moore;
  std::optional<Rational> moore_flow;
};

NetworkFacts FactsOf(const Topology& topology) {
  NetworkFacts facts{.bidirectional = IsBidirectional(topology),
                     .diameter = DiameterRangeOf(topology),
                     .orbits = FindNodeOrbits(topology),
                     .array = {},
                     .moore = {},
                     .moore_flow = MooreFlowOf(topology)};
  facts.array = ArrayOf(topology, facts.orbits);
  facts.moore = MooreStepsOf(topology, facts.bidirectional);
  return facts;
}

Json JsonOf(const Topology& topology, const NetworkFacts& facts) {
  Json out;
  DescribeTopologyWith(topology, facts.diameter, out);
  out["homogeneous"] = topology.is_homogeneous();
  out["bidirectional"] = facts.bidirectional;
  if (const Topology* const original = topology.original()) out["unwound_from"] = original->name();
  out["max_in_bandwidth_Bps"] = topology.max_in_bandwidth();
  out["vertex_transitive"] = facts.orbits.num_orbits() == 1 ? Json(true)
                             : facts.orbits.proven          ? Json(false)
                                                            : Json(nullptr);
  if (facts.array) out["intersection_array"] = {{"b", facts.array->b}, {"c", facts.array->c}};
  if (facts.moore.directed) out["moore_steps"] = *facts.moore.directed;
  if (facts.moore.bidirectional) out["moore_steps_bidirectional"] = *facts.moore.bidirectional;
  if (facts.moore_flow) out["moore_f"] = ToJson(*facts.moore_flow);
  return out;
}

std::string HopsText(const FarthestRange& hops) {
  return hops.least == hops.most ? std::to_string(hops.least)
                                 : fmt::format("{} to {}", hops.least, hops.most);
}

std::string TextOf(const Topology& topology, const NetworkFacts& facts) {
  std::string text = fmt::format("{}\n", NameOf(topology));
  text +=
      fmt::format("  ranks        {}{}\n", topology.num_ranks(),
                  topology.has_switches()
                      ? fmt::format(" and {} switches", topology.num_nodes() - topology.num_ranks())
                      : "");
  text +=
      fmt::format("  links        {} ({}), {}\n", topology.num_links(),
                  facts.bidirectional ? "each with its reverse" : "directed", LinkText(topology));
  if (topology.has_host_limits()) text += fmt::format("  hosts        {}\n", HostText(topology));
  if (const Topology* const original = topology.original())
    text +=
        fmt::format("  limits       those of {}, whose switches were unwound\n", NameOf(*original));
  text += fmt::format("  degree       {}\n", DegreeText(topology));
  text +=
      fmt::format("  diameter     {} hops{}\n", HopsText(facts.diameter), MooreText(facts.moore));
  text +=
      fmt::format("  symmetry     {}\n", facts.orbits.num_orbits() == 1
                                             ? "vertex-transitive"
                                             : fmt::format("{}{} classes of alike nodes",
                                                           facts.orbits.proven ? "" : "at most ",
                                                           facts.orbits.num_orbits()));
  if (facts.array)
    text += fmt::format("  distances    distance-regular, {}\n", facts.array->ToString());
  if (facts.moore_flow)
    text += fmt::format("  all-to-all   f at most {} on any {} ranks of this degree\n",
                        Exact(*facts.moore_flow), topology.num_ranks());
  return text + fmt::format("  B            {} into the best-connected rank\n\n",
                            ReadableBandwidth(topology.max_in_bandwidth()));
}

double SecondsOf(int64_t picoseconds) {
  return static_cast<double>(picoseconds) / static_cast<double>(kPicosecondsPerSecond);
}

std::vector<std::string> RowOf(CollectiveKind kind, const Bounds& bounds) {
  return {std::string(Name(kind)),
          std::to_string(bounds.steps),
          Seconds(SecondsOf(bounds.latency_ps)),
          Exact(bounds.tb),
          fmt::format("{:.6g}", bounds.seconds_per_byte.ToDouble() * 1e9),
          bounds.bandwidth_reason};
}

Json JsonOf(const ProvenBounds& proven) {
  const Bounds& bounds = proven.bounds;
  Json row;
  row["tl_bound"] = bounds.steps;
  row["latency_s"] = SecondsOf(bounds.latency_ps);
  row["least_alpha_s"] = SecondsOf(bounds.min_alpha_ps);
  row["tb_bound"] = ToJson(bounds.tb);
  row["seconds_per_byte"] = ToJson(bounds.seconds_per_byte);
  row["reason"] = bounds.bandwidth_reason;
  if (proven.f_lower) row["f"] = ToJson(*proven.f_lower);
  if (bounds.f_upper) row["f_upper"] = ToJson(*bounds.f_upper);
  if (proven.f_lower) row["gap"] = 1 - (*proven.f_lower / *bounds.f_upper).ToDouble();
  return row;
}

// By the ending of the path: a picture, or the network as JSON.
Status WriteNetwork(const std::string& path, const Topology& topology) {
  for (const char* ending : {".png", ".pdf", ".eps", ".ps", ".jpg", ".gif"})
    if (path.ends_with(ending))
      return InvalidArgument(fmt::format("{}: pictures are written as .svg, not {}", path, ending));
  return path.ends_with(".svg") ? WriteFileAtomically(path, NetworkSvg(topology))
                                : WriteTopologyFile(path, topology);
}

int Show(const Program& program, const std::string& expression, const std::string& output,
         const HtmlFlag& html) {
  if (const Status kept = KeepInputs(output, FilesOf(expression)); !kept)
    return Report(kept.error());
  if (const Status kept = html.Check(FilesOf(expression), output); !kept)
    return Report(kept.error());
  const Result<Topology> topology = ParseTopology(expression);
  if (!topology) return Report(topology.error());
  const NetworkFacts facts = FactsOf(*topology);
  Json out = JsonOf(*topology, facts);
  Table table({"collective", "steps >=", "latency >=", "TB >= (M/B)", "seconds a GB >=", "because"},
              Table::Last::kProse);
  PageData data("topo show");
  const int32_t network = html.given() ? data.AddNetwork(*topology) : 0;
  for (CollectiveKind kind : kShown) {
    if (CancelRequested()) return Report(CancelledError());
    const Result<Collective> coll = Collective::Make(kind, topology->num_ranks());
    if (!coll) {  // of so many ranks there is no such collective
      table.AddRow({std::string(Name(kind)), "-", "-", "-", "-", coll.error().message});
      continue;
    }
    const Result<ProvenBounds> proven = ProveBounds(*topology, *coll);
    if (!proven) return Report(proven.error());
    if (html.given()) data.AddLimit(network, *topology, kind, proven->bounds);
    table.AddRow(RowOf(kind, proven->bounds));
    out["bounds"][std::string(Name(kind))] = JsonOf(*proven);
  }
  if (!output.empty())
    if (const Status written = WriteNetwork(output, *topology); !written)
      return Report(written.error());
  if (const Status written = html.Write(data); !written) return Report(written.error());
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}{}", TextOf(*topology, facts), table.ToString());
  if (!output.empty()) fmt::print("\nwritten to {}\n", output);
  if (html.given()) fmt::print("\n{}", html.Text());
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
  Command topo = program.line.root().AddCommand("topo", "Networks: show, convert and list them");
  topo.NeedsSubcommand();
  struct Flags {
    std::string expression, output;
    HtmlFlag html;
  };
  auto flags = std::make_shared<Flags>();
  Command show = program.AddCommand(
      topo, "show", "Sizes, degrees, diameter, symmetry, bounds of every collective",
      "tutti topo show 'torus(4,4,bw=50GB/s,alpha=0.5us)'");
  show.AddOption("topology", flags->expression, "Expression or path of a .json file").Required();
  show.AddOption(
      "-o,--output", flags->output,
      "Also write the topology to this file: as a picture where it ends in .svg, else as JSON");
  flags->html.AddTo(show);
  show.Runs(
      [&program, flags] { return Show(program, flags->expression, flags->output, flags->html); });
  AddTopoImport(program, topo);
  Command list =
      program.AddCommand(topo, "list", "Every topology family and operator", "tutti topo list");
  list.Runs([&program] { return List(program); });
}

}  // namespace tutti::cli
