// Any bytes as a binary routing: an error, or a routing that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tutti/base/check.h"
#include "tutti/store/routing_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = tutti::RoutingFromBinary(std::as_bytes(std::span(data, size)));
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return 0;
  }
  const auto bytes = tutti::RoutingToBinary(read->topology, read->routing);
  TUTTI_CHECK(bytes.has_value());
  const auto again = tutti::RoutingFromBinary(std::as_bytes(std::span(*bytes)));
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->routing == read->routing);
  return 0;
}
