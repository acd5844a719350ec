// The data of a page: docs/formats/explorer-data.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "drawn_grid.h"
#include "drawn_links.h"
#include "executed.h"
#include "grouping.h"
#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

std::string GridJson(const DrawnGrid& grid) {
  const GridShape& shape = grid.shape;
  JsonObject out;
  out.AddColumn("dims", shape.dims.size(), [&](size_t i) { return shape.dims[i]; });
  out.AddRaw("wraps", shape.wraps ? "true" : "false");
  if (!grid.at.empty()) out.AddColumn("at", grid.at.size(), [&](size_t i) { return grid.at[i]; });
  return out.ToString();
}

std::string NamesJson(const Topology& topology) {
  bool numbered = true;
  for (const NodeId node : topology.Nodes())
    numbered = numbered && topology.node_name(node) == std::to_string(node.value);
  if (numbered) return "null";
  std::vector<std::string> names;
  for (const NodeId node : topology.Nodes()) names.push_back(AsciiJson(topology.node_name(node)));
  return ArrayJson(names);
}

std::string GroupsJson(const Topology& topology) {
  const Grouping grouping = GroupNodes(topology, PageData::kMaxGroups);
  const GroupLinks sums = SumLinks(topology, grouping);
  std::vector<int64_t> sizes(grouping.names.size());
  for (const int32_t group : grouping.group_of) ++sizes[static_cast<size_t>(group)];
  std::vector<std::string> names;
  for (const std::string& name : grouping.names) names.push_back(AsciiJson(name));
  JsonObject out;
  out.AddRaw("names", ArrayJson(names));
  out.AddColumn("nodes", sizes.size(), [&](size_t i) { return sizes[i]; });
  out.AddRaw("grid", grouping.grid ? GridJson({*grouping.grid, {}}) : "null");
  out.AddColumn("tail", sums.ends.size(), [&](size_t i) { return sums.ends[i].first; });
  out.AddColumn("head", sums.ends.size(), [&](size_t i) { return sums.ends[i].second; });
  out.AddColumn("links", sums.links.size(), [&](size_t i) { return sums.links[i]; });
  out.AddColumn("bandwidth", sums.bandwidth.size(), [&](size_t i) { return sums.bandwidth[i]; });
  return out.ToString();
}

std::string LinksJson(const Topology& topology) {
  const auto count = static_cast<size_t>(topology.num_links());
  const auto link = [](size_t i) { return LinkId{static_cast<int32_t>(i)}; };
  JsonObject out;
  out.AddColumn("tail", count, [&](size_t i) { return topology.tail(link(i)).value; });
  out.AddColumn("head", count, [&](size_t i) { return topology.head(link(i)).value; });
  out.AddColumn("bandwidth", count, [&](size_t i) { return topology.bandwidth(link(i)); });
  out.AddColumn("alpha_ps", count, [&](size_t i) { return topology.alpha_ps(link(i)); });
  return out.ToString();
}

std::string CutJson(const Topology& topology, const CutCertificate& cut) {
  JsonObject out;
  out.AddInt("count", static_cast<int64_t>(cut.inside.size()));
  out.AddText("shards_out", cut.shards_out.ToString());
  out.AddText("capacity_out", cut.capacity_out.ToString());
  // The cut of an unwound network is that of the one with switches, whose ranks are the same.
  const auto drawn = [&](NodeId node) {
    return node.value < topology.num_nodes() &&
           (topology.original() == nullptr || topology.is_rank(node));
  };
  std::vector<NodeId> inside;
  if (!IsGrouped(topology))
    std::copy_if(cut.inside.begin(), cut.inside.end(), std::back_inserter(inside), drawn);
  std::sort(inside.begin(), inside.end());
  out.AddColumn("inside", inside.size(), [&](size_t i) { return inside[i].value; });
  return out.ToString();
}

std::string BoundsJson(const Topology& topology, const Bounds& bounds) {
  JsonObject out;
  out.AddInt("steps", bounds.steps);
  out.AddInt("latency_ps", bounds.latency_ps);
  out.AddInt("least_alpha_ps", bounds.min_alpha_ps);
  out.AddRaw("seconds_per_byte", RationalJson(bounds.seconds_per_byte));
  out.AddRaw("tb", RationalJson(bounds.tb));
  out.AddText("reason", bounds.bandwidth_reason);
  out.AddRaw("cut", bounds.cut ? CutJson(topology, *bounds.cut) : "null");
  return out.ToString();
}

std::string TransfersJson(const Schedule& schedule) {
  const std::vector<Transfer>& all = schedule.transfers;
  JsonObject out;
  out.AddColumn("shard", all.size(), [&](size_t i) { return all[i].shard.value; });
  out.AddColumn("link", all.size(), [&](size_t i) { return all[i].link.value; });
  out.AddColumn("begin", all.size(), [&](size_t i) { return all[i].begin; });
  out.AddColumn("end", all.size(), [&](size_t i) { return all[i].end; });
  out.AddColumn("step", all.size(), [&](size_t i) { return all[i].step; });
  if (schedule.collective.reduces())
    out.AddColumn("reduces", all.size(),
                  [&](size_t i) { return all[i].op == TransferOp::kReduce ? 1 : 0; });
  return out.ToString();
}

