// One column of a block of the binary schedule format: whole numbers as compressed byte planes.
//
// Model       Values are taken relative to a base, either each to the smallest or each to its
//             predecessor (zigzag), whatever is shorter; the k-th bytes of all of them form plane
//             k, and each plane is stored as one repeated byte, raw, or as a zstd frame. Planes of
//             equal weight compress far better than interleaved numbers.
// Layout      docs/formats/schedule.md "Column".
// Complexity  O(values) time; memory two planes. No allocation depends on a length in the data
//             except for planes of `count` bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// Each keeps a compression context between columns. Not for several threads at once.
class ColumnEncoder {
 public:
  ColumnEncoder();
  ~ColumnEncoder();
  // Appends the shorter of both forms to `out`. `values` must not be empty.
  void Append(std::span<const int64_t> values, std::string& out);

 private:
  struct Context;
  void Encode(uint8_t form, uint64_t base, std::string& out);

  std::unique_ptr<Context> context_;
  std::vector<uint64_t> relative_;
  std::string plane_, frame_, plain_, delta_;
};

class ColumnDecoder {
 public:
  ColumnDecoder();
  ~ColumnDecoder();
  // Reads values.size() numbers from the front of `in` and removes them. False: not a column.
  bool Take(std::string_view& in, std::span<int64_t> values);

 private:
  struct Context;
  bool TakePlane(std::string_view& in, size_t count);

  std::unique_ptr<Context> context_;
  std::string plane_;
};

// No column of `count` values is longer.
constexpr uint64_t MaxColumnBytes(uint64_t count) { return 10 + 8 * (5 + count); }

}  // namespace tutti
