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

// Rows or columns collected for one call: the library copies its matrix each time it grows.
struct Pending {
  void Add(double low, double high, double price, std::span<const int> at,
           std::span<const double> entries) {
    lower.push_back(Bound(low));
    upper.push_back(Bound(high));
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

 private:
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

}  // namespace tutti
