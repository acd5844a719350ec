// tutti compare
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "best_ranges.h"
#include "choice.h"
#include "common.h"
#include "compare_page.h"
#include "files.h"
#include "html.h"
#include "routing.h"
#include "sim_flags.h"
#include "switched.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/operators.h"
#include "tutti/verify/verifier.h"
#include "unwind.h"

namespace tutti::cli {
namespace {

struct CompareFlags {
  std::string topology, algorithms, unwind, size = "1GiB";
  CollectiveFlags collective;
  RoutingFlags routing;
  SimFlags sim;
  SwitchedFlags switched;
  ChunksFlag chunks;
  ElementFlag element;
  uint64_t seed = 1;
  HtmlFlag html;
};

// A name and what it stands for; nothing: the best of all.
struct Entry {
  std::string name;
  const Synthesizer* synthesizer = nullptr;
};
struct Choice {
  std::vector<Entry> entries;
  std::vector<const Router*> routers;
};

// Those named, or all that make the collective and are quick.
Result<Choice> Chosen(const std::string& names, CollectiveKind kind) {
  Choice chosen;
  if (names.empty()) {
    for (const Synthesizer& synthesizer : Synthesizers())
      if (!synthesizer.on_request_only &&
          std::count(synthesizer.collectives.begin(), synthesizer.collectives.end(), kind) > 0)
        chosen.entries.push_back({std::string(synthesizer.name), &synthesizer});
    return chosen;
  }
  size_t begin = 0;
  for (;;) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, comma - begin);
    const Result<const Synthesizer*> found = FindAlgorithm(name);
    const Router* const router = FindRouter(name);
    if (!found && router == nullptr) return tl::unexpected(found.error());
    if (router != nullptr) chosen.routers.push_back(router);
    if (found) chosen.entries.push_back({std::move(name), *found});
    if (comma == names.size()) return chosen;
    begin = comma + 1;
  }
}

// The network asked for and what became of it where each algorithm has its own unwinding.
class Networks {
 public:
  explicit Networks(Topology whole, bool tries_unwindings)
      : whole_(std::move(whole)), tries_unwindings_(tries_unwindings && whole_.has_switches()) {}

  const Topology& whole() const { return whole_; }
  bool tries_unwindings() const { return tries_unwindings_; }
  // Stays where it is.
  const Topology& Keep(const Unwound& unwound) {
    return unwound_.try_emplace(unwound.degree, unwound.topology).first->second;
  }
  // Bounds of what is asked for on `network`, which is one of these.
  Result<Bounds> BoundsOn(const Topology& network, const Collective& collective) {
    if (const auto known = bounds_.find(&network); known != bounds_.end()) return known->second;
    Result<Bounds> bounds = BoundsOf(network, collective);
    if (bounds) bounds_.emplace(&network, *bounds);
    return bounds;
  }

 private:
  Topology whole_;
  bool tries_unwindings_;
  std::map<int32_t, Topology> unwound_;  // by degree
  std::map<const Topology*, Bounds> bounds_;
};

Result<Networks> MakeNetworks(const CompareFlags& flags) {
  if (flags.unwind.empty() || flags.unwind == kTrySeveral)
    return ParseTopology(flags.topology).map([&](Topology topology) {
      return Networks(std::move(topology), !flags.unwind.empty());
    });
  return Unwind(flags.topology, flags.unwind, nullptr, flags.collective, {})
      .map([](Unwound unwound) { return Networks(std::move(unwound.topology), false); });
}

// Where networks are tried for algorithms, routings have no part.
Status CheckUnwindings(const Networks& networks, Choice& chosen) {
  if (!networks.tries_unwindings()) return {};
  for (const Router* router : chosen.routers)
    if (!FindSynthesizer(router->name))
      return InvalidArgument(fmt::format(
          "--unwind auto is for schedules, and '{}' makes a routing: give --unwind a degree",
          router->name));
  chosen.routers.clear();
  return {};
}

