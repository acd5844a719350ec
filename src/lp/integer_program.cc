#include "tutti/lp/integer_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "coin_bound.h"
#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcHeuristicDiveCoefficient.hpp>
#include <CbcHeuristicFPump.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglProbing.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <OsiClpSolverInterface.hpp>
#pragma GCC diagnostic pop

namespace tutti {
namespace {

// When the search has to end: the user interrupts, or a limit is reached. It is asked within linear
// programs, too: one of them may take longer than all the rest.
class End {
 public:
  explicit End(const IntegerLimits& limits)
      : deadline_(limits.seconds), max_iterations_(limits.iterations) {}
  void CountIteration() { ++iterations_; }
  bool HasCome() {
    has_come_ = has_come_ || CancelRequested() || deadline_.HasPassed() ||
                (max_iterations_ > 0 && iterations_ >= max_iterations_);
    return has_come_;
  }
  // It has stopped something, whose verdict is none then.
  bool has_come() const { return has_come_; }

 private:
  Deadline deadline_;
  int64_t max_iterations_, iterations_ = 0;
  bool has_come_ = false;
};

class StopSearch : public CbcEventHandler {
 public:
  explicit StopSearch(End& end) : end_(&end) {}
  CbcAction event(CbcEvent) override { return end_->HasCome() ? stop : noAction; }
  CbcEventHandler* clone() const override { return new StopSearch(*this); }

 private:
  End* end_;
};

class StopProgram : public ClpEventHandler {
 public:
  explicit StopProgram(End& end) : end_(&end) {}
  int event(Event what) override {
    if (what == endOfIteration) end_->CountIteration();
    return end_->HasCome() ? 0 : -1;
  }
  ClpEventHandler* clone() const override { return new StopProgram(*this); }

 private:
  End* end_;
};

std::string LimitsText(const IntegerLimits& limits) {
  std::string text = fmt::format("{} nodes", limits.nodes);
  if (limits.iterations > 0) text += fmt::format(", {} simplex iterations", limits.iterations);
  if (limits.seconds > 0) text += fmt::format(", {} s", limits.seconds);
  return text;
}

void SetLimits(const IntegerLimits& limits, CbcModel& model) {
  model.setLogLevel(0);
  model.solver()->messageHandler()->setLogLevel(0);
  model.setUseElapsedTime(true);
  if (limits.seconds > 0) model.setMaximumSeconds(limits.seconds);
  model.setMaximumNodes(limits.nodes);
  if (limits.first_is_enough) model.setMaximumSolutions(1);
}

// The model keeps copies.
void AddCutsAndHeuristics(CbcModel& model) {
  CglProbing probing;
  probing.setUsingObjective(true);
  probing.setRowCuts(3);
  CglGomory gomory;
  model.addCutGenerator(&probing, -1, "Probing");
  model.addCutGenerator(&gomory, -1, "Gomory");
  CbcRounding rounding(model);
  CbcHeuristicFPump pump(model);
  CbcHeuristicDiveCoefficient dive(model);
  model.addHeuristic(&rounding);
  model.addHeuristic(&pump);
  model.addHeuristic(&dive);
}

}  // namespace

double IntegerSolution::Gap() const {
  if (proven || objective == bound) return 0;
  return (objective - bound) / std::max(std::abs(objective), 1e-9);
}

void IntegerProgram::CheckBounds(const std::string& where, double lower, double upper) {
  if (!fault_.empty()) return;
  if (std::isnan(lower) || std::isnan(upper))
    fault_ = fmt::format("{}: a bound is not a number", where);
  else if (lower > upper || lower == kNoLimit || upper == -kNoLimit)
    fault_ = fmt::format("{}: no finite value is between {} and {}", where, lower, upper);
}

int32_t IntegerProgram::AddColumn(double lower, double upper, double cost, bool whole) {
  const int32_t index = num_columns();
  CheckBounds(fmt::format("column {}", index), lower, upper);
  if (fault_.empty() && !std::isfinite(cost))
    fault_ = fmt::format("column {}: the cost is {}", index, cost);
  columns_.push_back({lower, upper, cost, whole});
  return index;
}

int32_t IntegerProgram::AddRow(double lower, double upper, std::vector<Entry> entries) {
  const int32_t index = num_rows();
  CheckBounds(fmt::format("row {}", index), lower, upper);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.column < b.column; });
  std::vector<Entry> merged;
  for (const Entry& entry : entries) {
    if (fault_.empty() && (entry.column < 0 || entry.column >= num_columns()))
      fault_ = fmt::format("row {}: column {} does not exist, there are {}", index, entry.column,
                           num_columns());
    if (fault_.empty() && !std::isfinite(entry.value))
      fault_ =
          fmt::format("row {}: the entry of column {} is {}", index, entry.column, entry.value);
    if (!merged.empty() && merged.back().column == entry.column)
      merged.back().value += entry.value;
    else
      merged.push_back(entry);
  }
  rows_.push_back({lower, upper, std::move(merged)});
  return index;
}

