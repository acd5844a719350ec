#include "schedules.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "once_made.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"
#include "tutti/lower/lowering.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

// Up to here every rank has a connection to every other.
constexpr int32_t kMaxComplete = 16;
// From here on a broadcast between hosts is worth the steps of a chain; within one all read the root's
// memory at once.
constexpr int64_t kLongBytes = int64_t{64} << 10;

Result<PlannedSchedule> Planned(std::string name, const Topology& topology,
                                const Schedule& schedule) {
  Result<Plan> plan = Lower(topology, schedule);
  if (!plan) return tl::unexpected(plan.error());
  Fnv1a digest;
  digest.AddBytes(PlanToText(*plan));
  return PlannedSchedule{std::move(name), std::move(*plan), digest.value()};
}

CostCurve CurveOf(const ScheduleFile& file) {
  if (file.schedule.kind == ScheduleKind::kStep) return AnalyticCurve(file.topology, file.schedule);
  const int64_t size = std::max<int64_t>(1, file.schedule.size_bytes);
  return {
      {.from_bytes = Rational(0),
       .fixed_s = Rational(0),
       .seconds_per_byte = PredictedSeconds(file.topology, file.schedule, size) / Rational(size)}};
}

std::shared_ptr<const PlannedSchedule> Shared(PlannedSchedule planned) {
  return std::make_shared<const PlannedSchedule>(std::move(planned));
}

bool HasDefault(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce;
}

}  // namespace

Result<ScheduleBook> ScheduleBook::Load(const std::string& folder, int32_t num_ranks) {
  ScheduleBook book(num_ranks);
  if (folder.empty()) return book;
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error))
    if (file->is_regular_file()) paths.push_back(file->path().string());
  if (error)
    return MakeError(ErrorCode::kIo,
                     fmt::format("schedule library '{}': {}", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    auto entry = ReadOnce(path, num_ranks);
    if (!entry) return tl::unexpected(entry.error());
    if (*entry != nullptr) book.Add(std::move(*entry));
  }
  return book;
}

Result<ScheduleBook> ScheduleBook::Make(const std::vector<NamedFile>& files, int32_t num_ranks) {
  ScheduleBook book(num_ranks);
  for (const auto& [name, bytes] : files) {
    Result<ScheduleFile> file = ScheduleFromJson(bytes);
    if (!file) return Within(name, file.error());
    if (file->schedule.collective.num_ranks() != num_ranks)
      return InvalidArgument(fmt::format("{}: is for {} ranks, wanted {}", name,
                                         file->schedule.collective.num_ranks(), num_ranks));
    if (file->schedule.collective.has_groups())
      return InvalidArgument(
          fmt::format("{}: is of groups of ranks, wanted one of all {}", name, num_ranks));
    auto entry = Prove(name, bytes, std::move(*file));
    if (!entry) return tl::unexpected(entry.error());
    book.Add(std::move(*entry));
  }
  return book;
}

Result<std::shared_ptr<const ScheduleBook::Entry>> ScheduleBook::Prove(const std::string& path,
                                                                       const std::string& bytes,
                                                                       ScheduleFile file) {
  const VerifyReport report = Verify(file.topology, file.schedule.collective, file.schedule);
  if (!report.violations.empty())
    return InvalidArgument(fmt::format("{}: {}", path, report.violations.front().message));
  Fnv1a digest;
  digest.AddBytes(bytes);
  CostCurve curve = CurveOf(file);
  return std::make_shared<const Entry>(
      Entry{path, std::move(file), std::move(curve), digest.value()});
}

Result<std::shared_ptr<const ScheduleBook::Entry>> ScheduleBook::ReadOnce(const std::string& path,
                                                                          int32_t num_ranks) {
  // Which file it is, which bytes, and for how many ranks.
  using Key = std::tuple<std::string, int32_t, uint64_t, uint64_t, int64_t, int64_t, int64_t>;
  static OnceMade<Key, const Entry> entries;
  struct stat file {};
  if (stat(path.c_str(), &file) != 0)
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
  const Key key{path,         num_ranks,           file.st_dev,         file.st_ino,
                file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  return entries.Get(key, [&]() -> Result<std::shared_ptr<const Entry>> {
    Result<ScheduleFile> read = ReadScheduleFile(path);
    if (!read) return tl::unexpected(read.error());
    const Collective& collective = read->schedule.collective;
    if (collective.num_ranks() != num_ranks || collective.has_groups())
      return std::shared_ptr<const Entry>();
    const Result<std::string> bytes = ReadFile(path);
    if (!bytes) return tl::unexpected(bytes.error());
    return Prove(path, *bytes, std::move(*read));
  });
}

void ScheduleBook::Add(std::shared_ptr<const Entry> entry) {
  Fnv1a digest;
  digest.AddWord(static_cast<int64_t>(digest_));
  digest.AddBytes(std::filesystem::path(entry->path).filename().string());
  digest.AddSeparator();
  digest.AddWord(static_cast<int64_t>(entry->digest));
  digest_ = digest.value();
  entries_.push_back(std::move(entry));
}

bool ScheduleBook::Is(const Entry& entry, CollectiveKind kind, int32_t root) {
  const Collective& collective = entry.file.schedule.collective;
  return collective.kind() == kind && (!collective.has_root() || collective.root().value == root);
}

bool ScheduleBook::Holds(CollectiveKind kind, int32_t root) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const auto& entry) { return Is(*entry, kind, root); });
}

