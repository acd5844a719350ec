// The finite fields of 2, 3, 4 and 9 elements, and the points of projective spaces over them: what
// the geometries behind distance-regular graphs are made of.
//
// Model   An element is a number in [0, q). In GF(4) and GF(9), p = 2 and 3, a + b p stands for
//         a + b x with x^2 = x + 1 and x^2 = -1. 0 is zero, 1 is one.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::topo {

class FiniteField {
 public:
  explicit FiniteField(int32_t size);  // 2, 3, 4 or 9

  int32_t size() const { return size_; }
  int32_t Add(int32_t a, int32_t b) const;
  int32_t Subtract(int32_t a, int32_t b) const;
  int32_t Multiply(int32_t a, int32_t b) const;
  int32_t Inverse(int32_t a) const;  // a != 0

 private:
  int32_t size_ = 0;
  int32_t prime_ = 0;
  int32_t square_low_ = 0, square_high_ = 0;  // x^2 = low + high x
};

using Coordinates = std::vector<int32_t>;

// The multiple whose first coordinate other than 0 is 1: the one name of a projective point.
// `vector` is not 0.
Coordinates Normalized(const FiniteField& field, Coordinates vector);

// The points of the projective space of vectors of `length` coordinates, normalized, in
// lexicographic order.
std::vector<Coordinates> ProjectivePoints(const FiniteField& field, int32_t length);

}  // namespace tutti::topo
