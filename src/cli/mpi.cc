// tutti mpi: the cost model of a cluster and what is measured best there, for `auto` of the library
// that MPI programs preload.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "mpi_measure.h"
#include "tutti/base/units.h"
#include "tutti/tune/calibration.h"
#include "tutti/tune/cost_model.h"
#include "tutti/tune/tuning_database.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using alltoallv::Algorithm;
using alltoallv::Method;
using tune::BlockSizes;
using tune::CostModel;
using tune::Library;
using tune::Origin;
using tune::PathCost;
using tune::Situation;
using tune::TuningDatabase;

struct MpiFlags {
  std::string library = "openmpi";
  int32_t ranks = 0;  // 0: as many as there are cores, 2 at least
  int32_t ranks_per_node = 0;
  std::string hostfile, file, sizes;
  int32_t turns = 30, candidates = 12;
  std::vector<std::string> launcher_arguments;
};

Launch LaunchOf(const MpiFlags& flags, Library library) {
  return {.library = library,
          .ranks = flags.ranks,
          .hostfile = flags.hostfile,
          .launcher_arguments = flags.launcher_arguments};
}

std::string PathOf(const MpiFlags& flags) {
  return tune::TuningDatabasePath(
      flags.file.empty() ? std::getenv("TUTTI_MPI_FILE") : flags.file.c_str(),
      std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
}

// The memory in the file; empty where there is none.
Result<TuningDatabase> Remembered(const std::string& path) {
  if (path.empty()) return InvalidArgument("no place for the file: give --file, or set HOME");
  auto database = tune::ReadTuningDatabase(path);
  if (!database) return tl::unexpected(database.error());
  return database->value_or(TuningDatabase());
}

// Said before measuring what could not be replaced or written after it.
Status CheckPlace(const std::string& path) {
  if (const Result<TuningDatabase> old = Remembered(path); !old) return tl::unexpected(old.error());
  std::error_code error;
  fs::path folder = fs::absolute(path, error).parent_path();
  while (!error && folder.has_relative_path() && !fs::exists(folder, error)) {
    error.clear();
    folder = folder.parent_path();
  }
  if (!fs::is_directory(folder, error)) {
    return InvalidArgument(fmt::format("{}: {} is no folder", path, folder.string()));
  }
  if (::access(folder.c_str(), W_OK) == 0) return {};
  return MakeError(ErrorCode::kIo, fmt::format("{}: cannot write in {}: {}", path, folder.string(),
                                               std::strerror(errno)));
}

void Describe(const MpiCluster& cluster, Json& out) {
  out["ranks"] = cluster.ranks;
  out["nodes"] = cluster.nodes;
  out["ranks_per_node"] = cluster.largest_node;
}

Json JsonOf(const PathCost& path) {
  return {{"latency_s", path.latency_s},
          {"flow_s_per_byte", path.flow_s_per_byte},
          {"node_s_per_byte", path.node_s_per_byte},
          {"origin", tune::Name(path.origin)}};
}

Json JsonOf(const CostModel& model) {
  return {{"mpi", tune::Name(model.library)},
          {"inside", JsonOf(model.inside)},
          {"between", JsonOf(model.between)},
          {"send_s", model.send_s},
          {"receive_s", model.receive_s},
          {"copy_s", model.copy_s},
          {"copy_s_per_byte", model.copy_s_per_byte},
          {"eager_bytes", model.eager_bytes},
          {"eager_s_per_byte", model.eager_s_per_byte}};
}

std::string Rate(double seconds_per_byte) {
  return seconds_per_byte > 0 ? BytesPerSecond(1 / seconds_per_byte) : "unlimited";
}

std::string TextOf(const CostModel& model) {
  Table table(
      {fmt::format("{}", tune::Name(model.library)), "latency", "one rank", "all ranks of a node"});
  for (const auto& [name, path] :
       {std::pair{"inside a node", &model.inside}, std::pair{"between nodes", &model.between}}) {
    table.AddRow({fmt::format("{}, {}", name, tune::Name(path->origin)), Seconds(path->latency_s),
                  Rate(path->flow_s_per_byte), Rate(path->node_s_per_byte)});
  }
  return table.ToString() +
         fmt::format("a message {} to send and {} to receive; a copy {} and {}\n",
                     Seconds(model.send_s), Seconds(model.receive_s), Seconds(model.copy_s),
                     Rate(model.copy_s_per_byte));
}

// What `calibrate` and `tune` end with.
int PrintWritten(const Program& program, Json out, const MpiCluster& cluster,
                 const std::string& text, const std::string& path) {
  out["file"] = path;
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{} ranks, {} a node\n\n{}\nwritten to {}\n", cluster.ranks, cluster.largest_node,
             text, path);
  return kDone;
}

