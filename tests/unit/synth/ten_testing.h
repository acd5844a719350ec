// What the tests of ten share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "tutti/base/random.h"
#include "unit/synth/classic_support.h"

namespace tutti::ten_test {

inline void ExpectProven(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  EXPECT_TRUE(report.verified()) << (report.violations.empty() ? ""
                                                               : report.violations.front().message);
}

inline Schedule MustMake(const Topology& topology, CollectiveKind kind,
                         const SynthOptions& options = {}, int32_t root = 0) {
  const Collective collective = *Collective::Make(
      kind, topology.num_ranks(), {.root = root, .all_reduce_shards = 0, .demand = {}});
  Result<Schedule> made =
      RunSynthesizer(classic_test::Algorithm("ten"), topology, collective, options);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->collective, collective);
  ExpectProven(topology, *made);
  return *std::move(made);
}

// Strongly connected, of any shape; unequal links when asked for.
inline Topology RandomNetwork(Random& random, bool equal) {
  const auto n = static_cast<int32_t>(3 + random.Below(8));
  Topology::Builder builder(n);
  const auto spec = [&]() -> LinkSpec {
    if (equal) return {};
    constexpr int64_t kBandwidth[] = {25'000'000'000, 50'000'000'000, 300'000'000'000};
    return {.bandwidth = kBandwidth[random.Below(3)],
            .alpha_ps = static_cast<int64_t>(random.Below(3)) * 700'000};
  };
  for (int32_t rank = 0; rank < n; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % n}, spec());
  for (uint64_t extra = random.Below(3 * static_cast<uint64_t>(n)); extra > 0; --extra) {
    const NodeId tail{static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)))};
    const NodeId head{static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)))};
    if (tail != head) builder.AddLink(tail, head, spec());
  }
  return *std::move(builder).Build();
}

}  // namespace tutti::ten_test
