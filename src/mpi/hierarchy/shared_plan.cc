#include "hierarchy/shared_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "hierarchy/pages.h"
#include "tutti/base/index.h"

namespace tutti::mpi {

namespace {

int64_t WholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

SharedPlan::SharedPlan(const Groups& groups, int rank, Form form) {
  LineUp(groups, rank);
  CutIntoParts(form);
  ListMessages();
  LayOut();
}

void SharedPlan::LineUp(const Groups& groups, int rank) {
  const std::vector<int> node_of = NodesOf(groups);
  rank_.resize(node_of.size());
  std::iota(rank_.begin(), rank_.end(), 0);
  std::stable_sort(rank_.begin(), rank_.end(),
                   [&](int a, int b) { return node_of[Index(a)] < node_of[Index(b)]; });
  for (int p = 0; p < size(); ++p) {
    if (p == 0 || node_of[Index(rank_[Index(p)])] != node_of[Index(rank_[Index(p - 1)])]) {
      ranges_.push_back({p, p});
    }
    ranges_.back().end = p + 1;
    if (rank_[Index(p)] != rank) continue;
    node_ = nodes() - 1;
    self_ = p - ranges_.back().begin;
  }
  for (const Range& range : ranges_) largest_node_ = std::max(largest_node_, range.size());
}

void SharedPlan::CutIntoParts(Form form) {
  const int others = nodes() - 1;
  for (const Range& range : ranges_) {
    const int ranks = range.size();
    const int parts = form == Form::kRuns || others == 0
                          ? ranks
                          : std::clamp(kMessagesOfARank * ranks / others, 1, ranks);
    std::vector<Range>& cut = parts_.emplace_back();
    for (int part = 0; part < parts; ++part) {
      cut.push_back({range.begin + static_cast<int>(int64_t{ranks} * part / parts),
                     range.begin + static_cast<int>(int64_t{ranks} * (part + 1) / parts)});
    }
    max_messages_ = std::max(max_messages_, (others * parts + ranks - 1) / ranks);
  }
}

void SharedPlan::ListMessages() {
  const int count = nodes();
  std::vector<int64_t> gathered(Index(members()), 0);
  for (int step = 1; step < count; ++step) {
    const int other = (node_ + step) % count;
    // Among the messages that `other` receives, those of this node come after those of the nodes
    // nearer before it.
    int number = 0;
    for (int nearer = 1; nearer < step; ++nearer) {
      number += static_cast<int>(parts_[Index((other - nearer + count) % count)].size());
    }
    const auto parts = static_cast<int>(parts_[Index(node_)].size());
    for (int part = 0; part < parts; ++part, ++number) {
      const int turn = (step - 1) * parts + part;
      const Range& target = ranges_[Index(other)];
      Message message{.peer = rank(target.begin + number % target.size()),
                      .node = other,
                      .sources = parts_[Index(node_)][Index(part)],
                      .member = turn % members(),
                      .turn = turn,
                      .turns = parts * (count - 1),
                      .place = 0};
      message.place = gathered[Index(message.member)];
      gathered[Index(message.member)] += int64_t{message.sources.size()} * target.size();
      gathers_ = gathers_ || !IsOwn(message);
      sent_.push_back(message);
    }
  }
  std::vector<int64_t> rows(Index(members()), 0);
  std::vector<int> messages(Index(members()), 0);
  int number = 0;
  for (int step = 1; step < count; ++step) {
    const int other = (node_ - step + count) % count;
    const auto parts = static_cast<int>(parts_[Index(other)].size());
    for (int part = 0; part < parts; ++part, ++number) {
      const int turn = (step - 1) * parts + part;
      const Range& source = ranges_[Index(other)];
      Message message{.peer = rank(source.begin + turn % source.size()),
                      .node = other,
                      .sources = parts_[Index(other)][Index(part)],
                      .member = number % members(),
                      .turn = turn,
                      .turns = parts * (count - 1),
                      .place = 0};
      message.place = rows[Index(message.member)];
      rows[Index(message.member)] += message.sources.size();
      received_.push_back(message);
    }
  }
  // A node may receive more than any sends, where the others have more ranks.
  int64_t all_parts = 0;
  for (const auto& parts : parts_) all_parts += static_cast<int64_t>(parts.size());
  for (size_t n = 0; n < ranges_.size(); ++n) {
    const int64_t others = all_parts - static_cast<int64_t>(parts_[n].size());
    max_messages_ = std::max(
        max_messages_, static_cast<int>((others + ranges_[n].size() - 1) / ranges_[n].size()));
  }
  layout_.rows = *std::max_element(rows.begin(), rows.end());
  layout_.outgoing = *std::max_element(gathered.begin(), gathered.end());
}

void SharedPlan::LayOut() {
  const int64_t blocks_out = layout_.outgoing;
  int64_t at = 0;
  const auto take = [&at](int64_t bytes) {
    const int64_t begin = at;
    at += WholeLines(bytes);
    return begin;
  };
  layout_.starts = take(4 * int64_t{members()});
  layout_.width = take(8);
  layout_.runs = take(8 * int64_t{nodes()});
  layout_.sizes = take(2 * int64_t{size()});
  at = WholePages(at);
  layout_.slot = take(members() * kLongestShared);
  at = WholePages(at);
  layout_.twice = at;
  at *= 2;
  layout_.outgoing = take(blocks_out * kLongestShared);
  at = WholePages(at);
  layout_.table = take(4 * int64_t{members()} * layout_.rows);
  at = WholePages(at);
  // Every message begins at a line of the cache.
  layout_.incoming_bytes = layout_.rows * (members() * kLongestShared + 64);
  layout_.incoming = take(layout_.incoming_bytes);
  layout_.bytes = WholePages(at);
}

}  // namespace tutti::mpi
