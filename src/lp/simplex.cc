#include "simplex.h"

#include <algorithm>
#include <limits>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <ClpSimplex.hpp>
#pragma GCC diagnostic pop

namespace tutti {
namespace {

double Bound(double value) { return std::clamp(value, -COIN_DBL_MAX, COIN_DBL_MAX); }

// Rows collected for one call: the library copies its matrix each time it grows.
struct Pending {
  std::vector<double> lower, upper, values;
  std::vector<int> columns;
  std::vector<int> starts = {0};
};

}  // namespace

class Simplex::Model {
 public:
  explicit Model(bool maximize) {
    clp_.setLogLevel(0);
    clp_.setOptimizationDirection(maximize ? -1 : 1);
  }

  void AddColumn(double lower, double upper, double cost) {
    FlushRows();
    lower_.push_back(Bound(lower));
    upper_.push_back(Bound(upper));
    cost_.push_back(cost);
  }

  void AddRow(double lower, double upper, std::span<const int> columns,
              std::span<const double> values) {
    FlushColumns();
    rows_.lower.push_back(Bound(lower));
    rows_.upper.push_back(Bound(upper));
    rows_.columns.insert(rows_.columns.end(), columns.begin(), columns.end());
    rows_.values.insert(rows_.values.end(), values.begin(), values.end());
    has_entries_ = has_entries_ || !columns.empty();
    rows_.starts.push_back(static_cast<int>(rows_.columns.size()));
  }

  Outcome Solve() {
    FlushColumns();
    FlushRows();
    try {
      // The library's dual method leaves columns of an empty matrix where they were.
      if (clp_.numberRows() > 0 && !has_entries_) {
        clp_.primal();
      } else {
        clp_.dual();
      }
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

 private:
  void FlushColumns() {
    if (cost_.empty()) return;
    const std::vector<int> starts(cost_.size() + 1, 0);
    const int no_row = 0;
    const double no_value = 0;
    clp_.addColumns(static_cast<int>(cost_.size()), lower_.data(), upper_.data(), cost_.data(),
                    starts.data(), &no_row, &no_value);
    lower_.clear();
    upper_.clear();
    cost_.clear();
  }

  void FlushRows() {
    if (rows_.lower.empty()) return;
    clp_.addRows(static_cast<int>(rows_.lower.size()), rows_.lower.data(), rows_.upper.data(),
                 rows_.starts.data(), rows_.columns.data(), rows_.values.data());
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
  std::vector<double> lower_, upper_, cost_;  // columns not yet given
  Pending rows_;
  bool has_entries_ = false;
};

Simplex::Simplex(bool maximize) : model_(std::make_unique<Model>(maximize)) {}
Simplex::~Simplex() = default;
void Simplex::AddColumn(double lower, double upper, double cost) {
  model_->AddColumn(lower, upper, cost);
}
void Simplex::AddRow(double lower, double upper, std::span<const int> columns,
                     std::span<const double> values) {
  model_->AddRow(lower, upper, columns, values);
}
Simplex::Outcome Simplex::Solve() { return model_->Solve(); }
std::vector<double> Simplex::Columns() const { return model_->Columns(); }
std::vector<double> Simplex::RowPrices() const { return model_->RowPrices(); }

}  // namespace tutti
