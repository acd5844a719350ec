#include "mscclpp_layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "mscclpp_file.h"
#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

// Layers that are looked at for one group.
constexpr size_t kLookedAt = 32;

// Operations over so many channels.
int64_t InParts(int64_t count) {
  constexpr auto kPart = static_cast<int64_t>(kPpMaxChannelsOfOperation);
  return (count + kPart - 1) / kPart;
}

// About as many operations as the thread blocks of one layer get: those of one level share waits,
// signals, and puts to several peers.
class LayerLength {
 public:
  explicit LayerLength(int32_t ranks) : length_(Index(ranks), 0) {}

  // Of the longest of the thread blocks that the shares are of, with them.
  template <class Shares>
  int64_t With(const Shares& shares) const {
    int64_t longest = 0;
    for (size_t next = 0; next < shares.size();) {
      const int32_t rank = shares[next].rank;
      int64_t length = length_[Index(rank)];
      for (; next < shares.size() && shares[next].rank == rank; ++next) {
        const Level before = LevelOf(shares[next]);
        length += Joined(before, shares[next]).Length() - before.Length();
      }
      longest = std::max(longest, length);
    }
    return longest;
  }
  template <class Shares>
  void Add(const Shares& shares) {
    for (const auto& share : shares) {
      const Level before = LevelOf(share), joined = Joined(before, share);
      length_[Index(share.rank)] += joined.Length() - before.Length();
      levels_[LevelKey(share)] = joined;
      for (const int32_t peer : share.to) peers_.insert(PeerKey(share, peer, true));
      for (const int32_t peer : share.from) peers_.insert(PeerKey(share, peer, false));
    }
  }

 private:
  // Of one rank in one level.
  struct Level {
    int64_t puts = 0, others = 0, sum = 0, to = 0, from = 0;
    int64_t Length() const {
      const int64_t sends = puts > 0 ? InParts(puts) + InParts(to) + 1 : 0;
      const int64_t receives = from > 0 ? InParts(from) + 1 : 0;
      return sends + receives + others + std::max<int64_t>(sum - 1, 0);
    }
  };

  template <class Share>
  static uint64_t LevelKey(const Share& share) {
    return static_cast<uint64_t>(share.level) << 16 | static_cast<uint64_t>(share.rank);
  }
  template <class Share>
  static uint64_t PeerKey(const Share& share, int32_t peer, bool to) {
    return (LevelKey(share) << 1 | (to ? 1u : 0u)) << 16 | static_cast<uint64_t>(peer);
  }
  template <class Share>
  Level LevelOf(const Share& share) const {
    const auto at = levels_.find(LevelKey(share));
    return at == levels_.end() ? Level{} : at->second;
  }
  template <class Share>
  Level Joined(Level level, const Share& share) const {
    level.puts += share.puts;
    level.others += share.others;
    level.sum = std::max<int64_t>(level.sum, share.others);  // of a group one sum, mostly
    for (const int32_t peer : share.to)
      if (!peers_.contains(PeerKey(share, peer, true))) ++level.to;
    for (const int32_t peer : share.from)
      if (!peers_.contains(PeerKey(share, peer, false))) ++level.from;
    return level;
  }

  std::vector<int64_t> length_;                 // of each rank
  std::unordered_map<uint64_t, Level> levels_;  // by level and rank
  std::unordered_set<uint64_t> peers_;          // of those, with the direction
};

}  // namespace

LayersOfGroups::LayersOfGroups(const Events& events)
    : volume_(Index(events.num_groups), 0), shares_(Index(events.num_groups)) {
  std::vector<std::map<std::pair<int32_t, int32_t>, Share>> shares(Index(events.num_groups));
  for (const Event& event : events.all) {
    num_ranks_ = std::max({num_ranks_, event.from + 1, event.to + 1});
    volume_[Index(event.group)] += event.count;
    const auto share_of = [&](int32_t rank) -> Share& {
      return shares[Index(event.group)]
          .try_emplace({rank, event.level}, Share{.rank = rank, .level = event.level})
          .first->second;
    };
    Share& to = share_of(event.to);
    if (event.from == event.to || event.reduces) ++to.others;
    if (event.from == event.to) continue;
    to.from.push_back(event.from);
    Share& from = share_of(event.from);
    ++from.puts;
    from.to.push_back(event.to);
  }
  for (size_t g = 0; g < shares.size(); ++g)
    for (auto& [place, share] : shares[g]) {
      for (std::vector<int32_t>* ranks : {&share.to, &share.from}) {
        std::sort(ranks->begin(), ranks->end());
        ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
      }
      shares_[g].push_back(std::move(share));
    }
}

std::vector<int32_t> LayersOfGroups::Find(Layering layering, int32_t layers) const {
  return layering == Layering::kSpread ? Spread(layers) : Levelled(layers);
}

std::vector<int32_t> LayersOfGroups::Spread(int32_t layers) const {
  std::vector<int32_t> layer_of(volume_.size());
  std::set<std::pair<int64_t, int32_t>> load;
  for (int32_t l = 0; l < layers; ++l) load.insert({0, l});
  for (size_t g = 0; g < volume_.size(); ++g) {
    const auto [least, l] = *load.begin();
    load.erase(load.begin());
    layer_of[g] = l;
    load.insert({least + volume_[g], l});
  }
  return layer_of;
}

std::vector<int32_t> LayersOfGroups::Levelled(int32_t layers) const {
  std::vector<int32_t> layer_of(volume_.size());
  std::vector<LayerLength> lengths(Index(layers), LayerLength(num_ranks_));
  std::set<std::pair<int64_t, int32_t>> load;
  for (int32_t l = 0; l < layers; ++l) load.insert({0, l});
  for (size_t g = 0; g < volume_.size(); ++g) {
    auto best = load.end();
    int64_t shortest = 0;
    size_t looked_at = 0;
    for (auto at = load.begin(); at != load.end() && looked_at < kLookedAt; ++at, ++looked_at) {
      const int64_t length = lengths[Index(at->second)].With(shares_[g]);
      if (best != load.end() && length >= shortest) continue;
      shortest = length;
      best = at;
    }
    const auto [least, l] = *best;
    load.erase(best);
    layer_of[g] = l;
    lengths[Index(l)].Add(shares_[g]);
    load.insert({least + volume_[g], l});
  }
  return layer_of;
}

}  // namespace tutti::lower
