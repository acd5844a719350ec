// random: any of them, the rule of the paper. With it a link never waits for a faster one.
#include "tutti/base/random.h"

#include "ten/policy.h"

namespace tutti::ten {
namespace {

class RandomRule : public ChunkRule {
 public:
  explicit RandomRule(uint64_t seed) : random_(seed) {}

  uint32_t Choose(uint32_t /*link*/, std::span<const uint32_t> candidates) override {
    return candidates[random_.Below(candidates.size())];
  }

 private:
  Random random_;
};

}  // namespace

const Policy& RandomPolicy() {
  static const Policy kPolicy = {
      .name = "random",
      .description = "any chunk, and slow links never wait: the paper's",
      .waits = false,
      .make = [](const PolicyInput& input) -> std::unique_ptr<ChunkRule> {
        return std::make_unique<RandomRule>(input.seed);
      }};
  return kPolicy;
}

}  // namespace tutti::ten
