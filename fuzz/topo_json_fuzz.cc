// Any text is a topology file or an error; a topology survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/base/check.h"
#include "tutti/topo/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto topology = tutti::TopologyFromJson(text);
  if (!topology) {
    TUTTI_CHECK(!topology.error().message.empty());
    return 0;
  }
  const std::string written = tutti::TopologyToJson(*topology);
  const auto again = tutti::TopologyFromJson(written);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->Fingerprint() == topology->Fingerprint());
  TUTTI_CHECK(tutti::TopologyToJson(*again) == written);
  return 0;
}
