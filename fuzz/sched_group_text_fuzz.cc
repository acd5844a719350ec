// Any text is groups, a placement, or an error; ranks are of the network, and groups survive being written
// as lists.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/check.h"
#include "tutti/sched/group_text.h"
#include "tutti/topo/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::Topology kTorus = *tutti::ParseTopology("torus(3,4)");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto is_rank = [](tutti::NodeId rank) {
    return 0 <= rank.value && rank.value < kTorus.num_ranks();
  };
  if (const auto placed = tutti::ParsePlacement(text, kTorus)) {
    TUTTI_CHECK(placed->size() >= 2 && placed->size() <= 12);
    TUTTI_CHECK(std::all_of(placed->begin(), placed->end(), is_rank));
  } else {
    TUTTI_CHECK(!placed.error().message.empty());
  }
  const auto groups = tutti::ParseGroups(text, kTorus, kTorus.num_ranks());
  if (!groups) {
    TUTTI_CHECK(!groups.error().message.empty());
    return 0;
  }
  std::string lists;
  for (const auto& group : *groups) {
    TUTTI_CHECK(!group.empty() && std::all_of(group.begin(), group.end(), is_rank));
    for (size_t i = 0; i < group.size(); ++i) {
      if (i > 0) lists += ',';
      lists += std::to_string(group[i].value);
    }
    lists += ";\n";
  }
  const auto again = tutti::ParseGroups(lists, kTorus, kTorus.num_ranks());
  TUTTI_CHECK(again.has_value() && *again == *groups);
  return 0;
}