struct Made {
  const Topology* topology;
  Schedule schedule;
  double synthesis_s;
  std::optional<Unwound> unwound;
};

// Options that only some algorithms have are given to those that have them.
SynthOptions OptionsOf(const Entry& entry, const CompareFlags& flags, int64_t size) {
  const SynthOptions options{.chunks = flags.chunks.count(),
                             .seed = flags.seed,
                             .size_bytes = size,
                             .element_bytes = flags.element.bytes(),
                             .link_model = flags.sim.links.model(),
                             .auto_chunks = flags.chunks.is_auto(),
                             .max_seconds = flags.routing.time_limit};
  return entry.synthesizer != nullptr ? OptionsFor(*entry.synthesizer, options) : options;
}

// `found`: by the search for the best of all, of which it holds the choice.
Result<Schedule> Synthesize(const Entry& entry, const Topology& topology,
                            const Collective& collective, const SynthOptions& options,
                            Unwound* found) {
  if (entry.synthesizer != nullptr)
    return RunSynthesizer(*entry.synthesizer, topology, collective, options);
  Result<AutoChoice> choice = found != nullptr ? ChooseOn(*found, collective, options)
                                               : ChooseSynthesizer(topology, collective, options);
  if (!choice) return tl::unexpected(choice.error());
  return std::move(choice->schedule);
}

Result<Made> MakeOn(const Topology& topology, const Entry& entry, const CompareFlags& flags,
                    const SynthOptions& options, Unwound* found = nullptr) {
  const Result<Collective> collective = flags.collective.Make(
      topology, entry.synthesizer != nullptr && entry.synthesizer->one_shard_all_reduce);
  if (!collective) return tl::unexpected(collective.error());
  const auto before = std::chrono::steady_clock::now();
  Result<Schedule> schedule = Synthesize(entry, topology, *collective, options, found);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(topology, schedule->collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct: {}", entry.name,
                                 report.violations.front().message));
  return Made{&topology, std::move(*schedule), elapsed.count(), std::nullopt};
}

// On the unwinding that suits the algorithm best.
Result<Made> MakeUnwound(const Entry& entry, Networks& networks, const CompareFlags& flags,
                         const SynthOptions& options) {
  const auto before = std::chrono::steady_clock::now();
  Result<Unwound> best =
      Unwind(flags.topology, kTrySeveral, entry.synthesizer, flags.collective, options);
  if (!best) return tl::unexpected(best.error());
  const std::chrono::duration<double> searched = std::chrono::steady_clock::now() - before;
  const bool is_whole = best->degree == 0;
  Result<Made> made =
      MakeOn(is_whole ? networks.whole() : networks.Keep(*best), entry, flags, options, &*best);
  if (!made) return made;
  made->synthesis_s += searched.count();
  if (!is_whole) made->unwound = *std::move(best);
  return made;
}

// Whether algorithms for links between ranks get an unwinding where nobody asked for one: as long
// as trying several takes seconds.
bool UnwindsWhereNeeded(const Networks& networks, const CompareFlags& flags) {
  constexpr int32_t kMaxRanks = 64;
  const Topology& whole = networks.whole();
  return flags.unwind.empty() && whole.has_switches() && whole.num_ranks() <= kMaxRanks &&
         !flags.collective.has_groups() && LargestUnwinding(whole).has_value();
}

// An algorithm on the network as it is, or on the unwinding that suits it best: where that was asked
// for, and of algorithms that work over links between ranks; `auto` tries unwindings by itself.
Result<Made> Make(const Entry& entry, Networks& networks, const CompareFlags& flags, int64_t size) {
  const SynthOptions options = OptionsOf(entry, flags, size);
  if (networks.tries_unwindings() ||
      (entry.synthesizer == nullptr && TriesUnwindings(networks.whole(), flags.collective)))
    return MakeUnwound(entry, networks, flags, options);
  Result<Made> made = MakeOn(networks.whole(), entry, flags, options);
  if (made || made.error().code != ErrorCode::kInfeasible || !UnwindsWhereNeeded(networks, flags))
    return made;
  Result<Made> unwound = MakeUnwound(entry, networks, flags, options);
  if (unwound || unwound.error().code == ErrorCode::kCancelled) return unwound;
  return made;
}

