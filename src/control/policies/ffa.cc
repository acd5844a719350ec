// Locality rings whose flows are fitted to routes fairly ([mccs] 4.3 example 2).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Status PinFairly(const PolicyInput& input, PolicyOutput& output) {
  return PinFlows(input, {}, output);
}

}  // namespace

Policy FairFlowPolicy() {
  return {"ffa", "locality rings, flows fitted to routes by turns over the jobs",
          RingOrder::kLocality, PinFairly};
}

}  // namespace tutti
