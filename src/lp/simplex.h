// Simplex: the few calls of the solver library that this room needs. Its headers stay in the .cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tutti {

class Simplex {
 public:
  enum class Outcome { kOptimal, kInfeasible, kUnbounded, kGaveUp };

  // Where the answer of a basis has a column, or the sum of a row.
  enum class At : uint8_t { kBetween, kLower, kUpper, kZero };  // kZero: between no bounds
  struct Basis {
    std::vector<At> columns, rows;
  };
  // What may differ while the entries stay. Of a minimum.
  struct Limits {
    std::vector<double> column_lower, column_upper, cost, row_lower, row_upper;
  };

  explicit Simplex(bool maximize);
  ~Simplex();

  // Entries are in rows given before, and the other way round; no index twice.
  void AddColumn(double lower, double upper, double cost, std::span<const int> rows,
                 std::span<const double> values);
  void AddRow(double lower, double upper, std::span<const int> columns,
              std::span<const double> values);
  // Silent; from the basis of the last call.
  Outcome Solve();

  // After kOptimal.
  std::vector<double> Columns() const;
  std::vector<double> RowPrices() const;
  Basis LastBasis() const;

  // The basis of the optimum under other limits, from `start`; nothing where there is none. Leaves
  // the program as it is.
  std::optional<Basis> BasisUnder(const Limits& limits, const Basis& start) const;

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace tutti