// The smallest size of which the chunks of `schedule` are worth their messages, at most `made_for`.
int64_t WorthwhileFrom(const Topology& topology, const Schedule& schedule, int64_t made_for) {
  const int64_t least = WorthwhileChunkBytes(topology);
  int64_t from = 1, to = made_for;
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    if (schedule.units_per_shard == 1 ||
        MostChunks(schedule.collective, middle, least) >= schedule.units_per_shard)
      to = middle;
    else
      from = middle + 1;
  }
  return to;
}

// The schedules that stand for each algorithm at all sizes (advise/best_by_size.h).
class Held {
 public:
  // Beyond so many transfers a schedule is made for the sizes asked for only; all together, they
  // are not simulated at many sizes. Both keep that below a few seconds.
  static constexpr size_t kMaxToMakeAgain = 50'000, kMaxToChooseAgain = 1'000,
                          kMaxToSimulate = 200'000;

  // What `algorithm` makes of `size`; false where it is one of those already held.
  bool Add(const std::string& algorithm, const Made& made, int64_t size) {
    for (HeldSchedule& held : schedules_)
      if (held.algorithm == algorithm && held.schedule == made.schedule) {
        held.from_bytes =
            std::min(held.from_bytes, WorthwhileFrom(*made.topology, made.schedule, size));
        return false;
      }
    transfers_ += made.schedule.transfers.size();
    schedules_.push_back({algorithm, made.topology, made.schedule,
                          WorthwhileFrom(*made.topology, made.schedule, size)});
    return true;
  }

  // What the algorithm makes of other sizes, on the network that it was on last. Most make one
  // schedule of all of them.
  Status AddOtherSizes(const Entry& entry, const CompareFlags& flags) {
    const size_t most = entry.synthesizer == nullptr ? kMaxToChooseAgain : kMaxToMakeAgain;
    if (schedules_.empty() || schedules_.back().algorithm != entry.name ||
        schedules_.back().schedule.transfers.size() > most)
      return {};
    const Topology* const topology = schedules_.back().topology;
    bool differs = false;
    for (int64_t size : kOtherSizes) {
      if (size == kOtherSizes.back() && !differs) break;
      const Result<Made> made = MakeOn(*topology, entry, flags, OptionsOf(entry, flags, size));
      if (!made && made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
      if (!made) return {};
      differs = Add(entry.name, *made, size) || differs;
    }
    return {};
  }

  Result<std::string> Describe(const SimOptions& options, Json& out) {
    if (schedules_.empty()) return std::string();
    ExtendDown();
    const Result<std::vector<BestRange>> by_cost = BestByCost(schedules_);
    if (!by_cost) return tl::unexpected(by_cost.error());
    best_ = *by_cost;
    out["best_by_size_analytic"] = ToJson(*by_cost);
    out["best_by_size"] = nullptr;
    if (transfers_ > kMaxToSimulate)
      return fmt::format("best, analytic: {}\nbest, simulated: too many transfers for all sizes\n",
                         Text(*by_cost));
    const Result<std::vector<BestRange>> simulated = BestBySimulation(schedules_, options);
    if (!simulated) return tl::unexpected(simulated.error());
    best_ = *simulated;
    out["best_by_size"] = ToJson(*simulated);
    const std::string one = Text(*by_cost), other = Text(*simulated);
    if (one == other) return fmt::format("best: {}\n", one);
    return fmt::format("best, analytic: {}\nbest, simulated: {}\n", one, other);
  }

  // Ranges for Describe(): simulated where that is not too much.
  const std::vector<BestRange>& best() const { return best_; }
  // Curves over all sizes to draw; none where that is too much.
  Result<std::vector<PageCurve>> Curves(const SimOptions& options,
                                        const std::vector<int64_t>& sizes) const {
    if (transfers_ > kMaxToSimulate) return std::vector<PageCurve>();
    return CurvesOf(schedules_, options, sizes);
  }

 private:
  // Where the two ends are made alike, so is what lies between.
  static constexpr std::array<int64_t, 3> kOtherSizes{1 << 10, 1 << 30, 1 << 20};

  // What each algorithm makes of the smallest size that was tried stands for all below.
  void ExtendDown() {
    std::map<std::string, HeldSchedule*> smallest;
    for (HeldSchedule& held : schedules_) {
      HeldSchedule*& one = smallest[held.algorithm];
      if (one == nullptr || held.from_bytes < one->from_bytes) one = &held;
    }
    for (const auto& [name, held] : smallest) held->from_bytes = 1;
  }

  std::vector<HeldSchedule> schedules_;
  std::vector<BestRange> best_;
  size_t transfers_ = 0;
};

// One line of the table, and what `--json` says of it.
struct Row {
  Json json;
  std::vector<std::string> cells;
  std::vector<std::string> switched_cells;
  size_t size_index = 0;
  double time_s = 0;
  PageComparison::Row shown;
};

class Comparison {
 public:
  // `switched` may be null.
  Comparison(const CompareFlags& flags, Networks& networks, const Collective& wanted,
             const std::vector<int64_t>& sizes, const SwitchedNetwork* switched)
      : flags_(flags),
        networks_(networks),
        wanted_(wanted),
        sizes_(sizes),
        switched_(switched),
        options_(flags.sim.Make()) {}