// What `tune` and `predict` are asked for.
struct Question {
  Library library;
  std::vector<int64_t> sizes;
};

Result<Question> QuestionOf(const MpiFlags& flags) {
  const Result<Library> library = tune::ParseLibrary(flags.library);
  if (!library) return tl::unexpected(library.error());
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.sizes);
  if (!sizes) return tl::unexpected(sizes.error());
  return Question{*library, *sizes};
}

// What an earlier calibration measured stays where this one could not.
void KeepMeasured(const TuningDatabase& before, CostModel& model) {
  const auto found = before.models.find(model.library);
  if (found == before.models.end()) return;
  for (PathCost CostModel::*path : {&CostModel::inside, &CostModel::between}) {
    if ((model.*path).origin == Origin::kAssumed) model.*path = found->second.*path;
  }
}

int Calibrate(const Program& program, const MpiFlags& flags) {
  const Result<Library> library = tune::ParseLibrary(flags.library);
  if (!library) return Report(library.error());
  if (flags.ranks == 1) {
    return Report(
        {ErrorCode::kInvalidArgument, "got --ranks 1, wanted 2 or more: one rank sends nothing"});
  }
  const std::string path = PathOf(flags);
  if (const Status place = CheckPlace(path); !place) return Report(place.error());
  const Result<MpiOutput> output = MeasureMpi(LaunchOf(flags, *library), "probe", {});
  if (!output) return Report(output.error());
  const auto samples = tune::ParseSamples(output->samples);
  if (!samples) return Report(samples.error());
  Result<CostModel> model = tune::FitModel(*library, *samples, output->cluster.crowded());
  if (!model) return Report(model.error());
  if (output->cluster.crowded()) {
    fmt::print(stderr,
               "tutti: warning: {} ranks share {} cores: their times are mostly those of waiting "
               "for a core, and are kept as \"crowded\"; run at most as many ranks as cores\n",
               output->cluster.crowded_ranks, output->cluster.crowded_cores);
  }
  const Result<TuningDatabase> before = Remembered(path);
  if (!before) return Report(before.error());
  KeepMeasured(*before, *model);
  TuningDatabase database;
  database.models[*library] = *model;
  if (const Status saved = tune::UpdateTuningDatabase(path, database); !saved) {
    return Report(saved.error());
  }
  Json out = JsonOf(*model);
  Describe(output->cluster, out);
  return PrintWritten(program, std::move(out), output->cluster, TextOf(*model), path);
}

struct TimedAlgorithm {
  Algorithm algorithm;
  double predicted_s = 0, seconds = 0;
};

// By largest block, the native algorithm among them.
Result<std::map<int64_t, std::vector<TimedAlgorithm>>> ParseTimes(
    const std::vector<std::string>& lines) {
  std::map<int64_t, std::vector<TimedAlgorithm>> times;
  for (const std::string& line : lines) {
    char name[64];
    long size = 0;
    TimedAlgorithm timed;
    const bool read = std::sscanf(line.c_str(), "tutti-time %ld %63s %lf %lf", &size, name,
                                  &timed.predicted_s, &timed.seconds) == 4;
    const Result<Algorithm> algorithm = alltoallv::ParseAlgorithm(read ? name : "");
    if (!algorithm || size < 1 || !(timed.seconds > 0)) {
      return MakeError(ErrorCode::kCorrupt, "not a time: " + line);
    }
    timed.algorithm = *algorithm;
    times[size].push_back(timed);
  }
  return times;
}

