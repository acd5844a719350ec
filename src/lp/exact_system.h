// A square system of linear equations in whole numbers, solved in fractions.
//
// Method      p-adic lifting: one factorization modulo a prime, then 31 more bits of the answer for
//             each pass over the matrix, until fractions of that size satisfy all equations. The
//             equations are checked in whole numbers before an answer is given.
// Complexity  n unknowns, b bits of the answer: O(n^3) machine words for the factors, O(b n^2) a
//             right side; memory 4 n^2 bytes.
// Reference   [Dixon 1982] Exact solution of linear equations using p-adic expansions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/base/rational.h"

namespace tutti {

class ExactSystem {
 public:
  struct Entry {
    int32_t row;
    int64_t value;  // not the least int64_t
  };

  // Columns of a square matrix; no row twice in one.
  explicit ExactSystem(std::vector<std::vector<Entry>> columns);

  // False: no prime that was tried leaves the matrix invertible. Then it is singular, or as good
  // as.
  bool is_regular() const { return regular_; }
  // x with A x = right, and y with y A = right. Nothing where the answer needs more bits than a
  // matrix of this size can ask for, which is a fault of the machine. Only when is_regular().
  std::optional<std::vector<Rational>> Solve(const std::vector<Rational>& right) const;
  std::optional<std::vector<Rational>> SolveTransposed(const std::vector<Rational>& right) const;

 private:
  class Lifting;

  std::optional<std::vector<Rational>> Lift(const std::vector<Rational>& right,
                                            bool transposed) const;
  bool Factor(uint32_t prime);
  // In place, modulo prime_.
  void SolveModular(std::vector<uint32_t>& vector, bool transposed) const;
  uint32_t& At(size_t row, size_t column) { return lu_[row * columns_.size() + column]; }
  uint32_t At(size_t row, size_t column) const { return lu_[row * columns_.size() + column]; }
  double BitsAtMost() const;

  std::vector<std::vector<Entry>> columns_;
  bool regular_ = false;
  uint32_t prime_ = 0;
  // L (unit diagonal) and U of the rows and columns in these orders.
  std::vector<uint32_t> lu_;
  std::vector<int32_t> row_order_, column_order_;
};

}  // namespace tutti