  // The error is one that ends all.
  Status Run(const std::vector<Entry>& entries) {
    ProgressScope progress("compare", static_cast<int64_t>(entries.size() * (sizes_.size() + 1)));
    for (const Entry& entry : entries) {
      for (size_t i = 0; i < sizes_.size(); ++i) {
        if (CancelRequested()) return tl::unexpected(CancelledError());
        const Result<bool> goes_on = Add(entry, i);
        if (!goes_on) return tl::unexpected(goes_on.error());
        progress.Add(1);
        if (*goes_on) continue;
        progress.Add(static_cast<int64_t>(sizes_.size() - i) - 1);
        break;
      }
      if (const Status added = held_.AddOtherSizes(entry, flags_); !added) return added;
      progress.Add(1);
    }
    Sort();
    return {};
  }

  bool some() const { return !rows_.empty(); }
  const SwitchedNetwork* switched() const { return switched_; }
  const std::string& reasons() const { return reasons_; }
  // Whether rows have a network each.
  bool has_unwound() const { return has_unwound_; }
  Result<std::string> DescribeBest(Json& out) { return held_.Describe(options_, out); }

  // After DescribeBest().
  Result<PageComparison> ForPage() const {
    PageComparison page{
        .collective = wanted_.kind(),
        .how = fmt::format("simulated, links {}, steps {}", flags_.sim.links.name, flags_.sim.mode),
        .bus_factor = wanted_.BusFactor().ToDouble()};
    const std::vector<int64_t> sizes = SizesToDraw(sizes_, held_.best());
    const Result<Bounds> bounds = networks_.BoundsOn(networks_.whole(), wanted_);
    if (!bounds) return tl::unexpected(bounds.error());
    page.bound = BoundCurve(*bounds, sizes);
    Result<std::vector<PageCurve>> curves = held_.Curves(options_, sizes);
    if (!curves) return tl::unexpected(curves.error());
    page.curves = *std::move(curves);
    for (const BestRange& range : held_.best())
      page.best.push_back({range.algorithm, range.from_bytes});
    for (const Row& row : rows_) page.rows.push_back(row.shown);
    for (const Json& row : failed_) {
      std::pair missing(row["algorithm"].get<std::string>(), row["error"].get<std::string>());
      if (std::count(page.missing.begin(), page.missing.end(), missing) == 0)
        page.missing.push_back(std::move(missing));
    }
    return page;
  }

