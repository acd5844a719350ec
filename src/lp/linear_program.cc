#include "tutti/lp/linear_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "simplex.h"

namespace tutti {

// Keeps the library's copy of the program and its basis between solves.
class LinearProgram::Solver {
 public:
  explicit Solver(Goal goal) : simplex_(goal == Goal::kMaximize) {}

  Simplex& Update(const LinearProgram& lp) {
    for (; given_columns_ < lp.columns_.size(); ++given_columns_) {
      const Column& column = lp.columns_[given_columns_];
      simplex_.AddColumn(column.lower, column.upper, column.cost);
    }
    for (; given_rows_ < lp.rows_.size(); ++given_rows_) {
      const Row& row = lp.rows_[given_rows_];
      indices_.clear();
      values_.clear();
      for (const Entry& entry : row.entries) {
        indices_.push_back(entry.column);
        values_.push_back(entry.value);
      }
      simplex_.AddRow(row.lower, row.upper, indices_, values_);
    }
    return simplex_;
  }

 private:
  Simplex simplex_;
  size_t given_columns_ = 0, given_rows_ = 0;
  std::vector<int> indices_;
  std::vector<double> values_;
};

namespace {

std::string FaultOfBounds(double lower, double upper) {
  if (std::isnan(lower) || std::isnan(upper)) return "a bound is not a number";
  if (lower > upper)
    return fmt::format("the lower bound {} is above the upper bound {}", lower, upper);
  if (lower == LinearProgram::kNoLimit || upper == -LinearProgram::kNoLimit)
    return "the bounds leave no finite value";
  return {};
}

// Sums up entries of one column, sorted by column, without zeros.
void Merge(std::vector<LinearProgram::Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.column < b.column; });
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (kept > 0 && entries[kept - 1].column == entries[i].column) {
      entries[kept - 1].value += entries[i].value;
    } else {
      entries[kept++] = entries[i];
    }
  }
  entries.resize(kept);
  std::erase_if(entries, [](const auto& entry) { return entry.value == 0; });
}

Rational Abs(const Rational& value) { return value < Rational(0) ? Rational(0) - value : value; }

// By how much `value` leaves [lower, upper].
Rational Outside(const Rational& value, double lower, double upper) {
  Rational out = 0;
  if (std::isfinite(lower)) out = std::max(out, Rational::FromDouble(lower) - value);
  if (std::isfinite(upper)) out = std::max(out, value - Rational::FromDouble(upper));
  return out;
}

// The least of price * value over [lower, upper]; a price that points at no bound counts 0 and is
// reported in `violation`.
Rational LeastOver(const Rational& price, double lower, double upper, Rational& violation) {
  if (price.is_zero()) return 0;
  const double bound = price > Rational(0) ? lower : upper;
  if (std::isfinite(bound)) return price * Rational::FromDouble(bound);
  violation = std::max(violation, Abs(price));
  return 0;
}

}  // namespace

LinearProgram::LinearProgram(Goal goal) : goal_(goal), solver_(std::make_unique<Solver>(goal)) {}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

void LinearProgram::KeepFault(std::string fault) {
  if (fault_.empty()) fault_ = std::move(fault);
}

int32_t LinearProgram::AddColumn(double lower, double upper, double cost) {
  const int32_t index = num_columns();
  std::string fault = FaultOfBounds(lower, upper);
  if (fault.empty() && !std::isfinite(cost)) fault = fmt::format("the cost is {}", cost);
  if (!fault.empty()) KeepFault(fmt::format("column {}: {}", index, fault));
  columns_.push_back({lower, upper, cost});
  return index;
}

int32_t LinearProgram::AddRow(double lower, double upper, std::vector<Entry> entries) {
  const int32_t index = num_rows();
  std::string fault = FaultOfBounds(lower, upper);
  for (const Entry& entry : entries) {
    if (!fault.empty()) break;
    if (entry.column < 0 || entry.column >= num_columns())
      fault = fmt::format("column {} does not exist, there are {}", entry.column, num_columns());
    else if (!std::isfinite(entry.value))
      fault = fmt::format("the entry of column {} is {}", entry.column, entry.value);
  }
  if (!fault.empty()) KeepFault(fmt::format("row {}: {}", index, fault));
  Merge(entries);
  rows_.push_back({lower, upper, std::move(entries)});
  return index;
}

Result<LpSolution> LinearProgram::Solve(Check check) {
  if (!fault_.empty()) return InvalidArgument(fault_);
  Simplex& simplex = solver_->Update(*this);
  switch (simplex.Solve()) {
    case Simplex::Outcome::kInfeasible:
      return MakeError(ErrorCode::kInfeasible, "the linear program is infeasible");
    case Simplex::Outcome::kUnbounded:
      return MakeError(ErrorCode::kInfeasible, "the linear program is unbounded");
    case Simplex::Outcome::kGaveUp:
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("the simplex method gave up on {} rows and {} columns",
                                   num_rows(), num_columns()));
    case Simplex::Outcome::kOptimal:
      break;
  }
  LpSolution solution;
  solution.columns = simplex.Columns();
  solution.row_prices = simplex.RowPrices();
  for (size_t j = 0; j < columns_.size(); ++j)
    solution.objective += columns_[j].cost * solution.columns[j];
  if (check == Check::kAsFound) return solution;

  LpCertificate certificate = Certify(solution);
  const Rational tolerance = Rational::FromDouble(kTolerance);
  const Rational gap = Abs(certificate.objective - certificate.dual_objective);
  if (std::max(certificate.primal_violation, certificate.dual_violation) > tolerance ||
      gap > tolerance * (Rational(1) + Abs(certificate.objective)))
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("the simplex answer does not hold: violations {} and {}, gap {}",
                                 certificate.primal_violation.ToDouble(),
                                 certificate.dual_violation.ToDouble(), gap.ToDouble()));
  solution.certificate = std::move(certificate);
  return solution;
}

LpCertificate LinearProgram::Certify(const LpSolution& solution) const {
  // A maximum is the minimum of the negated costs: prices and reduced costs change their signs.
  const Rational sign = goal_ == Goal::kMaximize ? -1 : 1;
  LpCertificate certificate;
  std::vector<Rational> values, reduced;
  for (size_t j = 0; j < columns_.size(); ++j) {
    values.push_back(Rational::FromDouble(solution.columns[j]));
    reduced.push_back(sign * Rational::FromDouble(columns_[j].cost));
    certificate.objective += values[j] * Rational::FromDouble(columns_[j].cost);
    certificate.primal_violation = std::max(
        certificate.primal_violation, Outside(values[j], columns_[j].lower, columns_[j].upper));
  }
  Rational least = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const Rational price = sign * Rational::FromDouble(solution.row_prices[i]);
    Rational activity = 0;
    for (const Entry& entry : row.entries) {
      const Rational value = Rational::FromDouble(entry.value);
      const auto column = static_cast<size_t>(entry.column);
      activity += value * values[column];
      if (!price.is_zero()) reduced[column] -= value * price;
    }
    certificate.primal_violation =
        std::max(certificate.primal_violation, Outside(activity, row.lower, row.upper));
    least += LeastOver(price, row.lower, row.upper, certificate.dual_violation);
  }
  for (size_t j = 0; j < columns_.size(); ++j)
    least +=
        LeastOver(reduced[j], columns_[j].lower, columns_[j].upper, certificate.dual_violation);
  certificate.dual_objective = sign * least;
  return certificate;
}

}  // namespace tutti
