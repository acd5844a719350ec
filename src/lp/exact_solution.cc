// LinearProgram::SolveExactly.
//
// Method      A basis says which columns and row sums are at a bound. The others follow from the
//             rows at a bound, and the prices of these rows from the costs of those columns: two
//             systems with one matrix. Where a column or row then leaves its bounds, or a price
//             points the wrong way, by less than doubles show, the program around this point with
//             the violations enlarged to 1 has a better basis.
// Reference   [Gleixner et al. 2016] Iterative refinement for linear programming.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "exact_system.h"
#include "residual.h"
#include "simplex.h"
#include "tutti/base/cancel.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

using At = Simplex::At;

constexpr int32_t kMaxRounds = 20;
// A bound so much farther away than a violation is none.
constexpr double kFarAway = 1e18;

// By how much a reduced cost (of a minimum) points away from where the value is.
Rational Wrong(const Rational& reduced, At at, double lower, double upper) {
  if (lower == upper || at == At::kBetween) return 0;
  if (at == At::kLower) return std::max(Rational(0), Rational(0) - reduced);
  if (at == At::kUpper) return std::max(Rational(0), reduced);
  return Abs(reduced);
}

double BoundAt(At at, double lower, double upper) {
  return at == At::kLower ? lower : at == At::kUpper ? upper : 0;
}

// How often an integer entry has to be doubled before it is whole; nothing where it would not fit.
std::optional<int> Doublings(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  int bits = 0;
  for (double left = std::abs(value); left != std::floor(left); left *= 2) ++bits;
  if (exponent + bits > 62) return std::nullopt;
  return bits;
}

}  // namespace

// The program as a minimum, and what follows from a basis.
class ExactBasis {
 public:
  struct Column {
    double lower, upper, cost;
    std::vector<LinearProgram::RowEntry> entries;
  };
  struct Row {
    double lower, upper;
  };

  ExactBasis(std::vector<Column> columns, std::vector<Row> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}

  Status Follow(const Simplex::Basis& basis) {
    value_.assign(columns_.size(), 0);
    price_.assign(rows_.size(), 0);
    if (const Status solved = SolveSystems(basis); !solved) return solved;
    sum_.assign(rows_.size(), 0);
    reduced_.clear();
    for (size_t j = 0; j < columns_.size(); ++j) {
      Rational reduced = Rational::FromDouble(columns_[j].cost);
      for (const auto& [row, entry] : columns_[j].entries) {
        const auto i = static_cast<size_t>(row);
        if (value_[j].is_zero() && price_[i].is_zero()) continue;
        const Rational exact = Rational::FromDouble(entry);
        if (!value_[j].is_zero()) sum_[i] += exact * value_[j];
        if (!price_[i].is_zero()) reduced -= exact * price_[i];
      }
      reduced_.push_back(std::move(reduced));
    }
    primal_violation_ = dual_violation_ = 0;
    for (size_t j = 0; j < columns_.size(); ++j) {
      const Column& column = columns_[j];
      Raise(primal_violation_, Outside(value_[j], column.lower, column.upper));
      Raise(dual_violation_, Wrong(reduced_[j], basis.columns[j], column.lower, column.upper));
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      Raise(primal_violation_, Outside(sum_[i], rows_[i].lower, rows_[i].upper));
      Raise(dual_violation_, Wrong(price_[i], basis.rows[i], rows_[i].lower, rows_[i].upper));
    }
    return {};
  }

  bool is_optimal() const { return primal_violation_.is_zero() && dual_violation_.is_zero(); }

  // The program seen from here, so that a violation of one side is 1.
  Simplex::Limits Enlarged() const {
    const Rational one(1);
    const Rational by = primal_violation_.is_zero() ? one : one / primal_violation_;
    const Rational costs = dual_violation_.is_zero() ? one : one / dual_violation_;
    const auto bound = [&by](double limit, const Rational& here) {
      if (!std::isfinite(limit)) return limit;
      const double away = ((Rational::FromDouble(limit) - here) * by).ToDouble();
      if (std::abs(away) < kFarAway) return away;
      return away > 0 ? LinearProgram::kNoLimit : -LinearProgram::kNoLimit;
    };
    Simplex::Limits limits;
    for (size_t j = 0; j < columns_.size(); ++j) {
      limits.column_lower.push_back(bound(columns_[j].lower, value_[j]));
      limits.column_upper.push_back(bound(columns_[j].upper, value_[j]));
      limits.cost.push_back((reduced_[j] * costs).ToDouble());
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      limits.row_lower.push_back(bound(rows_[i].lower, sum_[i]));
      limits.row_upper.push_back(bound(rows_[i].upper, sum_[i]));
    }
    return limits;
  }

  std::vector<Rational>& value() { return value_; }
  std::vector<Rational>& price() { return price_; }

 private:
  static void Raise(Rational& most, Rational value) {
    if (most < value) most = std::move(value);
  }