  Json JsonRows() const {
    Json rows = Json::array();
    for (const Row& row : rows_) rows.push_back(row.json);
    for (const Json& row : failed_) rows.push_back(row);
    return rows;
  }

  std::string Text() const {
    std::vector<std::string> header = {"algorithm", "size",  "steps",      "TB (M/B)", "analytic",
                                       "simulated", "bound", "efficiency", "busbw",    "synthesis"};
    if (has_unwound_) header.emplace_back("degree");
    if (switched_ != nullptr)
      for (std::string& column : switched_->Columns()) header.push_back(std::move(column));
    Table table(header);
    for (const Row& row : rows_) {
      std::vector<std::string> cells = row.cells;
      if (!has_unwound_) cells.pop_back();
      cells.insert(cells.end(), row.switched_cells.begin(), row.switched_cells.end());
      const bool best = row.json["best"].get<bool>();
      cells.front() = (best ? "* " : "  ") + cells.front();
      table.AddRow(std::move(cells));
      if (best) table.MarkBest();
    }
    return table.ToString();
  }

 private:
  // False where the other sizes need not be tried.
  Result<bool> Add(const Entry& entry, size_t size_index) {
    const int64_t size = sizes_[size_index];
    const Result<Made> made = Make(entry, networks_, flags_, size);
    if (!made) return Refuse(entry, size, made.error());
    const Result<Bounds> bounds = networks_.BoundsOn(*made->topology, wanted_);
    if (!bounds) return tl::unexpected(bounds.error());
    const Evaluation evaluation = Evaluate(*made->topology, made->schedule, size, *bounds);
    options_.size_bytes = size;
    const Result<SimReport> sim = Simulate(*made->topology, made->schedule, options_);
    if (!sim) return tl::unexpected(sim.error());
    SwitchedTimes times;
    if (switched_ != nullptr) {
      Result<SwitchedTimes> timed = switched_->Simulate(*made->topology, made->schedule, size);
      if (!timed) return Refuse(entry, size, timed.error());
      times = *std::move(timed);
    }
    held_.Add(entry.name, *made, size);
    has_unwound_ = has_unwound_ || made->unwound.has_value();
    rows_.push_back(MakeRow(entry, *made, evaluation, *sim, size));
    rows_.back().size_index = size_index;
    if (switched_ != nullptr) {
      rows_.back().time_s = times.time_s();
      rows_.back().switched_cells = switched_->Cells(times);
      switched_->Describe(times, rows_.back().json);
    }
    return true;
  }

  Result<bool> Refuse(const Entry& entry, int64_t size, const Error& error) {
    if (error.code == ErrorCode::kCancelled) return tl::unexpected(error);
    Json row;
    row["algorithm"] = entry.name;
    row["size_bytes"] = size;
    row["error"] = error.message;
    failed_.push_back(row);
    const std::string reason = fmt::format("  {}: {}\n", entry.name, error.message);
    if (reasons_.find(reason) == std::string::npos) reasons_ += reason;
    return error.code == ErrorCode::kInfeasible && sizes_.size() > 1;
  }

  static Row MakeRow(const Entry& entry, const Made& made, const Evaluation& evaluation,
                     const SimReport& sim, int64_t size) {
    const bool step = made.schedule.kind == ScheduleKind::kStep;
    const double efficiency = Efficiency(evaluation.bound_s, sim.time_s);
    Row row;
    row.time_s = sim.time_s;
    row.shown = {entry.name,         size,
                 sim.time_s,         evaluation.time_s,
                 evaluation.bound_s, step ? evaluation.cost.tl : -1};
    Json& json = row.json;
    json["algorithm"] = entry.name;
    json["best"] = false;
    DescribeSchedule(made.schedule, json);
    json["algorithm"] = entry.name;
    std::string shown = entry.name;
    if (entry.synthesizer == nullptr) {
      json["chosen"] = made.schedule.algorithm;
      shown += ": " + made.schedule.algorithm;
    }
    DescribeEvaluation(made.schedule, evaluation, size, json);
    if (made.unwound) DescribeUnwound(*made.unwound, json);
    json["analytic_s"] = evaluation.time_s;
    json["time_s"] = sim.time_s;
    json["efficiency"] = efficiency;
    json["algbw"] = sim.algbw;
    json["busbw"] = sim.busbw;
    json["synthesis_s"] = made.synthesis_s;
    json["verified"] = true;
    row.cells = {shown,
                 ReadableSize(size),
                 step ? std::to_string(evaluation.cost.tl) : "-",
                 step ? fmt::format("{:.4f}", evaluation.cost.tb.ToDouble()) : "-",
                 Seconds(evaluation.time_s),
                 Seconds(sim.time_s),
                 Seconds(evaluation.bound_s),
                 Percent(efficiency),
                 BytesPerSecond(sim.busbw),
                 Seconds(made.synthesis_s),
                 made.unwound ? std::to_string(made.unwound->degree) : "-"};
    return row;
  }