const ScheduleBook::Entry* ScheduleBook::BestEntry(CollectiveKind kind, int32_t root,
                                                   int64_t size_bytes) const {
  const Entry* best = nullptr;
  std::optional<Rational> least;
  for (const std::shared_ptr<const Entry>& entry : entries_) {
    if (!Is(*entry, kind, root)) continue;
    const Rational seconds = SecondsAt(entry->curve, Rational(size_bytes));
    if (!least || seconds < *least) {
      least = seconds;
      best = entry.get();
    }
  }
  return best;
}

ScheduleBook::DefaultKey ScheduleBook::KeyOfDefault(CollectiveKind kind, int32_t root,
                                                    int64_t size_bytes, bool one_host) {
  const bool spreads = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
  return {kind, root,
          spreads && !one_host && size_bytes >= kLongBytes ? Length::kLong : Length::kShort};
}

std::optional<const PlannedSchedule*> ScheduleBook::IfMade(CollectiveKind kind, int32_t root,
                                                           int64_t size_bytes,
                                                           bool one_host) const {
  if (const Entry* best = BestEntry(kind, root, size_bytes); best != nullptr) {
    const auto found = planned_.find(best);
    return found != planned_.end() ? std::optional(found->second.get()) : std::nullopt;
  }
  if (!HasDefault(kind)) return nullptr;
  const auto found = defaults_.find(KeyOfDefault(kind, root, size_bytes, one_host));
  if (found == defaults_.end() || found->second == nullptr) return std::nullopt;
  return found->second.get();
}

Result<const PlannedSchedule*> ScheduleBook::Choose(CollectiveKind kind, int32_t root,
                                                    int64_t size_bytes, bool one_host) {
  if (const auto made = IfMade(kind, root, size_bytes, one_host); made) return *made;
  // Who plans it in this process; the others wait.
  if (const Entry* best = BestEntry(kind, root, size_bytes); best != nullptr) {
    static OnceMade<std::pair<std::string, uint64_t>, const PlannedSchedule> plans;
    Result<SharedPlan> planned = plans.Get({best->path, best->digest}, [best] {
      return Planned(std::filesystem::path(best->path).filename().string(), best->file.topology,
                     best->file.schedule)
          .map(Shared);
    });
    if (!planned) return Within(best->path, planned.error());
    return (planned_[best] = std::move(*planned)).get();
  }
  const DefaultKey key = KeyOfDefault(kind, root, size_bytes, one_host);
  static OnceMade<std::pair<int32_t, DefaultKey>, const PlannedSchedule> defaults;
  Result<SharedPlan> planned =
      defaults.Get({num_ranks_, key}, [&] { return MakeDefault(key).map(Shared); });
  if (!planned) return tl::unexpected(planned.error());
  return (defaults_[key] = std::move(*planned)).get();
}

Result<PlannedSchedule> ScheduleBook::MakeDefault(const DefaultKey& key) const {
  const auto [kind, root, length] = key;
  const bool is_long = length == Length::kLong;
  const std::string network = is_long ? fmt::format("ring({})", num_ranks_)
                              : num_ranks_ <= kMaxComplete
                                  ? fmt::format("complete({})", num_ranks_)
                                  : fmt::format("genkautz(4,{})", num_ranks_);
  const std::string_view algorithm = is_long ? "ring" : "bfb";
  const Result<Topology> topology = ParseTopology(network);
  if (!topology) return tl::unexpected(topology.error());
  const Result<Collective> collective = Collective::Make(kind, num_ranks_, {.root = root});
  if (!collective) return tl::unexpected(collective.error());
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  SynthOptions options;
  options.size_bytes = is_long ? kLongBytes * 16 : kLongBytes;
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, options);
  if (!schedule) return tl::unexpected(schedule.error());
  return Planned(fmt::format("{} on {}", algorithm, network), *topology, *schedule);
}

}  // namespace tutti
