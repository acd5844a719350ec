// Any text is a memory file or an error that names a line; what is read is written and read again
// as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/alltoallv/memory.h"
#include "tutti/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto memory = tutti::alltoallv::ParseMemory(text);
  if (!memory) {
    TUTTI_CHECK(memory.error().message.rfind("line ", 0) == 0);
    return 0;
  }
  const std::string written = tutti::alltoallv::FormatMemory(*memory);
  const auto again = tutti::alltoallv::ParseMemory(written);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(*again == *memory);
  TUTTI_CHECK(tutti::alltoallv::FormatMemory(*again) == written);
  return 0;
}
