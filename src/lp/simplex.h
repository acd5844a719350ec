// Simplex: the few calls of the solver library that this room needs. Its headers stay in the .cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

namespace tutti {

class Simplex {
 public:
  enum class Outcome { kOptimal, kInfeasible, kUnbounded, kGaveUp };

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

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace tutti
