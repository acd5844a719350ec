// LinearProgram: a small linear program, solved by a simplex library and checked exactly.
//
// Model       Columns x_j in [lower, upper] with a cost; rows that keep a sum of entry * x_j in
//             [lower, upper]; the goal is the least or the largest total cost. kNoLimit (and its
//             negative) stands for no bound. Rows and columns may be added after a Solve: the next
//             one goes on from where the last one ended, for cutting planes and column generation.
// Exactness   The library works in doubles. Solve(kCertified) evaluates its answer in rationals,
//             bit for bit as returned: by how much it breaks a bound, and the limit that the row
//             prices prove by weak duality. An answer outside the tolerance is an error, never
//             returned. Callers that prove their result in their own way use kAsFound. SolveExactly
//             takes from the library only which columns and rows are at a bound, solves for the
//             others in fractions and checks that nothing is left to gain; where something is,
//             that difference, enlarged, is the library's next program [Gleixner et al. 2016].
// Complexity  That of the simplex method: fine to about 10,000 columns.
// Threads     One thread at a time; different programs are independent.
// Errors      kInvalidArgument: a NaN, an infinite cost or entry, a lower bound above the upper
//             one, a column or row that does not exist; reported by Solve with the call at fault.
//             kInfeasible: "infeasible" or "unbounded". kResourceExhausted: the library gave up or
//             its answer did not pass the check. kCancelled (base/cancel.h).
//
//   LinearProgram lp(LinearProgram::Goal::kMaximize);
//   const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 3);
//   lp.AddRow(-LinearProgram::kNoLimit, 4, {{x, 2}});  // 2 x <= 4
//   Result<LpSolution> solution = lp.Solve();          // x = 2, objective 6
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"

namespace tutti {

// What a Solve has been proven to be, about the doubles that it returns.
struct LpCertificate {
  Rational objective;         // of the columns
  Rational primal_violation;  // the largest amount by which a row or column leaves its bounds
  // The limit that the row prices prove; no feasible point is better when dual_violation is 0.
  Rational dual_objective;
  // The largest reduced cost that points at a bound that is not there. Columns with two finite
  // bounds never add to it.
  Rational dual_violation;
};

class Simplex;

struct LpSolution {
  double objective = 0;
  std::vector<double> columns;
  std::vector<double> row_prices;  // how much the objective grows a unit of the row's bound
  std::optional<LpCertificate> certificate;  // with kCertified
};

// The optimum itself: both sides are feasible and their objectives equal, in fractions.
struct ExactLpSolution {
  Rational objective;
  std::vector<Rational> columns;
  std::vector<Rational> row_prices;
};

class LinearProgram {
 public:
  enum class Goal : uint8_t { kMinimize, kMaximize };
  enum class Check : uint8_t { kCertified, kAsFound };
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  // Violations of a certified answer, and its gap relative to 1 + |objective|, stay below this.
  static constexpr double kTolerance = 1e-6;

  struct Entry {
    int32_t column;
    double value;
  };
  struct RowEntry {
    int32_t row;
    double value;
  };

  explicit LinearProgram(Goal goal);
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  // Both return the index, counted from 0. Entries at one place add up.
  int32_t AddColumn(double lower, double upper, double cost,
                    const std::vector<RowEntry>& entries = {});
  int32_t AddRow(double lower, double upper, const std::vector<Entry>& entries);
  int32_t num_columns() const { return static_cast<int32_t>(columns_.size()); }
  int32_t num_rows() const { return static_cast<int32_t>(rows_.size()); }

  Result<LpSolution> Solve(Check check = Check::kCertified);
  // From the basis of the last Solve, or after one. Bounds, costs and entries count bit for bit as
  // they were given. kResourceExhausted: the library's bases do not lead to the optimum, or one
  // has more rows than kMaxExactRows, or entries of a column do not fit into 62 bits together.
  // A basis of n rows takes O(n^3) and 4 n^2 bytes.
  Result<ExactLpSolution> SolveExactly();
  static constexpr int32_t kMaxExactRows = 4000;

 private:
  struct Column {
    double lower, upper, cost;
  };
  struct Row {
    double lower, upper;
    std::vector<Entry> entries;
  };

  void KeepFault(std::string fault);
  LpCertificate Certify(const LpSolution& solution) const;

  Goal goal_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::string fault_;                 // the first wrong call
  std::unique_ptr<Simplex> simplex_;  // the library's copy, with its basis
};

}  // namespace tutti