std::string MessagesJson(const std::vector<SimMessage>& all) {
  JsonObject out;
  out.AddColumn("link", all.size(), [&](size_t i) { return all[i].link.value; });
  out.AddColumn("step", all.size(), [&](size_t i) { return all[i].step; });
  out.AddColumn("start_ps", all.size(), [&](size_t i) { return Picoseconds(all[i].start_s); });
  out.AddColumn("free_ps", all.size(), [&](size_t i) { return Picoseconds(all[i].free_s); });
  out.AddColumn("arrive_ps", all.size(), [&](size_t i) { return Picoseconds(all[i].arrive_s); });
  out.AddColumn("bytes", all.size(), [&](size_t i) { return std::llround(all[i].bytes); });
  out.AddColumn("first", all.size(), [&](size_t i) { return all[i].first_transfer; });
  return out.ToString();
}

std::string UseJson(const std::vector<double>& busy_s, const std::vector<double>& bytes) {
  JsonObject out;
  out.AddColumn("busy_ps", busy_s.size(), [&](size_t i) { return Picoseconds(busy_s[i]); });
  out.AddColumn("bytes", bytes.size(), [&](size_t i) { return std::llround(bytes[i]); });
  return out.ToString();
}

// Busy time and bytes of each link, or of all links from one group to another.
std::string UseJson(const Topology& topology, const SimReport& report) {
  return UseJson(OnDrawnLinks(topology, report.link_busy_s),
                 OnDrawnLinks(topology, report.link_bytes));
}

std::string SimulationJson(const SimReport& report, std::string_view link_model,
                           std::string_view mode, std::string_view use) {
  JsonObject sim;
  sim.AddText("link_model", link_model);
  sim.AddText("mode", mode);
  sim.AddInt("time_ps", Picoseconds(report.time_s));
  sim.AddReal("algbw", report.algbw);
  sim.AddReal("busbw", report.busbw);
  sim.AddInt("messages", report.messages);
  sim.AddInt("max_in_flight", report.max_in_flight);
  sim.AddRaw("use", use);
  return sim.ToString();
}

std::string FaultsJson(const std::vector<PageFault>& faults) {
  std::vector<std::string> rows;
  for (const PageFault& fault : faults) {
    JsonObject out;
    out.AddText("kind", fault.kind);
    out.AddText("message", fault.message);
    out.AddInt("transfer", fault.transfer);
    rows.push_back(out.ToString());
  }
  return ArrayJson(rows);
}

// Transfers and messages, or why they are not there.
void AddDetails(const Topology& topology, const Schedule& schedule, const PageSchedule& facts,
                JsonObject& out) {
  const auto transfers = static_cast<int64_t>(schedule.transfers.size());
  if (IsGrouped(topology)) {
    out.AddText("omitted", fmt::format("The network is too large to show each of the {} transfers: "
                                       "it is shown as groups of nodes, and the use of the links "
                                       "between them.",
                                       transfers));
    return;
  }
  if (transfers > PageData::kMaxDrawnTransfers) {
    out.AddText("omitted", fmt::format("The schedule has {} transfers; a page shows each of at "
                                       "most {}. The use of links is complete.",
                                       transfers, PageData::kMaxDrawnTransfers));
    return;
  }
  out.AddRaw("transfers", TransfersJson(schedule));
  if (facts.report != nullptr) out.AddRaw("messages", MessagesJson(facts.report->trace));
}

// What both a simulated and an executed schedule have.
void AddFacts(int32_t network, const Topology& topology, const Schedule& schedule,
              const PageSchedule& facts, JsonObject& out) {
  out.AddInt("network", network);
  out.AddText("label", facts.label);
  out.AddText("collective", Name(schedule.collective.kind()));
  out.AddText("algorithm", schedule.algorithm);
  out.AddText("kind", schedule.kind == ScheduleKind::kStep ? "step" : "timed");
  out.AddInt("steps", schedule.num_steps);
  out.AddInt("shards", schedule.collective.num_shards());
  out.AddInt("units_per_shard", schedule.units_per_shard);
  out.AddInt("transfers_total", std::ssize(schedule.transfers));
  out.AddInt("size_bytes", facts.size_bytes);
  out.AddRaw("verified", !facts.verified ? "null" : *facts.verified ? "true" : "false");
  out.AddInt("faults_total", facts.num_faults);
  out.AddRaw("faults", FaultsJson(facts.faults));
  out.AddText("note", facts.note);
  if (facts.bounds == nullptr) return;
  out.AddRaw("bounds", BoundsJson(topology, *facts.bounds));
  out.AddInt("bound_ps", Picoseconds(facts.bounds->Seconds(facts.size_bytes)));
}

