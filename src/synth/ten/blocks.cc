#include "ten/blocks.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ten/shortest_times.h"
#include "tutti/base/random.h"

namespace tutti::ten {
namespace {

class BlockMatcher {
 public:
  explicit BlockMatcher(const BlocksProblem& problem)
      : problem_(problem),
        topology_(problem.topology),
        num_ranks_(static_cast<size_t>(topology_.num_ranks())),
        num_nodes_(static_cast<size_t>(topology_.num_nodes())),
        words_((num_ranks_ + 63) / 64),
        place_(num_nodes_ * num_ranks_),
        waiting_(num_nodes_ * words_, 0),
        queue_(num_nodes_ * num_ranks_),
        next_(problem.chunks.size(), kNoChunk),
        leads_nearer_(static_cast<size_t>(topology_.num_links()) * words_, 0),
        priority_(static_cast<size_t>(topology_.num_links())) {
    OrderDestinations();
    Random random(problem.seed);
    for (size_t l = 0; l < priority_.size(); ++l)
      priority_[l] = problem.seed == 1 ? l : random.Next();
    for (uint32_t chunk = 0; chunk < problem.chunks.size(); ++chunk)
      Keep(problem.chunks[chunk].source.index(), chunk);
  }

  // Chunks that are not on their last hop.
  int64_t num_left() const { return num_left_; }
  LinkTime TimeOf(uint32_t l, uint32_t chunk) const {
    return problem_.time(LinkId{static_cast<int32_t>(l)}, chunk);
  }
  bool Before(uint32_t a, uint32_t b) const {
    return std::pair(priority_[a], a) < std::pair(priority_[b], b);
  }
  void SetNetworkIdle(bool) {}

  uint32_t Choose(uint32_t l) const {
    const size_t tail = TailOf(l);
    const uint64_t* ways = leads_nearer_.data() + l * words_;
    const uint64_t* waits = waiting_.data() + tail * words_;
    for (size_t w = 0; w < words_; ++w)
      if (const uint64_t both = ways[w] & waits[w]; both != 0)
        return queue_[tail * num_ranks_ + w * 64 + static_cast<size_t>(std::countr_zero(both))]
            .first;
    return kNoChunk;
  }

  void Start(uint32_t l, uint32_t chunk) {
    const size_t tail = TailOf(l);
    const NodeId to = problem_.chunks[chunk].destination;
    const size_t place = place_[tail * num_ranks_ + to.index()];
    Queue& queue = queue_[tail * num_ranks_ + place];
    queue.first = next_[chunk];
    if (queue.first == kNoChunk)
      waiting_[tail * words_ + place / 64] &= ~(uint64_t{1} << (place % 64));
    if (topology_.head(LinkId{static_cast<int32_t>(l)}) == to) --num_left_;
  }

  void Arrive(uint32_t l, uint32_t chunk) {
    const NodeId head = topology_.head(LinkId{static_cast<int32_t>(l)});
    if (head == problem_.chunks[chunk].destination) return;
    Keep(head.index(), chunk);
    --num_left_;
  }

 private:
  struct Queue {
    uint32_t first = kNoChunk, last = kNoChunk;
  };

  size_t TailOf(uint32_t l) const {
    return topology_.tail(LinkId{static_cast<int32_t>(l)}).index();
  }

  void Keep(size_t node, uint32_t chunk) {
    const size_t place = place_[node * num_ranks_ + problem_.chunks[chunk].destination.index()];
    Queue& queue = queue_[node * num_ranks_ + place];
    next_[chunk] = kNoChunk;
    if (queue.first == kNoChunk)
      queue.first = chunk;
    else
      next_[queue.last] = chunk;
    queue.last = chunk;
    waiting_[node * words_ + place / 64] |= uint64_t{1} << (place % 64);
    ++num_left_;
  }

  // For each node the places of destinations, the farthest first, and the places that each of its
  // links leads nearer to.
  void OrderDestinations() {
    std::vector<int64_t> time(num_nodes_ * num_ranks_);  // [from][to]
    for (NodeId to : topology_.Ranks()) {
      const std::vector<int64_t> times = TimesTo(topology_, problem_.usual_ps, to);
      for (size_t from = 0; from < num_nodes_; ++from)
        time[from * num_ranks_ + to.index()] = times[from];
    }
    std::vector<uint32_t> order(num_ranks_);
    for (NodeId node : topology_.Nodes()) {
      const int64_t* from_here = time.data() + node.index() * num_ranks_;
      std::iota(order.begin(), order.end(), uint32_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return from_here[a] > from_here[b]; });
      for (uint32_t place = 0; place < num_ranks_; ++place)
        place_[node.index() * num_ranks_ + order[place]] = place;
      for (LinkId link : topology_.OutLinks(node)) {
        const int64_t* from_there = time.data() + topology_.head(link).index() * num_ranks_;
        const int64_t usual = problem_.usual_ps[link.index()];
        for (size_t place = 0; place < num_ranks_; ++place) {
          const uint32_t to = order[place];
          const bool leads = problem_.detours ? from_there[to] < from_here[to]
                                              : from_there[to] + usual == from_here[to];
          if (leads)
            leads_nearer_[link.index() * words_ + place / 64] |= uint64_t{1} << (place % 64);
        }
      }
    }
  }

  const BlocksProblem& problem_;
  const Topology& topology_;
  size_t num_ranks_, num_nodes_, words_;
  std::vector<uint32_t> place_;         // [node][destination]
  std::vector<uint64_t> waiting_;       // [node]: places where something waits
  std::vector<Queue> queue_;            // [node][place]
  std::vector<uint32_t> next_;          // chunk behind each chunk in its queue
  std::vector<uint64_t> leads_nearer_;  // [link]: places
  std::vector<uint64_t> priority_;      // of links
  int64_t num_left_ = 0;
};

}  // namespace

Result<int64_t> MatchBlocks(const BlocksProblem& problem, int64_t max_ps, const SendSink& sink) {
  BlockMatcher matcher(problem);
  return RunEvents(problem.topology, matcher, max_ps, sink);
}

}  // namespace tutti::ten
