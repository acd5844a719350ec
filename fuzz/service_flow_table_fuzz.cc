// Flow tables of operators and controllers: bytes are none, or one whose flows join two ranks each.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "service/flow_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int32_t kRanks = 4;
  const auto table = tutti::service::FlowTable::Parse(
      std::string(reinterpret_cast<const char*>(data), size), kRanks);
  if (table)
    for (int32_t rank = 0; rank < kRanks; ++rank)
      if (table->Find(rank, rank, 0) != nullptr) std::abort();
  return 0;
}