int Tune(const Program& program, const MpiFlags& flags) {
  const Result<Question> question = QuestionOf(flags);
  if (!question) return Report(question.error());
  constexpr int64_t kLargest = int64_t{1} << 26;
  std::vector<std::string> arguments = {std::to_string(flags.turns),
                                        std::to_string(flags.candidates)};
  for (const int64_t size : question->sizes) {
    if (size > kLargest) {
      return Report(
          {ErrorCode::kInvalidArgument, fmt::format("blocks of {} are too large; at most {}",
                                                    FormatSize(size), FormatSize(kLargest))});
    }
    arguments.push_back(std::to_string(size));
  }
  const std::string path = PathOf(flags);
  if (const Status place = CheckPlace(path); !place) return Report(place.error());
  // The measuring program predicts by what this file says.
  ::setenv("TUTTI_MPI_FILE", path.c_str(), 1);
  const Result<MpiOutput> output =
      MeasureMpi(LaunchOf(flags, question->library), "tune", arguments);
  if (!output) return Report(output.error());
  const auto times = ParseTimes(output->times);
  if (!times) return Report(times.error());

  TuningDatabase database;
  Json out;
  out["mpi"] = flags.library;
  Describe(output->cluster, out);
  out["rows"] = Json::array();
  Table table({"blocks up to", "best", "seconds", "MPI's own", "speed-up"});
  for (const auto& [size, row] : *times) {
    const auto native = std::find_if(row.begin(), row.end(), [](const TimedAlgorithm& each) {
      return each.algorithm.method == Method::kMpi;
    });
    if (native == row.end()) {
      return Report({ErrorCode::kCorrupt,
                     fmt::format("no time of the MPI library's own at {}", FormatSize(size))});
    }
    const auto best = std::min_element(
        row.begin(), row.end(),
        [](const TimedAlgorithm& a, const TimedAlgorithm& b) { return a.seconds < b.seconds; });
    const Situation situation{.library = question->library,
                              .ranks = output->cluster.ranks,
                              .largest_node = output->cluster.largest_node,
                              .size_class = tune::SizeClassOf(static_cast<double>(size) / 2)};
    database.best[situation] = {best->algorithm, best->seconds, native->seconds};
    Json entry = {{"size", size},
                  {"best", ToString(best->algorithm)},
                  {"time_s", best->seconds},
                  {"own_s", native->seconds},
                  {"speedup", native->seconds / best->seconds},
                  {"algorithms", Json::array()}};
    for (const TimedAlgorithm& each : row) {
      entry["algorithms"].push_back({{"algorithm", ToString(each.algorithm)},
                                     {"time_s", each.seconds},
                                     {"predicted_s", each.predicted_s}});
    }
    out["rows"].push_back(std::move(entry));
    table.AddRow({FormatSize(size), ToString(best->algorithm), Seconds(best->seconds),
                  Seconds(native->seconds),
                  fmt::format("{:.2f}", native->seconds / best->seconds)});
  }
  if (const Status saved = tune::UpdateTuningDatabase(path, database); !saved) {
    return Report(saved.error());
  }
  return PrintWritten(program, std::move(out), output->cluster, table.ToString(), path);
}

