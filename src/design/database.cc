#include "tutti/design/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base.h"
#include "tutti/base/check.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

constexpr int kVersion = 2;               // of the tables
constexpr int kApplication = 0x54555454;  // in SQLite's header: "TUTT"
// Raise it when the search itself changes: what is tried, or how ties are broken.
constexpr uint64_t kRules = 2;

constexpr char kTables[] = R"(
CREATE TABLE made_from (bases TEXT NOT NULL);
CREATE TABLE coverage (degree INTEGER PRIMARY KEY, max_ranks INTEGER NOT NULL);
CREATE TABLE frontier (
  kind INTEGER NOT NULL, degree INTEGER NOT NULL, ranks INTEGER NOT NULL,
  designs INTEGER NOT NULL, checksum TEXT NOT NULL,
  PRIMARY KEY (kind, degree, ranks)) WITHOUT ROWID;
CREATE TABLE design (
  kind INTEGER NOT NULL, degree INTEGER NOT NULL, ranks INTEGER NOT NULL,
  position INTEGER NOT NULL,
  recipe TEXT NOT NULL, algorithm TEXT NOT NULL, tl INTEGER NOT NULL, tb TEXT NOT NULL,
  reduce_scatter_tl INTEGER NOT NULL, reduce_scatter_tb TEXT NOT NULL,
  diameter INTEGER NOT NULL, flags INTEGER NOT NULL, reasons TEXT NOT NULL,
  PRIMARY KEY (kind, degree, ranks, position)) WITHOUT ROWID;
)";

class Hash {
 public:
  void Add(std::string_view text) {
    hash_.AddBytes(text);
    hash_.AddSeparator();  // so that "ab", "c" is not "a", "bc"
  }
  void Add(int64_t number) { Add(fmt::to_string(number)); }
  std::string ToText() const { return fmt::format("{:016x}", hash_.value()); }

 private:
  Fnv1a hash_;
};

// What the answers depend on: the bases by name, and by what they list where that is quickly seen.
std::string MakeKeyOfBases() {
  Hash hash;
  hash.Add(static_cast<int64_t>(kRules));
  std::vector<design::BaseEntry> entries;
  for (const design::BaseFamily& family : design::BaseFamilies()) {
    hash.Add(family.name);
    hash.Add(family.reference);
    for (int32_t degree = 1; degree <= 4; ++degree)
      for (int32_t ranks : {2, 4, 5, 6, 8, 9, 12, 16, 20, 27, 32, 45, 64, 128, 728}) {
        entries.clear();
        family.list(ranks, degree, entries);
        for (const design::BaseEntry& entry : entries) {
          hash.Add(entry.recipe);
          hash.Add(entry.tl);
          hash.Add(entry.tb.ToString());
        }
      }
  }
  return hash.ToText();
}

const std::string& KeyOfBases() {
  static const std::string key = MakeKeyOfBases();
  return key;
}

// Which frontier of a size and degree a row is of.
enum Kind : int64_t { kOfAllGather, kOfReduceScatter, kOfAllReduce, kOfBidirectional };

Kind KindOf(bool bidirectional_only, CollectiveKind collective) {
  if (bidirectional_only) return kOfBidirectional;
  if (collective == CollectiveKind::kReduceScatter) return kOfReduceScatter;
  return collective == CollectiveKind::kAllReduce ? kOfAllReduce : kOfAllGather;
}

constexpr int64_t kDiameterExact = 1, kBidirectional = 2, kReverseSymmetric = 4;

int64_t FlagsOf(const Design& design) {
  return (design.diameter_exact ? kDiameterExact : 0) |
         (design.bidirectional ? kBidirectional : 0) |
         (design.reverse_symmetric ? kReverseSymmetric : 0);
}

std::string ChecksumOf(const std::vector<Design>& designs) {
  Hash hash;
  for (const Design& design : designs) {
    hash.Add(design.recipe);
    hash.Add(design.algorithm);
    hash.Add(design.tl);
    hash.Add(design.tb.ToString());
    hash.Add(design.reduce_scatter.tl);
    hash.Add(design.reduce_scatter.tb.ToString());
    hash.Add(design.diameter);
    hash.Add(FlagsOf(design));
    for (const std::string& reason : design.reasons) hash.Add(reason);
  }
  return hash.ToText();
}

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
using Connection = std::unique_ptr<sqlite3, CloseConnection>;

