#include "simplex.h"

#include <algorithm>
#include <limits>

#include "coin_bound.h"
#include "tutti/base/cancel.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#pragma GCC diagnostic pop

namespace tutti {
namespace {

class StopWhenCancelled : public ClpEventHandler {
 public:
  int event(Event) override { return CancelRequested() ? 0 : -1; }
  ClpEventHandler* clone() const override { return new StopWhenCancelled(*this); }
};

// Rows or columns collected for one call: the library copies its matrix each time it grows.
struct Pending {
  void Add(double low, double high, double price, std::span<const int> at,
           std::span<const double> entries) {
    lower.push_back(CoinBound(low));
    upper.push_back(CoinBound(high));
    cost.push_back(price);
    indices.insert(indices.end(), at.begin(), at.end());
    values.insert(values.end(), entries.begin(), entries.end());
    starts.push_back(static_cast<int>(indices.size()));
  }
  int size() const { return static_cast<int>(lower.size()); }

  std::vector<double> lower, upper, cost, values;
  std::vector<int> indices;
  std::vector<int> starts = {0};
};

}  // namespace

class Simplex::Model {
 public:
  explicit Model(bool maximize) {
    clp_.setLogLevel(0);
    clp_.setOptimizationDirection(maximize ? -1 : 1);
    const StopWhenCancelled stop;
    clp_.passInEventHandler(&stop);
  }

  void AddColumn(double lower, double upper, double cost, std::span<const int> rows,
                 std::span<const double> values) {
    FlushRows();
    has_entries_ = has_entries_ || !values.empty();
    columns_.Add(lower, upper, cost, rows, values);
  }

  void AddRow(double lower, double upper, std::span<const int> columns,
              std::span<const double> values) {
    FlushColumns();
    has_entries_ = has_entries_ || !values.empty();
    rows_.Add(lower, upper, 0, columns, values);
  }

  Outcome Solve() {
    // New columns leave the last answer feasible, new rows leave its prices so. The dual method
    // leaves the columns of an empty matrix where they were.
    const bool primal =
        (solved_ && rows_.size() == 0) || (clp_.numberRows() + rows_.size() > 0 && !has_entries_);
    FlushColumns();
    FlushRows();
    try {
      if (primal) {
        clp_.primal();
      } else {
        clp_.dual();
      }
      solved_ = clp_.status() == 0;
      if (clp_.status() == 0) return Outcome::kOptimal;
      if (clp_.status() == 1 || clp_.status() == 2)
        return IsFeasible() ? Outcome::kUnbounded : Outcome::kInfeasible;
    } catch (const CoinError&) {
      // Reported as any other failure of the library.
    }
    return Outcome::kGaveUp;
  }

  std::vector<double> Columns() const {
    const double* first = clp_.primalColumnSolution();
    return {first, first + clp_.numberColumns()};
  }
  std::vector<double> RowPrices() const {
    const double* first = clp_.dualRowSolution();
    return {first, first + clp_.numberRows()};
  }

  Basis LastBasis() const { return BasisOf(clp_); }

  std::optional<Basis> BasisUnder(const Limits& limits, const Basis& start) const {
    ClpSimplex copy(clp_);
    copy.setOptimizationDirection(1);
    for (int i = 0; i < copy.numberColumns(); ++i) {
      const auto at = static_cast<size_t>(i);
      copy.setColumnBounds(i, CoinBound(limits.column_lower[at]),
                           CoinBound(limits.column_upper[at]));
      copy.setObjectiveCoefficient(i, limits.cost[at]);
      copy.setColumnStatus(i, StatusOf(start.columns[at]));
    }
    for (int i = 0; i < copy.numberRows(); ++i) {
      const auto at = static_cast<size_t>(i);
      copy.setRowBounds(i, CoinBound(limits.row_lower[at]), CoinBound(limits.row_upper[at]));
      copy.setRowStatus(i, StatusOf(start.rows[at]));
    }
    try {
      copy.dual();
      if (copy.status() != 0) copy.primal();
      if (copy.status() != 0) return std::nullopt;
    } catch (const CoinError&) {
      return std::nullopt;
    }
    return BasisOf(copy);
  }

 private:
  static ClpSimplex::Status StatusOf(At at) {
    switch (at) {
      case At::kBetween:
        return ClpSimplex::basic;
      case At::kLower:
        return ClpSimplex::atLowerBound;
      case At::kUpper:
        return ClpSimplex::atUpperBound;
      case At::kZero:
        break;
    }
    return ClpSimplex::isFree;
  }

  // By the values: the library's words for the two bounds of a row are not those for a column.
  static At Place(ClpSimplex::Status status, double value, double lower, double upper) {
    if (status == ClpSimplex::basic) return At::kBetween;
    const bool has_lower = lower > -COIN_DBL_MAX, has_upper = upper < COIN_DBL_MAX;
    if (!has_lower && !has_upper) return At::kZero;
    if (!has_upper || (has_lower && value - lower <= upper - value)) return At::kLower;
    return At::kUpper;
  }

  static Basis BasisOf(const ClpSimplex& clp) {
    Basis basis;
    for (int i = 0; i < clp.numberColumns(); ++i)
      basis.columns.push_back(Place(clp.getColumnStatus(i), clp.primalColumnSolution()[i],
                                    clp.columnLower()[i], clp.columnUpper()[i]));
    for (int i = 0; i < clp.numberRows(); ++i)
      basis.rows.push_back(Place(clp.getRowStatus(i), clp.primalRowSolution()[i], clp.rowLower()[i],
                                 clp.rowUpper()[i]));
    return basis;
  }

  void FlushColumns() {
    if (columns_.size() == 0) return;
    clp_.addColumns(columns_.size(), columns_.lower.data(), columns_.upper.data(),
                    columns_.cost.data(), columns_.starts.data(), columns_.indices.data(),
                    columns_.values.data());
    columns_ = {};
  }

  void FlushRows() {
    if (rows_.size() == 0) return;
    clp_.addRows(rows_.size(), rows_.lower.data(), rows_.upper.data(), rows_.starts.data(),
                 rows_.indices.data(), rows_.values.data());
    rows_ = {};
  }

  // The library's two refusals are not always told apart: without costs nothing is unbounded.
  bool IsFeasible() const {
    ClpSimplex copy(clp_);
    for (int column = 0; column < copy.numberColumns(); ++column)
      copy.setObjectiveCoefficient(column, 0);
    copy.primal();
    return copy.status() == 0;
  }

  ClpSimplex clp_;
  Pending columns_, rows_;  // not yet given
  bool has_entries_ = false;
  bool solved_ = false;  // the last time
};

Simplex::Simplex(bool maximize) : model_(std::make_unique<Model>(maximize)) {}
Simplex::~Simplex() = default;
void Simplex::AddColumn(double lower, double upper, double cost, std::span<const int> rows,
                        std::span<const double> values) {
  model_->AddColumn(lower, upper, cost, rows, values);
}
void Simplex::AddRow(double lower, double upper, std::span<const int> columns,
                     std::span<const double> values) {
  model_->AddRow(lower, upper, columns, values);
}
Simplex::Outcome Simplex::Solve() { return model_->Solve(); }
std::vector<double> Simplex::Columns() const { return model_->Columns(); }
std::vector<double> Simplex::RowPrices() const { return model_->RowPrices(); }
Simplex::Basis Simplex::LastBasis() const { return model_->LastBasis(); }
std::optional<Simplex::Basis> Simplex::BasisUnder(const Limits& limits, const Basis& start) const {
  return model_->BasisUnder(limits, start);
}

}  // namespace tutti
