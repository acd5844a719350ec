// [tuna] `auto` against an exhaustive sweep, in simulation: every algorithm with every parameter of
// a grid, and what `auto` settles on with what a user may have told it of the machine.
//
// Model      Radices: those that no other one beats both in rounds and in blocks sent. Numbers of
//            blocks: 1, 2, 4, ... and all. What `auto` took is compared by that algorithm's own
//            time in the sweep, so that both are measured alike: after a call with empty blocks,
//            from a barrier on. Tuned means what `tutti mpi tune` stores: the best of each power of
//            two for uniform blocks; some of the sizes here lie between those, and two of the three
//            distributions are others.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/base/file.h"
#include "tutti/base/parallel.h"
#include "tutti/tune/calibration.h"
#include "tutti/tune/cost_model.h"
#include "tutti/tune/tuning_database.h"

namespace tutti {
namespace tuna_auto {
namespace {

using namespace tuna;
using tune::CostModel;
using tune::Library;
using tune::TuningDatabase;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
constexpr std::array<int64_t, 6> kSizes = {16, 96, 256, 1536, 4096, 16384};
constexpr std::array<const char*, 3> kDistributions = {"uniform", "normal", "power-law"};
// Largest blocks that the tuner measures: 4, 8, ... up to twice the largest here, as the mean of
// a normal distribution is near its size, that of a uniform one half of it.
constexpr int64_t kMinTuned = 4, kMaxTuned = 32768;
constexpr std::array<const char*, 3> kModes = {"tuned", "calibrated", "not calibrated"};

std::vector<int64_t> RadicesWorthIt(int64_t ranks) {
  struct Cost {
    int64_t radix, rounds, blocks;
  };
  std::vector<Cost> all;
  for (int64_t radix = 2; radix <= std::max<int64_t>(2, ranks); ++radix) {
    Cost cost{radix, 0, 0};
    for (const tune::TunaRound& round :
         tune::TunaRounds(static_cast<int>(ranks), static_cast<int>(radix))) {
      ++cost.rounds;
      cost.blocks += round.blocks;
    }
    all.push_back(cost);
  }
  std::vector<int64_t> radices;
  for (const Cost& each : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const Cost& other) {
      const bool equal = other.rounds == each.rounds && other.blocks == each.blocks;
      return other.rounds <= each.rounds && other.blocks <= each.blocks &&
             (!equal || other.radix < each.radix);
    });
    if (!beaten) radices.push_back(each.radix);
  }
  return radices;
}

// 1, 2, 4, ... and `most` itself; none of no messages.
std::vector<int64_t> Counts(int64_t most) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < most; count *= 2) counts.push_back(count);
  if (most > 0) counts.push_back(most);
  return counts;
}

std::vector<std::string> Everything(const Machine& machine) {
  const int64_t ranks = machine.ranks, inside = machine.RanksPerNode();
  const int64_t others = ranks / inside - 1;
  std::vector<std::string> names = {"mpi", "linear",          "spread-out",  "pairwise",
                                    "xor", "two-phase-bruck", "padded-bruck"};
  for (const int64_t count : Counts(ranks - 1)) {
    if (count > 1 && count < ranks - 1) names.push_back(fmt::format("scattered:b={}", count));
  }
  for (const int64_t radix : RadicesWorthIt(ranks))
    names.push_back(fmt::format("tuna:r={}", radix));
  for (const int64_t count : Counts(others)) {
    names.push_back(fmt::format("shared:b={}", count));
    names.push_back(fmt::format("shared-coalesced:b={}", count));
  }
  if (inside < 2) return names;
  for (const int64_t radix : RadicesWorthIt(inside)) {
    for (const int64_t count : Counts(others)) {
      names.push_back(fmt::format("coalesced:r={},b={}", radix, count));
    }
    for (const int64_t count : Counts(others * inside)) {
      names.push_back(fmt::format("staggered:r={},b={}", radix, count));
    }
  }
  return names;
}

// A tuning database for the programs of one machine, gone with the object.
class MemoryFile {
 public:
  MemoryFile(const Machine& machine, const TuningDatabase& database)
      : path_((std::filesystem::temp_directory_path() /
               fmt::format("tutti-tuna-auto-{}-{}-{}", static_cast<int64_t>(::getpid()),
                           machine.platform, machine.ranks))
                  .string()) {
    written_ = WriteFileAtomically(path_, tune::FormatTuningDatabase(database));
  }
  ~MemoryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_ + ".lock", ignored);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const Status& written() const { return written_; }
  std::string Environment() const { return "TUTTI_MPI_FILE=" + path_; }

 private:
  std::string path_;
  Status written_;
};

