#include <gtest/gtest.h>

#include <array>

#include "experiments_testing.h"
#include "tacos/training.h"

namespace tutti::tacos {
namespace {

constexpr TrainingPrinted kPrinted{80, 90, "80.00", "90.00", "1.58", "1.21"};
// With rings one way only.
enum Row : size_t { kOneWayRing, kThemis, kTacos, kBound, kIdeal, kNumRows };

double Ours(const ResultTable& table, size_t row, size_t column) {
  return table.rows.at(row).cells.at(column).ours.value().ToDouble();
}

TEST(TacosTrainingTest, IterationsAddUpAndAreComparedWithTheIdeal) {
  const std::array<TrainingCase, 1> cases = {{{.name = "GNMT, 8 ranks",
                                               .workload = "gnmt",
                                               .ranks = 8,
                                               .data = {.basic = "torus(2,4)", .lengths = {2, 4}},
                                               .ten_chunks = {1, 4},
                                               .themis_chunks = {4}}}};
  const ExperimentResult result =
      RunTraining(cases, kPrinted, TrainingUnit::kTacos, ExperimentOptions{}).value();
  ASSERT_EQ(result.tables.size(), 2 * 2 + 2U);  // averages twice a link model, one breakdown each
  ASSERT_EQ(result.charts.size(), 2U);
  EXPECT_EQ(result.charts[0].bars.at(kTacos), "GNMT: TACOS");
  for (size_t t = 4; t < result.tables.size(); ++t) {
    const ResultTable& table = result.tables[t];
    SCOPED_TRACE(table.title);
    ASSERT_EQ(table.rows.size(), kNumRows);
    EXPECT_LE(Ours(table, kBound, 0), Ours(table, kTacos, 0));
    for (size_t row = 0; row < table.rows.size(); ++row) {
      double sum = 0;
      for (size_t part = 1; part <= 4; ++part) sum += Ours(table, row, part);
      EXPECT_NEAR(sum, Ours(table, row, 0), 1e-6);
      EXPECT_EQ(Ours(table, row, 3), 0);  // nothing is split
    }
    EXPECT_EQ(Ours(table, kTacos, 5), 1);
    EXPECT_EQ(Ours(table, kIdeal, 6), 100);
    EXPECT_LE(Ours(table, kTacos, 0), Ours(table, kOneWayRing, 0));
    // Gradients of 280,859,904 parameters in fp16, 2 * 7/8 of them over 3 links of 50 GB/s.
    EXPECT_NEAR(Ours(table, kIdeal, 4), 2 * 280.859904e6 * 1.75 / 150e9 * 1e3, 0.01);
  }
  // (100 - 90) / (90 - 80): as much communication as computation, half of the time.
  EXPECT_NEAR(Ours(result.tables[1], 4, 0), 50, 1e-9);
  EXPECT_NEAR(Ours(result.tables[0], 5, 0), 50, 1e-9);
}

TEST(TacosTrainingTest, SplitModelsShareTheirResults) {
  const std::array<TrainingCase, 1> cases = {
      {{.name = "MSFT-1T, 256 ranks",
        .workload = "msft-1t",
        .ranks = 256,
        .data = {.basic = "torus(2)", .lengths = {2}},
        .tensor = {.basic = "torus(8,16)", .lengths = {8, 16}},
        .ten_chunks = {1},
        .themis_chunks = {4}}}};
  const ExperimentResult result =
      RunTraining(cases, kPrinted, TrainingUnit::kRing, ExperimentOptions{}).value();
  for (size_t t = 4; t < result.tables.size(); ++t) {
    const ResultTable& table = result.tables[t];
    ASSERT_EQ(table.rows.size(), kNumRows + 1);  // and the ring both ways
    EXPECT_EQ(table.rows[0].label, "Ring");
    EXPECT_EQ(Ours(table, 0, 5), 1);
    EXPECT_GT(Ours(table, 0, 3), Ours(table, kNumRows, 3));
    EXPECT_GT(Ours(table, kNumRows, 3), 0);
  }
  const ExperimentResult none =
      RunTraining(cases, kPrinted, TrainingUnit::kRing, {.max_ranks = 255}).value();
  EXPECT_EQ(none.tables.size(), 4U);
  EXPECT_TRUE(none.charts.empty());
}

}  // namespace
}  // namespace tutti::tacos
