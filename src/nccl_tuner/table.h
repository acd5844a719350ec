// Tables of decisions: their text, and the decision for one call.
//
// Format      tutti-nccl-table 1
//             # collective ranks nodes from to algorithm protocol channels
//             allreduce 8 1 0 65535 tree * *
//             allreduce 8 1 65536 * ring simple 16
//             end
//             Words are separated by spaces or tabs; `#` starts a comment. `*` is any number of
//             ranks or nodes, no upper end, and for protocol and channels: NCCL's own choice. Both
//             ends belong to a range. Of several rows that fit a call the first counts.
// Limits      1 MiB, 4096 rows, 255 characters a line, 64 channels.
// Complexity  Decisions: O(rows log rows); Find: O(log rows), without allocations or locks.
// Errors      The first line at fault and why; of a file with a fault no row counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nccl_abi.h"

namespace tutti::nccl_tuner {

inline constexpr size_t kMaxTableBytes = size_t{1} << 20;
inline constexpr size_t kMaxRows = 4096, kMaxLineLength = 255;
inline constexpr uint64_t kMaxNcclChannels = 64;

struct Choice {
  int16_t algorithm = -1;  // -1: none, NCCL's own choice
  int16_t protocol = -1;   // -1: the one that NCCL takes to be fastest with the algorithm
  int32_t channels = 0;    // 0: NCCL's own choice
  friend bool operator==(const Choice&, const Choice&) = default;
};

struct Row {
  int function = 0;
  uint64_t ranks = 0, nodes = 0;  // 0: any
  uint64_t from = 0, to = 0;      // bytes, both included
  Choice choice;
};

struct ReadTable {
  std::vector<Row> rows;
  int bad_line = 0;    // 0: none
  std::string reason;  // why it is bad
};

ReadTable ParseTable(std::string_view text);

// What the rows say of one communicator.
class Decisions {
 public:
  Decisions(const std::vector<Row>& rows, uint64_t ranks, uint64_t nodes);

  Choice Find(int function, uint64_t bytes) const {
    if (function < 0 || function >= kNumFunctions) return {};
    const std::vector<Range>& ranges = ranges_[static_cast<size_t>(function)];
    size_t first = 0, count = ranges.size();
    while (count > 0) {
      const size_t half = count / 2;
      const bool right = ranges[first + half].from <= bytes;
      first += right ? half + 1 : 0;
      count = right ? count - half - 1 : half;
    }
    return first == 0 ? Choice() : ranges[first - 1].choice;
  }
  size_t num_ranges() const;

 private:
  struct Range {
    uint64_t from = 0;  // up to where the next begins
    Choice choice;
  };
  std::array<std::vector<Range>, kNumFunctions> ranges_;
};

}  // namespace tutti::nccl_tuner
