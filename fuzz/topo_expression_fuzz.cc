// Any text is an expression or an error; an expression survives printing as JSON and as its own
// name. Networks are kept small by the parser's limits, so that an input costs little.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tutti::ParseLimits limits{.max_nodes = 18, .max_links = 60, .allow_files = false};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto topology = tutti::ParseTopology(text, limits);
  if (!topology) {
    TUTTI_CHECK(!topology.error().message.empty());
    return 0;
  }
  TUTTI_CHECK(topology->num_nodes() <= limits.max_nodes);
  const auto named = tutti::ParseTopology(topology->name(), limits);
  TUTTI_CHECK(named.has_value());
  TUTTI_CHECK(named->Fingerprint() == topology->Fingerprint());
  TUTTI_CHECK(named->name() == topology->name());
  const auto tree = tutti::ParseExpressionTree(text);
  TUTTI_CHECK(tree.has_value());
  TUTTI_CHECK(tree->text == topology->name());
  const auto stored = tutti::TopologyFromJson(tutti::TopologyToJson(*topology));
  TUTTI_CHECK(stored.has_value());
  TUTTI_CHECK(stored->Fingerprint() == topology->Fingerprint());
  return 0;
}
