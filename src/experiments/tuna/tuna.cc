#include "tuna.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "platform.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"
#include "tutti/base/parallel.h"
#include "tutti/base/process.h"
#include "tutti/base/progress.h"
#include "tutti/tune/cost_model.h"

namespace tutti::tuna {
namespace {

constexpr std::string_view kSweep = "tutti-mpi-sweep-smpi";
constexpr std::string_view kBuildIt = "simulations run it; build it with cmake -DTUTTI_MPI=ON";
// What is preloaded: the first makes large simulations faster and changes no time in them, the
// second charges messages inside a node (adr 0027).
constexpr std::array<std::string_view, 2> kPreloaded = {"tutti-simgrid-nodes.so",
                                                        "tutti-simgrid-messages.so"};
// Bytes that all ranks send and receive; two simulations run at once.
constexpr int64_t kOrdinaryBytes = 5'000'000'000;

// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-tuna-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool ok() const { return !path_.empty(); }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Output {
  ProcessEnd end;
  std::string text;
};

// Runs a command, with what it prints on both streams; `line` is called for each line.
template <class OnLine>
Result<Output> RunCommand(const std::vector<std::string>& words, const OnLine& line) {
  Output output;
  const Result<ProcessEnd> end = RunProcess(words,
                                            [&](std::string_view said, ProcessStream) {
                                              output.text.append(said).append("\n");
                                              line(said);
                                            },
                                            {.package = "libsimgrid-dev"});
  if (!end) return tl::unexpected(end.error());
  output.end = *end;
  return output;
}

// A line of the sweep's CSV; nullopt: it is another line.
std::optional<Measured> ParseLine(std::string_view line) {
  Measured measured;
  const size_t quote = line.find('"');
  const size_t end = quote == line.npos ? quote : line.find('"', quote + 1);
  if (end == line.npos) return std::nullopt;
  measured.point.algorithm = line.substr(quote + 1, end - quote - 1);
  const size_t comma = line.find(',');
  measured.point.distribution = line.substr(0, comma);
  const auto parsed =
      std::from_chars(line.data() + comma + 1, line.data() + line.size(), measured.point.size);
  if (parsed.ec != std::errc()) return std::nullopt;
  // After the algorithm and the iteration.
  size_t at = line.find(',', end + 2);
  std::array<double, 9> values{};
  for (double& value : values) {
    if (at == line.npos) return std::nullopt;
    const auto number = std::from_chars(line.data() + at + 1, line.data() + line.size(), value);
    if (number.ec != std::errc()) return std::nullopt;
    at = line.find(',', at + 1);
  }
  measured.seconds = values[0];
  measured.prepare_s = values[1];
  measured.metadata_s = values[2];
  measured.data_s = values[3];
  measured.copy_s = values[4];
  measured.rearrange_s = values[5];
  measured.inter_node_s = values[6];
  measured.temporary_bytes = static_cast<int64_t>(values[7]);
  measured.messages = static_cast<int64_t>(values[8]);
  return measured;
}

// What is preloaded on a machine, by paths without spaces, which neither smpirun nor the loader
// takes: links in the folder.
Result<std::string> Preloaded(const Machine& machine, const TemporaryFolder& folder) {
  std::string all;
  for (const std::string_view name : kPreloaded) {
    if (name == kPreloaded.back() && machine.local == LocalMessages::kAsRemote) continue;
    const Result<std::string> path = FindProgram(name, kBuildIt);
    if (!path) return path;
    const std::string link = folder.File(std::string(name).c_str());
    std::error_code fault;
    std::filesystem::create_symlink(*path, link, fault);
    if (fault) return MakeError(ErrorCode::kIo, fmt::format("{}: {}", link, fault.message()));
    all += (all.empty() ? "" : ":") + link;
  }
  return all;
}

// smpirun of a program on a machine: its platform and hosts lie in a folder of its own.
template <class OnLine>
Result<Output> RunOn(const Machine& machine, std::string_view program,
                     std::span<const std::string> arguments,
                     std::span<const std::string> environment, const OnLine& line) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const Result<std::string> path = FindProgram(program, kBuildIt);
  if (!path) return tl::unexpected(path.error());
  const Result<std::string> platform = PlatformText(machine);
  if (!platform) return tl::unexpected(platform.error());
  const TemporaryFolder folder;
  if (!folder.ok())
    return MakeError(ErrorCode::kIo, fmt::format("no temporary folder: {}", std::strerror(errno)));
  std::string hosts;
  for (int64_t rank = 0; rank < machine.ranks; ++rank)
    hosts += fmt::format("node{}\n", rank / machine.RanksPerNode());
  if (const Status done = WriteFileAtomically(folder.File("platform.xml"), *platform); !done)
    return tl::unexpected(done.error());
  if (const Status done = WriteFileAtomically(folder.File("hosts"), hosts); !done)
    return tl::unexpected(done.error());
  std::vector<std::string> words = {"env",
                                    fmt::format("TUTTI_RANKS_PER_NODE={}", machine.RanksPerNode())};
  words.insert(words.end(), environment.begin(), environment.end());
  const Result<std::string> preloaded = Preloaded(machine, folder);
  if (!preloaded) return tl::unexpected(preloaded.error());
  words.insert(words.end(),
               {"smpirun", "-np", std::to_string(machine.ranks), "-platform",
                folder.File("platform.xml"), "-hostfile", folder.File("hosts"),
                "--log=root.thres:error", "-wrapper", "env LD_PRELOAD=" + *preloaded, *path});
  words.insert(words.end(), arguments.begin(), arguments.end());
  Result<Output> output = RunCommand(std::move(words), line);
  if (!output) return output;
  // What `env` says of a command that is not there.
  if (output->end.status == 127)
    return MakeError(
        ErrorCode::kNotFound,
        "simulations are run by SimGrid's smpirun, which is not on the PATH (Debian: apt-get "
        "install libsimgrid-dev)");
  return output;
}

