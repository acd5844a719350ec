// tutti diff
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "best_ranges.h"
#include "common.h"
#include "schedule_source.h"
#include "sim_flags.h"
#include "tutti/advise/best_by_size.h"
#include "tutti/advise/difference.h"
#include "tutti/advise/shape.h"
#include "tutti/base/units.h"

namespace tutti::cli {
namespace {

struct DiffFlags {
  std::string a, b, size = "1KiB,1MiB,1GiB";
  int32_t links = 5;
  SimFlags sim;
};

// Schedules with more transfers together are not simulated at all sizes.
constexpr size_t kMaxToSimulate = 100'000;

struct Side {
  const ScheduleFile& file;
  std::vector<LinkTraffic> traffic;
  int32_t height = 0;  // branches from a contributor to a receiver, at most
  Rational sent;       // over all links, in M
};

Side SideOf(const ScheduleFile& file) {
  Side side{file, TrafficOf(file.topology, file.schedule), 0, {}};
  const ScheduleShape shape = ShapeOf(file.topology, file.schedule, Boxes());
  side.height = shape.spread.max_height + shape.reduced.max_height;
  for (const LinkTraffic& row : side.traffic) side.sent += row.share;
  return side;
}

struct AtSize {
  int64_t size = 0;
  CriticalChain a, b;
};

struct Compared {
  Side a, b;
  std::vector<std::string> reasons;  // why they are not comparable
  bool equal = false;
  std::vector<LinkDifference> links;
  std::vector<AtSize> sizes;
  std::optional<FallingBehind> behind;  // at the last size
  std::vector<BestRange> best;
};

Result<std::vector<BestRange>> BestOf(const Compared& all, const SimOptions& options) {
  const ScheduleFile &a = all.a.file, &b = all.b.file;
  if (a.schedule.transfers.size() + b.schedule.transfers.size() > kMaxToSimulate)
    return std::vector<BestRange>();
  return BestBySimulation({{"a", &a.topology, a.schedule}, {"b", &b.topology, b.schedule}},
                          options);
}

Result<Compared> Compare(const ScheduleFile& a, const ScheduleFile& b, const DiffFlags& flags,
                         const std::vector<int64_t>& sizes) {
  Compared all{SideOf(a), SideOf(b), {}, false, {}, {}, {}, {}};
  const ScheduleOn one{a.topology, a.schedule}, other{b.topology, b.schedule};
  all.reasons = WhyNotComparable(one, other);
  if (!all.reasons.empty()) return all;
  all.equal = SameTransfers(a.schedule, b.schedule);
  if (all.equal) return all;
  all.links = LinkDifferences(a.topology, all.a.traffic, all.b.traffic);
  SimOptions options = flags.sim.Make();
  for (const int64_t size : sizes) {
    options.size_bytes = size;
    Result<CriticalChain> of_a = FindCriticalChain(a.topology, a.schedule, options);
    if (!of_a) return tl::unexpected(of_a.error());
    Result<CriticalChain> of_b = FindCriticalChain(b.topology, b.schedule, options);
    if (!of_b) return tl::unexpected(of_b.error());
    all.sizes.push_back({size, *std::move(of_a), *std::move(of_b)});
  }
  Result<std::optional<FallingBehind>> behind = FirstBehind(one, other, options);
  if (!behind) return tl::unexpected(behind.error());
  all.behind = *std::move(behind);
  Result<std::vector<BestRange>> best = BestOf(all, options);
  if (!best) return tl::unexpected(best.error());
  all.best = *std::move(best);
  return all;
}

// --- Text ----------------------------------------------------------------------------------------

std::string KindText(const Schedule& schedule) {
  return schedule.kind == ScheduleKind::kStep ? "steps"
                                              : "timed for " + ReadableSize(schedule.size_bytes);
}

std::string BusiestText(const Side& side) {
  if (side.traffic.empty()) return "-";
  return Exact(BusiestOf(side.traffic).share);
}

std::string FiguresText(const Compared& all) {
  Table table({"", "a", "b"});
  const Schedule &a = all.a.file.schedule, &b = all.b.file.schedule;
  table.AddRow({"algorithm", a.algorithm, b.algorithm});
  table.AddRow({"collective", std::string(Name(a.collective.kind())),
                std::string(Name(b.collective.kind()))});
  // Those of imported networks name all their files.
  const std::string on_a = NameOf(all.a.file.topology), on_b = NameOf(all.b.file.topology);
  table.AddRow({"on network", on_a, on_a == on_b && all.reasons.empty() ? "the same" : on_b});
  table.AddRow({"kind", KindText(a), KindText(b)});
  if (a.kind == ScheduleKind::kStep || b.kind == ScheduleKind::kStep)
    table.AddRow({"steps", std::to_string(a.num_steps), std::to_string(b.num_steps)});
  table.AddRow({"chunks per shard", Count(a.units_per_shard), Count(b.units_per_shard)});
  table.AddRow({"shards", Count(a.collective.num_shards()), Count(b.collective.num_shards())});
  table.AddRow({"transfers", Count(std::ssize(a.transfers)), Count(std::ssize(b.transfers))});
  table.AddRow({"height", std::to_string(all.a.height), std::to_string(all.b.height)});
  table.AddRow({"sent over all links (M)", Exact(all.a.sent), Exact(all.b.sent)});
  table.AddRow({"busiest link (M)", BusiestText(all.a), BusiestText(all.b)});
  return table.ToString();
}

std::string LinksText(const Compared& all, const DiffFlags& flags) {
  if (all.links.empty()) return "every link carries as much in both\n";
  Table table({"link", "a (M)", "b (M)"});
  const auto shown = std::min(static_cast<size_t>(flags.links), all.links.size());
  for (size_t i = 0; i < shown; ++i)
    table.AddRow({LinkName(all.a.file.topology, all.links[i].link), Exact(all.links[i].a),
                  Exact(all.links[i].b)});
  return fmt::format("{} of {} links carry unlike much\n{}", all.links.size(),
                     all.a.file.topology.num_links(), shown > 0 ? table.ToString() : "");
}

std::string PartsText(const CriticalChain& chain) {
  const auto part = [&chain](double seconds) {
    return Percent(chain.time_s > 0 ? seconds / chain.time_s : 0);
  };
  return fmt::format("{} / {} / {}", part(chain.latency_s), part(chain.bandwidth_s),
                     part(chain.waiting_s));
}

std::string SizesText(const Compared& all) {
  Table table({"size", "a", "b", "b / a", "a: latency / bandwidth / waiting",
               "b: latency / bandwidth / waiting"});
  for (const AtSize& at : all.sizes)
    table.AddRow({ReadableSize(at.size), Seconds(at.a.time_s), Seconds(at.b.time_s),
                  at.a.time_s > 0 ? fmt::format("{:.3f}", at.b.time_s / at.a.time_s) : "-",
                  PartsText(at.a), PartsText(at.b)});
  return table.ToString();
}

std::string BehindText(const Compared& all) {
  if (!all.behind) return "";
  const char* const who = all.behind->is_b ? "b" : "a";
  return fmt::format(
      "at {}, {} falls behind with the first {} % of what it sends: there after {}, the other "
      "after "
      "{}; it was then busy over {}\n",
      ReadableSize(all.sizes.back().size), who, all.behind->tenths * 10,
      Seconds(all.behind->time_s), Seconds(all.behind->other_s),
      LinkName(all.a.file.topology, all.behind->on));
}

void PrintText(const Compared& all, const DiffFlags& flags) {
  fmt::print("{}\n", FiguresText(all));
  for (const std::string& reason : all.reasons) fmt::print("not comparable: {}\n", reason);
  if (!all.reasons.empty()) return;
  if (all.equal) {
    fmt::print("equal: the same transfers at the same times\n");
    return;
  }
  fmt::print("{}\n{}", LinksText(all, flags), SizesText(all));
  if (!all.best.empty()) fmt::print("faster: {}\n", Text(all.best));
  fmt::print("{}", BehindText(all));
}

// --- JSON ----------------------------------------------------------------------------------------

Json JsonOf(const Side& side) {
  Json json;
  DescribeSchedule(side.file.schedule, json);
  json["topology"] = side.file.topology.name();
  json["kind"] = side.file.schedule.kind == ScheduleKind::kStep ? "steps" : "timed";
  json["height"] = side.height;
  json["sent"] = ToJson(side.sent);
  if (!side.traffic.empty()) json["busiest_share"] = ToJson(BusiestOf(side.traffic).share);
  return json;
}

Json JsonOf(const CriticalChain& chain) {
  return {{"time_s", chain.time_s},
          {"latency_s", chain.latency_s},
          {"bandwidth_s", chain.bandwidth_s},
          {"waiting_s", chain.waiting_s},
          {"messages", chain.messages.size()}};
}

void PrintJson(const Compared& all, const DiffFlags& flags) {
  Json out;
  out["equal"] = all.equal;
  out["comparable"] = all.reasons.empty();
  out["reasons"] = all.reasons;
  out["a"] = JsonOf(all.a);
  out["b"] = JsonOf(all.b);
  if (!all.reasons.empty() || all.equal) return Print(out);
  out["links_unlike"] = all.links.size();
  out["unlike"] = Json::array();
  for (size_t i = 0; i < std::min(static_cast<size_t>(flags.links), all.links.size()); ++i) {
    Json entry;
    entry["link"] = all.links[i].link.value;
    entry["name"] = LinkName(all.a.file.topology, all.links[i].link);
    entry["a"] = ToJson(all.links[i].a);
    entry["b"] = ToJson(all.links[i].b);
    out["unlike"].push_back(entry);
  }
  for (const AtSize& at : all.sizes) {
    Json row;
    row["size_bytes"] = at.size;
    row["a"] = JsonOf(at.a);
    row["b"] = JsonOf(at.b);
    out["rows"].push_back(row);
  }
  out["best_by_size"] = all.best.empty() ? Json(nullptr) : ToJson(all.best);
  out["behind"] = nullptr;
  if (all.behind)
    out["behind"] = {{"who", Json(all.behind->is_b ? "b" : "a")},
                     {"tenths", all.behind->tenths},
                     {"time_s", all.behind->time_s},
                     {"other_s", all.behind->other_s},
                     {"link", all.behind->on.value},
                     {"name", Json(LinkName(all.a.file.topology, all.behind->on))}};
  Print(out);
}

int Run(const Program& program, const DiffFlags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const Result<ScheduleFile> a = LoadScheduleFile(flags.a);
  if (!a) return Report(a.error());
  const Result<ScheduleFile> b = LoadScheduleFile(flags.b);
  if (!b) return Report(b.error());
  const Result<Compared> all = Compare(*a, *b, flags, *sizes);
  if (!all) return Report(all.error());
  if (program.json)
    PrintJson(*all, flags);
  else
    PrintText(*all, flags);
  return all->equal ? kDone : kAnswerIsNo;
}

}  // namespace

void AddDiff(Program& program) {
  auto flags = std::make_shared<DiffFlags>();
  Command command = program.AddCommand(
      program.line.root(), "diff",
      "How two schedules differ: links, times, where one falls behind; exit code 1 where they do",
      "tutti diff ring.sched forest.sched --size 1MiB,1GiB");
  command.AddOption("a", flags->a, "File with a schedule").Required();
  command.AddOption("b", flags->b, "File with the other schedule").Required();
  command.AddOption("-s,--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  command.AddOption("--links", flags->links, "How many of the links that differ most to print")
      .ShowDefault()
      .Within(0, 1 << 24);
  flags->sim.AddTo(command);
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
