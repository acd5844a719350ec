// Designs kept to their word: the schedule that a design names, made, verified and counted; and the
// paper's frontier.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/design/workload.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

// The schedule is made on the network that `tutti design -o` writes, with links of its own, and
// counted by sched/cost, which knows nothing of recipes.
void ExpectScheduleCosts(const Design& design, CollectiveKind kind) {
  SCOPED_TRACE(std::string(Name(kind)) + " on " + design.recipe + " by " + design.algorithm);
  Workload workload{kind, {.bandwidth = 3'125'000'000, .alpha_ps = 10'000'000}, {}};
  workload.sizes = {{300 << 10, 1}};
  const Result<Topology> topology = NetworkWithLinks(design.recipe, workload.link);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_TRUE(topology->is_homogeneous());
  EXPECT_EQ(topology->spec(LinkId{0}), workload.link);
  const Result<Collective> collective = Collective::Make(kind, design.ranks);
  ASSERT_TRUE(collective);
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(design.algorithm);
  ASSERT_TRUE(synthesizer) << synthesizer.error().message;
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(Verify(*topology, *collective, *schedule).verified());
  const StepCost cost = AnalyticCost(*topology, *schedule);
  EXPECT_EQ(cost.tl, design.CostOf(kind).tl);
  EXPECT_EQ(cost.tb, design.CostOf(kind).tb)
      << cost.tb.ToString() << " against " << design.CostOf(kind).tb.ToString();
  EXPECT_EQ(AnalyticSeconds(*topology, *schedule, 300 << 10), *ExpectedSeconds(design, workload));
}

constexpr CollectiveKind kCollectives[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce};

// Every design of the frontiers of the three collectives, by each collective: a design is also
// asked for what it is not on the frontier of (`--pick`).
void ExpectSchedulesCost(int32_t ranks, int32_t degree, bool bidirectional) {
  std::set<std::string> seen;
  for (CollectiveKind kind : kCollectives) {
    const Result<std::vector<Design>> designs = FindFrontier({.ranks = ranks,
                                                              .degree = degree,
                                                              .bidirectional_only = bidirectional,
                                                              .collective = kind,
                                                              .bases = {}});
    ASSERT_TRUE(designs) << designs.error().message;
    for (const Design& design : *designs)
      if (seen.insert(design.recipe).second)
        for (CollectiveKind asked : kCollectives) ExpectScheduleCosts(design, asked);
  }
}

TEST(Schedules, CostWhatTheFinderPredicts) {
  for (int32_t degree : {2, 4})
    for (int32_t ranks = 2; ranks <= 40; ++ranks)
      for (bool bidirectional : {false, true}) ExpectSchedulesCost(ranks, degree, bidirectional);
  // Where the cost of the all-gather alone said something else.
  for (int32_t ranks : {47, 50, 57}) ExpectSchedulesCost(ranks, 4, false);
  ExpectSchedulesCost(41, 8, false);
}

TEST(SchedulesSlow, CostWhatTheFinderPredicts) {
  for (int32_t degree : {2, 3, 4, 6, 8})
    for (int32_t ranks = 2; ranks <= 72; ++ranks)
      for (bool bidirectional : {false, true})
        if (!bidirectional || ranks * degree % 2 == 0)
          ExpectSchedulesCost(ranks, degree, bidirectional);
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
