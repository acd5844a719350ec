#include "tacos_training.h"

#include <gtest/gtest.h>

#include <array>

#include "reproduce_testing.h"

namespace tutti::tacos {
namespace {

constexpr TrainingPrinted kPrinted{80, 90, "80.00", "90.00", "1.58", "1.21"};
enum Row : size_t { kRing, kOneWayRing, kThemis, kTacos, kIdeal };

double Ours(const ResultTable& table, size_t row, size_t column) {
  return table.rows.at(row).cells.at(column).ours.value().ToDouble();
}

TEST(TacosTrainingTest, IterationsAddUpAndAreComparedWithTheIdeal) {
  const std::array<TrainingCase, 1> cases = {{{.name = "GNMT, 8 ranks",
                                               .workload = "gnmt",
                                               .ranks = 8,
                                               .data = {{"torus(2,4)"}, {2, 4}},
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
    ASSERT_EQ(table.rows.size(), 5U);
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
  EXPECT_EQ(result.tables[1].rows.back().cells[0].paper, "50.0");
  EXPECT_NEAR(Ours(result.tables[1], 5, 0), 50, 1e-9);
}

TEST(TacosTrainingTest, SplitModelsShareTheirResults) {
  const std::array<TrainingCase, 1> cases = {{{.name = "MSFT-1T, 256 ranks",
                                               .workload = "msft-1t",
                                               .ranks = 256,
                                               .data = {{"torus(2)"}, {2}},
                                               .tensor = {{"torus(8,16)"}, {8, 16}},
                                               .ten_chunks = {1},
                                               .themis_chunks = {4}}}};
  const ExperimentResult result =
      RunTraining(cases, kPrinted, TrainingUnit::kRing, ExperimentOptions{}).value();
  for (size_t t = 4; t < result.tables.size(); ++t) {
    EXPECT_GT(Ours(result.tables[t], kRing, 3), Ours(result.tables[t], kIdeal, 3));
    EXPECT_GT(Ours(result.tables[t], kTacos, 3), 0);
    EXPECT_EQ(Ours(result.tables[t], kRing, 5), 1);
  }
  const ExperimentResult none =
      RunTraining(cases, kPrinted, TrainingUnit::kRing, {.max_ranks = 255}).value();
  EXPECT_EQ(none.tables.size(), 4U);
  EXPECT_TRUE(none.charts.empty());
}

}  // namespace
}  // namespace tutti::tacos
