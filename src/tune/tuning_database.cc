#include "tutti/tune/tuning_database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/base/file.h"

namespace tutti::tune {
namespace {

constexpr std::string_view kHeader = "tutti-mpi 1";
constexpr double kMaxSeconds = 1e6;
constexpr int kMaxRanks = 1 << 24;
constexpr off_t kMaxBytes = off_t{1} << 26;  // of a file; a record takes some 100

std::string Quoted(std::string_view text) {
  constexpr size_t kReadable = 60;
  std::string quoted(1, '\'');
  quoted.append(text.substr(0, kReadable)).push_back('\'');
  return quoted;
}

// A line of a terminal, whatever the file holds.
Error AtLine(size_t number, std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  return {ErrorCode::kCorrupt, "line " + std::to_string(number) + ": " + message};
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Result<double> ParseSeconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) ||
      !(value <= kMaxSeconds)) {
    return InvalidArgument("got " + Quoted(text) + ", wanted seconds from 0 to 1e6");
  }
  return value + 0.0;  // no negative zero
}

Result<int64_t> ParseWhole(std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return InvalidArgument("got " + Quoted(text) + ", wanted a whole number from " +
                           std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

// The words after the kind and the library: exactly KEY=VALUE for each of `keys`, in that order.
Result<std::vector<std::string_view>> ValuesOf(const std::vector<std::string_view>& words,
                                               const std::vector<std::string_view>& keys) {
  std::string form;
  for (const std::string_view key : keys) form.append(" ").append(key).append("=...");
  if (words.size() != keys.size() + 2) {
    return InvalidArgument("wanted " + std::string(words[0]) + " LIBRARY" + form);
  }
  std::vector<std::string_view> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string_view word = words[i + 2];
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || word.substr(0, equals) != keys[i]) {
      return InvalidArgument("got " + Quoted(word) + ", wanted " + std::string(keys[i]) + "=...");
    }
    values.push_back(word.substr(equals + 1));
  }
  return values;
}

// As many comma-separated seconds as there are fields.
Status ParseFields(std::string_view text, std::string_view key, std::vector<double*> fields) {
  const std::vector<std::string_view> parts = Split(text, ',');
  if (parts.size() != fields.size()) {
    return InvalidArgument(std::string(key) + ": got " + std::to_string(parts.size()) +
                           " values, wanted " + std::to_string(fields.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const Result<double> value = ParseSeconds(parts[i]);
    if (!value) return Within(std::string(key), value.error());
    *fields[i] = *value;
  }
  return {};
}

// A path may say after its figures that they are not simply measured; takes that off the text.
void TakeOrigin(std::string_view* text, PathCost* path) {
  for (const Origin origin : {Origin::kCrowded, Origin::kAssumed}) {
    const std::string word = std::string(1, ',').append(Name(origin));
    if (text->size() < word.size() || text->substr(text->size() - word.size()) != word) continue;
    path->origin = origin;
    text->remove_suffix(word.size());
  }
}

std::vector<double*> FieldsOf(PathCost& path) {
  return {&path.latency_s, &path.flow_s_per_byte, &path.node_s_per_byte};
}

const std::vector<std::string_view> kModelKeys = {"inside",  "between", "send",
                                                  "receive", "copy",    "eager"};
const std::vector<std::string_view> kBestKeys = {"ranks",     "per-node", "block",
                                                 "algorithm", "seconds",  "own"};

std::vector<std::vector<double*>> FieldsOf(CostModel& model) {
  return {FieldsOf(model.inside),
          FieldsOf(model.between),
          {&model.send_s},
          {&model.receive_s},
          {&model.copy_s, &model.copy_s_per_byte},
          {&model.eager_bytes, &model.eager_s_per_byte}};
}

Status ParseModel(const std::vector<std::string_view>& words, Library library,
                  TuningDatabase& database) {
  auto values = ValuesOf(words, kModelKeys);
  if (!values) return tl::unexpected(values.error());
  CostModel model{.library = library};
  const auto fields = FieldsOf(model);
  TakeOrigin(&(*values)[0], &model.inside);
  TakeOrigin(&(*values)[1], &model.between);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const Status parsed = ParseFields((*values)[i], kModelKeys[i], fields[i]); !parsed) {
      return parsed;
    }
  }
  if (!database.models.emplace(library, model).second) {
    return InvalidArgument("a second model of " + std::string(Name(library)));
  }
  return {};
}

