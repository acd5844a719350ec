#include "ten/rounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/base/random.h"
#include "tutti/graph/distance.h"

namespace tutti::ten {
namespace {

// Slots of a round that are worth a thread of their own: a few microseconds of work.
constexpr int64_t kSlotsPerTask = 2048;

// Smaller tables are near enough.
constexpr size_t kBytesInCache = size_t{1} << 22;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<int64_t> HeldAtFirst(const Topology& topology, std::span<const NodeId> source) {
  std::vector<int64_t> held(static_cast<size_t>(topology.num_ranks()), 0);
  for (NodeId rank : source) ++held[rank.index()];
  return held;
}

// Chunk: the smallest type that numbers the chunks.
template <class Chunk>
class RoundMatcher {
 public:
  RoundMatcher(const RoundsProblem& problem)
      : topology_(problem.topology),
        order_(problem.order),
        num_ranks_(static_cast<size_t>(topology_.num_ranks())),
        num_chunks_(problem.source.size()),
        words_((num_chunks_ + 63) / 64),
        has_(num_ranks_ * words_),
        arrivals_(num_ranks_ * num_chunks_) {
    std::vector<uint64_t> seeded(order_ == LinkOrder::kSeeded ? num_ranks_ : 0);
    Random random(problem.seed);
    for (uint64_t& priority : seeded) priority = random.Next();
    // Small first; equal ones by nearness of the numbers.
    const auto priority = [&](uint32_t rank, uint32_t tail) -> std::pair<uint64_t, uint64_t> {
      const uint64_t apart = rank < tail ? tail - rank : rank - tail;
      switch (order_) {
        case LinkOrder::kFarthestNumber:
          return {num_ranks_ - apart, 0};
        case LinkOrder::kScarcestTail:
          return {topology_.InLinks(NodeId{static_cast<int32_t>(tail)}).size(), apart};
        case LinkOrder::kSeeded:
          return {seeded[tail], apart};
        default:
          return {0, apart};
      }
    };
    first_slot_.assign(num_ranks_ + 1, 0);
    for (NodeId v : topology_.Ranks()) {
      const auto rank = static_cast<uint32_t>(v.value);
      const auto first = static_cast<ptrdiff_t>(tail_.size());
      for (LinkId link : topology_.InLinks(v)) {
        choice_order_.push_back(static_cast<uint32_t>(tail_.size()));
        tail_.push_back(static_cast<uint32_t>(topology_.tail(link).value));
      }
      std::stable_sort(choice_order_.begin() + first, choice_order_.end(),
                       [&](uint32_t a, uint32_t b) {
                         return priority(rank, tail_[a]) < priority(rank, tail_[b]);
                       });
      first_slot_[v.index() + 1] = tail_.size();
    }
    place_ = choice_order_;
    for (size_t i = 0; i < choice_order_.size(); ++i)
      place_[choice_order_[i]] = static_cast<uint32_t>(i);
    cursor_.assign(tail_.size(), 0);
    delivered_.assign(tail_.size(), kNoChunk);
    num_held_.assign(num_ranks_, 0);
    for (size_t c = 0; c < num_chunks_; ++c) Keep(problem.source[c].index(), static_cast<Chunk>(c));
  }

  Result<int32_t> Run(int32_t most, const RoundSink& sink) {
    const auto total = static_cast<int64_t>(num_ranks_ * num_chunks_);
    int64_t held = std::accumulate(num_held_.begin(), num_held_.end(), int64_t{0});
    ProgressScope progress("matching", total - held);
    const int64_t grain = CeilDivide(kSlotsPerTask * static_cast<int64_t>(num_ranks_),
                                     std::max<int64_t>(1, static_cast<int64_t>(tail_.size())));
    int32_t round = 0;
    for (; held < total; ++round) {
      if (round == most) return most + 1;
      if (CancelRequested()) return tl::unexpected(CancelledError());
      visible_ = num_held_;
      ParallelFor(static_cast<int64_t>(num_ranks_), grain, [this](int64_t begin, int64_t end) {
        ReceiveAll(static_cast<size_t>(begin), static_cast<size_t>(end));
      });
      if (sink)
        if (const Status taken = sink(round, delivered_); !taken)
          return tl::unexpected(taken.error());
      const int64_t now = std::accumulate(num_held_.begin(), num_held_.end(), int64_t{0});
      progress.Add(now - held);
      held = now;
    }
    return round;
  }

 private:
  void Keep(size_t rank, Chunk chunk) {
    has_[rank * words_ + chunk / 64] |= uint64_t{1} << (chunk % 64);
    arrivals_[rank * num_chunks_ + num_held_[rank]++] = chunk;
  }

  // Each receiver looks at places of tables larger than a cache, which are asked for in time.
  void ReceiveAll(size_t begin, size_t end) {
    constexpr size_t kListsAhead = 12, kBitsAhead = 6;
    if (arrivals_.size() * sizeof(Chunk) < kBytesInCache) {
      for (size_t rank = begin; rank < end; ++rank) Receive(rank);
      return;
    }
    for (size_t rank = begin; rank < end; ++rank) {
      if (rank + kListsAhead < end) FetchLists(rank + kListsAhead);
      if (rank + kBitsAhead < end) FetchBits(rank + kBitsAhead);
      Receive(rank);
    }
  }

