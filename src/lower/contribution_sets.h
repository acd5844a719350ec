// Sets of ranks, each kept once and named by a number.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "tutti/base/ids.h"

namespace tutti::lower {

class ContributionSets {
 public:
  explicit ContributionSets(int32_t num_ranks)
      : num_ranks_(num_ranks), words_((static_cast<size_t>(num_ranks) + 63) / 64) {}

  int32_t Single(int32_t rank) {
    std::vector<uint64_t> bits(words_, 0);
    bits[static_cast<size_t>(rank) / 64] = uint64_t{1} << (static_cast<size_t>(rank) % 64);
    return Keep(std::move(bits));
  }
  int32_t All() {
    std::vector<uint64_t> bits(words_, 0);
    for (size_t r = 0; r < static_cast<size_t>(num_ranks_); ++r)
      bits[r / 64] |= uint64_t{1} << (r % 64);
    return Keep(std::move(bits));
  }
  template <class Ranks>
  int32_t Of(const Ranks& ranks) {
    std::vector<uint64_t> bits(words_, 0);
    ranks.ForEach(num_ranks_, [&](NodeId rank) {
      bits[rank.index() / 64] |= uint64_t{1} << (rank.index() % 64);
    });
    return Keep(std::move(bits));
  }
  // -1 where the two share a rank.
  int32_t Unite(int32_t a, int32_t b) {
    const uint64_t key = static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b);
    const auto known = united_.find(key);
    if (known != united_.end()) return known->second;
    std::vector<uint64_t> bits = sets_[static_cast<size_t>(a)];
    const std::vector<uint64_t>& other = sets_[static_cast<size_t>(b)];
    bool disjoint = true;
    for (size_t w = 0; w < words_; ++w) {
      disjoint = disjoint && (bits[w] & other[w]) == 0;
      bits[w] |= other[w];
    }
    const int32_t united = disjoint ? Keep(std::move(bits)) : -1;
    united_.emplace(key, united);
    return united;
  }
  bool Has(int32_t set, int32_t rank) const {
    const auto r = static_cast<size_t>(rank);
    return (sets_[static_cast<size_t>(set)][r / 64] >> (r % 64) & 1) != 0;
  }
  // The first rank in both, or in `a` and not in `b`; -1 for none.
  int32_t FirstShared(int32_t a, int32_t b) const { return First(a, b, true); }
  int32_t FirstLacking(int32_t a, int32_t b) const { return First(a, b, false); }

 private:
  int32_t First(int32_t a, int32_t b, bool in_b) const {
    for (int32_t r = 0; r < num_ranks_; ++r)
      if (Has(a, r) && Has(b, r) == in_b) return r;
    return -1;
  }
  int32_t Keep(std::vector<uint64_t> bits) {
    const auto [at, added] = names_.try_emplace(bits, static_cast<int32_t>(sets_.size()));
    if (added) sets_.push_back(std::move(bits));
    return at->second;
  }

  int32_t num_ranks_;
  size_t words_;
  std::vector<std::vector<uint64_t>> sets_;
  std::map<std::vector<uint64_t>, int32_t> names_;
  std::unordered_map<uint64_t, int32_t> united_;
};

}  // namespace tutti::lower