Error Failed(const Machine& machine, const Output& output) {
  return {ErrorCode::kIo, fmt::format("the simulation of {} ranks failed: {}", machine.ranks,
                                      output.text.substr(0, 500))};
}

std::string NameOf(const Point& point) {
  return fmt::format("{}/{}/{}", point.distribution, point.size, point.algorithm);
}

// Hash of all that decides the times of a machine's points: the program, what charges its messages, the
// platform, and where the ranks are.
Result<uint64_t> HashOf(const Machine& machine) {
  Fnv1a hash;
  for (const std::string_view name : {kSweep, kPreloaded.back()}) {
    const Result<std::string> path = FindProgram(name, kBuildIt);
    if (!path) return tl::unexpected(path.error());
    const Result<std::string> program = ReadFile(*path);
    if (!program) return tl::unexpected(program.error());
    hash.AddBytes(*program);
  }
  const Result<std::string> platform = PlatformText(machine);
  if (!platform) return tl::unexpected(platform.error());
  const bool own_local = machine.local != LocalMessages::kAsRemote;
  hash.AddBytes(*platform);
  hash.AddBytes(fmt::format("{} {}", machine.RanksPerNode(), own_local));
  return hash.value();
}

// Points of a machine that were simulated before, by the same program on the same platform: a line
// each, as the program printed it behind the point's name.
class KnownPoints {
 public:
  static Result<KnownPoints> Open(const std::string& folder, const Machine& machine) {
    KnownPoints known;
    if (folder.empty()) return known;
    const Result<uint64_t> hash = HashOf(machine);
    if (!hash) return tl::unexpected(hash.error());
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    known.path_ =
        fmt::format("{}/{}-{}-{:016x}.csv", folder, machine.platform, machine.ranks, *hash);
    std::ifstream file(known.path_);
    for (std::string line; std::getline(file, line);) {
      const size_t space = line.find(' ');
      if (space == line.npos) continue;
      if (std::optional<Measured> measured = ParseLine(std::string_view(line).substr(space + 1)))
        known.points_.emplace(line.substr(0, space), *std::move(measured));
    }
    return known;
  }

