// Pattern: what the ranks contribute, and the result that follows from the collective's definition
// alone, without a look at the plan.
//
// Model       Position e of the logical buffer (all shards one after the other) takes entry
//             (e + floor(e / P)) mod P of a table of P = 8191 entries: P is prime and every turn
//             starts one entry later, so that data put to a wrong place are noticed. Each rank has
//             its own table. Where nothing is reduced entries are random bits; where something is,
//             they are small integers whose reduction is exact in the type, whatever the order:
//               sum, avg   |x| <= 15 with N * max|x| <= 256, the integers that bfloat16 has
//               prod       +-1 and, for at most six ranks at a position, +-2
//               min, max   |x| <= 120
//             Unsigned types have no negative ones; sums of bytes wrap.
//             *Rough* patterns of floating-point types are numbers of all digits instead, whose reduction
//             depends on its order: it is compared within what rounding may do, N units of the last place
//             of the sum of absolute values.
// Threads     Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/runtime/executor.h"

namespace tutti {

class Pattern {
 public:
  static constexpr int64_t kPeriod = 8191;

  enum class Values : uint8_t { kExact, kRough };
  // `reduces`: the table of results is the reduction over all ranks, else there is none.
  // With groups there is one for each, over its members.
  Pattern(DataType type, ReduceOp op, bool reduces, int32_t num_ranks,
          std::span<const Collective::Group> groups = {}, Values values = Values::kExact);

  // The entries that a rank contributes; the entries of the reduction over all ranks.
  const std::byte* Contribution(int32_t rank) const {
    return tables_.data() + static_cast<int64_t>(rank) * kPeriod * element_bytes_;
  }
  const std::byte* Reduction(int32_t group = 0) const {
    return reduction_.data() + static_cast<int64_t>(group) * kPeriod * element_bytes_;
  }

  // Writes positions [first, first + count) of a table to data, bit by bit the opposite in
  // FillInverted; Differing counts the elements of data that are not the table's.
  void Fill(void* data, const std::byte* table, int64_t first, int64_t count) const;
  void FillInverted(void* data, const std::byte* table, int64_t first, int64_t count) const;
  int64_t Differing(const void* data, const std::byte* table, int64_t first, int64_t count) const;

 private:
  // Calls visit(offset in data, offset in table, bytes) for stretches that are contiguous in both.
  template <class Visit>
  void ForEachRun(int64_t first, int64_t count, Visit visit) const;

  void MakeRough(ReduceOp op, int32_t num_ranks, std::span<const Collective::Group> groups);
  // The element at `at` is far from what stands at `wanted` in a table of results.
  bool IsFar(const std::byte* at, const std::byte* wanted) const;

  DataType type_;
  int64_t element_bytes_;
  std::vector<std::byte> tables_, reduction_;
  std::vector<double> tolerance_;  // of rough entries of the reduction, else empty
};

}  // namespace tutti