bool IntegerProgram::Holds(const std::vector<double>& columns) const {
  const auto inside = [](double value, double lower, double upper) {
    return value >= lower - kTolerance && value <= upper + kTolerance;
  };
  for (size_t j = 0; j < columns_.size(); ++j)
    if (!inside(columns[j], columns_[j].lower, columns_[j].upper)) return false;
  for (const Row& row : rows_) {
    double sum = 0;
    for (const Entry& entry : row.entries)
      sum += entry.value * columns[static_cast<size_t>(entry.column)];
    if (!inside(sum, row.lower, row.upper)) return false;
  }
  return true;
}

// One branch and cut. The library may throw a CoinError.
class IntegerProgram::Search {
 public:
  Search(const IntegerProgram& program, const IntegerLimits& limits)
      : program_(program), limits_(limits), end_(limits) {}
  Result<IntegerSolution> Run();

 private:
  void Load(OsiClpSolverInterface& solver) const;
  Result<IntegerSolution> SolutionOf(const CbcModel& model) const;

  const IntegerProgram& program_;
  const IntegerLimits& limits_;
  End end_;
};

void IntegerProgram::Search::Load(OsiClpSolverInterface& solver) const {
  std::vector<double> low, high, cost, row_low, row_high;
  for (const Column& column : program_.columns_) {
    low.push_back(CoinBound(column.lower));
    high.push_back(CoinBound(column.upper));
    cost.push_back(column.cost);
  }
  std::vector<int> starts = {0}, indices;
  std::vector<double> values;
  for (const Row& row : program_.rows_) {
    row_low.push_back(CoinBound(row.lower));
    row_high.push_back(CoinBound(row.upper));
    for (const Entry& entry : row.entries) {
      indices.push_back(entry.column);
      values.push_back(entry.value);
    }
    starts.push_back(static_cast<int>(indices.size()));
  }
  CoinPackedMatrix matrix(false, 0, 0);
  matrix.setDimensions(0, program_.num_columns());
  matrix.appendRows(program_.num_rows(), starts.data(), indices.data(), values.data(),
                    program_.num_columns());
  solver.loadProblem(matrix, low.data(), high.data(), cost.data(), row_low.data(), row_high.data());
  for (int32_t j = 0; j < program_.num_columns(); ++j)
    if (program_.columns_[static_cast<size_t>(j)].whole) solver.setInteger(j);
}

// The best columns that the search has found, rounded and checked again.
Result<IntegerSolution> IntegerProgram::Search::SolutionOf(const CbcModel& model) const {
  const bool stopped = end_.has_come();
  IntegerSolution solution;
  solution.columns.assign(model.bestSolution(), model.bestSolution() + program_.num_columns());
  for (size_t j = 0; j < program_.columns_.size(); ++j) {
    double& value = solution.columns[j];
    if (program_.columns_[j].whole) value = std::round(value);
    solution.objective += program_.columns_[j].cost * value;
  }
  if (!program_.Holds(solution.columns))
    return MakeError(ErrorCode::kResourceExhausted,
                     "the answer of the branch and cut does not hold when rounded");
  solution.proven = model.isProvenOptimal() && !stopped;
  solution.bound = solution.objective;
  if (!solution.proven)
    solution.bound =
        stopped ? -kNoLimit : std::min(solution.objective, model.getBestPossibleObjValue());
  return solution;
}

Result<IntegerSolution> IntegerProgram::Search::Run() {
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.setHintParam(OsiDoReducePrint, true, OsiHintTry);
  Load(solver);
  const StopProgram stop_program(end_);
  solver.getModelPtr()->passInEventHandler(&stop_program);

  CbcModel model(solver);
  const StopSearch stop_search(end_);
  model.passInEventHandler(&stop_search);
  SetLimits(limits_, model);
  AddCutsAndHeuristics(model);
  model.initialSolve();
  if (!end_.HasCome()) model.branchAndBound();

  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (model.bestSolution() != nullptr) return SolutionOf(model);
  if (model.isProvenInfeasible() && !end_.has_come())
    return MakeError(ErrorCode::kInfeasible, "the integer program is infeasible");
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("no answer to {} rows and {} columns within {}", program_.num_rows(),
                               program_.num_columns(), LimitsText(limits_)));
}

Result<IntegerSolution> IntegerProgram::Solve(const IntegerLimits& limits) const {
  if (!fault_.empty()) return InvalidArgument(fault_);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (columns_.empty()) {
    IntegerSolution nothing;
    nothing.proven = true;
    if (!Holds({})) return MakeError(ErrorCode::kInfeasible, "the integer program is infeasible");
    return nothing;
  }
  try {
    return Search(*this, limits).Run();
  } catch (const CoinError& error) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("the branch and cut gave up: {}", error.message()));
  }
}

}  // namespace tutti