// A prepared statement; its faults are kept and told by ok().
class Statement {
 public:
  Statement(sqlite3* connection, const char* text) {
    ok_ = sqlite3_prepare_v2(connection, text, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(int64_t number) {
    ok_ = ok_ && sqlite3_bind_int64(statement_, ++bound_, number) == SQLITE_OK;
    return *this;
  }
  Statement& Bind(const std::string& text) {
    ok_ = ok_ && sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  // True while there is a row.
  bool Step() {
    if (!ok_) return false;
    const int code = sqlite3_step(statement_);
    ok_ = code == SQLITE_ROW || code == SQLITE_DONE;
    return code == SQLITE_ROW;
  }
  // To run it once more.
  void Reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }
  int64_t Number(int column) { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) {
    const unsigned char* const text = sqlite3_column_text(statement_, column);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return text == nullptr ? "" : std::string(reinterpret_cast<const char*>(text), size);
  }
  bool ok() const { return ok_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  bool ok_ = false;
};

bool Run(sqlite3* connection, const char* text) {
  return sqlite3_exec(connection, text, nullptr, nullptr, nullptr) == SQLITE_OK;
}

class FileDatabase final : public DesignDatabase {
 public:
  FileDatabase(std::string path, std::string contents)
      : path_(std::move(path)), contents_(std::move(contents)) {}

  Status Load() {
    sqlite3* connection = nullptr;
    const int opened = sqlite3_open(":memory:", &connection);
    connection_.reset(connection);
    if (opened != SQLITE_OK) return Damaged("SQLite does not start");
    // SQLite reads the bytes that we keep; it writes none of them.
    const auto size = static_cast<sqlite3_int64>(contents_.size());
    if (contents_.size() < 100 ||
        sqlite3_deserialize(connection, "main", reinterpret_cast<unsigned char*>(contents_.data()),
                            size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
      return Damaged("too short");
    Statement version(connection, "PRAGMA user_version");
    if (!version.Step()) return Damaged("no SQLite database");
    if (version.Number(0) != kVersion) return {};  // opened, but not current
    Statement bases(connection, "SELECT bases FROM made_from");
    if (!bases.Step()) return Damaged("tables are missing");
    current_ = bases.Text(0) == KeyOfBases();
    Statement coverage(connection, "SELECT degree, max_ranks FROM coverage ORDER BY degree");
    while (coverage.Step()) {
      coverage_.degrees.push_back(static_cast<int32_t>(coverage.Number(0)));
      coverage_.max_ranks = static_cast<int32_t>(coverage.Number(1));
    }
    if (!coverage.ok()) return Damaged("tables are missing");
    return {};
  }

  bool current() const override { return current_; }
  const DatabaseCoverage& coverage() const override { return coverage_; }

  Result<std::optional<std::vector<Design>>> Find(int32_t ranks, int32_t degree,
                                                  bool bidirectional_only,
                                                  CollectiveKind collective) override {
    const Kind kind = KindOf(bidirectional_only, collective);
    const bool covered = std::find(coverage_.degrees.begin(), coverage_.degrees.end(), degree) !=
                             coverage_.degrees.end() &&
                         2 <= ranks && ranks <= coverage_.max_ranks;
    if (!current_ || !covered) return std::nullopt;
    Statement frontier(connection_.get(),
                       "SELECT designs, checksum FROM frontier "
                       "WHERE kind = ? AND degree = ? AND ranks = ?");
    if (!frontier.Bind(kind).Bind(degree).Bind(ranks).Step())
      return Damaged("a frontier is missing");
    std::vector<Design> designs;
    Statement rows(connection_.get(),
                   "SELECT recipe, algorithm, tl, tb, reduce_scatter_tl, reduce_scatter_tb, "
                   "diameter, flags, reasons FROM design "
                   "WHERE kind = ? AND degree = ? AND ranks = ? ORDER BY position");
    rows.Bind(kind).Bind(degree).Bind(ranks);
    while (rows.Step()) designs.push_back(ReadDesign(rows, ranks, degree));
    if (!rows.ok() || static_cast<int64_t>(designs.size()) != frontier.Number(0) ||
        ChecksumOf(designs) != frontier.Text(1))
      return Damaged(fmt::format("the frontier of {} ranks with degree {}", ranks, degree));
    return designs;
  }

 private:
  static Design ReadDesign(Statement& row, int32_t ranks, int32_t degree) {
    Design design;
    design.recipe = row.Text(0);
    design.algorithm = row.Text(1);
    design.ranks = ranks;
    design.degree = degree;
    design.tl = static_cast<int32_t>(row.Number(2));
    design.tb = Rational::Parse(row.Text(3)).value_or(Rational(-1));
    design.reduce_scatter.tl = static_cast<int32_t>(row.Number(4));
    design.reduce_scatter.tb = Rational::Parse(row.Text(5)).value_or(Rational(-1));
    design.diameter = static_cast<int32_t>(row.Number(6));
    const int64_t flags = row.Number(7);
    design.diameter_exact = (flags & kDiameterExact) != 0;
    design.bidirectional = (flags & kBidirectional) != 0;
    design.reverse_symmetric = (flags & kReverseSymmetric) != 0;
    const std::string reasons = row.Text(8);
    for (size_t begin = 0; begin < reasons.size();) {
      const size_t end = std::min(reasons.find('\n', begin), reasons.size());
      design.reasons.push_back(reasons.substr(begin, end - begin));
      begin = end + 1;
    }
    return design;
  }

  tl::unexpected<Error> Damaged(const std::string& what) const {
    return MakeError(ErrorCode::kCorrupt, fmt::format("{}: damaged database ({})", path_, what));
  }

  std::string path_, contents_;
  Connection connection_;  // reads contents_: goes first
  bool current_ = false;
  DatabaseCoverage coverage_;
};

class DatabaseWriter {
 public:
  explicit DatabaseWriter(sqlite3* connection)
      : frontier_(connection, "INSERT INTO frontier VALUES (?, ?, ?, ?, ?)"),
        design_(connection, "INSERT INTO design VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

  void Write(int32_t ranks, int32_t degree, Kind kind, const std::vector<Design>& designs) {
    frontier_.Reset();
    frontier_.Bind(kind).Bind(degree).Bind(ranks);
    frontier_.Bind(static_cast<int64_t>(designs.size())).Bind(ChecksumOf(designs)).Step();
    int64_t position = 0;
    for (const Design& design : designs) {
      std::string reasons;
      for (const std::string& reason : design.reasons) reasons += reason + '\n';
      design_.Reset();
      design_.Bind(kind).Bind(degree).Bind(ranks).Bind(position++);
      design_.Bind(design.recipe).Bind(design.algorithm).Bind(design.tl);
      design_.Bind(design.tb.ToString()).Bind(design.reduce_scatter.tl);
      design_.Bind(design.reduce_scatter.tb.ToString()).Bind(design.diameter).Bind(FlagsOf(design));
      design_.Bind(reasons).Step();
    }
  }
  bool ok() const { return frontier_.ok() && design_.ok(); }

 private:
  Statement frontier_, design_;
};

bool WriteAll(sqlite3* connection, const DatabaseCoverage& coverage,
              const std::vector<SizedFrontier>& frontiers) {
  if (!Run(connection, fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN;",
                                   kApplication, kVersion)
                           .c_str()) ||
      !Run(connection, kTables))
    return false;
  Statement bases(connection, "INSERT INTO made_from VALUES (?)");
  bases.Bind(KeyOfBases()).Step();
  Statement covered(connection, "INSERT INTO coverage VALUES (?, ?)");
  for (int32_t degree : coverage.degrees) {
    covered.Reset();
    covered.Bind(degree).Bind(coverage.max_ranks).Step();
  }
  DatabaseWriter writer(connection);
  for (const SizedFrontier& sized : frontiers) {
    writer.Write(sized.ranks, sized.degree, kOfAllGather, sized.designs);
    writer.Write(sized.ranks, sized.degree, kOfReduceScatter, sized.reduce_scatter);
    writer.Write(sized.ranks, sized.degree, kOfAllReduce, sized.all_reduce);
    writer.Write(sized.ranks, sized.degree, kOfBidirectional, sized.bidirectional);
  }
  return bases.ok() && covered.ok() && writer.ok() && Run(connection, "COMMIT");
}

// The folders above `path`, as far as they are missing.
Status MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: cannot make the folder: {}", folder, std::strerror(errno)));
  }
  return {};
}

// Ours by its header: of SQLite, and with our number where SQLite keeps the program's
// (https://www.sqlite.org/fileformat2.html#the_database_header). Damage further on makes it no
// less ours.
bool HasOurHeader(std::string_view contents) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr size_t kApplicationAt = 68;
  constexpr std::string_view kOurs("TUTT");
  static_assert(kApplication == 0x54555454);
  return contents.size() >= kApplicationAt + kOurs.size() &&
         contents.substr(0, kMagic.size()) == kMagic &&
         contents.substr(kApplicationAt, kOurs.size()) == kOurs;
}

// What `path` holds now: kNotFound where there is nothing, kInvalidArgument where it is not ours to
// read or replace. An empty file is nobody's.
Result<std::string> ReadOurs(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT)
    return MakeError(ErrorCode::kNotFound, fmt::format("{}: there is no such file", path));
  if (!S_ISREG(info.st_mode))
    return InvalidArgument(fmt::format("{}: is not a plain file, so no database of designs", path));
  Result<std::string> contents = ReadFile(path);
  if (!contents || contents->empty() || HasOurHeader(*contents)) return contents;
  return InvalidArgument(
      fmt::format("{}: is not a database that tutti design made, so it stays as it is", path));
}

// Fine where `path` may be written.
Status CheckReplaceable(const std::string& path) {
  const Result<std::string> contents = ReadOurs(path);
  if (contents || contents.error().code == ErrorCode::kNotFound) return {};
  return tl::unexpected(contents.error());
}

struct FreeBytes {
  void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
};

}  // namespace

