// rarest: the chunk that the fewest ranks hold or are about to get, the first to have come of
// these. What few have is what many links will want to carry later.
#include <vector>

#include "ten/policy.h"

namespace tutti::ten {
namespace {

class Rarest : public ChunkRule {
 public:
  explicit Rarest(size_t num_chunks) : num_ranks_(num_chunks, 0) {}

  uint32_t Choose(uint32_t /*link*/, std::span<const uint32_t> candidates) override {
    uint32_t best = candidates.front();
    for (const uint32_t chunk : candidates)
      if (num_ranks_[chunk] < num_ranks_[best]) best = chunk;
    return best;
  }
  void Promised(uint32_t chunk) override { ++num_ranks_[chunk]; }

 private:
  std::vector<uint32_t> num_ranks_;  // of each chunk
};

}  // namespace

const Policy& RarestPolicy() {
  static const Policy kPolicy = {
      .name = "rarest",
      .description = "the chunk that the fewest ranks hold or are about to get",
      .make = [](const PolicyInput& input) -> std::unique_ptr<ChunkRule> {
        return std::make_unique<Rarest>(input.source.size());
      }};
  return kPolicy;
}

}  // namespace tutti::ten
