// tutti sim
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "common.h"
#include "files.h"
#include "html.h"
#include "routing.h"
#include "sim_flags.h"
#include "switched.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/store/store.h"

namespace tutti::cli {
namespace {

struct SimulationFlags {
  std::string path, size, trace;
  SimFlags sim;
  SwitchedFlags switched;
  HtmlFlag html;
  std::string forwarding = "nic";
  int32_t links = 10, bins = 0;
  std::optional<Command> command = {};
};

// Flags of schedules do not go with routings, nor the other way round; the timeline is no input.
Status CheckFlags(const SimulationFlags& flags, bool is_routing) {
  for (const char* of_schedules :
       {"--link-model", "--mode", "--trace", "--bins", "--html", "--network", "--ecmp", "--routes"})
    if (is_routing && flags.command->Has(of_schedules))
      return InvalidArgument(
          fmt::format("{} holds a routing; {} is for schedules", flags.path, of_schedules));
  if (!is_routing && flags.command->Has("--forwarding"))
    return InvalidArgument(
        fmt::format("{} holds a schedule; --forwarding is for routings", flags.path));
  if (const Status kept = flags.html.Check({flags.path}, flags.trace); !kept) return kept;
  return KeepInputs(flags.trace, {flags.path});
}

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

// What is printed of the simulations of one schedule.
class SimPrinter {
 public:
  // `switched` may be null.
  SimPrinter(const ScheduleFile& file, const SimulationFlags& flags, size_t num_sizes,
             const SwitchedNetwork* switched)
      : file_(file), flags_(flags), one_size_(num_sizes == 1), switched_(switched) {
    DescribeTopology(file.topology, json_);
    DescribeSchedule(file.schedule, json_);
    json_["link_model"] = flags.sim.links.name;
    json_["mode"] = flags.sim.mode;
    if (switched == nullptr) return;
    json_["network"] = NameOf(switched->topology());
    std::vector<std::string> header = switched->Columns();
    header.insert(header.begin(), "size");
    over_switches_ = Table(std::move(header));
  }

  void Add(int64_t size, double bound_s, const SimReport& report, const SwitchedTimes& times) {
    const double utilisation = OfTheTime(report, std::accumulate(report.link_busy_s.begin(),
                                                                 report.link_busy_s.end(), 0.0)) /
                               static_cast<double>(std::max<size_t>(report.link_busy_s.size(), 1));
    const double efficiency = Efficiency(bound_s, report.time_s);
    sizes_.AddRow({ReadableSize(size), Seconds(report.time_s), Seconds(bound_s),
                   Percent(efficiency), BytesPerSecond(report.algbw), BytesPerSecond(report.busbw),
                   Percent(utilisation), std::to_string(report.max_in_flight)});
    Json row;
    row["size_bytes"] = size;
    row["time_s"] = report.time_s;
    row["bound_s"] = bound_s;
    row["efficiency"] = efficiency;
    row["algbw"] = report.algbw;
    row["busbw"] = report.busbw;
    row["messages"] = report.messages;
    row["max_in_flight"] = report.max_in_flight;
    row["mean_link_utilisation"] = utilisation;
    AddBusiestLinks(report, row);
    AddOverTime(report, row);
    if (switched_ != nullptr) {
      switched_->Describe(times, row);
      std::vector<std::string> cells = switched_->Cells(times);
      cells.insert(cells.begin(), ReadableSize(size));
      over_switches_.AddRow(std::move(cells));
    }
    if (!one_size_) return json_["rows"].push_back(row);
    for (const auto& [key, value] : row.items()) json_[key] = value;
  }

  void PrintJson() const { Print(json_); }

  void PrintText() const {
    fmt::print("{} on {} by {}, links {}, steps {}\n\n{}", Name(file_.schedule.collective.kind()),
               NameOf(file_.topology), file_.schedule.algorithm, flags_.sim.links.name,
               flags_.sim.mode, sizes_.ToString());
    if (switched_ != nullptr)
      fmt::print("\n{}\n\n{}", switched_->Title(), over_switches_.ToString());
    if (one_size_ && flags_.links > 0) fmt::print("\n{}", busiest_.ToString());
    if (one_size_ && flags_.bins > 0) fmt::print("\n{}", over_time_.ToString());
    if (!flags_.trace.empty())
      fmt::print("\ntrace in {}: open it in chrome://tracing or Perfetto\n", flags_.trace);
    fmt::print("{}", flags_.html.Text());
  }

 private:
  static double OfTheTime(const SimReport& report, double busy_s) {
    return report.time_s > 0 ? busy_s / report.time_s : 0;
  }

  void AddBusiestLinks(const SimReport& report, Json& row) {
    const Topology& topology = file_.topology;
    for (LinkId link : BusiestLinks(report, flags_.links)) {
      const std::string name = fmt::format("{} -> {}", topology.node_name(topology.tail(link)),
                                           topology.node_name(topology.head(link)));
      const double busy_s = report.link_busy_s[link.index()];
      const double bytes = report.link_bytes[link.index()];
      row["busiest_links"].push_back({{"link", link.value},
                                      {"name", name},
                                      {"busy_s", busy_s},
                                      {"utilisation", OfTheTime(report, busy_s)},
                                      {"bytes", bytes}});
      busiest_.AddRow({name, Seconds(busy_s), Percent(OfTheTime(report, busy_s)),
                       fmt::format("{:.0f}", bytes)});
    }
  }

