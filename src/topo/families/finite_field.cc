#include "families/finite_field.h"

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::topo {

FiniteField::FiniteField(int32_t size) : size_(size) {
  TUTTI_CHECK(size == 2 || size == 3 || size == 4 || size == 9);
  prime_ = size % 2 == 0 ? 2 : 3;
  square_low_ = size == 9 ? 2 : 1;
  square_high_ = size == 9 ? 0 : 1;
}

int32_t FiniteField::Add(int32_t a, int32_t b) const {
  return (a % prime_ + b % prime_) % prime_ + (a / prime_ + b / prime_) % prime_ * prime_;
}

int32_t FiniteField::Subtract(int32_t a, int32_t b) const {
  const int32_t low = (a % prime_ + prime_ - b % prime_) % prime_;
  const int32_t high = (a / prime_ + prime_ - b / prime_) % prime_;
  return low + high * prime_;
}

int32_t FiniteField::Multiply(int32_t a, int32_t b) const {
  const int32_t a0 = a % prime_, a1 = a / prime_, b0 = b % prime_, b1 = b / prime_;
  const int32_t low = (a0 * b0 + a1 * b1 * square_low_) % prime_;
  const int32_t high = (a0 * b1 + a1 * b0 + a1 * b1 * square_high_) % prime_;
  return low + high * prime_;
}

int32_t FiniteField::Inverse(int32_t a) const {
  TUTTI_CHECK(0 < a && a < size_);
  int32_t inverse = 1;
  while (Multiply(a, inverse) != 1) ++inverse;
  return inverse;
}

Coordinates Normalized(const FiniteField& field, Coordinates vector) {
  const auto first =
      std::find_if(vector.begin(), vector.end(), [](int32_t value) { return value != 0; });
  TUTTI_CHECK(first != vector.end());
  const int32_t scale = field.Inverse(*first);
  for (int32_t& value : vector) value = field.Multiply(value, scale);
  return vector;
}

std::vector<Coordinates> ProjectivePoints(const FiniteField& field, int32_t length) {
  std::vector<Coordinates> points;
  Coordinates vector(static_cast<size_t>(length), 0);
  for (;;) {
    // Counts through all vectors, the last coordinate fastest; the wrap back to 0 is the end.
    size_t at = vector.size();
    while (at > 0 && vector[at - 1] == field.size() - 1) vector[--at] = 0;
    if (at == 0) return points;
    ++vector[at - 1];
    if (Normalized(field, vector) == vector) points.push_back(vector);
  }
}

}  // namespace tutti::topo