Status ParseBest(const std::vector<std::string_view>& words, Library library,
                 TuningDatabase& database) {
  const auto values = ValuesOf(words, kBestKeys);
  if (!values) return tl::unexpected(values.error());
  const auto ranks = ParseWhole((*values)[0], 1, kMaxRanks);
  if (!ranks) return Within("ranks", ranks.error());
  const auto per_node = ParseWhole((*values)[1], 1, *ranks);
  if (!per_node) return Within("per-node", per_node.error());
  const auto block = ParseWhole((*values)[2], 1, int64_t{1} << kMaxSizeClass);
  if (!block) return Within("block", block.error());
  const int size_class = SizeClassOf(static_cast<double>(*block));
  if (int64_t{1} << size_class != *block) {
    return InvalidArgument("block: got " + Quoted((*values)[2]) + ", wanted a power of two");
  }
  const Result<Algorithm> algorithm = alltoallv::ParseAlgorithm((*values)[3]);
  if (!algorithm) return Within("algorithm", algorithm.error());
  if (algorithm->method == Method::kAuto) {
    return InvalidArgument("algorithm: 'auto' is not one that can be measured");
  }
  Measured measured{.algorithm = *algorithm};
  for (const auto& [text, key, field] :
       {std::tuple{(*values)[4], kBestKeys[4], &measured.seconds},
        std::tuple{(*values)[5], kBestKeys[5], &measured.native_seconds}}) {
    if (const Status parsed = ParseFields(text, key, {field}); !parsed) return parsed;
  }
  const Situation situation{.library = library,
                            .ranks = static_cast<int>(*ranks),
                            .largest_node = static_cast<int>(*per_node),
                            .size_class = size_class};
  if (!database.best.emplace(situation, measured).second) {
    return InvalidArgument("a second best for the same library, ranks, per-node and block");
  }
  return {};
}

Status ParseRecord(std::string_view line, TuningDatabase& database) {
  const std::vector<std::string_view> words = Split(line, ' ');
  const bool is_model = words[0] == "model";
  if (!is_model && words[0] != "best") {
    return InvalidArgument("got " + Quoted(words[0]) + ", wanted model, best or #");
  }
  const Result<Library> library = ParseLibrary(words.size() < 2 ? std::string_view() : words[1]);
  if (!library) return tl::unexpected(library.error());
  return is_model ? ParseModel(words, *library, database) : ParseBest(words, *library, database);
}

std::string Shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), error == std::errc() ? end : buffer.data()};
}

// Holds PATH.lock while it lives. Waits for another writer, who needs milliseconds.
class Lock {
 public:
  static Result<Lock> Take(const std::string& path) {
    constexpr int kMaxAttempts = 200;
    const std::string name = path + ".lock";
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return Fail(name, "open");
    Lock lock(fd);
    for (int attempt = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++attempt) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || attempt == kMaxAttempts) {
        return Fail(name, "lock");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return lock;
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  static tl::unexpected<Error> Fail(const std::string& name, const char* what) {
    return MakeError(ErrorCode::kIo, name + ": cannot " + what + ": " + std::strerror(errno));
  }

  int fd_;
};

}  // namespace

int SizeClassOf(double mean_bytes) {
  int size_class = 0;
  for (double upper = 1; upper < mean_bytes && size_class < kMaxSizeClass; upper *= 2) {
    ++size_class;
  }
  return size_class;
}

void TuningDatabase::Merge(const TuningDatabase& newer) {
  for (const auto& [library, model] : newer.models) models[library] = model;
  for (const auto& [situation, measured] : newer.best) best[situation] = measured;
}