Result<std::unique_ptr<DesignDatabase>> DesignDatabase::Open(const std::string& path) {
  Result<std::string> contents = ReadOurs(path);
  if (!contents) return tl::unexpected(contents.error());
  auto database = std::make_unique<FileDatabase>(path, *std::move(contents));
  if (Status loaded = database->Load(); !loaded) return tl::unexpected(loaded.error());
  return database;
}

Status DesignDatabase::Make(const std::string& path, const DatabaseCoverage& coverage) {
  // A path that cannot or must not be written is told before the search, not after.
  if (Status replaceable = CheckReplaceable(path); !replaceable) return replaceable;
  if (Status made = MakeFolders(path); !made) return made;
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  DatabaseCoverage covered = coverage;
  std::sort(covered.degrees.begin(), covered.degrees.end());
  covered.degrees.erase(std::unique(covered.degrees.begin(), covered.degrees.end()),
                        covered.degrees.end());
  const Result<std::vector<SizedFrontier>> frontiers =
      FindAllFrontiers(covered.degrees, covered.max_ranks);
  if (!frontiers) return tl::unexpected(frontiers.error());
  sqlite3* opened = nullptr;
  TUTTI_CHECK(sqlite3_open(":memory:", &opened) == SQLITE_OK);
  const Connection connection(opened);
  sqlite3_int64 size = 0;
  std::unique_ptr<unsigned char, FreeBytes> bytes;
  if (WriteAll(opened, covered, *frontiers))
    bytes.reset(sqlite3_serialize(opened, "main", &size, 0));
  if (!bytes)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{}: cannot be made: {}", path, sqlite3_errmsg(opened)));
  const std::string_view view(reinterpret_cast<const char*>(bytes.get()),
                              static_cast<size_t>(size));
  if (Status written = file->Write(view); !written) return written;
  // Somebody may have put a file there meanwhile.
  if (Status replaceable = CheckReplaceable(path); !replaceable) return replaceable;
  return file->Commit();
}

}  // namespace tutti
