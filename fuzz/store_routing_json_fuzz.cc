// Any bytes as a json routing: an error, or a routing that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/base/check.h"
#include "tutti/store/routing_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = tutti::RoutingFromJson(std::string(data, data + size));
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return 0;
  }
  const auto text = tutti::RoutingToJson(read->topology, read->routing);
  TUTTI_CHECK(text.has_value());
  const auto again = tutti::RoutingFromJson(*text);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->routing == read->routing);
  TUTTI_CHECK(*tutti::RoutingToJson(again->topology, again->routing) == *text);
  return 0;
}
