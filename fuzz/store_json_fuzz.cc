// Any bytes as a JSON schedule: an error, or a schedule that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/base/check.h"
#include "tutti/store/store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = tutti::ScheduleFromJson(std::string(data, data + size));
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return 0;
  }
  const std::string text = tutti::ScheduleToJson(read->topology, read->schedule);
  const auto again = tutti::ScheduleFromJson(text);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->schedule == read->schedule);
  TUTTI_CHECK(again->topology.ToText() == read->topology.ToText());
  TUTTI_CHECK(tutti::ScheduleToJson(again->topology, again->schedule) == text);
  return 0;
}