  // Sizes as they were asked for, in each the fastest first; the first of each is the best.
  void Sort() {
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return a.size_index != b.size_index ? a.size_index < b.size_index : a.time_s < b.time_s;
    });
    for (size_t i = 0; i < rows_.size(); ++i)
      if (i == 0 || rows_[i - 1].size_index != rows_[i].size_index) rows_[i].json["best"] = true;
  }

  const CompareFlags& flags_;
  Networks& networks_;
  const Collective& wanted_;
  const std::vector<int64_t>& sizes_;
  const SwitchedNetwork* switched_;
  SimOptions options_;
  Held held_;
  std::vector<Row> rows_;
  std::vector<Json> failed_;
  std::string reasons_;
  bool has_unwound_ = false;
};

// Switches forward, ranks reduce: of all algorithms only trees through switches work there as it
// is.
Status CheckReduces(const CompareFlags& flags, const Networks& networks, const Collective& wanted,
                    const std::vector<Entry>& entries) {
  if (!wanted.reduces() || !networks.whole().has_switches() || networks.tries_unwindings() ||
      UnwindsWhereNeeded(networks, flags))
    return {};
  for (const Entry& entry : entries)
    if (entry.synthesizer == nullptr || entry.synthesizer->reduces_through_switches) return {};
  return tl::unexpected(SwitchesDoNotReduce(networks.whole(), wanted.kind()));
}

std::string Headline(const CompareFlags& flags, const Networks& networks, const Comparison& rows) {
  std::string text = fmt::format("{} on {} ({} ranks)", flags.collective.name,
                                 NameOf(networks.whole()), networks.whole().num_ranks());
  if (!rows.some()) return text + ": no algorithm makes a schedule\n\n";
  if (rows.has_unwound()) text += ", its switches unwound where a degree is shown";
  text += fmt::format(", every schedule verified; simulated with links {}, steps {}",
                      flags.sim.links.name, flags.sim.mode);
  if (rows.switched() != nullptr) text += fmt::format("; {}", rows.switched()->Title());
  return text + fmt::format("\n\n{}\n", rows.Text());
}

Status WriteComparison(const CompareFlags& flags, const Topology& topology,
                       const Comparison& rows) {
  if (!flags.html.given()) return {};
  const Result<PageComparison> comparison = rows.ForPage();
  if (!comparison) return tl::unexpected(comparison.error());
  PageData data("compare");
  data.AddComparison(data.AddNetwork(topology), *comparison);
  return flags.html.Write(data);
}

Result<std::optional<SwitchedNetwork>> MakeSwitched(const CompareFlags& flags) {
  if (flags.switched.given() && flags.html.given())
    return InvalidArgument("--html shows no times of --ecmp and --routes: give one or the other");
  return SwitchedNetwork::Make(flags.switched);
}

