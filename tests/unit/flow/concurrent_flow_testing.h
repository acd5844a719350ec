// Shared by the tests of concurrent flows: answers that are checked before use, random networks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/flow/concurrent_flow.h"
#include "unit/synth/bfb_testing.h"

namespace tutti {

// Proven by the independent check, and as close as asked for.
inline ConcurrentFlow MustSolve(const Topology& topology, const ConcurrentFlowOptions& options) {
  Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  EXPECT_TRUE(flow.has_value()) << (flow ? "" : flow.error().message);
  const Status checked = CheckConcurrentFlow(topology, *flow);
  EXPECT_TRUE(checked.has_value()) << topology.name() << ": " << checked.error().message;
  EXPECT_LE(flow->f_lower, flow->f_upper) << topology.name();
  EXPECT_LE(flow->gap(), options.gap) << topology.name();
  return *std::move(flow);
}

inline ConcurrentFlow MustSolve(const std::string& expression, double gap) {
  ConcurrentFlowOptions options;
  options.gap = gap;
  return MustSolve(Parse(expression), options);
}

// A ring with chords, bandwidths from 1 to `most` GB/s, some parallel links, and some switches.
inline Topology RandomNetwork(Random& random, int32_t ranks, int32_t switches, uint64_t most) {
  const int32_t nodes = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto bandwidth = [&] {
    return LinkSpec{static_cast<int64_t>(1 + random.Below(most)) * 1'000'000'000, 0};
  };
  const auto node = [&] {
    return NodeId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)))};
  };
  for (int32_t i = 0; i < nodes; ++i)
    builder.AddLink(NodeId{i}, NodeId{(i + 1) % nodes}, bandwidth());
  for (int32_t i = 0; i < nodes; ++i) {
    const NodeId tail = node(), head = node();
    if (tail != head) builder.AddLink(tail, head, bandwidth());
  }
  Result<Topology> topology = std::move(builder).Build();
  EXPECT_TRUE(topology.has_value());
  return *std::move(topology);
}

inline std::vector<int64_t> RandomDemand(Random& random, int32_t ranks) {
  std::vector<int64_t> demand;
  for (int32_t i = 0; i < ranks * ranks; ++i)
    demand.push_back(static_cast<int64_t>(random.Below(3) * random.Below(50)));
  demand[1] = 7;  // never without any
  return demand;
}

}  // namespace tutti