  const Measured* Find(const Point& point) const {
    const auto found = points_.find(NameOf(point));
    return found == points_.end() ? nullptr : &found->second;
  }

  Status Keep(const Point& point, std::string_view line) const {
    if (path_.empty()) return {};
    std::ofstream file(path_, std::ios::app);
    // One write a line: two simulations of a machine may run at once.
    file << fmt::format("{} {}\n", NameOf(point), line) << std::flush;
    if (!file) return MakeError(ErrorCode::kIo, fmt::format("{} could not be written", path_));
    return {};
  }

 private:
  std::string path_;
  std::map<std::string, Measured> points_;
};

Result<std::vector<Measured>> Simulate(const Simulation& simulation, const std::string& folder,
                                       ProgressScope& progress) {
  const Result<KnownPoints> known = KnownPoints::Open(folder, simulation.machine);
  if (!known) return tl::unexpected(known.error());
  std::vector<Measured> all(simulation.points.size());
  std::vector<size_t> missing;
  std::vector<std::string> arguments = {"--light-warm-up"};
  for (size_t i = 0; i < all.size(); ++i) {
    if (const Measured* before = known->Find(simulation.points[i])) {
      all[i] = *before;
      all[i].point = simulation.points[i];
      progress.Add(1);
    } else {
      missing.push_back(i);
      arguments.push_back(NameOf(simulation.points[i]));
    }
  }
  if (missing.empty()) return all;
  size_t done = 0;
  Status kept;
  const Result<Output> output =
      RunOn(simulation.machine, kSweep, arguments, {}, [&](std::string_view line) {
        std::optional<Measured> measured = ParseLine(line);
        if (!measured || done == missing.size()) return;
        const size_t i = missing[done++];
        all[i] = *std::move(measured);
        all[i].point = simulation.points[i];
        if (kept) kept = known->Keep(simulation.points[i], line);
        progress.Add(1);
      });
  if (!output) return tl::unexpected(output.error());
  if (!output->end.ok() || done != missing.size())
    return tl::unexpected(Failed(simulation.machine, *output));
  if (!kept) return tl::unexpected(kept.error());
  return all;
}

}  // namespace

int64_t Machine::RanksPerNode() const {
  return ranks_per_node > 0 ? ranks_per_node : std::clamp<int64_t>(ranks / 4, 1, 32);
}

Result<std::vector<std::vector<Measured>>> SimulateAll(std::span<const Simulation> simulations,
                                                       const ExperimentOptions& options) {
  int64_t points = 0;
  for (const Simulation& each : simulations) points += static_cast<int64_t>(each.points.size());
  ProgressScope progress("simulating", points);
  std::vector<std::vector<Measured>> all(simulations.size());
  std::mutex mutex;
  std::optional<Error> error;
  // The largest first, so that no long one is left for the end.
  std::vector<size_t> order(simulations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return simulations[a].machine.ranks > simulations[b].machine.ranks;
  });
  std::atomic<size_t> next{0};
  // Two at once: more of the large ones may not fit the memory.
  const int64_t workers = std::min(2, NumThreads());
  ParallelFor(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      for (size_t i; (i = next.fetch_add(1)) < order.size();) {
        Result<std::vector<Measured>> measured =
            Simulate(simulations[order[i]], options.simulated, progress);
        const std::lock_guard lock(mutex);
        if (measured) {
          all[order[i]] = *std::move(measured);
        } else if (!error) {
          error = measured.error();
          next = order.size();
        }
      }
    }
  });
  if (error) return tl::unexpected(*error);
  return all;
}

Result<std::string> RunSimulated(const Machine& machine, std::string_view program,
                                 std::span<const std::string> arguments,
                                 std::span<const std::string> environment) {
  Result<Output> output =
      RunOn(machine, program, arguments, environment, [](std::string_view /*line*/) {});
  if (!output) return tl::unexpected(output.error());
  if (!output->end.ok()) return tl::unexpected(Failed(machine, *output));
  return std::move(output->text);
}