// As `tutti mpi calibrate` does.
Result<CostModel> Calibrate(const Machine& machine) {
  const Result<std::string> text = RunSimulated(machine, "tutti-mpi-probe-smpi", {});
  if (!text) return tl::unexpected(text.error());
  const auto samples = tune::ParseSamples(*text);
  if (!samples) return tl::unexpected(samples.error());
  return tune::FitModel(Library::kSmpi, *samples);
}

// As `tutti mpi tune` does after it, with the algorithms that the cost model predicts best.
Result<TuningDatabase> Tune(const Machine& machine, const CostModel& model) {
  TuningDatabase database;
  database.models[model.library] = model;
  const MemoryFile file(machine, database);
  if (!file.written()) return tl::unexpected(file.written().error());
  constexpr const char *kTurns = "1", *kCandidates = "24";
  std::vector<std::string> arguments = {kTurns, kCandidates};
  for (int64_t size = kMinTuned; size <= kMaxTuned; size *= 2) {
    arguments.push_back(std::to_string(size));
  }
  const Result<std::string> text =
      RunSimulated(machine, "tutti-mpi-tune-smpi", arguments, std::array{file.Environment()});
  if (!text) return tl::unexpected(text.error());
  std::istringstream words(*text);
  for (std::string word; words >> word;) {
    if (word != "tutti-time") continue;
    int64_t size = 0;
    std::string name;
    double predicted_s = 0, seconds = 0;
    words >> size >> name >> predicted_s >> seconds;
    const Result<alltoallv::Algorithm> algorithm = alltoallv::ParseAlgorithm(name);
    if (!words || !algorithm || !(seconds > 0)) {
      return MakeError(ErrorCode::kIo, "the tuner's words are not a time: " + name);
    }
    const tune::Situation situation{.library = Library::kSmpi,
                                    .ranks = static_cast<int>(machine.ranks),
                                    .largest_node = static_cast<int>(machine.RanksPerNode()),
                                    .size_class = tune::SizeClassOf(static_cast<double>(size) / 2)};
    // The native algorithm comes first at each size.
    const auto [best, is_first] =
        database.best.try_emplace(situation, tune::Measured{*algorithm, seconds, seconds});
    if (!is_first && seconds < best->second.seconds) {
      best->second.algorithm = *algorithm;
      best->second.seconds = seconds;
    }
  }
  return database;
}

struct Settled {
  double first_s = 0;
  std::string algorithm;
  int64_t calls = 0;
};

// Reads a line of the sweep's CSV, DISTRIBUTION,SIZE,"ALGORITHM",ITERATION,SECONDS,...
void AddLine(std::string_view line, std::map<int64_t, Settled>* settled) {
  const size_t comma = line.find(','), quote = line.find('"');
  const size_t end = quote == line.npos ? quote : line.find("\",", quote + 1);
  if (end == line.npos || comma > quote) return;
  const char* const last = line.data() + line.size();
  int64_t size = 0, calls = 0;
  double seconds = 0;
  if (std::from_chars(line.data() + comma + 1, last, size).ec != std::errc()) return;
  const auto iteration = std::from_chars(line.data() + end + 2, last, calls);
  if (iteration.ec != std::errc() || iteration.ptr == last) return;
  if (std::from_chars(iteration.ptr + 1, last, seconds).ec != std::errc()) return;
  Settled& entry = (*settled)[size];
  if (calls == 0) {
    entry.first_s = seconds;
    return;
  }
  entry.algorithm = line.substr(quote + 1, end - quote - 1);
  entry.calls = calls;
}

