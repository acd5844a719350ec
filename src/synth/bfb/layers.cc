#include "bfb/layers.h"

#include <algorithm>

#include "tutti/graph/distance.h"

namespace tutti {

InLinkTable::InLinkTable(const Topology& network, std::optional<NodeId> root)
    : topology(network), source(root), first{0} {
  if (source) from_source = DistancesFrom(topology.graph(), *source);
  tail.reserve(static_cast<size_t>(topology.num_links()));
  for (NodeId node : topology.Nodes()) {
    for (LinkId link : topology.InLinks(node)) tail.push_back(topology.tail(link).value);
    first.push_back(tail.size());
  }
}

SourceLayers::SourceLayers(const InLinkTable& table)
    : table_(table), distance_(static_cast<size_t>(table.topology.num_nodes())) {
  order_.reserve(distance_.size());
}

void SourceLayers::Load(NodeId receiver) {
  num_links_ = static_cast<int32_t>(table_.Tails(receiver.index()).size());
  num_words_ = (static_cast<size_t>(num_links_) + 63) / 64;
  mask_.resize(std::max(mask_.size(), distance_.size() * num_words_));
  order_.clear();
  step_end_.clear();
  if (table_.source)
    LoadOneSource(receiver.index());
  else if (num_words_ == 1)
    Search<true>(receiver.index());
  else
    Search<false>(receiver.index());
}

void SourceLayers::LoadOneSource(size_t receiver) {
  const int32_t hops = table_.from_source[receiver];
  if (hops == 0) return;
  step_end_.assign(static_cast<size_t>(hops), 0);
  step_end_.back() = 1;
  order_.push_back(table_.source->value);
  uint64_t* mask = MaskOf(table_.source->index());
  std::fill_n(mask, num_words_, uint64_t{0});
  const auto tails = table_.Tails(receiver);
  for (size_t i = 0; i < tails.size(); ++i)
    if (table_.from_source[static_cast<size_t>(tails[i])] == hops - 1)
      mask[i / 64] |= uint64_t{1} << (i % 64);
}

template <bool kOneWord>
void SourceLayers::Search(size_t receiver) {
  const size_t num_nodes = distance_.size();
  std::fill(distance_.begin(), distance_.end(), kUnreachable);
  distance_[receiver] = 0;
  const auto clear = [this](size_t node) {
    if (kOneWord)
      mask_[node] = 0;
    else
      std::fill_n(MaskOf(node), num_words_, uint64_t{0});
  };
  const auto tails = table_.Tails(receiver);
  for (size_t i = 0; i < tails.size(); ++i) {
    const auto node = static_cast<size_t>(tails[i]);
    if (distance_[node] == kUnreachable) {
      distance_[node] = 1;
      order_.push_back(tails[i]);
      clear(node);
    }
    mask_[node * num_words_ + i / 64] |= uint64_t{1} << (i % 64);
  }
  int32_t step = 1;
  for (size_t next = 0; next < order_.size(); ++next) {
    const auto node = static_cast<size_t>(order_[next]);
    if (distance_[node] != step) {
      step_end_.push_back(next);
      ++step;
    }
    // What lies in the last layer is nobody's next hop.
    if (order_.size() + 1 == num_nodes && distance_[static_cast<size_t>(order_.back())] == step)
      break;
    for (int32_t tail : table_.Tails(node)) {
      const auto source = static_cast<size_t>(tail);
      if (distance_[source] == kUnreachable) {
        distance_[source] = step + 1;
        order_.push_back(tail);
        clear(source);
      } else if (distance_[source] != step + 1) {
        continue;
      }
      if (kOneWord)
        mask_[source] |= mask_[node];
      else
        for (size_t word = 0; word < num_words_; ++word) MaskOf(source)[word] |= MaskOf(node)[word];
    }
  }
  if (!order_.empty()) step_end_.push_back(order_.size());
}

std::span<const int32_t> SourceLayers::SourcesOf(int32_t step) const {
  const auto s = static_cast<size_t>(step);
  const size_t begin = s == 0 ? 0 : step_end_[s - 1];
  return std::span<const int32_t>(order_).subspan(begin, step_end_[s] - begin);
}

void SourceLayers::MakeProblem(int32_t step, LoadProblem& problem) {
  problem.num_links = num_links_;
  problem.masks.clear();
  problem.counts.clear();
  current_ = SourcesOf(step);
  grouped_is_current_ = false;
  if (num_links_ <= kMaxSubsetLinks)
    GroupByCounting(problem);
  else
    GroupBySorting(problem);
}

void SourceLayers::GroupByCounting(LoadProblem& problem) {
  histogram_.assign(size_t{1} << num_links_, 0);
  for (int32_t source : current_) ++histogram_[mask_[static_cast<size_t>(source)]];
  for (size_t mask = 0; mask < histogram_.size(); ++mask) {
    if (histogram_[mask] == 0) continue;
    problem.masks.push_back(mask);
    problem.counts.push_back(histogram_[mask]);
  }
}

// First word first: any fixed order will do.
void SourceLayers::GroupBySorting(LoadProblem& problem) {
  const auto words_of = [this](int32_t source) {
    return std::span<const uint64_t>(MaskOf(static_cast<size_t>(source)), num_words_);
  };
  grouped_.assign(current_.begin(), current_.end());
  grouped_is_current_ = true;
  std::stable_sort(grouped_.begin(), grouped_.end(), [&](int32_t a, int32_t b) {
    const auto first = words_of(a), second = words_of(b);
    return std::lexicographical_compare(first.begin(), first.end(), second.begin(), second.end());
  });
  for (size_t i = 0; i < grouped_.size(); ++i) {
    const auto words = words_of(grouped_[i]);
    if (i == 0 || !std::equal(words.begin(), words.end(), words_of(grouped_[i - 1]).begin())) {
      problem.masks.insert(problem.masks.end(), words.begin(), words.end());
      problem.counts.push_back(0);
    }
    ++problem.counts.back();
  }
}

std::span<const int32_t> SourceLayers::GroupedShards() {
  if (table_.source) grouped_.assign(1, 0);
  if (grouped_is_current_ || table_.source) return grouped_;
  // The histogram of MakeProblem becomes where each group begins.
  int32_t begin = 0;
  for (int32_t& slot : histogram_) {
    const int32_t count = slot;
    slot = begin;
    begin += count;
  }
  grouped_.resize(current_.size());
  for (int32_t source : current_) {
    int32_t& slot = histogram_[mask_[static_cast<size_t>(source)]];
    grouped_[static_cast<size_t>(slot++)] = source;
  }
  grouped_is_current_ = true;
  return grouped_;
}

}  // namespace tutti
