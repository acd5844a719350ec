#include <gtest/gtest.h>

#include <set>

#include "experiments_testing.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

TEST(ExperimentsTest, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Experiment& experiment : Experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
    EXPECT_FALSE(experiment.summary.empty());
    EXPECT_TRUE(experiment.source.starts_with("["));
    EXPECT_EQ(*FindExperiment(experiment.name), &experiment);
  }
}

TEST(ExperimentsTest, AnUnknownNameGetsTheNearest) {
  const Result<const Experiment*> found = FindExperiment("direct-tabel5");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_NE(found.error().message.find("nearest: direct-table5"), std::string::npos);
}

TEST(ExperimentsTest, BadOptionsAreRefused) {
  const Experiment& experiment = Experiments().front();
  for (const ExperimentOptions& options :
       {ExperimentOptions{.max_ranks = -1}, ExperimentOptions{.max_ranks = 1},
        ExperimentOptions{.step = -1}}) {
    const Result<ExperimentResult> result = RunExperiment(experiment, options);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
}

// They run daemons and tenants in namespaces, minutes each: tests/testbed/service_test.py has that in short.
bool NeedsTestbed(std::string_view name) {
  static const std::set<std::string_view> kOnTestbed = {
      "mccs-fig6",  "mccs-fig7",    "mccs-fig8",     "mccs-fig9",
      "mccs-fig10", "mccs-by-size", "mccs-lost-link"};
  return kOnTestbed.count(name) > 0;
}

TEST(ExperimentsTest, EveryOneRunsSmallAndFillsItsTables) {
  for (const Experiment& experiment : Experiments()) {
    // Those run a simulator on a program beside `tutti`: tests/cli/bench_test.py.
    if (experiment.name.starts_with("tuna-") || NeedsTestbed(experiment.name)) continue;
    // Whose machines take most of a minute with 16.
    const int64_t most = experiment.name == "clusters-collectives" ? 8 : 16;
    const ExperimentResult result = MustRun(experiment.name, {.max_ranks = most, .step = 5});
    EXPECT_FALSE(result.tables.empty()) << experiment.name;
    EXPECT_FALSE(result.notes.empty()) << experiment.name;
    for (const ResultTable& table : result.tables)
      for (const ResultRow& row : table.rows)
        EXPECT_EQ(row.cells.size(), table.columns.size()) << experiment.name << ": " << row.label;
  }
}

TEST(ExperimentsTest, EveryOneCanBeInterrupted) {
  RequestCancel();
  for (const Experiment& experiment : Experiments()) {
    const Result<ExperimentResult> result = RunExperiment(experiment, {});
    EXPECT_TRUE(!result && result.error().code == ErrorCode::kCancelled) << experiment.name;
  }
  ResetCancel();
}

}  // namespace
}  // namespace tutti
