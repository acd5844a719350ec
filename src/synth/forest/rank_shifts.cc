#include "forest/rank_shifts.h"

#include <algorithm>

#include "tutti/base/index.h"
#include "tutti/topo/translations.h"

namespace tutti::forest {
namespace {

constexpr int32_t kMaxTranslatedRanks = 4096;  // 64 MiB of images

}  // namespace

RankShifts RankShifts::By(int32_t ranks, int32_t shift) { return {ranks, shift}; }

std::optional<RankShifts> RankShifts::Translating(const Topology& topology,
                                                  const TreeNetwork& network) {
  const int32_t n = network.num_ranks;
  const std::vector<int64_t>& trees = network.trees_of;
  if (topology.has_switches() || n > kMaxTranslatedRanks ||
      std::any_of(trees.begin(), trees.end(), [&](int64_t k) { return k != trees.front(); }))
    return std::nullopt;
  const Result<Translations> translations = FindTranslations(topology);
  if (!translations) return std::nullopt;
  RankShifts shifts(n, 1);
  shifts.images_.reserve(Index(n) * Index(n));
  for (int32_t rank = 0; rank < n; ++rank)
    for (const NodeId image : translations->ImagesOf(NodeId{rank}))
      shifts.images_.push_back(image.value);
  if (!shifts.Keep(network)) return std::nullopt;
  return shifts;
}

// Lanes become lanes of as many trees.
bool RankShifts::Keep(const TreeNetwork& network) const {
  return std::all_of(network.lanes.begin(), network.lanes.end(), [&](const auto& entry) {
    const auto& [ends, lane] = entry;
    if (ends.first != 0) return true;
    for (int32_t member = 0; member < members(); ++member) {
      const auto image = network.lanes.find({Image(member, 0), Image(member, ends.second)});
      if (image == network.lanes.end() || image->second.trees() != lane.trees()) return false;
    }
    return true;
  });
}

}  // namespace tutti::forest
