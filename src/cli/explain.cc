// tutti explain
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "schedule_source.h"
#include "sim_flags.h"
#include "tutti/advise/explanation.h"
#include "tutti/advise/shape.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"

namespace tutti::cli {
namespace {

struct ExplainFlags {
  ScheduleSource source;
  SimFlags sim;
  std::string size = "1KiB,1MiB,1GiB";
  std::optional<Command> command;
};

// What is known of a schedule at one size.
struct ExplainedSize {
  int64_t size = 0;
  Evaluation evaluation;
  CriticalChain chain;
  std::optional<StepTime> slowest_step;
};

struct Explained {
  const Topology& topology;
  const Schedule& schedule;
  Bounds bounds;
  Boxes boxes;
  ScheduleShape shape;
  std::vector<LinkTraffic> traffic;
  std::optional<CutTraffic> cut;
  std::vector<ExplainedSize> sizes;
};

Result<Explained> Explain(const ScheduleFile& file, const ExplainFlags& flags,
                          const std::vector<int64_t>& sizes) {
  const Topology& topology = file.topology;
  const Schedule& schedule = file.schedule;
  const Result<Bounds> bounds = BoundsOf(topology, schedule.collective);
  if (!bounds) return tl::unexpected(bounds.error());
  Explained known{topology, schedule, *bounds, FindBoxes(topology), {}, {}, {}, {}};
  known.shape = ShapeOf(topology, schedule, known.boxes);
  known.traffic = TrafficOf(topology, schedule);
  if (bounds->cut) known.cut = TrafficOver(topology, schedule, *bounds->cut, known.traffic);
  SimOptions options = flags.sim.Make();
  for (const int64_t size : sizes) {
    options.size_bytes = size;
    Result<CriticalChain> chain = FindCriticalChain(topology, schedule, options);
    if (!chain) return tl::unexpected(chain.error());
    ExplainedSize at{size, Evaluate(topology, schedule, size, *bounds), *std::move(chain), {}};
    if (schedule.kind == ScheduleKind::kStep && !topology.has_host_limits())
      for (StepTime& step : StepTimes(topology, schedule, size))
        if (!at.slowest_step || step.seconds > at.slowest_step->seconds)
          at.slowest_step = std::move(step);
    known.sizes.push_back(std::move(at));
  }
  return known;
}

// --- Text ----------------------------------------------------------------------------------------

std::string Plural(int64_t count, const char* what) {
  return fmt::format("{} {}{}", Count(count), what, count == 1 ? "" : "s");
}

std::string BoxesText(const Boxes& boxes) {
  if (!boxes.some()) return "";
  const bool equal = std::all_of(boxes.sizes.begin(), boxes.sizes.end(),
                                 [&boxes](int32_t size) { return size == boxes.sizes.front(); });
  return fmt::format(
      " in {} {}{}", boxes.sizes.size(),
      boxes.found_by == Boxes::FoundBy::kNames ? "boxes" : "groups with faster links inside",
      equal ? fmt::format(" of {}", boxes.sizes.front()) : "");
}

std::string FirstLine(const Explained& known) {
  const Schedule& schedule = known.schedule;
  return fmt::format(
      "{}{} on {} by {}: {}{}, {}, {} a shard, {}\n", Name(schedule.collective.kind()),
      GroupsText(schedule.collective), NameOf(known.topology),
      schedule.algorithm.empty() ? "an unknown algorithm" : schedule.algorithm,
      Plural(known.topology.num_ranks(), "rank"), BoxesText(known.boxes),
      schedule.kind == ScheduleKind::kStep ? Plural(schedule.num_steps, "step")
                                           : "timed for " + ReadableSize(schedule.size_bytes),
      Plural(schedule.units_per_shard, "chunk"),
      Plural(static_cast<int64_t>(schedule.transfers.size()), "transfer"));
}

std::string HeightText(const TreesShape& trees) {
  return trees.min_height == trees.max_height
             ? fmt::format("height {}", trees.max_height)
             : fmt::format("height {} to {}", trees.min_height, trees.max_height);
}

std::string TreesText(const TreesShape& trees, bool is_pairs) {
  std::string text;
  if (trees.rings > 0)
    text = fmt::format("{} of all ranks, {}", Plural(trees.rings, "ring"), HeightText(trees));
  else if (trees.max_height == 1 && trees.trees > 0)
    text = "direct, one hop between ranks";
  else if (is_pairs && trees.trees > 0)
    text = fmt::format("over up to {} in between", Plural(trees.max_height - 1, "rank"));
  else if (trees.trees > 0)
    text = fmt::format(
        "{} from {}, {}, at most {} a rank", Plural(trees.trees, "tree"),
        Plural(trees.roots, "root"), HeightText(trees),
        trees.max_children == 1 ? "1 child" : fmt::format("{} children", trees.max_children));
  if (trees.not_trees > 0)
    text += fmt::format("{}{} exchanged otherwise than over a tree", text.empty() ? "" : "; ",
                        Plural(trees.not_trees, "chunk"));
  return text;
}

std::string ShapeText(const Explained& known) {
  const bool is_pairs = known.schedule.collective.is_all_to_all();
  const std::string up = TreesText(known.shape.reduced, false),
                    down = TreesText(known.shape.spread, is_pairs);
  std::string text = "  shape        ";
  if (up.empty() && down.empty()) return text + "nothing is sent\n";
  if (!up.empty()) text += "reduces: " + up;
  if (!down.empty())
    text += fmt::format("{}{}: {}", up.empty() ? "" : "; ", is_pairs ? "blocks" : "spreads", down);
  return text + "\n";
}

std::string HierarchyText(const Explained& known) {
  if (!known.boxes.some()) return "";
  const BoxTraffic& between = known.shape.between;
  const auto least = static_cast<int32_t>(known.boxes.sizes.size()) - 1;
  std::string text = fmt::format("  boxes        {} M sent inside, {} M across",
                                 Exact(between.inside), Exact(between.across));
  if (!between.across.is_zero())
    text += fmt::format(", {} of it on its rail (the same place in both boxes)",
                        Percent((between.on_rail / between.across).ToDouble()));
  const bool spans = known.shape.spread.trees + known.shape.reduced.trees > 0 &&
                     !known.schedule.collective.is_all_to_all();
  if (spans && between.max_crossings == least && between.min_crossings == least)
    text += "; hierarchical: every tree enters each other box once";
  else if (spans)
    text += fmt::format("; a tree crosses {} to {} times, {} would do", between.min_crossings,
                        between.max_crossings, least);
  if (!between.usual_way.empty()) text += fmt::format("; most paths: {}", between.usual_way);
  return text + "\n";
}

std::string TrafficText(const Explained& known) {
  if (known.traffic.empty() || known.schedule.transfers.empty()) return "";
  const LinkTraffic& busiest = BusiestOf(known.traffic);
  return fmt::format("  busiest      {}: {} M in {}, {} a GB of M; {} of {} links as busy\n",
                     LinkName(known.topology, busiest.link), Exact(busiest.share),
                     Plural(busiest.messages, "message"),
                     Seconds(busiest.seconds_per_byte.ToDouble() * 1e9), CountAsBusy(known.traffic),
                     known.traffic.size());
}

constexpr size_t kMostNamed = 8;

// The nodes of a set by name: the set, or where it is larger all but the rest.
std::string SetText(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::string text;
  for (size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i)
    if (nodes[i].value < topology.num_nodes())
      text += (i == 0 ? "" : ", ") + topology.node_name(nodes[i]);
  if (nodes.size() > kMostNamed) text += fmt::format(" and {} more", nodes.size() - kMostNamed);
  return text;
}

// The set, or all but the few others.
std::string InsideText(const Topology& topology, const std::vector<NodeId>& inside) {
  std::vector<bool> is_in(static_cast<size_t>(topology.num_nodes()), false);
  for (NodeId node : inside)
    if (node.value < topology.num_nodes()) is_in[node.index()] = true;
  std::vector<NodeId> others;
  for (NodeId node : topology.Nodes())
    if (!is_in[node.index()]) others.push_back(node);
  if (others.size() < inside.size()) return "all but " + SetText(topology, others);
  return SetText(topology, inside);
}

std::string LimitText(const Explained& known) {
  const Bounds& bounds = known.bounds;
  std::string text =
      fmt::format("  limit        {} a GB of M: {}\n",
                  Seconds(bounds.seconds_per_byte.ToDouble() * 1e9), bounds.bandwidth_reason);
  if (!known.cut) return text;
  text += fmt::format(
      "  cut          {} M must leave {} over {}: {} s a byte exactly; the schedule sends {} M{}\n",
      Exact(known.cut->needed), InsideText(known.topology, bounds.cut->inside),
      BytesPerSecond(bounds.cut->capacity_out.ToDouble()), bounds.seconds_per_byte.ToString(),
      Exact(known.cut->sent), known.cut->sent == known.cut->needed ? ", no more" : "");
  return text;
}

std::string SizesText(const Explained& known) {
  Table table({"size", "time", "bound", "reached", "busbw", "simulated", "latency", "bandwidth",
               "waiting"});
  const double factor = known.schedule.collective.BusFactor().ToDouble();
  for (const ExplainedSize& at : known.sizes) {
    const double algbw =
        at.evaluation.time_s > 0 ? static_cast<double>(at.size) / at.evaluation.time_s : 0;
    const auto part = [&at](double seconds) {
      return Percent(at.chain.time_s > 0 ? seconds / at.chain.time_s : 0);
    };
    table.AddRow({ReadableSize(at.size), Seconds(at.evaluation.time_s),
                  Seconds(at.evaluation.bound_s), Percent(at.evaluation.efficiency),
                  BytesPerSecond(algbw * factor), Seconds(at.chain.time_s),
                  part(at.chain.latency_s), part(at.chain.bandwidth_s), part(at.chain.waiting_s)});
  }
  return table.ToString();
}

std::string ChainText(const Explained& known) {
  const ExplainedSize& at = known.sizes.back();
  if (at.chain.messages.empty()) return "";
  std::string text;
  if (at.slowest_step)
    text +=
        fmt::format("  longest step {} of {}, {} for {}: {} with {} M\n", at.slowest_step->step + 1,
                    known.schedule.num_steps, Seconds(at.slowest_step->seconds.ToDouble()),
                    ReadableSize(at.size), LinkName(known.topology, at.slowest_step->busiest),
                    Exact(at.slowest_step->share));
  const auto behind = std::count_if(at.chain.messages.begin(), at.chain.messages.end(),
                                    [](const ChainMessage& one) { return one.waited_for_link; });
  text += fmt::format(
      "  chain        the last arrival of {} is behind {}, {} of which waited for a busy link and "
      "the others for data; most on {} ({})\n",
      ReadableSize(at.size), Plural(static_cast<int64_t>(at.chain.messages.size()), "message"),
      behind, LinkName(known.topology, at.chain.longest_on),
      Percent(at.chain.longest_on_s / at.chain.time_s));
  return text;
}

// --- JSON ----------------------------------------------------------------------------------------

Json TreesJson(const TreesShape& trees) {
  Json json;
  json["trees"] = trees.trees;
  json["roots"] = trees.roots;
  json["rings"] = trees.rings;
  json["least_height"] = trees.min_height;
  json["most_height"] = trees.max_height;
  json["most_children"] = trees.max_children;
  json["not_trees"] = trees.not_trees;
  return json;
}

Json NamesOf(const Topology& topology, const std::vector<NodeId>& nodes) {
  Json names = Json::array();
  for (NodeId node : nodes)
    if (node.value < topology.num_nodes()) names.push_back(topology.node_name(node));
  return names;
}

void DescribeShape(const Explained& known, Json& out) {
  out["boxes"] = Json::array();
  for (size_t box = 0; box < known.boxes.sizes.size(); ++box)
    out["boxes"].push_back({{"name", known.boxes.names[box]}, {"ranks", known.boxes.sizes[box]}});
  Json json;
  json["spread"] = TreesJson(known.shape.spread);
  json["reduced"] = TreesJson(known.shape.reduced);
  if (known.boxes.some()) {
    const BoxTraffic& between = known.shape.between;
    json["inside"] = ToJson(between.inside);
    json["across"] = ToJson(between.across);
    json["on_rail"] = ToJson(between.on_rail);
    json["least_crossings"] = between.min_crossings;
    json["most_crossings"] = between.max_crossings;
    json["usual_way"] = between.usual_way;
  }
  out["shape"] = json;
}

void DescribeLimit(const Explained& known, Json& out) {
  if (!known.traffic.empty()) {
    const LinkTraffic& busiest = BusiestOf(known.traffic);
    Json json;
    json["link"] = busiest.link.value;
    json["name"] = LinkName(known.topology, busiest.link);
    json["share"] = ToJson(busiest.share);
    json["messages"] = busiest.messages;
    json["seconds_per_byte"] = ToJson(busiest.seconds_per_byte);
    json["as_busy"] = CountAsBusy(known.traffic);
    out["busiest_link"] = json;
  }
  Json json;
  json["seconds_per_byte"] = ToJson(known.bounds.seconds_per_byte);
  json["reason"] = known.bounds.bandwidth_reason;
  if (known.cut) {
    json["inside_cut"] = NamesOf(known.topology, known.bounds.cut->inside);
    json["capacity_Bps"] = ToJson(known.bounds.cut->capacity_out);
    json["needed"] = ToJson(known.cut->needed);
    json["sent"] = ToJson(known.cut->sent);
  }
  out["limit"] = json;
}

Json RowOf(const Explained& known, const ExplainedSize& at) {
  Json row;
  DescribeEvaluation(known.schedule, at.evaluation, at.size, row);
  row["simulated_s"] = at.chain.time_s;
  row["latency_s"] = at.chain.latency_s;
  row["bandwidth_s"] = at.chain.bandwidth_s;
  row["waiting_s"] = at.chain.waiting_s;
  row["chain"] = Json::array();
  for (const ChainMessage& message : at.chain.messages) {
    Json entry;
    entry["link"] = message.link.value;
    entry["name"] = LinkName(known.topology, message.link);
    if (known.schedule.kind == ScheduleKind::kStep) entry["step"] = message.step;
    entry["start_s"] = message.start_s;
    entry["end_s"] = message.end_s;
    entry["bytes"] = message.bytes;
    entry["waited_for"] = message.waited_for_link ? "link" : "data";
    row["chain"].push_back(entry);
  }
  if (at.slowest_step) {
    Json json;
    json["step"] = at.slowest_step->step;
    json["link"] = at.slowest_step->busiest.value;
    json["share"] = ToJson(at.slowest_step->share);
    json["time_s"] = at.slowest_step->seconds.ToDouble();
    row["longest_step"] = json;
  }
  return row;
}

void PrintJson(const Explained& known) {
  Json out;
  DescribeTopology(known.topology, out);
  DescribeSchedule(known.schedule, out);
  DescribeShape(known, out);
  DescribeLimit(known, out);
  for (const ExplainedSize& at : known.sizes) out["rows"].push_back(RowOf(known, at));
  Print(out);
}

int Run(const Program& program, const ExplainFlags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const int64_t largest = *std::max_element(sizes->begin(), sizes->end());
  const Result<ScheduleFile> file =
      LoadSchedule(flags.source, *flags.command, largest, flags.sim.links.model());
  if (!file) return Report(file.error());
  const Result<Explained> known = Explain(*file, flags, *sizes);
  if (!known) return Report(known.error());
  if (program.json) {
    PrintJson(*known);
    return kDone;
  }
  fmt::print("{}{}{}{}{}{}\n{}", FirstLine(*known), ShapeText(*known), HierarchyText(*known),
             TrafficText(*known), LimitText(*known), ChainText(*known), SizesText(*known));
  return kDone;
}

}  // namespace

void AddExplain(Program& program) {
  auto flags = std::make_shared<ExplainFlags>();
  Command command = program.AddCommand(
      program.line.root(), "explain",
      "How a schedule works and what limits it: shape, busiest link, limiting cut, longest chain",
      "tutti explain 'dgx_h100(2)' -c all-reduce -a forest --size 1MiB,1GiB");
  flags->command = command;
  flags->source.AddTo(command);
  command.AddOption("-s,--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  flags->sim.AddTo(command);
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
