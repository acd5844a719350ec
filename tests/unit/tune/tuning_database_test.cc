#include "tutti/tune/tuning_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/random.h"

namespace tutti::tune {
namespace {

using testing::HasSubstr;

constexpr const char* kModelLine =
    "model openmpi inside=4e-07,1.25e-10,1.5e-11 between=1.5e-06,8e-11,8e-11 send=3e-07 "
    "receive=2e-07 copy=1e-08,1.25e-10 eager=16384,5e-10";
constexpr const char* kBestLine =
    "best mpich ranks=16 per-node=8 block=64 algorithm=tuna:r=4 seconds=1.2e-05 own=2e-05";

std::string File(const std::string& line) { return "tutti-mpi 1\n" + line + "\n"; }

class MemoryFileTest : public testing::Test {
 protected:
  MemoryFileTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("tutti_memory_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~MemoryFileTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

TuningDatabase OneBest(int ranks) {
  TuningDatabase database;
  database.best[{.library = Library::kSmpi, .ranks = ranks}] = {
      .algorithm = {.method = Method::kPairwise}, .seconds = 1, .native_seconds = 2};
  return database;
}

TEST(TuningDatabaseTest, ReadsModelsAndMeasurements) {
  const TuningDatabase database =
      ParseTuningDatabase(File(std::string(kModelLine) + "\n# word\n\n" + kBestLine)).value();
  const CostModel model = database.models.at(Library::kOpenMpi);
  EXPECT_EQ(model.inside, (PathCost{4e-7, 1.25e-10, 1.5e-11}));
  EXPECT_EQ(model.between, (PathCost{1.5e-6, 8e-11, 8e-11}));
  EXPECT_EQ(model.receive_s, 2e-7);
  EXPECT_EQ(model.copy_s_per_byte, 1.25e-10);
  EXPECT_EQ(model.eager_bytes, 16384);
  EXPECT_EQ(model.eager_s_per_byte, 5e-10);
  EXPECT_EQ(database.best.size(), 1U);
  EXPECT_EQ(database.best.at({Library::kMpich, 16, 8, 6}),
            (Measured{{.method = Method::kTuna, .radix = 4}, 1.2e-5, 2e-5}));
}

TEST(TuningDatabaseTest, PathsSayWhatWasNotSimplyMeasured) {
  const std::string line =
      "model openmpi inside=4e-07,1e-10,1e-11,crowded between=1e-06,8e-11,8e-11,assumed send=0 "
      "receive=0 copy=0,0 eager=0,0";
  const TuningDatabase database = ParseTuningDatabase(File(line)).value();
  const CostModel& model = database.models.at(Library::kOpenMpi);
  EXPECT_EQ(model.inside, (PathCost{4e-7, 1e-10, 1e-11, Origin::kCrowded}));
  EXPECT_EQ(model.between.origin, Origin::kAssumed);
  EXPECT_THAT(FormatTuningDatabase(database), HasSubstr(line + "\n"));
  EXPECT_FALSE(
      ParseTuningDatabase(File("model openmpi inside=1,1,1,guessed between=1,1,1 send=0 receive=0 "
                               "copy=0,0 eager=0,0")));
}

TEST(TuningDatabaseTest, SizeClassesEndAtPowersOfTwo) {
  const std::vector<std::pair<double, int>> rows = {
      {0, 0},    {1, 0},        {1.5, 1},
      {2, 1},    {3, 2},        {64, 6},
      {64.5, 7}, {1 << 20, 20}, {1e30, kMaxSizeClass}};
  for (const auto& [mean, size_class] : rows) EXPECT_EQ(SizeClassOf(mean), size_class) << mean;
}

TEST(TuningDatabaseTest, EveryFaultNamesItsLineAndWhatIsAccepted) {
  const auto changed = [](std::string line, const std::string& from, const std::string& to) {
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return File(line.replace(at, from.size(), to));
  };
  const struct {
    std::string text;
    const char* named;
  } rows[] = {
      {"", "line 1: got '', wanted 'tutti-mpi 1'"},
      {"tutti-mpi 2\n", "line 1: got 'tutti-mpi 2'"},
      {std::string("\x1b[2J\0\xff", 6), "line 1: got '?[2J?"},
      {File("best openmpi ranks=\x07"), "wanted best LIBRARY"},
      {File("\x1b[31m"), "line 2: got '?[31m'"},
      {File("worst"), "line 2: got 'worst', wanted model, best or #"},
      {File("best"), "unknown MPI library ''"},
      {File("model lam"), "accepted are openmpi, mpich, smpi"},
      {File("model openmpi"), "wanted model LIBRARY inside=... between=..."},
      {changed(kModelLine, "send=", "sent="), "line 2: got 'sent=3e-07', wanted send="},
      {changed(kModelLine, "4e-07,", ""), "inside: got 2 values, wanted 3"},
      {changed(kModelLine, "4e-07", "nan"), "inside: got 'nan', wanted seconds from 0 to 1e6"},
      {changed(kModelLine, "4e-07", "-1"), "inside: got '-1'"},
      {changed(kModelLine, "4e-07", "inf"), "inside: got 'inf'"},
      {changed(kModelLine, "4e-07", ""), "inside: got ''"},
      {changed(kBestLine, "ranks=16", "ranks=0"), "ranks: got '0', wanted a whole number from 1"},
      {changed(kBestLine, "per-node=8", "per-node=17"), "per-node: got '17'"},
      {changed(kBestLine, "block=64", "block=65"), "block: got '65', wanted a power of two"},
      {changed(kBestLine, "tuna:r=4", "tuna:r=1"), "algorithm: 'r' of 'tuna'"},
      {changed(kBestLine, "tuna:r=4", "auto"), "'auto' is not one that can be measured"},
      {changed(kBestLine, "own=2e-05", "own=2e-05s"), "own: got '2e-05s'"},
      {changed(kBestLine, " own", "  own"), "wanted best LIBRARY ranks=... per-node=..."},
      {File(std::string(kBestLine) + "\n" + kBestLine), "line 3: a second best"},
      {File(std::string(kModelLine) + "\n" + kModelLine), "line 3: a second model of openmpi"},
  };
  for (const auto& row : rows) {
    const Result<TuningDatabase> database = ParseTuningDatabase(row.text);
    ASSERT_FALSE(database) << row.text;
    EXPECT_EQ(database.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(database.error().message, HasSubstr(row.named));
  }
}

TEST(TuningDatabaseProperty, WhatIsWrittenIsReadAsTheSame) {  // M1
  Random random(7);
  const auto draw = [&] { return static_cast<double>(random.Below(1U << 20)) * 1e-13; };
  for (int seed = 0; seed < 100; ++seed) {
    TuningDatabase database;
    for (const Library library : {Library::kMpich, Library::kSmpi}) {
      database.models[library] = {.library = library,
                                  .inside = {draw(), draw(), draw()},
                                  .between = {draw(), draw(), draw()},
                                  .send_s = draw(),
                                  .receive_s = draw(),
                                  .copy_s = draw(),
                                  .copy_s_per_byte = draw(),
                                  .eager_bytes = draw(),
                                  .eager_s_per_byte = draw()};
    }
    for (int i = 0; i < 20; ++i) {
      const int ranks = static_cast<int>(random.Below(5000)) + 1;
      database.best[{Library::kSmpi, ranks, 1 + ranks / 2, static_cast<int>(random.Below(41))}] = {
          {.method = Method::kCoalesced,
           .radix = static_cast<int>(random.Below(9)) + 2,
           .block_count = static_cast<int>(random.Below(9)) + 1},
          draw(),
          draw()};
    }
    const std::string text = FormatTuningDatabase(database);
    const Result<TuningDatabase> again = ParseTuningDatabase(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, database);
    EXPECT_EQ(FormatTuningDatabase(*again), text);
  }
}

TEST(TuningDatabaseTest, ThePathIsTheChosenTheConfigFoldersOrTheHomes) {
  EXPECT_EQ(TuningDatabasePath("/a", "/b", "/c"), "/a");
  EXPECT_EQ(TuningDatabasePath("", "/b", "/c"), "/b/tutti/mpi");
  EXPECT_EQ(TuningDatabasePath(nullptr, nullptr, "/c"), "/c/.config/tutti/mpi");
  EXPECT_EQ(TuningDatabasePath(nullptr, "", nullptr), "");
}

TEST_F(MemoryFileTest, AMissingFileIsNoError) {
  EXPECT_EQ(ReadTuningDatabase(Path("none")).value(), std::nullopt);
  EXPECT_EQ(ReadTuningDatabase(Path("none/below")).value(), std::nullopt);
}

TEST_F(MemoryFileTest, AnEmptyFileRemembersNothingAndIsFilled) {
  const std::string path = Path("mpi");
  ASSERT_TRUE(WriteFileAtomically(path, ""));
  EXPECT_EQ(ReadTuningDatabase(path).value(), TuningDatabase());
  ASSERT_TRUE(UpdateTuningDatabase(path, OneBest(4)));
  EXPECT_EQ(ReadTuningDatabase(path).value(), OneBest(4));
}

// A pipe that nobody writes to would be waited for, /dev/zero has no end.
TEST_F(MemoryFileTest, WhatIsNoRegularFileIsNotRead) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string large = Path("large");
  ASSERT_TRUE(WriteFileAtomically(large, "tutti-mpi 1\n"));
  ASSERT_EQ(::truncate(large.c_str(), off_t{1} << 40), 0);
  const std::string folder = Path("folder");
  std::filesystem::create_directory(folder);
  EXPECT_FALSE(ReadTuningDatabase("/dev/zero"));
  for (const std::string& path : {pipe, large, folder}) {
    const auto database = ReadTuningDatabase(path);
    ASSERT_FALSE(database) << path;
    EXPECT_THAT(database.error().message,
                HasSubstr(path == large ? "wanted at most" : "is no regular file"));
    EXPECT_FALSE(UpdateTuningDatabase(path, OneBest(4)));
  }
}

TEST_F(MemoryFileTest, UpdatesMergeAndMakeTheFolder) {
  const std::string path = Path("new/folder/mpi");
  ASSERT_TRUE(UpdateTuningDatabase(path, OneBest(4)));
  ASSERT_TRUE(UpdateTuningDatabase(path, OneBest(5)));
  TuningDatabase both = OneBest(4);
  both.Merge(OneBest(5));
  EXPECT_EQ(ReadTuningDatabase(path).value(), both);
}

TEST_F(MemoryFileTest, ADamagedFileIsNamedAndLeftAlone) {
  const std::string path = Path("mpi");
  ASSERT_TRUE(WriteFileAtomically(path, "tutti-mpi 1\nbest of all\n"));
  const Status updated = UpdateTuningDatabase(path, OneBest(4));
  ASSERT_FALSE(updated);
  EXPECT_THAT(updated.error().message, HasSubstr(path + ": line 2: "));
  EXPECT_EQ(ReadFile(path).value(), "tutti-mpi 1\nbest of all\n");
  const Status nowhere = UpdateTuningDatabase("/proc/none/mpi", OneBest(4));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kIo);
}

TEST_F(MemoryFileTest, OfWritersAtOnceNoneLosesItsRecords) {  // M2
  constexpr int kWriters = 6, kRecords = 5;
  const std::string path = Path("mpi");
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < kRecords; ++i) {
        good = good && UpdateTuningDatabase(path, OneBest(1 + writer * kRecords + i)).has_value();
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ReadTuningDatabase(path).value().value_or(TuningDatabase()).best.size(),
            size_t{kWriters * kRecords});
}

}  // namespace
}  // namespace tutti::tune
