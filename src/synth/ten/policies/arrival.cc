// arrival: first come, first served. A chunk spreads from its source as a wave, each rank hands on
// what it got first, and a link need never look behind the first chunk that its head lacks: about
// one look a delivery and in-link altogether, which makes it the fastest.
#include "ten/policy.h"

namespace tutti::ten {
namespace {

class Arrival : public ChunkRule {
 public:
  uint32_t Choose(uint32_t /*link*/, std::span<const uint32_t> candidates) override {
    return candidates.front();
  }
};

}  // namespace

const Policy& ArrivalPolicy() {
  static const Policy kPolicy = {.name = "arrival",
                                 .description = "the chunk that came first",
                                 .takes_first = true,
                                 .make = [](const PolicyInput&) -> std::unique_ptr<ChunkRule> {
                                   return std::make_unique<Arrival>();
                                 }};
  return kPolicy;
}

}  // namespace tutti::ten
