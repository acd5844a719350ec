// Cayley digraphs that beat or add to what the finder makes without them. The table was written by
// tools/search_bases, which measured every row; found_test.cc measures them again.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base.h"

namespace tutti::design {
namespace {

enum Flag : uint8_t {
  kBoth = 1 << 0,     // bidirectional
  kReverse = 1 << 1,  // reverse-symmetric
};

struct Row {
  int16_t degree, ranks, tl;
  int32_t num, den;  // tb
  uint8_t flags;
  const char* recipe;
  int32_t back_num = 0, back_den = 0;  // tb of the reduce-scatter, where it is another

  std::pair<int16_t, int16_t> size() const { return {degree, ranks}; }
};

bool IsLine(std::string_view recipe) { return recipe.substr(0, 5) == "line("; }

// Sorted by degree, ranks, tl.
constexpr Row kTable[] = {
#include "found_table.inc"
};

}  // namespace

void ListFound(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  const auto before = [](const Row& row, const std::pair<int32_t, int32_t>& size) {
    return std::pair<int32_t, int32_t>(row.size()) < size;
  };
  const std::pair<int32_t, int32_t> size{degree, ranks};
  for (const Row* row = std::lower_bound(std::begin(kTable), std::end(kTable), size, before);
       row != std::end(kTable) && std::pair<int32_t, int32_t>(row->size()) == size; ++row) {
    BaseEntry entry;
    entry.recipe = row->recipe;
    entry.ranks = ranks;
    entry.degree = degree;
    entry.tl = entry.diameter = row->tl;
    entry.tb = Rational(row->num, row->den);
    if (row->back_den != 0)
      entry.reduce_scatter = {row->tl, Rational(row->back_num, row->back_den)};
    entry.bidirectional = (row->flags & kBoth) != 0;
    entry.reverse_symmetric = (row->flags & kReverse) != 0;
    entry.simple = entry.bfb = true;
    // The mapped schedule of a line digraph takes longer than its breadth-first broadcast, or the
    // row would not be there.
    entry.expand = !IsLine(row->recipe);
    entries.push_back(std::move(entry));
  }
}

}  // namespace tutti::design