// The ranks alone, each pair that exchanged messages as a link of unknown bandwidth.
std::string PairsJson(const Topology& topology,
                      const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  std::vector<std::string> names;
  for (const NodeId rank : topology.Ranks()) names.push_back(AsciiJson(topology.node_name(rank)));
  JsonObject links;
  links.AddColumn("tail", pairs.size(), [&](size_t i) { return pairs[i].first; });
  links.AddColumn("head", pairs.size(), [&](size_t i) { return pairs[i].second; });
  links.AddColumn("bandwidth", pairs.size(), [](size_t) { return 0; });
  links.AddColumn("alpha_ps", pairs.size(), [](size_t) { return 0; });
  JsonObject out;
  out.AddText("name", topology.name() + ", pairs of ranks");
  out.AddInt("ranks", topology.num_ranks());
  out.AddInt("nodes", topology.num_ranks());
  out.AddInt("links_total", std::ssize(pairs));
  out.AddInt("host_limits", 0);
  out.AddRaw("names", ArrayJson(names));
  out.AddRaw("grid", "null");
  out.AddRaw("links", links.ToString());
  return out.ToString();
}

}  // namespace

int32_t PageData::KeepNetwork(std::string json) {
  const auto known = std::find(networks_.begin(), networks_.end(), json);
  const auto index = static_cast<int32_t>(known - networks_.begin());
  if (known == networks_.end()) networks_.push_back(std::move(json));
  return index;
}

int32_t PageData::AddNetwork(const Topology& topology) {
  JsonObject out;
  out.AddText("name", topology.name());
  out.AddInt("ranks", topology.num_ranks());
  out.AddInt("nodes", topology.num_nodes());
  out.AddInt("links_total", topology.num_links());
  out.AddInt("host_limits", topology.has_host_limits() ? 1 : 0);
  if (IsGrouped(topology)) {
    out.AddRaw("groups", GroupsJson(topology));
  } else {
    out.AddRaw("names", NamesJson(topology));
    const std::optional<DrawnGrid> grid = DrawnGridOf(topology);
    out.AddRaw("grid", grid ? GridJson(*grid) : "null");
    out.AddRaw("links", LinksJson(topology));
  }
  return KeepNetwork(out.ToString());
}

void PageData::AddLimit(int32_t network, const Topology& topology, CollectiveKind collective,
                        const Bounds& bounds) {
  JsonObject out;
  out.AddInt("network", network);
  out.AddText("collective", Name(collective));
  out.AddRaw("bounds", BoundsJson(topology, bounds));
  limits_.push_back(out.ToString());
}

void PageData::AddSchedule(int32_t network, const Topology& topology, const Schedule& schedule,
                           const PageSchedule& facts) {
  JsonObject out;
  AddFacts(network, topology, schedule, facts, out);
  if (facts.report != nullptr)
    out.AddRaw("simulation",
               SimulationJson(*facts.report,
                              facts.options.link_model == LinkModel::kHeld ? "held" : "pipelined",
                              facts.options.step_mode == StepMode::kBarrier ? "barrier" : "eager",
                              UseJson(topology, *facts.report)));
  AddDetails(topology, schedule, facts, out);
  schedules_.push_back(out.ToString());
}

void PageData::AddExecuted(int32_t network, const Topology& topology, const Schedule& schedule,
                           const PageSchedule& facts, const std::vector<PageExecuted>& messages) {
  const ExecutedRun run = RunOf(topology, schedule.collective, facts.size_bytes, messages);
  if (!run.pairs.empty()) network = KeepNetwork(PairsJson(topology, run.pairs));
  const bool grouped = run.pairs.empty() && IsGrouped(topology);
  JsonObject out;
  AddFacts(network, topology, schedule, facts, out);
  out.AddRaw("simulation",
             SimulationJson(run.report, "", "executed",
                            grouped ? UseJson(topology, run.report)
                                    : UseJson(run.report.link_busy_s, run.report.link_bytes)));
  if (grouped || std::ssize(messages) > kMaxDrawnTransfers)
    out.AddText("omitted",
                fmt::format("A page does not show each of {} messages.", messages.size()));
  else
    out.AddRaw("messages", MessagesJson(run.report.trace));
  schedules_.push_back(out.ToString());
}

std::string PageData::ToJson() const {
  JsonObject out;
  out.AddText("format", "tutti-explorer");
  out.AddInt("version", 1);
  out.AddText("command", command_);
  out.AddRaw("networks", ArrayJson(networks_));
  out.AddRaw("limits", ArrayJson(limits_));
  out.AddRaw("schedules", ArrayJson(schedules_));
  if (!flows_.empty()) out.AddRaw("flows", ArrayJson(flows_));
  for (const auto& [key, json] : views_) out.AddRaw(key, json);
  return out.ToString();
}

}  // namespace tutti
