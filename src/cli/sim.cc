// tutti sim
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "common.h"
#include "sim_flags.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/sched/store.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string path, size, trace;
  SimFlags sim;
  int32_t links = 10, bins = 0;
};

// The busiest links first.
std::vector<LinkId> BusiestLinks(const SimReport& report, int32_t most) {
  std::vector<LinkId> links(report.link_busy_s.size());
  for (size_t i = 0; i < links.size(); ++i) links[i] = LinkId{static_cast<int32_t>(i)};
  const size_t shown = std::min(links.size(), static_cast<size_t>(most));
  std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(shown), links.end(),
                    [&report](LinkId a, LinkId b) {
                      const double busy_a = report.link_busy_s[a.index()];
                      const double busy_b = report.link_busy_s[b.index()];
                      return busy_a != busy_b ? busy_a > busy_b : a < b;
                    });
  links.resize(shown);
  return links;
}

int Simulate(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  SimOptions options = flags.sim.Make();
  if (!flags.trace.empty() && sizes->size() != 1)
    return Report({ErrorCode::kInvalidArgument, "--trace takes one size"});
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  const Result<Bounds> bounds = ComputeBounds(file->topology, file->schedule.collective);
  if (!bounds) return Report(bounds.error());

  Json out;
  DescribeTopology(file->topology, out);
  DescribeSchedule(file->schedule, out);
  out["link_model"] = flags.sim.links.name;
  out["mode"] = flags.sim.mode;
  Table table(
      {"size", "time", "bound", "efficiency", "algbw", "busbw", "mean link use", "in flight"});
  Table busiest({"link", "busy", "of the time", "bytes"});
  Table over_time({"from", "links busy", "in flight"});
  for (int64_t size : *sizes) {
    options.size_bytes = size;
    options.record_messages = !flags.trace.empty() || flags.bins > 0;
    const Result<SimReport> report = tutti::Simulate(file->topology, file->schedule, options);
    if (!report) return Report(report.error());
    const bool barrier =
        options.step_mode == StepMode::kBarrier && file->schedule.kind == ScheduleKind::kStep;
    const double bound = bounds->Seconds(size, barrier);
    const double busy =
        std::accumulate(report->link_busy_s.begin(), report->link_busy_s.end(), 0.0);
    const double utilisation =
        busy /
        (report->time_s * static_cast<double>(std::max<size_t>(report->link_busy_s.size(), 1)));
    table.AddRow({FormatSize(size), Seconds(report->time_s), Seconds(bound),
                  Percent(bound / report->time_s), BytesPerSecond(report->algbw),
                  BytesPerSecond(report->busbw), Percent(utilisation),
                  std::to_string(report->max_in_flight)});
    Json row;
    row["size_bytes"] = size;
    row["time_s"] = report->time_s;
    row["bound_s"] = bound;
    row["efficiency"] = bound / report->time_s;
    row["algbw"] = report->algbw;
    row["busbw"] = report->busbw;
    row["messages"] = report->messages;
    row["max_in_flight"] = report->max_in_flight;
    row["mean_link_utilisation"] = utilisation;
    for (LinkId link : BusiestLinks(*report, flags.links)) {
      const std::string name =
          fmt::format("{} -> {}", file->topology.node_name(file->topology.tail(link)),
                      file->topology.node_name(file->topology.head(link)));
      const double share = report->link_busy_s[link.index()] / report->time_s;
      row["busiest_links"].push_back({{"link", link.value},
                                      {"name", name},
                                      {"busy_s", report->link_busy_s[link.index()]},
                                      {"utilisation", share},
                                      {"bytes", report->link_bytes[link.index()]}});
      if (sizes->size() == 1)
        busiest.AddRow({name, Seconds(report->link_busy_s[link.index()]), Percent(share),
                        fmt::format("{:.0f}", report->link_bytes[link.index()])});
    }
    for (const UtilisationBin& bin : UtilisationOverTime(*report, flags.bins)) {
      row["over_time"].push_back({{"begin_s", bin.begin_s},
                                  {"end_s", bin.end_s},
                                  {"links_busy", bin.links_busy},
                                  {"in_flight", bin.in_flight}});
      if (sizes->size() == 1)
        over_time.AddRow(
            {Seconds(bin.begin_s), Percent(bin.links_busy), fmt::format("{:.1f}", bin.in_flight)});
    }
    if (sizes->size() == 1)
      for (const auto& [key, value] : row.items()) out[key] = value;
    else
      out["rows"].push_back(row);
    if (!flags.trace.empty()) {
      const std::string trace = ToChromeTrace(file->topology, file->schedule, *report);
      if (const Status written = WriteFileAtomically(flags.trace, trace); !written)
        return Report(written.error());
    }
  }
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{} on {} by {}, links {}, steps {}\n\n{}", Name(file->schedule.collective.kind()),
             file->topology.name(), file->schedule.algorithm, flags.sim.links.name, flags.sim.mode,
             table.ToString());
  if (sizes->size() == 1 && flags.links > 0) fmt::print("\n{}", busiest.ToString());
  if (sizes->size() == 1 && flags.bins > 0) fmt::print("\n{}", over_time.ToString());
  if (!flags.trace.empty())
    fmt::print("\ntrace in {}: open it in chrome://tracing or Perfetto\n", flags.trace);
  return kDone;
}

}  // namespace

void AddSim(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.AddCommand(
      &program.app, "sim", "Simulate a schedule event by event: time, bandwidth, use of each link",
      "tutti sim torus.sched --size 64MiB --mode eager --trace timeline.json");
  command->add_option("file", flags->path, "Schedule file")->required();
  command->add_option("--size", flags->size, "Sizes M, separated by commas")->required();
  flags->sim.AddTo(command);
  command->add_option("--trace", flags->trace, "Write a timeline in the Chrome trace format");
  command->add_option("--links", flags->links, "How many of the busiest links to print")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  command
      ->add_option("--bins", flags->bins,
                   "Print links busy and messages in flight over time, in so many equal parts")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  command->callback([&program, flags] {
    program.action = [&program, flags] { return Simulate(program, *flags); };
  });
}

}  // namespace tutti::cli
