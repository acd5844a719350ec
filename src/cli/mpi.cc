// tutti mpi: the cost model of a cluster and what is measured best there, for `auto` of the library
// that MPI programs preload.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "tutti/alltoallv/calibration.h"
#include "tutti/alltoallv/cost_model.h"
#include "tutti/alltoallv/memory.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"

extern char** environ;

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using alltoallv::Algorithm;
using alltoallv::BlockSizes;
using alltoallv::CostModel;
using alltoallv::Library;
using alltoallv::Memory;
using alltoallv::Method;
using alltoallv::PathCost;
using alltoallv::Situation;

struct Flags {
  std::string library = "openmpi";
  int32_t ranks = 0;  // 0: as many as there are cores, 2 at least
  int32_t ranks_per_node = 0;
  std::string hostfile, file, sizes;
  int32_t turns = 30, candidates = 12;
  std::vector<std::string> launcher_arguments;
};

std::string PathOf(const Flags& flags) {
  return alltoallv::MemoryPath(
      flags.file.empty() ? std::getenv("TUTTI_MPI_FILE") : flags.file.c_str(),
      std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
}

// The memory in the file; empty where there is none.
Result<Memory> Remembered(const std::string& path) {
  if (path.empty()) return InvalidArgument("no place for the file: give --file, or set HOME");
  auto memory = alltoallv::ReadMemoryFile(path);
  if (!memory) return tl::unexpected(memory.error());
  return memory->value_or(Memory());
}

// Said before measuring what could not be replaced or written after it.
Status CheckPlace(const std::string& path) {
  if (const Result<Memory> old = Remembered(path); !old) return tl::unexpected(old.error());
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

// The measuring program, beside this one or where it is installed.
Result<std::string> FindProgram(const std::string& name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return MakeError(ErrorCode::kIo, "/proc/self/exe: " + error.message());
  const fs::path folder = self.parent_path();
  for (const fs::path& place : {folder / name, folder.parent_path() / "libexec/tutti" / name}) {
    if (fs::exists(place, error)) return place.string();
  }
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("no program '{}' beside {} or in ../libexec/tutti: build it with "
                               "-DTUTTI_MPI=ON",
                               name, self.string()));
}

bool IsOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Result<std::string> FindLauncher(Library library) {
  // Debian's names first: the plain ones belong to whichever MPI is the default.
  std::vector<std::string> names;
  if (library == Library::kOpenMpi) names = {"mpirun.openmpi", "mpirun"};
  if (library == Library::kMpich) names = {"mpirun.mpich", "mpiexec.hydra", "mpirun"};
  if (library == Library::kSmpi) names = {"smpirun"};
  for (const std::string& name : names) {
    if (IsOnPath(name)) return name;
  }
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("none of {} is on the PATH: install {}", fmt::join(names, ", "),
                               alltoallv::Name(library)));
}