int Show(const Program& program, const MpiFlags& flags) {
  const std::string path = PathOf(flags);
  const Result<TuningDatabase> database = Remembered(path);
  if (!database) return Report(database.error());
  Json out;
  out["file"] = path;
  out["models"] = Json::array();
  out["rows"] = Json::array();
  std::string text = path + "\n";
  if (*database == TuningDatabase()) {
    text += "nothing is remembered yet: see tutti mpi calibrate --help\n";
  }
  for (const auto& [library, model] : database->models) {
    out["models"].push_back(JsonOf(model));
    text += "\n" + TextOf(model);
  }
  Table table({"MPI", "ranks", "a node", "mean block up to", "best", "seconds", "MPI's own"});
  for (const auto& [situation, measured] : database->best) {
    const int64_t block = int64_t{1} << situation.size_class;
    out["rows"].push_back({{"mpi", tune::Name(situation.library)},
                           {"ranks", situation.ranks},
                           {"ranks_per_node", situation.largest_node},
                           {"mean_block_bytes", block},
                           {"best", ToString(measured.algorithm)},
                           {"time_s", measured.seconds},
                           {"own_s", measured.native_seconds}});
    table.AddRow({std::string(tune::Name(situation.library)), std::to_string(situation.ranks),
                  std::to_string(situation.largest_node), FormatSize(block),
                  ToString(measured.algorithm), Seconds(measured.seconds),
                  Seconds(measured.native_seconds)});
  }
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}", text);
  if (!database->best.empty()) fmt::print("\n{}", table.ToString());
  return kDone;
}

// What messages of a prediction go over.
struct UsedPath {
  const char* key;
  const char* name;
  Origin origin;
};

std::vector<UsedPath> UsedPaths(const CostModel& model, const tune::Placement& placement) {
  std::vector<UsedPath> used;
  if (placement.largest_node > 1) used.push_back({"inside", "inside a node", model.inside.origin});
  if (placement.nodes > 1) used.push_back({"between", "between nodes", model.between.origin});
  return used;
}

std::string TextOf(const std::vector<UsedPath>& used) {
  std::vector<std::string> parts;
  for (const UsedPath& each : used) {
    switch (each.origin) {
      case Origin::kMeasured:
        parts.push_back(fmt::format("{} calibrated", each.name));
        break;
      case Origin::kCrowded:
        parts.push_back(fmt::format(
            "{} calibrated with more ranks than cores, so not to be relied on", each.name));
        break;
      case Origin::kAssumed:
        parts.push_back(fmt::format("{} assumed, of a cluster nobody measured", each.name));
        break;
    }
  }
  return parts.empty() ? "one rank sends nothing" : fmt::format("{}", fmt::join(parts, "; "));
}

int Predict(const Program& program, const MpiFlags& flags) {
  const Result<Question> question = QuestionOf(flags);
  if (!question) return Report(question.error());
  const Result<TuningDatabase> database = Remembered(PathOf(flags));
  if (!database) return Report(database.error());
  const auto found = database->models.find(question->library);
  const CostModel model =
      found != database->models.end() ? found->second : tune::DefaultModel(question->library);
  const int32_t per_node = flags.ranks_per_node > 0 ? flags.ranks_per_node : flags.ranks;
  const tune::CostTables tables(model, tune::EvenPlacement(flags.ranks, per_node));
  const std::vector<UsedPath> used = UsedPaths(model, tables.placement());
  Json out;
  out["mpi"] = flags.library;
  out["ranks"] = flags.ranks;
  out["ranks_per_node"] = tables.placement().largest_node;
  out["calibrated"] = std::all_of(used.begin(), used.end(), [](const UsedPath& each) {
    return each.origin == Origin::kMeasured;
  });
  for (const UsedPath& each : used) out["model"][each.key] = tune::Name(each.origin);
  out["rows"] = Json::array();
  std::string text = fmt::format("{} ranks, {} a node; model: {}\n", flags.ranks,
                                 tables.placement().largest_node, TextOf(used));
  for (const int64_t size : question->sizes) {
    const auto most = static_cast<double>(size);
    const BlockSizes blocks{.mean_bytes = most / 2, .largest_bytes = most};
    const Algorithm native{.method = Method::kMpi};
    // The best parameters of each method.
    std::vector<tune::Prediction> rows =
        tables.Shortlist(blocks, alltoallv::MethodNames().size(), 1);
    rows.push_back({native, tables.Seconds(native, blocks)});
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    Table table({fmt::format("blocks up to {}", FormatSize(size)), "predicted"});
    for (const tune::Prediction& row : rows) {
      table.AddRow({ToString(row.algorithm), Seconds(row.seconds)});
      out["rows"].push_back(
          {{"size", size}, {"algorithm", ToString(row.algorithm)}, {"predicted_s", row.seconds}});
    }
    text += "\n" + table.ToString();
  }
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}", text);
  return kDone;
}

