#include "table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tutti::nccl_tuner {
namespace {

using testing::HasSubstr;

constexpr int kBroadcast = 0, kAllGather = 2, kReduceScatter = 3, kAllReduce = 4;
constexpr int16_t kTree = 0, kRing = 1, kPat = 6;
constexpr int16_t kLl = 0, kSimple = 2;

std::string TableOf(const std::string& rows) { return "tutti-nccl-table 1\n" + rows + "end\n"; }

Decisions MustRead(const std::string& text, uint64_t ranks, uint64_t nodes) {
  const ReadTable table = ParseTable(text);
  EXPECT_EQ(table.bad_line, 0) << table.reason;
  return Decisions(table.rows, ranks, nodes);
}

TEST(NcclTableTest, WorkedExample) {
  const Decisions decisions =
      MustRead(TableOf("# a comment, then a row with tabs and one from Windows\n"
                       "allreduce\t8 1 0 65535 tree * *  # small\n\n"
                       "allreduce 8 1 65536 * ring simple 16\r\n"
                       "allgather * * 100 200 pat ll *\n"),
               8, 1);
  EXPECT_EQ(decisions.Find(kAllReduce, 0), (Choice{kTree, -1, 0}));
  EXPECT_EQ(decisions.Find(kAllReduce, 65535), (Choice{kTree, -1, 0}));
  EXPECT_EQ(decisions.Find(kAllReduce, 65536), (Choice{kRing, kSimple, 16}));
  EXPECT_EQ(decisions.Find(kAllReduce, UINT64_MAX), (Choice{kRing, kSimple, 16}));
  EXPECT_EQ(decisions.Find(kAllGather, 99), Choice());
  EXPECT_EQ(decisions.Find(kAllGather, 100), (Choice{kPat, kLl, 0}));
  EXPECT_EQ(decisions.Find(kAllGather, 201), Choice());
  EXPECT_EQ(decisions.Find(kReduceScatter, 100), Choice());
  for (int function : {-1, 5, 8, 1 << 30}) EXPECT_EQ(decisions.Find(function, 0), Choice());
}

TEST(NcclTableTest, RowsAreForTheirCommunicatorsOnly) {
  const std::string text = TableOf("allreduce 8 1 0 * tree * *\nallreduce 16 * 0 * ring * *\n");
  EXPECT_EQ(MustRead(text, 8, 1).Find(kAllReduce, 5).algorithm, kTree);
  EXPECT_EQ(MustRead(text, 16, 2).Find(kAllReduce, 5).algorithm, kRing);
  EXPECT_EQ(MustRead(text, 8, 2).Find(kAllReduce, 5), Choice());
  EXPECT_EQ(MustRead(text, 4, 1).num_ranges(), 0U);
}

TEST(NcclTableTest, OfOverlappingRowsTheFirstCounts) {
  const Decisions decisions =
      MustRead(TableOf("broadcast * * 10 20 ring ll *\nbroadcast * * 0 30 ring simple *\n"), 2, 1);
  EXPECT_EQ(decisions.Find(kBroadcast, 9).protocol, kSimple);
  EXPECT_EQ(decisions.Find(kBroadcast, 10).protocol, kLl);
  EXPECT_EQ(decisions.Find(kBroadcast, 20).protocol, kLl);
  EXPECT_EQ(decisions.Find(kBroadcast, 21).protocol, kSimple);
  EXPECT_EQ(decisions.Find(kBroadcast, 31), Choice());
  EXPECT_EQ(decisions.num_ranges(), 4U);  // the last: beyond 30
}

struct BadTable {
  std::string text;
  int line;
  std::string reason;
};

TEST(NcclTableTest, FaultsAreNamedWithTheirLine) {
  const std::string row = "allreduce 8 1 0 * tree * *\n";
  const std::vector<BadTable> cases = {
      {"", 1, "no table: the first line is 'tutti-nccl-table 1'"},
      {"allreduce,0,65536,tree,ll,-1,-1,-1\n", 1, "no table"},
      {"tutti-nccl-table 2\nend\n", 1, "unknown version '2'; this plug-in reads 1"},
      {"tutti-nccl-table 1\n" + row, 2, "cut off"},
      {TableOf(row) + row, 4, "nothing may follow"},
      {TableOf(row + "alltoall 8 1 0 * tree * *\n"), 3,
       "unknown collective 'alltoall'; accepted are broadcast reduce allgather reducescatter"},
      {TableOf("allreduce -8 1 0 * tree * *\n"), 2, "unknown ranks '-8'"},
      {TableOf("allreduce 0 1 0 * tree * *\n"), 2, "whole numbers from 1 and *"},
      {TableOf("allreduce 8 x 0 * tree * *\n"), 2, "unknown nodes 'x'"},
      {TableOf("allreduce 8 1 * * tree * *\n"), 2, "unknown from '*'"},
      {TableOf("allreduce 8 1 1K * tree * *\n"), 2, "unknown from '1K'"},
      {TableOf("allreduce 8 1 0 18446744073709551616 tree * *\n"), 2, "unknown to"},
      {TableOf("allreduce 8 1 9 8 tree * *\n"), 2, "from 9 to 8 is empty"},
      {TableOf("allreduce 8 1 0 * dbt * *\n"), 2,
       "unknown algorithm 'dbt'; accepted are tree ring collnet_direct collnet_chain nvls"},
      {TableOf("allreduce 8 1 0 * * * *\n"), 2, "unknown algorithm '*'"},
      {TableOf("allreduce 8 1 0 * tree Simple *\n"), 2,
       "unknown protocol 'Simple'; accepted are * ll ll128 simple"},
      {TableOf("allreduce 8 1 0 * tree * 0\n"), 2, "unknown channels '0'"},
      {TableOf("allreduce 8 1 0 * tree * 65\n"), 2, "from 1 to 64 and *"},
      {TableOf("allreduce 8 1 0 * tree *\n"), 2, "this one has 7"},
      {TableOf("allreduce 8 1 0 * tree * * *\n"), 2, "this one has 9"},
      {TableOf("# " + std::string(300, 'x') + "\n"), 2, "at most 255 characters"},
      {std::string(kMaxTableBytes + 1, '\n'), 1, "at most 1048576 bytes"},
      {TableOf("all\x01reduce 8 1 0 * tree * *\n"), 2, "unknown collective 'all?reduce'"},
  };
  for (const BadTable& bad : cases) {
    SCOPED_TRACE(bad.reason);
    const ReadTable table = ParseTable(bad.text);
    EXPECT_EQ(table.bad_line, bad.line);
    EXPECT_THAT(table.reason, HasSubstr(bad.reason));
    EXPECT_TRUE(table.rows.empty());
  }
  std::string many;
  for (size_t i = 0; i < kMaxRows; ++i) many += row;
  EXPECT_EQ(ParseTable(TableOf(many)).rows.size(), kMaxRows);
  EXPECT_THAT(ParseTable(TableOf(many + row)).reason, HasSubstr("at most 4096 rows"));
}

TEST(NcclTableProperty, DecisionsAreThoseOfTheFirstRowThatFits) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::vector<Row> rows(rng() % 12);
    for (Row& row : rows) {
      row.function = static_cast<int>(rng() % 2);
      row.ranks = rng() % 3;
      row.nodes = rng() % 3;
      row.from = rng() % 20;
      row.to = rng() % 4 == 0 ? UINT64_MAX : row.from + rng() % 20;
      row.choice = {static_cast<int16_t>(rng() % 3), static_cast<int16_t>(rng() % 3), 0};
    }
    const Decisions decisions(rows, 2, 1);
    for (int function = 0; function < 2; ++function)
      for (uint64_t bytes = 0; bytes < 45; ++bytes) {
        Choice expected;
        for (const Row& row : rows)
          if (row.function == function && row.ranks != 1 && row.nodes != 2 && row.from <= bytes &&
              bytes <= row.to) {
            expected = row.choice;
            break;
          }
        EXPECT_EQ(decisions.Find(function, bytes), expected) << function << " " << bytes;
      }
  }
}

}  // namespace
}  // namespace tutti::nccl_tuner
