#include "contribution_sets.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::verify {
namespace {

using Form = SetRef::Form;

uint64_t Bit(int32_t rank) { return uint64_t{1} << (rank % 64); }
size_t Word(int32_t rank) { return static_cast<size_t>(rank / 64); }

}  // namespace

ContributionSets::ContributionSets(int32_t num_ranks)
    : num_ranks_(num_ranks), num_words_((static_cast<size_t>(num_ranks) + 63) / 64) {}

SetRef ContributionSets::Share(SetRef set) {
  if (set.form == Form::kBits) ++references_[static_cast<size_t>(set.value)];
  return set;
}

void ContributionSets::Release(SetRef set) {
  if (set.form != Form::kBits) return;
  int32_t& references = references_[static_cast<size_t>(set.value)];
  TUTTI_DCHECK(references > 0);
  if (--references == 0) free_.push_back(set.value);
}

int32_t ContributionSets::Count(SetRef set) const {
  switch (set.form) {
    case Form::kNone:
      return 0;
    case Form::kOne:
      return 1;
    case Form::kAll:
      return num_ranks_;
    case Form::kBits:
      break;
  }
  return count_[static_cast<size_t>(set.value)];
}

bool ContributionSets::Contains(SetRef set, int32_t rank) const {
  switch (set.form) {
    case Form::kNone:
      return false;
    case Form::kOne:
      return set.value == rank;
    case Form::kAll:
      return true;
    case Form::kBits:
      break;
  }
  return (Words(set)[Word(rank)] & Bit(rank)) != 0;
}

bool ContributionSets::IsSubset(SetRef inner, SetRef outer) const {
  if (inner.form == Form::kNone || outer.form == Form::kAll) return true;
  if (inner.form == Form::kOne) return Contains(outer, inner.value);
  if (Count(inner) > Count(outer)) return false;
  if (inner.form == Form::kAll) return Count(outer) == num_ranks_;
  if (outer.form != Form::kBits) return Count(inner) == 1 && Contains(inner, outer.value);
  const uint64_t *a = Words(inner), *b = Words(outer);
  for (size_t w = 0; w < num_words_; ++w)
    if ((a[w] & ~b[w]) != 0) return false;
  return true;
}

int32_t ContributionSets::FirstCommon(SetRef a, SetRef b) const {
  if (a.form != Form::kBits) std::swap(a, b);
  if (a.form == Form::kNone || b.form == Form::kNone) return -1;
  if (b.form == Form::kOne) return Contains(a, b.value) ? b.value : -1;
  if (a.form == Form::kOne) return Contains(b, a.value) ? a.value : -1;
  if (a.form == Form::kAll) return 0;  // then so is b
  const uint64_t* x = Words(a);
  const uint64_t* y = b.form == Form::kBits ? Words(b) : nullptr;
  for (size_t w = 0; w < num_words_; ++w) {
    const uint64_t common = x[w] & (y != nullptr ? y[w] : ~uint64_t{0});
    if (common != 0) return static_cast<int32_t>(w) * 64 + std::countr_zero(common);
  }
  return -1;
}

int32_t ContributionSets::FirstOutside(SetRef a, SetRef b) const {
  for (int32_t rank = 0; rank < num_ranks_; ++rank)
    if (Contains(a, rank) && !Contains(b, rank)) return rank;
  return -1;
}

SetRef ContributionSets::NewBits() {
  int32_t place;
  if (free_.empty()) {
    place = static_cast<int32_t>(references_.size());
    words_.resize(words_.size() + num_words_);
    references_.push_back(0);
    count_.push_back(0);
  } else {
    place = free_.back();
    free_.pop_back();
  }
  references_[static_cast<size_t>(place)] = 1;
  count_[static_cast<size_t>(place)] = 0;
  const SetRef set{Form::kBits, place};
  std::fill_n(Words(set), num_words_, uint64_t{0});
  return set;
}

void ContributionSets::AddTo(SetRef bits, SetRef set) {
  uint64_t* into = Words(bits);
  int32_t& count = count_[static_cast<size_t>(bits.value)];
  if (set.form == Form::kOne) {
    count += Contains(bits, set.value) ? 0 : 1;
    into[Word(set.value)] |= Bit(set.value);
  } else if (set.form == Form::kBits) {
    const uint64_t* from = Words(set);
    uint64_t common = 0;
    for (size_t w = 0; w < num_words_; ++w) {
      common |= into[w] & from[w];
      into[w] |= from[w];
    }
    // As is usual, none was in both.
    if (common == 0) {
      count += Count(set);
      return;
    }
    count = 0;
    for (size_t w = 0; w < num_words_; ++w) count += std::popcount(into[w]);
  }
}

SetRef ContributionSets::Unite(SetRef a, SetRef b) {
  if (b.form == Form::kNone || a.form == Form::kAll) return a;
  if (a.form == Form::kNone) return Share(b);
  if (b.form == Form::kAll || num_ranks_ == 1) {
    Release(a);
    return {Form::kAll, 0};
  }
  SetRef sum = a;
  if (a.form != Form::kBits || references_[static_cast<size_t>(a.value)] > 1) {
    sum = NewBits();
    AddTo(sum, a);
    Release(a);
  }
  AddTo(sum, b);
  if (Count(sum) < num_ranks_) return sum;
  Release(sum);
  return {Form::kAll, 0};
}

}  // namespace tutti::verify
