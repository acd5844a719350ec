#include "tutti/design/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tutti/base/file.h"

namespace tutti {
namespace {

class Database : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tutti_database_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    for (const char* file : {"d.sqlite", "b.sqlite"}) ::unlink((folder_ + "/" + file).c_str());
    ::rmdir(folder_.c_str());
  }
  std::string Path() const { return folder_ + "/d.sqlite"; }

  std::string folder_;
};

std::unique_ptr<DesignDatabase> MustOpen(const std::string& path) {
  Result<std::unique_ptr<DesignDatabase>> database = DesignDatabase::Open(path);
  EXPECT_TRUE(database) << database.error().message;
  return database ? *std::move(database) : nullptr;
}

void ExpectEqual(const Design& a, const Design& b) {
  EXPECT_EQ(a.recipe, b.recipe);
  EXPECT_EQ(a.algorithm, b.algorithm);
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.degree, b.degree);
  EXPECT_EQ(a.tl, b.tl);
  EXPECT_EQ(a.tb, b.tb);
  EXPECT_EQ(a.diameter, b.diameter);
  EXPECT_EQ(a.bidirectional, b.bidirectional);
  EXPECT_EQ(a.reverse_symmetric, b.reverse_symmetric);
  EXPECT_EQ(a.reduce_scatter, b.reduce_scatter);
  EXPECT_EQ(a.reasons, b.reasons);
}

TEST_F(Database, AnswersLikeTheSearch) {
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{4, 2, 3}, 80}));
  const auto database = MustOpen(Path());
  EXPECT_TRUE(database->current());
  EXPECT_EQ(database->coverage().degrees, (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(database->coverage().max_ranks, 80);
  for (int32_t degree : {2, 3, 4})
    for (int32_t ranks = 2; ranks <= 80; ++ranks)
      for (const auto& [bidirectional, collective] : {std::pair{false, CollectiveKind::kAllGather},
                                                      {false, CollectiveKind::kReduceScatter},
                                                      {false, CollectiveKind::kAllReduce},
                                                      {true, CollectiveKind::kAllReduce}}) {
        Result<std::optional<std::vector<Design>>> stored =
            database->Find(ranks, degree, bidirectional, collective);
        ASSERT_TRUE(stored) << stored.error().message;
        ASSERT_TRUE(*stored);
        ASSERT_TRUE(MeasureDiameters(**stored));
        const Result<std::vector<Design>> searched =
            FindFrontier({.ranks = ranks,
                          .degree = degree,
                          .bidirectional_only = bidirectional,
                          .collective = collective,
                          .bases = {}});
        if (!searched) {
          EXPECT_TRUE((*stored)->empty());
          continue;
        }
        ASSERT_EQ((*stored)->size(), searched->size());
        for (size_t i = 0; i < searched->size(); ++i) ExpectEqual((**stored)[i], (*searched)[i]);
      }
}

TEST_F(Database, SaysWhatItDoesNotCover) {
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{4}, 20}));
  const auto database = MustOpen(Path());
  for (const auto& [ranks, degree] : {std::pair{21, 4}, {20, 2}, {1, 4}}) {
    const auto answer = database->Find(ranks, degree, false, CollectiveKind::kAllGather);
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->has_value());
  }
}

TEST_F(Database, SameBytesEveryTime) {
  const std::string other = folder_ + "/b.sqlite";
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 40}));
  ASSERT_TRUE(DesignDatabase::Make(other, {{2}, 40}));
  EXPECT_EQ(*ReadFile(Path()), *ReadFile(other));
}

TEST_F(Database, FaultsHaveNames) {
  const auto fault = [this] {
    const auto database = DesignDatabase::Open(Path());
    EXPECT_FALSE(database);
    return database ? ErrorCode::kCancelled : database.error().code;
  };
  EXPECT_EQ(fault(), ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(Path(), ""));
  EXPECT_EQ(fault(), ErrorCode::kCorrupt);
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 40}));
  const std::string good = *ReadFile(Path());
  ASSERT_TRUE(WriteFileAtomically(Path(), good.substr(0, good.size() / 2)));
  const auto half = DesignDatabase::Open(Path());
  if (half) {  // its first pages are whole
    bool damaged = false;
    for (int32_t ranks = 2; ranks <= 40; ++ranks)
      damaged = damaged || !(*half)->Find(ranks, 2, false, CollectiveKind::kAllGather);
    EXPECT_TRUE(damaged);
  }
  const Status made = DesignDatabase::Make("/proc/nowhere/d.sqlite", {{2}, 10});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kIo);
}

// What was not made here stays byte for byte, asked or made anew over it.
TEST_F(Database, FilesOfOthersAreLeftAlone) {
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 12}));
  const std::string ours = *ReadFile(Path());
  std::string other_program = ours, torn = ours.substr(0, 70);
  other_program[68] = 'X';
  for (const std::string& contents : {std::string("My thesis.\n"), std::string(5000, 'x'),
                                      std::string("SQLite format 3"), torn, other_program}) {
    ASSERT_TRUE(WriteFileAtomically(Path(), contents));
    const auto opened = DesignDatabase::Open(Path());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
    const Status made = DesignDatabase::Make(Path(), {{2}, 12});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(made.error().message.find(Path()), std::string::npos);
    EXPECT_EQ(*ReadFile(Path()), contents);
  }
  // Nobody's, and ours though damaged: both are made anew.
  for (const std::string& contents : {std::string(), ours.substr(0, ours.size() / 2)}) {
    ASSERT_TRUE(WriteFileAtomically(Path(), contents));
    ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 12}));
    EXPECT_EQ(*ReadFile(Path()), ours);
  }
  const Status folder = DesignDatabase::Make(folder_, {{2}, 12});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
}

// One changed byte is never answered from: it is refused, or it was in what says nothing.
TEST_F(Database, ChangedBytesAreNoticed) {
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 12}));
  const std::string good = *ReadFile(Path());
  std::vector<std::vector<Design>> right;
  {
    const auto database = MustOpen(Path());
    for (int32_t ranks = 2; ranks <= 12; ++ranks)
      right.push_back(**database->Find(ranks, 2, false, CollectiveKind::kAllGather));
  }
  for (size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x15);
    ASSERT_TRUE(WriteFileAtomically(Path(), bad));
    const auto database = DesignDatabase::Open(Path());
    if (!database || !(*database)->current()) continue;
    for (int32_t ranks = 2; ranks <= 12; ++ranks) {
      const auto answer = (*database)->Find(ranks, 2, false, CollectiveKind::kAllGather);
      if (!answer || !*answer) continue;
      const std::vector<Design>& expected = right[static_cast<size_t>(ranks - 2)];
      ASSERT_EQ((*answer)->size(), expected.size()) << at;
      for (size_t i = 0; i < expected.size(); ++i) ExpectEqual((**answer)[i], expected[i]);
    }
  }
}

// Of other bases: still a database, but its answers do not count.
TEST_F(Database, StaleOnesAreNotCurrent) {
  ASSERT_TRUE(DesignDatabase::Make(Path(), {{2}, 12}));
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(Path().c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(connection, "UPDATE made_from SET bases = 'old'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(connection);
  const auto database = MustOpen(Path());
  EXPECT_FALSE(database->current());
  EXPECT_EQ(database->coverage().max_ranks, 12);
  EXPECT_FALSE(database->Find(8, 2, false, CollectiveKind::kAllGather)->has_value());
}

}  // namespace
}  // namespace tutti
