#include "mpi_measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/process.h"
#include "tutti/base/progress.h"

namespace tutti::cli {
namespace {

using tune::Library;

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
  return MakeError(ErrorCode::kNotFound, fmt::format("none of {} is on the PATH: install {}",
                                                     fmt::join(names, ", "), tune::Name(library)));
}

Result<std::vector<std::string>> MpirunWords(const Launch& launch, const std::string& program,
                                             const std::vector<std::string>& arguments) {
  const Result<std::string> launcher = FindLauncher(launch.library);
  if (!launcher) return tl::unexpected(launcher.error());
  const Result<std::string> path =
      FindProgram(fmt::format("tutti-mpi-{}-{}", program, tune::Name(launch.library)),
                  "build it with -DTUTTI_MPI=ON");
  if (!path) return tl::unexpected(path.error());
  const int64_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const int64_t ranks = launch.ranks > 0 ? launch.ranks : std::max<int64_t>(2, cores);
  std::vector<std::string> words = {*launcher, "-np", std::to_string(ranks)};
  if (!launch.hostfile.empty()) {
    words.emplace_back(launch.library == Library::kMpich ? "-f" : "-hostfile");
    words.push_back(launch.hostfile);
  }
  words.insert(words.end(), launch.launcher_arguments.begin(), launch.launcher_arguments.end());
  words.push_back(*path);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// Runs a command, hands its lines of standard output to `on_line`; its standard error is ours.
Status RunAndRead(const std::vector<std::string>& words,
                  const std::function<void(const std::string&)>& on_line) {
  const Result<ProcessEnd> end =
      RunProcess(words, [&](std::string_view line, ProcessStream) { on_line(std::string(line)); },
                 {.own_error_stream = false});
  if (!end) return tl::unexpected(end.error());
  if (end->ok()) return {};
  return MakeError(ErrorCode::kPeerFailed,
                   fmt::format("{} ended with {}; the command was: {}", words[0], end->ToText(),
                               fmt::join(words, " ")));
}

}  // namespace

Result<MpiOutput> MeasureMpi(const Launch& launch, const std::string& program,
                             const std::vector<std::string>& arguments) {
  const auto words = MpirunWords(launch, program, arguments);
  if (!words) return tl::unexpected(words.error());
  MpiOutput output;
  std::unique_ptr<ProgressScope> progress;
  int64_t shown = 0;
  const Status run = RunAndRead(*words, [&](const std::string& line) {
    int64_t done = 0, total = 0;
    MpiCluster& cluster = output.cluster;
    if (std::sscanf(line.c_str(), "tutti-progress %ld %ld", &done, &total) == 2) {
      if (!progress) progress = std::make_unique<ProgressScope>("mpi", total);
      progress->Add(done - std::exchange(shown, done));
    } else if (std::sscanf(line.c_str(), "tutti-cluster %d %d %d", &cluster.ranks, &cluster.nodes,
                           &cluster.largest_node) != 3 &&
               std::sscanf(line.c_str(), "tutti-crowded %d %d", &cluster.crowded_ranks,
                           &cluster.crowded_cores) != 2) {
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

}  // namespace tutti::cli
