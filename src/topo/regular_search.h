// A search for translations among all symmetries of a small network.
#pragma once

#include <optional>
#include <vector>

#include "tutti/topo/translations.h"

namespace tutti::topo {

// Networks of more ranks are not searched.
inline constexpr int32_t kMaxSearchedRanks = 256;

// Generators of a group of symmetries in which exactly one takes rank 0 to each rank; nullopt when
// none is met. The group grows by symmetries drawn at random (seeded, the same everywhere), each
// kept when no product fixes one rank and moves another; a group that exists may be missed.
// O(n^2) an attempt for n ranks, at most 64 attempts for each of the log2(n) generators.
std::optional<std::vector<NodePermutation>> SearchTranslations(const Topology& topology);

}  // namespace tutti::topo
