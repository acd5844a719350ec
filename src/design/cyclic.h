// Networks whose ranks are the numbers modulo n and whose links add fixed offsets. All ranks look
// alike, so what one of them sees is the whole truth.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti::design {

struct CyclicReach {
  int32_t diameter = 0;
  int64_t total_hops = 0;  // from one rank to all
  friend bool operator==(const CyclicReach&, const CyclicReach&) = default;
};

// Measures many networks of one size. One thread at a time.
class CyclicMeasure {
 public:
  explicit CyclicMeasure(int32_t ranks);
  // `offsets` in [1, n), one a link out of each rank; nullopt where not all are reached. Breadth-
  // first over bit sets: O(diameter * offsets * n / 64).
  std::optional<CyclicReach> Measure(const std::vector<int32_t>& offsets);

 private:
  void WriteTwice();
  void OrTurned(int32_t offset);

  int32_t ranks_;
  std::vector<uint64_t> reached_, layer_, twice_, next_;  // bits
};

// Whether breadth-first broadcast is bandwidth-optimal: in each step the sources can be shared out
// so that every in-link carries the same ([direct-connect] theorem 19). Exact, by max-flow. At most
// 64 offsets.
bool IsCyclicBalanced(int32_t ranks, const std::vector<int32_t>& offsets);

}  // namespace tutti::design
