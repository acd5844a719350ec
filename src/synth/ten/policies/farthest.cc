// farthest: the chunk that has the farthest to go behind the link's head, the first to have come of
// these.
//
// Model       How far a chunk has to go from a rank is the longest of the shortest paths from its
//             source that lead over this rank, from there to their ends. A rank that is no stop of
//             a shortest path to another is an end.
// Complexity  One search a source, O((ranks + links) log ranks); memory sources * ranks * 8 bytes.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "ten/policy.h"
#include "ten/shortest_times.h"
#include "tutti/base/parallel.h"

namespace tutti::ten {
namespace {

class Farthest : public ChunkRule {
 public:
  explicit Farthest(const PolicyInput& input)
      : topology_(input.topology),
        num_ranks_(static_cast<size_t>(topology_.num_ranks())),
        row_of_chunk_(input.source.size()) {
    std::vector<NodeId> sources(input.source.begin(), input.source.end());
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (size_t c = 0; c < row_of_chunk_.size(); ++c)
      row_of_chunk_[c] = static_cast<size_t>(
          std::lower_bound(sources.begin(), sources.end(), input.source[c]) - sources.begin());
    std::vector<int64_t> time_of_link;
    for (const LinkTime& time : input.time) time_of_link.push_back(time.travel_ps);
    left_.assign(sources.size() * num_ranks_, 0);
    ParallelFor(static_cast<int64_t>(sources.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row)
        FillRow(sources[row], time_of_link, left_.data() + row * num_ranks_);
    });
  }

  uint32_t Choose(uint32_t link, std::span<const uint32_t> candidates) override {
    const size_t head = topology_.head(LinkId{static_cast<int32_t>(link)}).index();
    uint32_t best = candidates.front();
    for (const uint32_t chunk : candidates)
      if (Left(chunk, head) > Left(best, head)) best = chunk;
    return best;
  }

 private:
  int64_t Left(uint32_t chunk, size_t rank) const {
    return left_[row_of_chunk_[chunk] * num_ranks_ + rank];
  }

  // From the far end of the search to its source.
  void FillRow(NodeId source, const std::vector<int64_t>& time_of_link, int64_t* left) const {
    const std::vector<int64_t> at = TimesFrom(topology_, time_of_link, source);
    std::vector<uint32_t> order(num_ranks_);
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::sort(order.begin(), order.end(),
              [&at](uint32_t a, uint32_t b) { return std::pair(at[a], a) > std::pair(at[b], b); });
    for (const uint32_t rank : order)
      for (LinkId link : topology_.OutLinks(NodeId{static_cast<int32_t>(rank)})) {
        const size_t head = topology_.head(link).index();
        const int64_t time = time_of_link[link.index()];
        if (at[rank] + time == at[head]) left[rank] = std::max(left[rank], time + left[head]);
      }
  }

  const Topology& topology_;
  size_t num_ranks_;
  std::vector<size_t> row_of_chunk_;  // its source
  std::vector<int64_t> left_;         // [source][rank]
};

}  // namespace

const Policy& FarthestPolicy() {
  static const Policy kPolicy = {
      .name = "farthest",
      .description = "the chunk with the farthest to go behind the link",
      .make = [](const PolicyInput& input) -> std::unique_ptr<ChunkRule> {
        return std::make_unique<Farthest>(input);
      }};
  return kPolicy;
}

}  // namespace tutti::ten
