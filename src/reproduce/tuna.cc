#include "tuna.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "built_in_platforms.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/progress.h"

extern char** environ;

namespace tutti::tuna {
namespace {

constexpr const char* kProgram = "tutti-mpi-sweep-smpi";
constexpr int64_t kUsualRanks = 128;

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

Result<std::string> FindProgram() {
  std::error_code fault;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", fault);
  // Where it is built, and where it is installed.
  for (const char* folder : {".", "../libexec/tutti"}) {
    const std::filesystem::path program = own.parent_path() / folder / kProgram;
    if (std::filesystem::exists(program, fault)) return program.string();
  }
  return MakeError(
      ErrorCode::kNotFound,
      fmt::format("simulations run {}, which is not in {} (build it with cmake -DTUTTI_MPI=ON)",
                  kProgram, own.parent_path().string()));
}

// Ends the child and whatever it started, and waits.
int EndGroup(pid_t child, bool kill_it) {
  if (kill_it) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

struct Output {
  int status = 0;
  std::string text;
};

// Runs a command, with what it prints on both streams; `line` is called for each line.
template <class OnLine>
Result<Output> RunCommand(std::vector<std::string> words, const OnLine& line) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return MakeError(ErrorCode::kIo,
                     fmt::format("no pipe for {}: {}", words[0], std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Its own group, so that all of it can be ended.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int fault =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (fault != 0) {
    close(ends[0]);
    if (fault == ENOENT)
      return MakeError(
          ErrorCode::kNotFound,
          fmt::format("{} is not on the PATH (Debian: apt-get install libsimgrid-dev)", words[0]));
    return MakeError(ErrorCode::kIo,
                     fmt::format("{} could not be run: {}", words[0], std::strerror(fault)));
  }
  Output output;
  size_t line_begin = 0;
  std::array<char, 4096> buffer;
  while (true) {
    if (CancelRequested()) {
      EndGroup(child, true);
      close(ends[0]);
      return tl::unexpected(CancelledError());
    }
    pollfd readable{.fd = ends[0], .events = POLLIN, .revents = 0};
    constexpr int kMilliseconds = 100;
    if (poll(&readable, 1, kMilliseconds) <= 0) continue;
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.text.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = output.text.find('\n', line_begin)) != output.text.npos;
         line_begin = end + 1)
      line(std::string_view(output.text).substr(line_begin, end - line_begin));
  }
  close(ends[0]);
  output.status = EndGroup(child, false);
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

Result<std::string_view> PlatformText(std::string_view name) {
  for (const BuiltInPlatform& platform : BuiltInPlatformFiles())
    if (platform.name == name) return platform.text;
  return MakeError(ErrorCode::kNotFound, fmt::format("no platform is named '{}'", name));
}

}  // namespace

int64_t Machine::RanksANode() const { return std::clamp<int64_t>(ranks / 4, 1, 32); }

Result<std::vector<Measured>> Simulate(const Machine& machine, std::span<const Point> points) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const Result<std::string> program = FindProgram();
  if (!program) return tl::unexpected(program.error());
  const Result<std::string_view> platform = PlatformText(machine.platform);
  if (!platform) return tl::unexpected(platform.error());
  const TemporaryFolder folder;
  if (!folder.ok())
    return MakeError(ErrorCode::kIo, fmt::format("no temporary folder: {}", std::strerror(errno)));
  std::string hosts;
  for (int64_t rank = 0; rank < machine.ranks; ++rank)
    hosts += fmt::format("node{}\n", rank / machine.RanksANode());
  if (const Status done = WriteFileAtomically(folder.File("platform.xml"), *platform); !done)
    return tl::unexpected(done.error());
  if (const Status done = WriteFileAtomically(folder.File("hosts"), hosts); !done)
    return tl::unexpected(done.error());
  std::vector<std::string> words = {"env",
                                    fmt::format("TUTTI_RANKS_PER_NODE={}", machine.RanksANode()),
                                    "smpirun",
                                    "-np",
                                    std::to_string(machine.ranks),
                                    "-platform",
                                    folder.File("platform.xml"),
                                    "-hostfile",
                                    folder.File("hosts"),
                                    "--log=root.thres:error",
                                    *program,
                                    "--light-warm-up"};
  for (const Point& point : points)
    words.push_back(fmt::format("{}/{}/{}", point.distribution, point.size, point.algorithm));
  ProgressScope progress("simulating", static_cast<int64_t>(points.size()));
  std::vector<Measured> all;
  const Result<Output> output = RunCommand(std::move(words), [&](std::string_view line) {
    if (std::optional<Measured> measured = ParseLine(line)) {
      all.push_back(*std::move(measured));
      progress.Add(1);
    }
  });
  if (!output) return tl::unexpected(output.error());
  // What `env` says of a command that is not there.
  if (WIFEXITED(output->status) && WEXITSTATUS(output->status) == 127)
    return MakeError(
        ErrorCode::kNotFound,
        "simulations are run by SimGrid's smpirun, which is not on the PATH (Debian: apt-get "
        "install libsimgrid-dev)");
  if (output->status != 0 || all.size() != points.size())
    return MakeError(ErrorCode::kIo, fmt::format("the simulation of {} ranks failed: {}",
                                                 machine.ranks, output->text.substr(0, 500)));
  return all;
}

int64_t RanksFor(const ExperimentOptions& options) {
  const int64_t ranks = options.large ? 4 * kUsualRanks : kUsualRanks;
  return options.max_ranks == 0 ? ranks : std::min(ranks, options.max_ranks);
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

const Measured* Fastest(std::span<const Measured> all, int64_t size,
                        const std::vector<std::string_view>& names) {
  const Measured* best = nullptr;
  for (const Measured& each : all) {
    if (each.point.size != size) continue;
    const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return each.point.algorithm.starts_with(name);
    });
    if (named && (best == nullptr || each.seconds < best->seconds)) best = &each;
  }
  return best;
}

const Measured* Slowest(std::span<const Measured> all, int64_t size, std::string_view name) {
  const Measured* worst = nullptr;
  for (const Measured& each : all)
    if (each.point.size == size && each.point.algorithm.starts_with(name) &&
        (worst == nullptr || each.seconds > worst->seconds))
      worst = &each;
  return worst;
}

ResultCell Microseconds(double seconds, std::string paper) {
  return Figure(Rational(std::llround(seconds * 1e9), 1000), std::move(paper));
}

ResultCell Ratio(double a, double b, std::string paper) {
  return Figure(Rational(std::llround(a * 1e12), std::max<int64_t>(1, std::llround(b * 1e12))),
                std::move(paper));
}

std::string SimulationNote(int64_t ranks) {
  return fmt::format(
      "Simulated: the engine's own code under SimGrid's SMPI on the platforms of data/platforms, "
      "{} "
      "ranks. The paper measured 512 to 16384 ranks of the real machines; its figures are "
      "drawn, so trends compare and times do not. --large: four times the ranks.",
      ranks);
}

}  // namespace tutti::tuna