Result<std::vector<std::string>> CommandLine(const Flags& flags, Library library,
                                             const std::string& program,
                                             const std::vector<std::string>& arguments) {
  const Result<std::string> launcher = FindLauncher(library);
  if (!launcher) return tl::unexpected(launcher.error());
  const Result<std::string> path =
      FindProgram(fmt::format("tutti-mpi-{}-{}", program, alltoallv::Name(library)));
  if (!path) return tl::unexpected(path.error());
  const int64_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const int64_t ranks = flags.ranks > 0 ? flags.ranks : std::max<int64_t>(2, cores);
  std::vector<std::string> words = {*launcher, "-np", std::to_string(ranks)};
  if (!flags.hostfile.empty()) {
    words.emplace_back(library == Library::kMpich ? "-f" : "-hostfile");
    words.push_back(flags.hostfile);
  }
  words.insert(words.end(), flags.launcher_arguments.begin(), flags.launcher_arguments.end());
  words.push_back(*path);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// Runs a command, hands its lines of standard output to `on_line`; its standard error is ours.
Status RunAndRead(const std::vector<std::string>& words,
                  const std::function<void(const std::string&)>& on_line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return MakeError(ErrorCode::kIo, fmt::format("pipe: {}", std::strerror(errno)));
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int fault = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (fault != 0) {
    ::close(ends[0]);
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", words[0], std::strerror(fault)));
  }
  std::string pending;
  // A launcher that is told to end while it starts ranks may not listen.
  constexpr int kSecondsToEnd = 5;
  std::optional<std::chrono::steady_clock::time_point> told_to_end;
  for (;;) {
    if (CancelRequested()) {
      const auto now = std::chrono::steady_clock::now();
      if (!told_to_end) {
        told_to_end = now;
        ::kill(child, SIGTERM);
      } else if (now - *told_to_end > std::chrono::seconds(kSecondsToEnd)) {
        ::kill(child, SIGKILL);
        break;
      }
    }
    pollfd waiting{.fd = ends[0], .events = POLLIN, .revents = 0};
    constexpr int kLookAgainMs = 100;
    if (::poll(&waiting, 1, kLookAgainMs) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    pending.append(buffer, static_cast<size_t>(got));
    for (size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
      on_line(pending.substr(0, end));
      pending.erase(0, end + 1);
    }
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string how = WIFEXITED(status) ? fmt::format("status {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status));
  return MakeError(ErrorCode::kPeerFailed, fmt::format("{} ended with {}; the command was: {}",
                                                       words[0], how, fmt::join(words, " ")));
}

struct Cluster {
  int ranks = 0, nodes = 0, largest_node = 0;
};

// What a measuring program prints, sorted by its kind; its progress is shown on the way.
struct Output {
  Cluster cluster;
  std::string samples;
  std::vector<std::string> times;
};

Result<Output> Measure(const Flags& flags, Library library, const char* program,
                       const std::vector<std::string>& arguments) {
  const auto words = CommandLine(flags, library, program, arguments);
  if (!words) return tl::unexpected(words.error());
  Output output;
  std::unique_ptr<ProgressScope> progress;
  int64_t shown = 0;
  const Status run = RunAndRead(*words, [&](const std::string& line) {
    int64_t done = 0, total = 0;
    Cluster& cluster = output.cluster;
    if (std::sscanf(line.c_str(), "tutti-progress %ld %ld", &done, &total) == 2) {
      if (!progress) progress = std::make_unique<ProgressScope>("mpi", total);
      progress->Add(done - std::exchange(shown, done));
    } else if (std::sscanf(line.c_str(), "tutti-cluster %d %d %d", &cluster.ranks, &cluster.nodes,
                           &cluster.largest_node) != 3) {
      if (line.rfind("tutti-time ", 0) == 0) output.times.push_back(line);
      output.samples += line + "\n";
    }
  });
  if (!run) return tl::unexpected(run.error());
  if (output.cluster.ranks < 1 || output.cluster.nodes < 1) {
    return MakeError(ErrorCode::kPeerFailed, "the measuring program said nothing of the cluster");
  }
  return output;
}

void Describe(const Cluster& cluster, Json& out) {
  out["ranks"] = cluster.ranks;
  out["nodes"] = cluster.nodes;
  out["ranks_per_node"] = cluster.largest_node;
}

Json ToJson(const PathCost& path) {
  return {{"latency_s", path.latency_s},
          {"flow_s_per_byte", path.flow_s_per_byte},
          {"node_s_per_byte", path.node_s_per_byte}};
}

Json ToJson(const CostModel& model) {
  return {{"mpi", alltoallv::Name(model.library)},
          {"inside", ToJson(model.inside)},
          {"between", ToJson(model.between)},
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
  Table table({fmt::format("{}", alltoallv::Name(model.library)), "latency", "one rank",
               "all ranks of a node"});
  for (const auto& [name, path] :
       {std::pair{"inside a node", &model.inside}, std::pair{"between nodes", &model.between}}) {
    table.AddRow(
        {name, Seconds(path->latency_s), Rate(path->flow_s_per_byte), Rate(path->node_s_per_byte)});
  }
  return table.ToString() +
         fmt::format("a message {} to send and {} to receive; a copy {} and {}\n",
                     Seconds(model.send_s), Seconds(model.receive_s), Seconds(model.copy_s),
                     Rate(model.copy_s_per_byte));
}

// What `calibrate` and `tune` end with.
int PrintWritten(const Program& program, Json out, const Cluster& cluster, const std::string& text,
                 const std::string& path) {
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

Result<Question> QuestionOf(const Flags& flags) {
  const Result<Library> library = alltoallv::ParseLibrary(flags.library);
  if (!library) return tl::unexpected(library.error());
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.sizes);
  if (!sizes) return tl::unexpected(sizes.error());
  return Question{*library, *sizes};
}

int Calibrate(const Program& program, const Flags& flags) {
  const Result<Library> library = alltoallv::ParseLibrary(flags.library);
  if (!library) return Report(library.error());
  if (flags.ranks == 1) {
    return Report(
        {ErrorCode::kInvalidArgument, "got --ranks 1, wanted 2 or more: one rank sends nothing"});
  }
  const std::string path = PathOf(flags);
  if (const Status place = CheckPlace(path); !place) return Report(place.error());
  const Result<Output> output = Measure(flags, *library, "probe", {});
  if (!output) return Report(output.error());
  const auto samples = alltoallv::ParseSamples(output->samples);
  if (!samples) return Report(samples.error());
  const Result<CostModel> model = alltoallv::FitModel(*library, *samples);
  if (!model) return Report(model.error());
  Memory memory;
  memory.models[*library] = *model;
  if (const Status saved = alltoallv::UpdateMemoryFile(path, memory); !saved) {
    return Report(saved.error());
  }
  Json out = ToJson(*model);
  Describe(output->cluster, out);
  return PrintWritten(program, std::move(out), output->cluster, TextOf(*model), path);
}

struct TimedAlgorithm {
  Algorithm algorithm;
  double predicted_s = 0, seconds = 0;
};

// By largest block, the MPI library's own among them.
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

int Tune(const Program& program, const Flags& flags) {
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
  const Result<Output> output = Measure(flags, question->library, "tune", arguments);
  if (!output) return Report(output.error());
  const auto times = ParseTimes(output->times);
  if (!times) return Report(times.error());

  Memory memory;
  Json out;
  out["mpi"] = flags.library;
  Describe(output->cluster, out);
  out["rows"] = Json::array();
  Table table({"blocks up to", "best", "seconds", "MPI's own", "speed-up"});
  for (const auto& [size, row] : *times) {
    const auto own = std::find_if(row.begin(), row.end(), [](const TimedAlgorithm& each) {
      return each.algorithm.method == Method::kMpi;
    });
    if (own == row.end()) {
      return Report({ErrorCode::kCorrupt,
                     fmt::format("no time of the MPI library's own at {}", FormatSize(size))});
    }
    const auto best = std::min_element(
        row.begin(), row.end(),
        [](const TimedAlgorithm& a, const TimedAlgorithm& b) { return a.seconds < b.seconds; });
    const Situation situation{.library = question->library,
                              .ranks = output->cluster.ranks,
                              .largest_node = output->cluster.largest_node,
                              .size_class = alltoallv::SizeClassOf(static_cast<double>(size) / 2)};
    memory.best[situation] = {best->algorithm, best->seconds, own->seconds};
    Json entry = {{"size", size},
                  {"best", ToString(best->algorithm)},
                  {"time_s", best->seconds},
                  {"own_s", own->seconds},
                  {"speedup", own->seconds / best->seconds},
                  {"algorithms", Json::array()}};
    for (const TimedAlgorithm& each : row) {
      entry["algorithms"].push_back({{"algorithm", ToString(each.algorithm)},
                                     {"time_s", each.seconds},
                                     {"predicted_s", each.predicted_s}});
    }
    out["rows"].push_back(std::move(entry));
    table.AddRow({FormatSize(size), ToString(best->algorithm), Seconds(best->seconds),
                  Seconds(own->seconds), fmt::format("{:.2f}", own->seconds / best->seconds)});
  }
  if (const Status saved = alltoallv::UpdateMemoryFile(path, memory); !saved) {
    return Report(saved.error());
  }
  return PrintWritten(program, std::move(out), output->cluster, table.ToString(), path);
}

int Show(const Program& program, const Flags& flags) {
  const std::string path = PathOf(flags);
  const Result<Memory> memory = Remembered(path);
  if (!memory) return Report(memory.error());
  Json out;
  out["file"] = path;
  out["models"] = Json::array();
  out["rows"] = Json::array();
  std::string text = path + "\n";
  if (*memory == Memory()) text += "nothing is remembered yet: see tutti mpi calibrate --help\n";
  for (const auto& [library, model] : memory->models) {
    out["models"].push_back(ToJson(model));
    text += "\n" + TextOf(model);
  }
  Table table({"MPI", "ranks", "a node", "mean block up to", "best", "seconds", "MPI's own"});
  for (const auto& [situation, measured] : memory->best) {
    const int64_t block = int64_t{1} << situation.size_class;
    out["rows"].push_back({{"mpi", alltoallv::Name(situation.library)},
                           {"ranks", situation.ranks},
                           {"ranks_per_node", situation.largest_node},
                           {"mean_block_bytes", block},
                           {"best", ToString(measured.algorithm)},
                           {"time_s", measured.seconds},
                           {"own_s", measured.own_seconds}});
    table.AddRow({std::string(alltoallv::Name(situation.library)), std::to_string(situation.ranks),
                  std::to_string(situation.largest_node), FormatSize(block),
                  ToString(measured.algorithm), Seconds(measured.seconds),
                  Seconds(measured.own_seconds)});
  }
  if (program.json) {
    Print(out);
    return kDone;
  }
  fmt::print("{}", text);
  if (!memory->best.empty()) fmt::print("\n{}", table.ToString());
  return kDone;
}

int Predict(const Program& program, const Flags& flags) {
  const Result<Question> question = QuestionOf(flags);
  if (!question) return Report(question.error());
  const Result<Memory> memory = Remembered(PathOf(flags));
  if (!memory) return Report(memory.error());
  const auto found = memory->models.find(question->library);
  const bool calibrated = found != memory->models.end();
  const int32_t per_node = flags.ranks_per_node > 0 ? flags.ranks_per_node : flags.ranks;
  const alltoallv::CostTables tables(
      calibrated ? found->second : alltoallv::DefaultModel(question->library),
      alltoallv::EvenPlacement(flags.ranks, per_node));
  Json out;
  out["mpi"] = flags.library;
  out["ranks"] = flags.ranks;
  out["ranks_per_node"] = tables.placement().largest_node;
  out["calibrated"] = calibrated;
  out["rows"] = Json::array();
  std::string text =
      fmt::format("{} ranks, {} a node, model {}\n", flags.ranks, tables.placement().largest_node,
                  calibrated ? "calibrated" : "of a cluster nobody measured");
  for (const int64_t size : question->sizes) {
    const auto most = static_cast<double>(size);
    const BlockSizes blocks{.mean_bytes = most / 2, .largest_bytes = most};
    const Algorithm own{.method = Method::kMpi};
    // The best parameters of each method.
    std::vector<alltoallv::Prediction> rows =
        tables.Shortlist(blocks, alltoallv::MethodNames().size(), 1);
    rows.push_back({own, tables.Seconds(own, blocks)});
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    Table table({fmt::format("blocks up to {}", FormatSize(size)), "predicted"});
    for (const alltoallv::Prediction& row : rows) {
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

void AddFileFlag(CLI::App* command, Flags& flags) {
  command->add_option("--file", flags.file,
                      "The file that remembers; default: TUTTI_MPI_FILE, else tutti/mpi in "
                      "XDG_CONFIG_HOME or ~/.config");
}

void AddLibraryFlag(CLI::App* command, Flags& flags) {
  command->add_option("--mpi", flags.library, "openmpi, mpich or smpi (SimGrid)")
      ->capture_default_str();
}

void AddSizesFlag(CLI::App* command, Flags& flags, const char* given) {
  flags.sizes = given;
  command
      ->add_option("-s,--size", flags.sizes,
                   "Largest blocks, separated by commas; blocks are spread evenly from 0 to that")
      ->capture_default_str();
}

constexpr int kMostRanks = 1 << 20;

void AddLaunchFlags(CLI::App* command, Flags& flags) {
  AddLibraryFlag(command, flags);
  command
      ->add_option("-n,--ranks", flags.ranks, "Ranks to run; 0: as many as this machine has cores")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostRanks));
  command->add_option("--hostfile", flags.hostfile, "Hosts to run on, as mpirun reads them");
  AddFileFlag(command, flags);
  command->add_option("launcher", flags.launcher_arguments,
                      "After --: more arguments for mpirun (or smpirun: -platform FILE)");
}

}  // namespace

void AddMpi(Program& program) {
  CLI::App* mpi = program.app.add_subcommand(
      "mpi", "All-to-all-v of MPI programs: calibrate, tune, show, predict");
  mpi->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, const char* example,
                       int (*run)(const Program&, const Flags&), auto add_flags) {
    auto flags = std::make_shared<Flags>();
    CLI::App* command = program.AddCommand(mpi, name, description, example);
    add_flags(command, *flags);
    command->callback([&program, flags, run] {
      program.action = [&program, flags, run] { return run(program, *flags); };
    });
  };
  add("calibrate", "Measure latencies, bandwidths and copies; under a minute",
      "tutti mpi calibrate --ranks 16 -- --oversubscribe", Calibrate,
      [](CLI::App* command, Flags& flags) { AddLaunchFlags(command, flags); });
  add("tune", "Measure which algorithm is best for each size of blocks, and remember it",
      "tutti mpi tune --ranks 16 --size 64,1KiB,16KiB", Tune, [](CLI::App* command, Flags& flags) {
        AddLaunchFlags(command, flags);
        AddSizesFlag(command, flags, "16,64,256,1KiB,4KiB,16KiB,64KiB");
        command->add_option("--turns", flags.turns, "Batches of each algorithm")
            ->capture_default_str()
            ->check(CLI::Range(2, 10000));
        command->add_option("--candidates", flags.candidates, "Algorithms to measure at each size")
            ->capture_default_str()
            ->check(CLI::Range(1, 1000));
      });
  add("show", "What is remembered of this cluster", "tutti mpi show", Show,
      [](CLI::App* command, Flags& flags) { AddFileFlag(command, flags); });
  add("predict", "Predicted times of every algorithm",
      "tutti mpi predict --ranks 1024 --ranks-per-node 32 --size 512", Predict,
      [](CLI::App* command, Flags& flags) {
        AddLibraryFlag(command, flags);
        AddFileFlag(command, flags);
        command->add_option("-n,--ranks", flags.ranks, "Ranks")
            ->required()
            ->check(CLI::Range(1, kMostRanks));
        command
            ->add_option("--ranks-per-node", flags.ranks_per_node,
                         "Ranks that share a node; 0: all")
            ->capture_default_str()
            ->check(CLI::Range(0, kMostRanks));
        AddSizesFlag(command, flags, "16,64,256,1KiB,4KiB,16KiB,64KiB");
      });
}

}  // namespace tutti::cli
