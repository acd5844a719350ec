#include "tutti/lp/linear_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "residual.h"
#include "simplex.h"
#include "tutti/base/cancel.h"

namespace tutti {

namespace {

std::string FaultOfBounds(double lower, double upper) {
  if (std::isnan(lower) || std::isnan(upper)) return "a bound is not a number";
  if (lower > upper)
    return fmt::format("the lower bound {} is above the upper bound {}", lower, upper);
  if (lower == LinearProgram::kNoLimit || upper == -LinearProgram::kNoLimit)
    return "the bounds leave no finite value";
  return {};
}

// An entry as the library takes it: an index and a value.
struct Sparse {
  std::vector<int> indices;
  std::vector<double> values;
};

// Sorted by index, entries at one place added up, zeros left out.
Sparse Merged(std::vector<std::pair<int32_t, double>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Sparse merged;
  for (size_t i = 0; i < entries.size();) {
    const int32_t index = entries[i].first;
    double sum = 0;
    for (; i < entries.size() && entries[i].first == index; ++i) sum += entries[i].second;
    if (sum == 0) continue;
    merged.indices.push_back(index);
    merged.values.push_back(sum);
  }
  return merged;
}

std::string FaultOfEntry(std::string_view what, int32_t index, int32_t count, double value) {
  if (index < 0 || index >= count)
    return fmt::format("{} {} does not exist, there are {}", what, index, count);
  if (!std::isfinite(value)) return fmt::format("the entry of {} {} is {}", what, index, value);
  return {};
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

LinearProgram::LinearProgram(Goal goal)
    : goal_(goal), simplex_(std::make_unique<Simplex>(goal == Goal::kMaximize)) {}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

void LinearProgram::KeepFault(std::string fault) {
  if (fault_.empty()) fault_ = std::move(fault);
}

int32_t LinearProgram::AddColumn(double lower, double upper, double cost,
                                 const std::vector<RowEntry>& entries) {
  const int32_t index = num_columns();
  std::string fault = FaultOfBounds(lower, upper);
  if (fault.empty() && !std::isfinite(cost)) fault = fmt::format("the cost is {}", cost);
  std::vector<std::pair<int32_t, double>> pairs;
  for (const RowEntry& entry : entries) {
    if (fault.empty()) fault = FaultOfEntry("row", entry.row, num_rows(), entry.value);
    pairs.emplace_back(entry.row, entry.value);
  }
  columns_.push_back({lower, upper, cost});
  if (!fault.empty()) KeepFault(fmt::format("column {}: {}", index, fault));
  if (!fault_.empty()) return index;
  const Sparse merged = Merged(std::move(pairs));
  for (size_t i = 0; i < merged.indices.size(); ++i)
    rows_[static_cast<size_t>(merged.indices[i])].entries.push_back({index, merged.values[i]});
  simplex_->AddColumn(lower, upper, cost, merged.indices, merged.values);
  return index;
}

int32_t LinearProgram::AddRow(double lower, double upper, const std::vector<Entry>& entries) {
  const int32_t index = num_rows();
  std::string fault = FaultOfBounds(lower, upper);
  std::vector<std::pair<int32_t, double>> pairs;
  for (const Entry& entry : entries) {
    if (fault.empty()) fault = FaultOfEntry("column", entry.column, num_columns(), entry.value);
    pairs.emplace_back(entry.column, entry.value);
  }
  rows_.push_back({lower, upper, {}});
  if (!fault.empty()) KeepFault(fmt::format("row {}: {}", index, fault));
  if (!fault_.empty()) return index;
  const Sparse merged = Merged(std::move(pairs));
  for (size_t i = 0; i < merged.indices.size(); ++i)
    rows_.back().entries.push_back({merged.indices[i], merged.values[i]});
  simplex_->AddRow(lower, upper, merged.indices, merged.values);
  return index;
}

Result<LpSolution> LinearProgram::Solve(Check check) {
  if (!fault_.empty()) return InvalidArgument(fault_);
  const Simplex::Outcome outcome = simplex_->Solve();
  if (CancelRequested()) return tl::unexpected(CancelledError());
  switch (outcome) {
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
  solution.columns = simplex_->Columns();
  solution.row_prices = simplex_->RowPrices();
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
