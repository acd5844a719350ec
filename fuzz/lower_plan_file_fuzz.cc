// Any bytes as a plan file: an error, or a plan that is written as the same bytes. The checksum is
// made right first, so that what lies behind it is reached.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/base/hash.h"
#include "tutti/lower/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto read = tutti::PlanFromFile(bytes); !read) {
    TUTTI_CHECK(!read.error().message.empty());
  }
  constexpr size_t kHeader = 32;
  if (bytes.size() < kHeader) return 0;
  bytes.replace(0, tutti::kPlanFileMagic.size(), tutti::kPlanFileMagic);
  tutti::Fnv1a hash;
  hash.AddBytes(std::string_view(bytes).substr(kHeader));
  size_t at = tutti::kPlanFileMagic.size();
  for (const uint64_t word : {uint64_t{1}, uint64_t{bytes.size() - kHeader}, hash.value()})
    for (int i = 0; i < 8; ++i) bytes[at++] = static_cast<char>(word >> (8 * i) & 0xff);
  const auto plan = tutti::PlanFromFile(bytes);
  if (!plan) {
    TUTTI_CHECK(!plan.error().message.empty());
    return 0;
  }
  const auto again = tutti::PlanToFile(*plan);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(*again == bytes);
  return 0;
}
