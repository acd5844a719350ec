// Designs kept to their word: the schedule that a design names, made, verified and counted; and the
// paper's frontier.
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

void ExpectScheduleCosts(const Design& design) {
  SCOPED_TRACE(design.recipe + " by " + design.algorithm);
  const Result<Topology> topology = ParseTopology(design.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  const Result<Collective> collective = Collective::Make(CollectiveKind::kAllGather, design.ranks);
  ASSERT_TRUE(collective);
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(design.algorithm);
  ASSERT_TRUE(synthesizer) << synthesizer.error().message;
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(Verify(*topology, *collective, *schedule).verified());
  const Result<StepCost> cost = AnalyticCost(*topology, *schedule);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->tl, design.tl);
  EXPECT_EQ(cost->tb, design.tb) << cost->tb.ToString() << " against " << design.tb.ToString();
}

TEST(Schedules, CostWhatTheFinderPredicts) {
  for (int32_t degree : {2, 4})
    for (int32_t ranks = 2; ranks <= 40; ++ranks)
      for (bool bidirectional : {false, true}) {
        const Result<std::vector<Design>> designs = FindFrontier(
            {.ranks = ranks, .degree = degree, .bidirectional_only = bidirectional, .bases = {}});
        ASSERT_TRUE(designs);
        for (const Design& design : *designs) ExpectScheduleCosts(design);
      }
}

TEST(SchedulesSlow, CostWhatTheFinderPredicts) {
  for (int32_t degree : {2, 3, 4, 6, 8})
    for (int32_t ranks = 2; ranks <= 72; ++ranks)
      for (bool bidirectional : {false, true}) {
        if (bidirectional && ranks * degree % 2 != 0) continue;
        const Result<std::vector<Design>> designs = FindFrontier(
            {.ranks = ranks, .degree = degree, .bidirectional_only = bidirectional, .bases = {}});
        ASSERT_TRUE(designs);
        for (const Design& design : *designs) ExpectScheduleCosts(design);
      }
}

struct PaperRow {
  int32_t ranks, tl;
  std::string network, tb;
};

std::vector<PaperRow> Table7() {
  const Result<std::string> text = ReadFile("tests/data/design/table7.csv");
  EXPECT_TRUE(text);
  std::istringstream lines(text.value_or(""));
  std::vector<PaperRow> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t open = line.find('"'), close = line.rfind('"');
    std::istringstream rest(line.substr(close + 2));
    PaperRow row;
    row.ranks = std::stoi(line);
    row.network = line.substr(open + 1, close - open - 1);
    std::string tl;
    std::getline(rest, tl, ',');
    row.tl = std::stoi(tl);
    std::getline(rest, row.tb);
    rows.push_back(std::move(row));
  }
  return rows;
}

// TL no larger, TB equal to the printed digits or lower.
TEST(Schedules, Table7IsReproducedOrDominated) {
  const std::vector<PaperRow> rows = Table7();
  ASSERT_EQ(rows.size(), 21u);
  for (const PaperRow& row : rows) {
    const Result<std::vector<Design>> designs =
        FindFrontier({.ranks = row.ranks, .degree = 4, .bidirectional_only = false, .bases = {}});
    ASSERT_TRUE(designs);
    const Rational most = *Rational::Parse(row.tb) + Rational(5, 10'000);
    bool found = false;
    for (const Design& design : *designs)
      found = found || (design.tl <= row.tl && design.tb < most);
    EXPECT_TRUE(found) << row.ranks << " " << row.network;
  }
}

}  // namespace
}  // namespace tutti