void AddFileFlag(Command command, MpiFlags& flags) {
  command.AddOption("--file", flags.file,
                    "The file that remembers; default: TUTTI_MPI_FILE, else tutti/mpi in "
                    "XDG_CONFIG_HOME or ~/.config");
}

void AddLibraryFlag(Command command, MpiFlags& flags) {
  command.AddOption("--mpi", flags.library, "openmpi, mpich or smpi (SimGrid)").ShowDefault();
}

void AddSizesFlag(Command command, MpiFlags& flags, const char* given) {
  flags.sizes = given;
  command
      .AddOption("-s,--size", flags.sizes,
                 "Largest blocks, separated by commas; blocks are spread evenly from 0 to that")
      .ShowDefault();
}

constexpr int kMaxRanks = 1 << 20;

void AddLaunchFlags(Command command, MpiFlags& flags) {
  AddLibraryFlag(command, flags);
  command.AddOption("-n,--ranks", flags.ranks, "Ranks to run; 0: as many as this machine has cores")
      .ShowDefault()
      .Within(0, kMaxRanks);
  command.AddOption("--hostfile", flags.hostfile, "Hosts to run on, as mpirun reads them");
  AddFileFlag(command, flags);
  command.AddOption("launcher", flags.launcher_arguments,
                    "After --: more arguments for mpirun (or smpirun: -platform FILE)");
}

}  // namespace

void AddMpi(Program& program) {
  Command mpi = program.line.root().AddCommand(
      "mpi", "All-to-all-v of MPI programs: calibrate, tune, show, predict");
  mpi.NeedsSubcommand();
  const auto add = [&](const char* name, const char* description, const char* example,
                       int (*run)(const Program&, const MpiFlags&), auto add_flags) {
    auto flags = std::make_shared<MpiFlags>();
    Command command = program.AddCommand(mpi, name, description, example);
    add_flags(command, *flags);
    command.Runs([&program, flags, run] { return run(program, *flags); });
  };
  add("calibrate", "Measure latencies, bandwidths and copies; under a minute",
      "tutti mpi calibrate --ranks 16 -- --oversubscribe", Calibrate,
      [](Command command, MpiFlags& flags) { AddLaunchFlags(command, flags); });
  add("tune", "Measure which algorithm is best for each size of blocks, and remember it",
      "tutti mpi tune --ranks 16 --size 64,1KiB,16KiB", Tune, [](Command command, MpiFlags& flags) {
        AddLaunchFlags(command, flags);
        AddSizesFlag(command, flags, "16,64,256,1KiB,4KiB,16KiB,64KiB");
        command.AddOption("--turns", flags.turns, "Batches of each algorithm")
            .ShowDefault()
            .Within(2, 10000);
        command.AddOption("--candidates", flags.candidates, "Algorithms to measure at each size")
            .ShowDefault()
            .Within(1, 1000);
      });
  add("show", "What is remembered of this cluster", "tutti mpi show", Show,
      [](Command command, MpiFlags& flags) { AddFileFlag(command, flags); });
  add("predict", "Predicted times of every algorithm",
      "tutti mpi predict --ranks 1024 --ranks-per-node 32 --size 512", Predict,
      [](Command command, MpiFlags& flags) {
        AddLibraryFlag(command, flags);
        AddFileFlag(command, flags);
        command.AddOption("-n,--ranks", flags.ranks, "Ranks").Required().Within(1, kMaxRanks);
        command
            .AddOption("--ranks-per-node", flags.ranks_per_node, "Ranks that share a node; 0: all")
            .ShowDefault()
            .Within(0, kMaxRanks);
        AddSizesFlag(command, flags, "16,64,256,1KiB,4KiB,16KiB,64KiB");
      });
}

}  // namespace tutti::cli