Result<TuningDatabase> ParseTuningDatabase(std::string_view text) {
  TuningDatabase database;
  bool has_header = false;
  size_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1) {
      has_header = line == kHeader;
      if (has_header) continue;
      return tl::unexpected(
          AtLine(number, "got " + Quoted(line) + ", wanted '" + std::string(kHeader) + "'"));
    }
    if (line.empty() || line.front() == '#') continue;
    if (const Status parsed = ParseRecord(line, database); !parsed) {
      return tl::unexpected(AtLine(number, parsed.error().message));
    }
  }
  return database;
}

std::string FormatTuningDatabase(const TuningDatabase& database) {
  std::string text(kHeader);
  text += "\n# written by tutti; times in seconds, and seconds a byte\n";
  for (const auto& [library, model] : database.models) {
    text.append("model ").append(Name(library));
    CostModel copy = model;
    const auto fields = FieldsOf(copy);
    for (size_t i = 0; i < fields.size(); ++i) {
      text.append(" ").append(kModelKeys[i]);
      char separator = '=';
      for (const double* field : fields[i]) {
        text.append(1, std::exchange(separator, ',')).append(Shortest(*field));
      }
      // Those of a path are the first two.
      const Origin origin = i == 0   ? model.inside.origin
                            : i == 1 ? model.between.origin
                                     : Origin::kMeasured;
      if (origin != Origin::kMeasured) text.append(1, ',').append(Name(origin));
    }
    text += "\n";
  }
  for (const auto& [situation, measured] : database.best) {
    text.append("best ").append(Name(situation.library));
    const std::string values[] = {std::to_string(situation.ranks),
                                  std::to_string(situation.largest_node),
                                  std::to_string(int64_t{1} << situation.size_class),
                                  ToString(measured.algorithm),
                                  Shortest(measured.seconds),
                                  Shortest(measured.native_seconds)};
    for (size_t i = 0; i < kBestKeys.size(); ++i) {
      text.append(" ").append(kBestKeys[i]).append("=").append(values[i]);
    }
    text += "\n";
  }
  return text;
}

std::string TuningDatabasePath(const char* chosen, const char* config_home, const char* home) {
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (is_set(chosen)) return chosen;
  if (is_set(config_home)) return std::string(config_home) + "/tutti/mpi";
  if (is_set(home)) return std::string(home) + "/.config/tutti/mpi";
  return "";
}

Result<std::optional<TuningDatabase>> ReadTuningDatabase(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<TuningDatabase>();
    return MakeError(ErrorCode::kIo, path + ": cannot look at: " + std::strerror(errno));
  }
  // A pipe would be waited for, a device has no end.
  if (!S_ISREG(info.st_mode)) {
    return MakeError(ErrorCode::kInvalidArgument, path + ": is no regular file");
  }
  if (info.st_size > kMaxBytes) {
    return MakeError(ErrorCode::kCorrupt, path + ": got " + std::to_string(info.st_size) +
                                              " bytes, wanted at most " +
                                              std::to_string(kMaxBytes));
  }
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  // Made by touch or mktemp, to be filled.
  if (text->empty()) return std::optional<TuningDatabase>(std::in_place);
  Result<TuningDatabase> database = ParseTuningDatabase(*text);
  if (!database) return Within(path, database.error());
  return std::optional<TuningDatabase>(std::move(*database));
}

Status UpdateTuningDatabase(const std::string& path, const TuningDatabase& newer) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return MakeError(ErrorCode::kIo, folder.string() + ": cannot create: " + error.message());
  }
  const Result<Lock> lock = Lock::Take(path);
  if (!lock) return tl::unexpected(lock.error());
  const Result<std::optional<TuningDatabase>> old = ReadTuningDatabase(path);
  if (!old) return tl::unexpected(old.error());
  TuningDatabase merged = old->value_or(TuningDatabase());
  merged.Merge(newer);
  return WriteFileAtomically(path, FormatTuningDatabase(merged));
}

}  // namespace tutti::tune
