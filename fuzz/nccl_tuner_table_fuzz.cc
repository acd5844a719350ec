// Any bytes as a table of decisions: a fault with its line, or rows whose decisions are what the
// first row that fits says, at the ends of every range and beyond.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "nccl_tuner/table.h"

namespace {

using tutti::nccl_tuner::Choice, tutti::nccl_tuner::Row;

Choice FirstThatFits(const std::vector<Row>& rows, int function, uint64_t bytes) {
  for (const Row& row : rows)
    if (row.function == function && (row.ranks == 0 || row.ranks == 8) &&
        (row.nodes == 0 || row.nodes == 1) && row.from <= bytes && bytes <= row.to)
      return row.choice;
  return {};
}

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::nccl_tuner;
  const ReadTable table = ParseTable({reinterpret_cast<const char*>(data), size});
  Require((table.bad_line == 0) == table.reason.empty());
  if (table.bad_line != 0) Require(table.rows.empty());
  const Decisions decisions(table.rows, 8, 1);
  constexpr size_t kMaxToCompare = 64;
  for (size_t i = 0; i < table.rows.size() && i < kMaxToCompare; ++i)
    for (const uint64_t end : {table.rows[i].from, table.rows[i].to})
      for (const uint64_t bytes : {end - 1, end, end + 1})
        Require(decisions.Find(table.rows[i].function, bytes) ==
                FirstThatFits(table.rows, table.rows[i].function, bytes));
  return 0;
}
