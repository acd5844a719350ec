// IntegerProgram: a small linear program some of whose columns are whole numbers, by branch and
// cut.
//
// Model       As linear_program.h; the goal is the least total cost. Solve() stops at the limits
//             and then says how far its answer may be from the best.
// Exactness   The library works in doubles. Of an answer, integer columns are rounded and every row
//             and bound is checked again; the bound is what the library claims, without a proof.
//             Callers judge what they make of the answer in their own way.
// Complexity  Exponential: fine to some thousand columns where they decide easily.
// Threads     One thread at a time; different programs are independent.
// Errors      kInvalidArgument: as linear_program.h. kInfeasible: the library says that there is no
//             answer. kResourceExhausted: none was found within the limits. kCancelled.
//
//   IntegerProgram program;
//   const int32_t x = program.AddColumn(0, 1, -3, true), y = program.AddColumn(0, 1, -2, true);
//   program.AddRow(-IntegerProgram::kNoLimit, 4, {{x, 3}, {y, 3}});  // 3 x + 3 y <= 4
//   Result<IntegerSolution> solution = program.Solve({});            // x = 1, y = 0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

struct IntegerLimits {
  // Wall time, 0: no limit. Where it ends the search the answer depends on the machine; under the
  // other limits it does not.
  double seconds = 0;
  int64_t iterations = 0;         // of the simplex method, all of them; 0: no limit
  int32_t nodes = 1'000'000'000;  // of the search tree
  bool first_is_enough = false;   // any answer will do
};

struct IntegerSolution {
  double objective = 0;
  double bound = 0;     // no answer costs less, says the library; -infinity where a limit ended it
  bool proven = false;  // the search ended by itself: the objective is the least
  std::vector<double> columns;
  // (objective - bound) / |objective|; 0 when proven.
  double Gap() const;
};

class IntegerProgram {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  // By which an answer may leave a bound.
  static constexpr double kTolerance = 1e-6;

  struct Entry {
    int32_t column;
    double value;
  };

  // Both return the index, counted from 0. Entries of one column add up.
  int32_t AddColumn(double lower, double upper, double cost, bool whole);
  int32_t AddRow(double lower, double upper, std::vector<Entry> entries);
  int32_t num_columns() const { return static_cast<int32_t>(columns_.size()); }
  int32_t num_rows() const { return static_cast<int32_t>(rows_.size()); }

  Result<IntegerSolution> Solve(const IntegerLimits& limits) const;

 private:
  class Search;
  struct Column {
    double lower, upper, cost;
    bool whole;
  };
  struct Row {
    double lower, upper;
    std::vector<Entry> entries;
  };

  void CheckBounds(const std::string& where, double lower, double upper);
  bool Holds(const std::vector<double>& columns) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::string fault_;  // the first
};

}  // namespace tutti
