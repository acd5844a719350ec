// What the tests of experiments share: running one and finding a cell by row and column.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "experiment.h"

namespace tutti {

inline ExperimentResult MustRun(std::string_view name, const ExperimentOptions& options = {}) {
  const Result<const Experiment*> experiment = FindExperiment(name);
  if (!experiment) {
    ADD_FAILURE() << experiment.error().message;
    return {};
  }
  Result<ExperimentResult> result = RunExperiment(**experiment, options);
  if (!result) {
    ADD_FAILURE() << name << ": " << result.error().message;
    return {};
  }
  return std::move(*result);
}

inline size_t ColumnNamed(const ResultTable& table, std::string_view name) {
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].name == name) return i;
  ADD_FAILURE() << "no column '" << name << "' in '" << table.title << "'";
  return 0;
}

// Every figure of the column that the paper prints is ours; the number of them.
inline int ExpectAgreement(const ResultTable& table, std::string_view column_name) {
  const size_t column = ColumnNamed(table, column_name);
  int compared = 0;
  for (const ResultRow& row : table.rows) {
    if (row.cells[column].paper.empty()) continue;
    const std::optional<Comparison> comparison = Compare(row.cells[column]);
    EXPECT_TRUE(comparison.has_value() && comparison->agrees)
        << row.label << ": " << column_name << " is "
        << OursText(row.cells[column], table.columns[column]) << ", the paper's "
        << row.cells[column].paper;
    ++compared;
  }
  return compared;
}

}  // namespace tutti