// By size.
Result<std::map<int64_t, Settled>> Settle(const Machine& machine, const std::string& distribution,
                                          const TuningDatabase& database) {
  const MemoryFile file(machine, database);
  if (!file.written()) return tl::unexpected(file.written().error());
  std::vector<std::string> points;
  for (const int64_t size : kSizes) {
    points.push_back(fmt::format("{}/{}/settled-auto", distribution, size));
  }
  const Result<std::string> text =
      RunSimulated(machine, "tutti-mpi-sweep-smpi", points, std::array{file.Environment()});
  if (!text) return tl::unexpected(text.error());
  std::map<int64_t, Settled> settled;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    AddLine(rest.substr(0, end), &settled);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const int64_t size : kSizes) {
    if (settled[size].algorithm.empty()) {
      return MakeError(ErrorCode::kIo, fmt::format("nothing of auto at {} bytes", size));
    }
  }
  return settled;
}

struct Share {
  int64_t points = 0, near = 0;
  double worst = 1;
  std::string worst_at;

  void Add(double ratio, const std::string& where) {
    constexpr double kNear = 1.05;
    ++points;
    if (ratio <= kNear) ++near;
    if (ratio > worst) {
      worst = ratio;
      worst_at = where;
    }
  }
};

// What auto settles on in each mode, by size; and all of that by distribution.
using SettledByMode = std::array<std::map<int64_t, Settled>, kModes.size()>;
using AllSettled = std::map<std::string, SettledByMode>;

Result<AllSettled> SettleAll(const Machine& machine) {
  const Result<CostModel> model = Calibrate(machine);
  if (!model) return tl::unexpected(model.error());
  const Result<TuningDatabase> tuned = Tune(machine, *model);
  if (!tuned) return tl::unexpected(tuned.error());
  TuningDatabase calibrated, not_calibrated;
  calibrated.models[Library::kSmpi] = *model;
  not_calibrated.models[Library::kSmpi] = tune::DefaultModel(Library::kSmpi);
  const std::array<const TuningDatabase*, kModes.size()> memories = {&*tuned, &calibrated,
                                                                     &not_calibrated};
  AllSettled all;
  for (const char* distribution : kDistributions) {
    for (size_t k = 0; k < memories.size(); ++k) {
      auto found = Settle(machine, distribution, *memories[k]);
      if (!found) return tl::unexpected(found.error());
      all[distribution][k] = *std::move(found);
    }
  }
  return all;
}

Result<double> SecondsOf(const std::string& algorithm, const Simulation& grid,
                         const std::vector<Measured>& all, const Point& at,
                         const ExperimentOptions& options) {
  for (const Measured& each : all) {
    if (each.point.size == at.size && each.point.algorithm == algorithm) return each.seconds;
  }
  const Simulation one{grid.machine, {{at.distribution, at.size, algorithm}}};
  const auto measured = SimulateAll(std::array{one}, options);
  if (!measured) return tl::unexpected(measured.error());
  return measured->front().front().seconds;
}

// Every machine, and behind each other a grid for each of its distributions.
struct Sweep {
  std::vector<Machine> machines;
  std::vector<Simulation> grids;
};
Sweep SweepOf(const ExperimentOptions& options) {
  std::vector<int64_t> ranks;
  for (const int64_t each : {32, 64, 128, 256}) {
    const bool usual = each <= 64 || options.large;
    if (usual && WithinSize(options, each)) ranks.push_back(each);
  }
  if (ranks.empty()) ranks.push_back(options.max_ranks);
  Sweep sweep;
  for (const int64_t each : ranks) {
    for (const char* platform : kPlatforms) {
      const Machine machine{platform, each};
      sweep.machines.push_back(machine);
      for (const char* distribution : kDistributions) {
        sweep.grids.push_back({machine, Grid(kSizes, Everything(machine), distribution)});
      }
    }
  }
  return sweep;
}

// Two at once, as the grids.
Result<std::vector<AllSettled>> SettleMachines(const std::vector<Machine>& machines) {
  std::vector<Result<AllSettled>> of_machine(machines.size());
  ParallelFor(static_cast<int64_t>(machines.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      const auto at = static_cast<size_t>(m);
      of_machine[at] = SettleAll(machines[at]);
    }
  });
  std::vector<AllSettled> all;
  for (Result<AllSettled>& each : of_machine) {
    if (!each) return tl::unexpected(each.error());
    all.push_back(*std::move(each));
  }
  return all;
}