  void FetchLists(size_t rank) const {
    for (size_t slot = first_slot_[rank]; slot < first_slot_[rank + 1]; ++slot)
      __builtin_prefetch(arrivals_.data() + tail_[slot] * num_chunks_ + cursor_[slot]);
    __builtin_prefetch(arrivals_.data() + rank * num_chunks_ + num_held_[rank], 1);
  }

  // How many of the next chunks a link looks at; most are held already, so there is more than one.
  void FetchBits(size_t rank) const {
    constexpr uint32_t kChunksAhead = 4;
    const uint64_t* row = has_.data() + rank * words_;
    for (size_t slot = first_slot_[rank]; slot < first_slot_[rank + 1]; ++slot) {
      const Chunk* list = arrivals_.data() + tail_[slot] * num_chunks_;
      const uint32_t end = std::min(visible_[tail_[slot]], cursor_[slot] + kChunksAhead);
      for (uint32_t i = cursor_[slot]; i < end; ++i) __builtin_prefetch(row + list[i] / 64, 1);
    }
  }

  // All in-links of one rank in this round.
  void Receive(size_t rank) {
    const size_t first = first_slot_[rank], last = first_slot_[rank + 1];
    std::fill(delivered_.begin() + static_cast<ptrdiff_t>(first),
              delivered_.begin() + static_cast<ptrdiff_t>(last), kNoChunk);
    if (num_held_[rank] == num_chunks_) return;
    if (order_ == LinkOrder::kMinBacklog) SortByBacklog(first, last);
    const uint64_t* row = has_.data() + rank * words_;
    for (size_t i = first; i < last; ++i) {
      const size_t slot = choice_order_[i];
      const size_t tail = tail_[slot];
      const Chunk* list = arrivals_.data() + tail * num_chunks_;
      const uint32_t end = visible_[tail];
      uint32_t cursor = cursor_[slot];
      while (cursor < end) {
        const Chunk chunk = list[cursor++];
        if ((row[chunk / 64] >> (chunk % 64) & 1) != 0) continue;
        Keep(rank, chunk);
        delivered_[slot] = chunk;
        break;
      }
      cursor_[slot] = cursor;
    }
  }

  void SortByBacklog(size_t first, size_t last) {
    const auto backlog = [this](uint32_t slot) { return visible_[tail_[slot]] - cursor_[slot]; };
    for (size_t i = first + 1; i < last; ++i)
      for (size_t j = i; j > first; --j) {
        uint32_t& before = choice_order_[j - 1];
        uint32_t& after = choice_order_[j];
        // By the order of the beginning where they are equal, whatever the round before left.
        if (std::pair(backlog(before), place_[before]) < std::pair(backlog(after), place_[after]))
          break;
        std::swap(before, after);
      }
  }

  const Topology& topology_;
  LinkOrder order_;
  size_t num_ranks_, num_chunks_, words_;
  std::vector<size_t> first_slot_;      // of each rank, its in-links
  std::vector<uint32_t> tail_;          // of each slot
  std::vector<uint32_t> choice_order_;  // slots of a rank in the order in which they choose
  std::vector<uint32_t> place_;         // of each slot in the choice order of the beginning
  std::vector<uint32_t> cursor_;        // of each slot, into its tail's arrivals
  std::vector<uint32_t> delivered_;     // in this round, by slot
  LargeTable<uint64_t> has_;            // a row of bits a rank
  LargeTable<Chunk> arrivals_;          // a list a rank
  std::vector<uint32_t> num_held_;      // length of each list
  std::vector<uint32_t> visible_;       // the same before this round
};

}  // namespace

std::vector<LinkId> InLinkSlots(const Topology& topology) {
  std::vector<LinkId> links;
  links.reserve(static_cast<size_t>(topology.num_links()));
  for (NodeId rank : topology.Ranks())
    for (LinkId link : topology.InLinks(rank)) links.push_back(link);
  return links;
}

int32_t FewestRounds(const Topology& topology, std::span<const NodeId> source) {
  const auto num_chunks = static_cast<int64_t>(source.size());
  const std::vector<int64_t> held = HeldAtFirst(topology, source);
  int64_t most = 0;
  for (NodeId rank : topology.Ranks()) {
    const auto degree = static_cast<int64_t>(topology.InLinks(rank).size());
    if (held[rank.index()] < num_chunks)
      most = std::max(most, CeilDivide(num_chunks - held[rank.index()], degree));
  }
  // The farthest rank of one source: of all-gather a lower bound of the diameter, of broadcast all.
  const std::vector<int32_t> hops = DistancesFrom(topology.graph(), source.front());
  for (int32_t distance : hops) most = std::max<int64_t>(most, distance);
  return static_cast<int32_t>(std::min<int64_t>(most, std::numeric_limits<int32_t>::max()));
}

Result<int32_t> MatchRounds(const RoundsProblem& problem, int32_t most, const RoundSink& sink) {
  if (problem.source.size() <= std::numeric_limits<uint16_t>::max())
    return RoundMatcher<uint16_t>(problem).Run(most, sink);
  return RoundMatcher<uint32_t>(problem).Run(most, sink);
}

}  // namespace tutti::ten
