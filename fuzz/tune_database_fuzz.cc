// Any text is a tuning database or an error that names a line; what is read is written and read
// again as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/tune/tuning_database.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto database = tutti::tune::ParseTuningDatabase(text);
  if (!database) {
    TUTTI_CHECK(database.error().message.rfind("line ", 0) == 0);
    return 0;
  }
  const std::string written = tutti::tune::FormatTuningDatabase(*database);
  const auto again = tutti::tune::ParseTuningDatabase(written);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(*again == *database);
  TUTTI_CHECK(tutti::tune::FormatTuningDatabase(*again) == written);
  return 0;
}