  Status SolveSystems(const Simplex::Basis& basis) {
    std::vector<int32_t> place(rows_.size(), -1);  // of a row, among those at a bound
    std::vector<Rational> right, costs;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (basis.rows[i] == At::kBetween) continue;
      place[i] = static_cast<int32_t>(right.size());
      right.push_back(Rational::FromDouble(BoundAt(basis.rows[i], rows_[i].lower, rows_[i].upper)));
    }
    std::vector<size_t> free;
    std::vector<int> doublings;
    std::vector<std::vector<ExactSystem::Entry>> matrix;
    for (size_t j = 0; j < columns_.size(); ++j) {
      if (basis.columns[j] != At::kBetween) {
        FixColumn(j, BoundAt(basis.columns[j], columns_[j].lower, columns_[j].upper), place, right);
        continue;
      }
      free.push_back(j);
      const Status added = AddColumn(columns_[j], place, matrix, doublings);
      if (!added) return added;
      costs.push_back(Rational::FromDouble(std::ldexp(columns_[j].cost, doublings.back())));
    }
    if (matrix.size() != right.size())
      return MakeError(ErrorCode::kResourceExhausted, "the simplex method's basis is not square");
    if (right.size() > static_cast<size_t>(LinearProgram::kMaxExactRows))
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("a basis of {} rows is more than the {} that are solved exactly",
                                   right.size(), LinearProgram::kMaxExactRows));
    const ExactSystem system(std::move(matrix));
    const auto values = system.is_regular() ? system.Solve(right) : std::nullopt;
    const auto prices = values ? system.SolveTransposed(costs) : std::nullopt;
    if (!prices)
      return MakeError(ErrorCode::kResourceExhausted, "the simplex method's basis is singular");
    for (size_t k = 0; k < free.size(); ++k)
      value_[free[k]] = (*values)[k] * Rational::FromDouble(std::ldexp(1, doublings[k]));
    for (size_t i = 0; i < rows_.size(); ++i)
      if (place[i] >= 0) price_[i] = (*prices)[static_cast<size_t>(place[i])];
    return {};
  }

  void FixColumn(size_t j, double at, const std::vector<int32_t>& place,
                 std::vector<Rational>& right) {
    if (at == 0) return;
    value_[j] = Rational::FromDouble(at);
    for (const auto& [row, entry] : columns_[j].entries)
      if (const int32_t i = place[static_cast<size_t>(row)]; i >= 0)
        right[static_cast<size_t>(i)] -= Rational::FromDouble(entry) * value_[j];
  }

  static Status AddColumn(const Column& column, const std::vector<int32_t>& place,
                          std::vector<std::vector<ExactSystem::Entry>>& matrix,
                          std::vector<int>& doublings) {
    int most = 0;
    for (const auto& [row, entry] : column.entries) {
      const std::optional<int> own = Doublings(entry);
      if (!own) return NotWhole(entry);
      most = std::max(most, *own);
    }
    matrix.emplace_back();
    for (const auto& [row, entry] : column.entries) {
      if (place[static_cast<size_t>(row)] < 0) continue;
      const double whole = std::ldexp(entry, most);
      if (std::abs(whole) >= 0x1p62) return NotWhole(entry);
      matrix.back().push_back({place[static_cast<size_t>(row)], static_cast<int64_t>(whole)});
    }
    doublings.push_back(most);
    return {};
  }
  static Status NotWhole(double entry) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("the entry {} and others of its column do not fit into 62 bits", entry));
  }

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::vector<Rational> value_, reduced_;  // of a column
  std::vector<Rational> price_, sum_;      // of a row
  Rational primal_violation_, dual_violation_;
};

Result<ExactLpSolution> LinearProgram::SolveExactly() {
  if (const Result<LpSolution> found = Solve(Check::kAsFound); !found)
    return tl::unexpected(found.error());
  const double sign = goal_ == Goal::kMaximize ? -1 : 1;
  std::vector<ExactBasis::Column> columns;
  for (const Column& column : columns_)
    columns.push_back({column.lower, column.upper, sign * column.cost, {}});
  std::vector<ExactBasis::Row> rows;
  for (const Row& row : rows_) {
    for (const Entry& entry : row.entries)
      columns[static_cast<size_t>(entry.column)].entries.push_back(
          {static_cast<int32_t>(rows.size()), entry.value});
    rows.push_back({row.lower, row.upper});
  }
  ExactBasis exact(std::move(columns), std::move(rows));
  Simplex::Basis basis = simplex_->LastBasis();
  for (int32_t round = 0; round < kMaxRounds; ++round) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (const Status followed = exact.Follow(basis); !followed)
      return tl::unexpected(followed.error());
    if (exact.is_optimal()) {
      ExactLpSolution solution{0, std::move(exact.value()), std::move(exact.price())};
      for (size_t j = 0; j < columns_.size(); ++j)
        if (!solution.columns[j].is_zero())
          solution.objective += Rational::FromDouble(columns_[j].cost) * solution.columns[j];
      if (goal_ == Goal::kMaximize)
        for (Rational& price : solution.row_prices) price = Rational(0) - price;
      return solution;
    }
    std::optional<Simplex::Basis> better = simplex_->BasisUnder(exact.Enlarged(), basis);
    if (!better) break;
    basis = *std::move(better);
  }
  return MakeError(ErrorCode::kResourceExhausted,
                   fmt::format("no basis of {} rows and {} columns was proven optimal", num_rows(),
                               num_columns()));
}

}  // namespace tutti