int Compare(const Program& program, const CompareFlags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  if (const Status known = flags.element.Check(); !known) return Report(known.error());
  if (const Status kept = flags.html.Check(FilesOf(flags.topology), ""); !kept)
    return Report(kept.error());
  Result<Networks> networks = MakeNetworks(flags);
  if (!networks) return Report(networks.error());
  const Topology& topology = networks->whole();
  // Faults of the collective itself are bad input, not a row of the table.
  const Result<Collective> wanted = flags.collective.Make(topology, false);
  if (!wanted) return Report(wanted.error());
  Result<Choice> chosen = Chosen(flags.algorithms, wanted->kind());
  if (!chosen) return Report(chosen.error());
  if (const Status fits = CheckUnwindings(*networks, *chosen); !fits) return Report(fits.error());
  if (const Status fits = CheckReduces(flags, *networks, *wanted, chosen->entries); !fits)
    return Report(fits.error());
  if (const Status exist = CheckChunksExist(*wanted, flags.chunks, *sizes, flags.element); !exist)
    return Report(exist.error());

  const Result<std::optional<SwitchedNetwork>> switched = MakeSwitched(flags);
  if (!switched) return Report(switched.error());
  Comparison rows(flags, *networks, *wanted, *sizes, *switched ? &**switched : nullptr);
  if (const Status ran = rows.Run(chosen->entries); !ran) return Report(ran.error());
  Json out;
  DescribeTopology(topology, out);
  if (*switched) out["network"] = NameOf((*switched)->topology());
  out["collective"] = flags.collective.name;
  DescribeGroups(*wanted, out);
  out["rows"] = rows.JsonRows();
  // Ranges of sizes are of the schedules' own network.
  const Result<std::string> best =
      *switched ? Result<std::string>(std::string()) : rows.DescribeBest(out);
  if (!best) return Report(best.error());
  std::string routings, reasons = rows.reasons();
  if (!chosen->routers.empty()) {
    const Result<std::string> text =
        CompareRouters(topology, flags.collective, flags.routing, chosen->routers, flags.seed,
                       *sizes, out, reasons);
    if (!text) return Report(text.error());
    routings = *text;
  }
  if (const Status written = WriteComparison(flags, topology, rows); !written)
    return Report(written.error());
  out["peak_rss_bytes"] = PeakRssBytes();
  const int code = rows.some() || !routings.empty() ? kDone : kAnswerIsNo;
  if (program.json) {
    Print(out);
    return code;
  }
  fmt::print("{}", Headline(flags, *networks, rows));
  if (!best->empty()) fmt::print("{}\n", *best);
  if (!routings.empty())
    fmt::print("routings, every one verified; times are those of the busiest link\n\n{}\n",
               routings);
  if (!reasons.empty()) fmt::print("not in the table:\n{}", reasons);
  fmt::print("{}", flags.html.Text());
  return code;
}

}  // namespace

void AddCompare(Program& program) {
  auto flags = std::make_shared<CompareFlags>();
  Command command = program.AddCommand(
      program.line.root(), "compare",
      "One table of many algorithms: analytic, simulated, efficiency against the bound",
      "tutti compare dgx1 -c all-reduce -a ring,dbt,bfb --size 1MiB,1GiB");
  command.AddOption("topology", flags->topology, "Expression or path of a .json file").Required();
  flags->collective.AddTo(command);
  command.AddOption("-a,--algorithms", flags->algorithms,
                    "Algorithms and routers, separated by commas, auto for the best predicted; "
                    "default: all algorithms but taccl-like, mcf and step-lp");
  flags->routing.AddTo(command);
  command.AddOption("--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  flags->chunks.AddTo(command);
  flags->element.AddTo(command);
  command.AddOption(
      "--unwind", flags->unwind,
      "Replace every switch by links from each rank to the so many after it: a "
      "degree, or auto, which keeps the fastest for each algorithm and size; by itself of "
      "algorithms that need links between ranks, up to 64 ranks, and of the algorithm auto");
  command.AddOption("--seed", flags->seed, "Seed of algorithms that draw").ShowDefault();
  flags->sim.AddTo(command);
  flags->switched.AddTo(command);
  flags->html.AddTo(command);
  command.Runs([&program, flags] { return Compare(program, *flags); });
}

}  // namespace tutti::cli