ResultTable PointsTable() {
  ResultTable table{.title = "What auto settles on, beside the best of all",
                    .label_name = "platform, P, distribution, S (bytes)",
                    .columns = {{.name = "best", .unit = "us", .digits = 1},
                                {.name = "with"},
                                {.name = "first call", .unit = "us", .digits = 1}}};
  for (const char* mode : kModes) {
    table.columns.push_back({.name = fmt::format("{}: takes", mode)});
    table.columns.push_back({.name = "after", .unit = "calls"});
    table.columns.push_back({.name = "over the best", .digits = 3});
  }
  return table;
}

const Measured* Best(const std::vector<Measured>& all, int64_t size) {
  const Measured* best = nullptr;
  for (const Measured& each : all) {
    if (each.point.size != size) continue;
    if (best == nullptr || each.seconds < best->seconds) best = &each;
  }
  return best;
}

using Shares = std::array<Share, kModes.size()>;

// One size of a grid, of which `all` was measured.
Result<ResultRow> PointRow(const Simulation& grid, const std::vector<Measured>& all, int64_t size,
                           const SettledByMode& settled, const ExperimentOptions& options,
                           Shares& shares) {
  const std::string& distribution = grid.points.front().distribution;
  const Measured* const best = Best(all, size);
  ResultRow row{.label = fmt::format("{}, {}, {}, {}", grid.machine.platform, grid.machine.ranks,
                                     distribution, size),
                .cells = {Microseconds(best->seconds), Word(best->point.algorithm),
                          Microseconds(settled[0].at(size).first_s)}};
  for (size_t k = 0; k < settled.size(); ++k) {
    const Settled& one = settled[k].at(size);
    const Result<double> seconds =
        SecondsOf(one.algorithm, grid, all, {distribution, size, one.algorithm}, options);
    if (!seconds) return tl::unexpected(seconds.error());
    row.cells.push_back(Word(one.algorithm));
    row.cells.push_back(Figure(one.calls));
    row.cells.push_back(Ratio(*seconds, best->seconds));
    shares[k].Add(*seconds / best->seconds, row.label);
  }
  return row;
}

ResultTable SummaryTable(const Shares& shares) {
  ResultTable table{.title = "auto beside an exhaustive sweep",
                    .label_name = "auto",
                    .columns = {{.name = "points"},
                                {.name = "within 5 %"},
                                {.name = "share", .unit = "%", .digits = 1},
                                {.name = "worst", .digits = 3},
                                {.name = "at"}}};
  for (size_t k = 0; k < shares.size(); ++k) {
    const Share& share = shares[k];
    table.rows.push_back({kModes[k],
                          {Figure(share.points), Figure(share.near),
                           Figure(Rational(100 * share.near, share.points)), Ratio(share.worst, 1),
                           Word(share.worst_at)}});
  }
  return table;
}

constexpr const char* kNote =
    "First call: on a fresh communicator, with set-up. Settled: nothing left to try, or 64 "
    "calls. Tuned: calibrated, and tutti-mpi-tune-smpi's best of uniform blocks of up to 4, 8, "
    "... 32768 bytes. Calibrated: by tutti-mpi-probe-smpi on the platform with as many ranks. "
    "Not: the model that is built in. Compared is the time in the sweep of the algorithm that "
    "auto took. 128 and 256 ranks with --large.";

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const Sweep sweep = SweepOf(options);
  const auto all = SimulateAll(sweep.grids, options);
  if (!all) return tl::unexpected(all.error());
  const Result<std::vector<AllSettled>> of_machine = SettleMachines(sweep.machines);
  if (!of_machine) return tl::unexpected(of_machine.error());
  ResultTable table = PointsTable();
  Shares shares;
  for (size_t g = 0; g < sweep.grids.size(); ++g) {
    const Simulation& grid = sweep.grids[g];
    const SettledByMode& settled =
        (*of_machine)[g / kDistributions.size()].at(grid.points.front().distribution);
    for (const int64_t size : kSizes) {
      Result<ResultRow> row = PointRow(grid, (*all)[g], size, settled, options, shares);
      if (!row) return tl::unexpected(row.error());
      table.rows.push_back(*std::move(row));
    }
  }
  return ExperimentResult{.tables = {SummaryTable(shares), std::move(table)},
                          .notes = {SimulationNote(), kNote}};
}

}  // namespace
}  // namespace tuna_auto

Experiment TunaAuto() {
  return {"tuna-auto", "[tuna] section VI", "auto beside an exhaustive sweep, in simulation",
          tuna_auto::Run};
}

}  // namespace tutti
