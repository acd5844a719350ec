// Policies: which of the chunks that its head lacks an idle link takes.
//
// Model       A policy makes a rule for one run. Whenever a link is idle, the rule chooses among
//             the candidates: chunks that are at the link's tail and neither at its head nor on
//             their way to it, in order of arrival at the tail.
// Adding one  A file in policies/, its function below, a line in policies/registry.cc.
// Reference   [tacos] section IV, algorithm 1, for the rule of random.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ten/link_time.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

struct PolicyInput {
  const Topology& topology;
  std::span<const NodeId> source;  // of each chunk
  std::span<const LinkTime> time;  // of each link
  uint64_t seed = 1;
};

class ChunkRule {
 public:
  virtual ~ChunkRule() = default;
  // One of `candidates`, of which there is at least one.
  virtual uint32_t Choose(uint32_t link, std::span<const uint32_t> candidates) = 0;
  // One rank more holds the chunk or will: called for each source first, then for each transfer.
  virtual void Promised(uint32_t /*chunk*/) {}
};

struct Policy {
  std::string_view name;         // as in `--policy name`
  std::string_view description;  // one line
  // Whether a slow link leaves to faster ones what they are about to bring (events.h), where the
  // user does not say.
  bool waits = true;
  // The rule takes the first candidate: no more are looked for, and equal links need no events.
  bool takes_first = false;
  // All of it must outlive the rule.
  std::unique_ptr<ChunkRule> (*make)(const PolicyInput& input) = nullptr;
};

const Policy& ArrivalPolicy();   // policies/arrival.cc
const Policy& RarestPolicy();    // policies/rarest.cc
const Policy& FarthestPolicy();  // policies/farthest.cc
const Policy& RandomPolicy();    // policies/random.cc

std::span<const Policy* const> Policies();
// kInvalidArgument lists the accepted names.
Result<const Policy*> FindPolicy(std::string_view name);

}  // namespace tutti::ten