  void AddOverTime(const SimReport& report, Json& row) {
    for (const UtilisationBin& bin : UtilisationOverTime(report, flags_.bins)) {
      row["over_time"].push_back({{"begin_s", bin.begin_s},
                                  {"end_s", bin.end_s},
                                  {"links_busy", bin.links_busy},
                                  {"in_flight", bin.in_flight}});
      over_time_.AddRow(
          {Seconds(bin.begin_s), Percent(bin.links_busy), fmt::format("{:.1f}", bin.in_flight)});
    }
  }

  const ScheduleFile& file_;
  const SimulationFlags& flags_;
  const bool one_size_;
  const SwitchedNetwork* switched_;
  Json json_;
  Table sizes_{
      {"size", "time", "bound", "efficiency", "algbw", "busbw", "mean link use", "in flight"}};
  Table busiest_{{"link", "busy", "of the time", "bytes"}};
  Table over_time_{{"from", "links busy", "in flight"}};
  Table over_switches_{{}};
};

int SimulateScheduleFile(const Program& program, const SimulationFlags& flags,
                         const std::vector<int64_t>& sizes) {
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return Report(file.error());
  const Result<Bounds> bounds = BoundsOf(file->topology, file->schedule.collective);
  if (!bounds) return Report(bounds.error());
  const Result<std::optional<SwitchedNetwork>> switched = SwitchedNetwork::Make(flags.switched);
  if (!switched) return Report(switched.error());
  SimOptions options = flags.sim.Make();
  options.record_messages = !flags.trace.empty() || flags.bins > 0 || flags.html.given();
  PageData data("sim");
  const int32_t network = data.AddNetwork(file->topology);
  SimPrinter printed(*file, flags, sizes.size(), *switched ? &**switched : nullptr);
  for (const int64_t size : sizes) {
    options.size_bytes = size;
    const Result<SimReport> report = tutti::Simulate(file->topology, file->schedule, options);
    if (!report) return Report(report.error());
    SwitchedTimes times;
    if (*switched) {
      Result<SwitchedTimes> made = (*switched)->Simulate(file->topology, file->schedule, size);
      if (!made) return Report(made.error());
      times = *std::move(made);
    }
    printed.Add(size, bounds->Seconds(size), *report, times);
    if (flags.html.given())
      data.AddSchedule(network, file->topology, file->schedule,
                       {.label = ReadableSize(size),
                        .size_bytes = size,
                        .bounds = &*bounds,
                        .report = &*report,
                        .options = options});
    if (flags.trace.empty()) continue;
    const std::string trace = ToChromeTrace(file->topology, file->schedule, *report);
    if (const Status written = WriteFileAtomically(flags.trace, trace); !written)
      return Report(written.error());
  }
  if (const Status written = flags.html.Write(data); !written) return Report(written.error());
  if (program.json)
    printed.PrintJson();
  else
    printed.PrintText();
  return kDone;
}

int Simulate(const Program& program, const SimulationFlags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  if (!flags.trace.empty() && sizes->size() != 1)
    return Report({ErrorCode::kInvalidArgument, "--trace takes one size"});
  const Result<FileKind> kind = KindOfInput(
      flags.path, {FileKind::kSchedule, FileKind::kSymmetricSchedule, FileKind::kRouting});
  if (!kind) return Report(kind.error());
  const bool is_routing = *kind == FileKind::kRouting;
  if (const Status fits = CheckFlags(flags, is_routing); !fits) return Report(fits.error());
  if (!is_routing) return SimulateScheduleFile(program, flags, *sizes);
  const ForwardingPlace place =
      flags.forwarding == "host" ? ForwardingPlace::kHost : ForwardingPlace::kNic;
  return SimulateRoutingFile(program, flags.path, *sizes, place, flags.links);
}

}  // namespace

void AddSim(Program& program) {
  auto flags = std::make_shared<SimulationFlags>();
  Command command =
      program.AddCommand(program.line.root(), "sim",
                         "Simulate a schedule event by event, or the flows of a routing: time, "
                         "bandwidth, use of each link",
                         "tutti sim torus.sched --size 64MiB --mode eager --trace timeline.json");
  command.AddOption("file", flags->path, "File with a schedule or a routing").Required();
  flags->command = command;
  command.AddOption("--size", flags->size, "Sizes M, separated by commas").Required();
  flags->sim.AddTo(command);
  flags->switched.AddTo(command);
  command
      .AddOption("--forwarding", flags->forwarding,
                 "Of routings, who forwards: nic: a host limit holds for what begins or ends at "
                 "its rank; host: for all that its links bring and take")
      .ShowDefault()
      .OneOf({"nic", "host"});
  command.AddOption("--trace", flags->trace, "Write a timeline in the Chrome trace format");
  flags->html.AddTo(command);
  command.AddOption("--links", flags->links, "How many of the busiest links to print")
      .ShowDefault()
      .Within(0, 1 << 24);
  command
      .AddOption("--bins", flags->bins,
                 "Print links busy and messages in flight over time, in so many equal parts")
      .ShowDefault()
      .Within(0, 100000);
  command.Runs([&program, flags] { return Simulate(program, *flags); });
}

}  // namespace tutti::cli