std::vector<int64_t> RanksUpTo(int64_t largest, const ExperimentOptions& options) {
  constexpr int64_t kFewest = 256;
  if (options.large) largest *= 2;
  if (options.max_ranks != 0) largest = std::min(largest, options.max_ranks);
  std::vector<int64_t> all;
  for (int64_t ranks = kFewest; ranks <= largest; ranks *= 2) all.push_back(ranks);
  if (all.size() < 3) all = {largest / 4, largest / 2, largest};
  std::erase_if(all, [](int64_t ranks) { return ranks < 2; });
  return all;
}

bool FitsMemory(int64_t ranks, int64_t size, const ExperimentOptions& options) {
  // Blocks of half the size on average, sent and received.
  return options.large || ranks * ranks * size <= kOrdinaryBytes;
}

std::vector<std::string> SimulatedBaselines(int64_t ranks, int64_t size,
                                            const ExperimentOptions& options) {
  // All ranks together, P (P - 1) messages each.
  constexpr int64_t kMinutes = 1024;
  // Below that the floor decides: the best radices take less.
  constexpr int64_t kInDoubt = 1024;
  const bool at_once = ranks < kMinutes || (ranks == kMinutes && size >= kInDoubt) || options.large;
  if (at_once) return {std::string(kOneAtATime), std::string(kWindow), std::string(kAllAtOnce)};
  if (ranks <= kMinutes) return {std::string(kOneAtATime)};
  return {};
}

std::vector<Point> Grid(std::span<const int64_t> sizes, const std::vector<std::string>& algorithms,
                        const std::string& distribution) {
  std::vector<Point> points;
  for (const int64_t size : sizes)
    for (const std::string& algorithm : algorithms)
      points.push_back({distribution, size, algorithm});
  return points;
}

std::vector<int64_t> Radices(int64_t ranks) {
  std::vector<int64_t> radices;
  for (int64_t radix = 2; radix < ranks; radix *= 2) radices.push_back(radix);
  radices.push_back(std::max<int64_t>(2, ranks));
  return radices;
}

std::vector<std::string> TunaOf(std::span<const int64_t> radices) {
  std::vector<std::string> names;
  for (const int64_t radix : radices) names.push_back(fmt::format("tuna:r={}", radix));
  return names;
}

int64_t MessagesOfTuna(int64_t ranks, int64_t radix) {
  return static_cast<int64_t>(
      tune::TunaRounds(static_cast<int>(ranks), static_cast<int>(radix)).size());
}

std::vector<int64_t> FewRadices(int64_t ranks) {
  std::vector<int64_t> radices = {4, 8, 16, std::llround(std::sqrt(ranks))};
  if (ranks < 1024) radices.push_back(2);
  std::sort(radices.begin(), radices.end());
  radices.erase(std::unique(radices.begin(), radices.end()), radices.end());
  std::erase_if(radices, [&](int64_t radix) { return radix < 2 || radix > ranks; });
  return radices;
}

std::vector<std::string> Hierarchical(const Machine& machine) {
  constexpr int64_t kAtOnce = 32, kMinutesEach = 2048;
  const int64_t count = std::clamp<int64_t>(machine.Nodes() - 1, 1, kAtOnce);
  std::vector<std::string> names;
  for (const int64_t radix : {2, 4, 32}) {
    if (radix > machine.RanksPerNode() || (radix != 4 && machine.ranks >= kMinutesEach)) continue;
    names.push_back(fmt::format("coalesced:r={},b={}", radix, count));
  }
  names.push_back(fmt::format("shared:b={}", count));
  names.push_back(fmt::format("shared-coalesced:b={}", count));
  return names;
}

std::string SimulationNote() {
  return "Simulated: the engine's own code under SimGrid's SMPI on the platforms of "
         "data/platforms, 32 ranks a node (P / 4 below P = 128), messages inside a node at a price "
         "of their own. The paper measured 512 to 16384 ranks of the real machines; its figures "
         "are drawn, so trends compare and times do not. --large: twice the ranks, and more of the "
         "baselines.";
}

}  // namespace tutti::tuna
