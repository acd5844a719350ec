#include "words.h"

#include <fmt/format.h>

#include <numeric>

#include "tutti/base/units.h"

namespace tutti::verify {
namespace {

std::string FractionText(int32_t num, int32_t den) {
  const int32_t divisor = std::gcd(num, den);
  if (divisor == den) return std::to_string(num / den);
  return fmt::format("{}/{}", num / divisor, den / divisor);
}

}  // namespace

std::string NodeText(const Topology& topology, NodeId node) {
  return fmt::format("{} {}", topology.is_rank(node) ? "rank" : "switch", topology.node_name(node));
}

std::string LinkText(const Topology& topology, LinkId link) {
  return fmt::format("{} -> {}", topology.node_name(topology.tail(link)),
                     topology.node_name(topology.head(link)));
}

std::string ShardText(const Topology& topology, const Collective& collective, ShardId shard) {
  const std::string text = fmt::format("shard {}", shard.value);
  if (!collective.is_all_to_all()) return text;
  return fmt::format("{} ({} to {})", text, topology.node_name(collective.contributors(shard).one),
                     topology.node_name(collective.destinations(shard).one));
}

std::string TimeText(int64_t picoseconds) { return FormatDurationPs(picoseconds); }

std::string PartText(int32_t begin, int32_t end, int32_t units_per_shard) {
  return fmt::format("{}..{}", FractionText(begin, units_per_shard),
                     FractionText(end, units_per_shard));
}

}  // namespace tutti::verify
