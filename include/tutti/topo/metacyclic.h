// The metacyclic group Z_m x|_r Z_k, whose Cayley digraphs `cayley(m,k,r,...)` names.
//
// Model       Elements are pairs (a, b), 0 <= a < m, 0 <= b < k, numbered a k + b like the ranks of
//             the family; the identity is 0.
//                 (a, b) (c, d) = (a + r^b c mod m, b + d mod k)
//             which is a group because r^k = 1 modulo m. r = 1 is Z_m x Z_k, k = 1 is Z_m. In
//             Cay(G, S) rank x sends to x s for s in S; each left translation x -> g x maps links
//             to links, so these m k maps are a group that takes any rank to any other, exactly
//             once.
// Complexity  O(k) to make and to keep; every operation O(1).
// Threads     Immutable, share freely.
// Errors      kInvalidArgument: m, k or r out of range, r^k != 1 modulo m, more than kMaxNodes
//             elements.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

class MetacyclicGroup {
 public:
  // 1 <= m, 1 <= k, 1 <= r < m (r = 1 when m = 1).
  static Result<MetacyclicGroup> Make(int64_t m, int64_t k, int64_t r);

  int32_t m() const { return m_; }
  int32_t k() const { return k_; }
  int32_t r() const { return r_; }
  int32_t size() const { return m_ * k_; }
  bool is_abelian() const { return r_ == 1; }

  int32_t Element(int32_t a, int32_t b) const { return a * k_ + b; }
  int32_t A(int32_t x) const { return x / k_; }
  int32_t B(int32_t x) const { return x % k_; }

  int32_t Multiply(int32_t x, int32_t y) const;
  int32_t Inverse(int32_t x) const;

 private:
  MetacyclicGroup() = default;

  int32_t m_ = 1, k_ = 1, r_ = 1;
  std::vector<int32_t> power_;  // r^b modulo m
};

}  // namespace tutti
