// Sets of contributing ranks, shared and counted.
//
// Model       A set is a SetRef: none, one rank, all ranks, or a bitset of the pool. Copying a set
//             is copying its reference; a union writes in place when nobody else refers to the
//             bitset.
// Complexity  num_ranks / 64 words a bitset and an operation on two bitsets; O(1) where one side is
//             none, one rank or all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::verify {

// kOne: `value` is the rank; kBits: the bitset's place in the pool.
struct SetRef {
  enum class Form : uint8_t { kNone, kOne, kBits, kAll };
  Form form = Form::kNone;
  int32_t value = 0;
};

class ContributionSets {
 public:
  explicit ContributionSets(int32_t num_ranks);

  static SetRef One(int32_t rank) { return {SetRef::Form::kOne, rank}; }

  // Another reference to the same set; each is given back with Release.
  SetRef Share(SetRef set);
  void Release(SetRef set);

  int32_t Count(SetRef set) const;
  bool Contains(SetRef set, int32_t rank) const;
  bool Equal(SetRef a, SetRef b) const { return Count(a) == Count(b) && IsSubset(a, b); }
  bool IsSubset(SetRef inner, SetRef outer) const;
  // The smallest rank in both, or -1.
  int32_t FirstCommon(SetRef a, SetRef b) const;
  // The smallest rank in a but not in b, or -1. O(num_ranks): for diagnostics.
  int32_t FirstOutside(SetRef a, SetRef b) const;

  // a united with b; gives back the reference `a`, leaves `b`.
  SetRef Unite(SetRef a, SetRef b);

 private:
  SetRef NewBits();
  uint64_t* Words(SetRef set) { return &words_[static_cast<size_t>(set.value) * num_words_]; }
  const uint64_t* Words(SetRef set) const {
    return &words_[static_cast<size_t>(set.value) * num_words_];
  }
  // Adds the members of `set` to the words of a bitset.
  void AddTo(SetRef bits, SetRef set);

  int32_t num_ranks_;
  size_t num_words_;
  std::vector<uint64_t> words_;
  std::vector<int32_t> references_, count_;
  std::vector<int32_t> free_;
};

}  // namespace tutti::verify
