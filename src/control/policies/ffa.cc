// Locality rings whose flows are fitted to routes fairly ([mccs] 4.3 example 2).
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Result<PolicyOutput> RunFfa(const PolicyInput& input) {
  PolicyOutput output = WithRings(input, RingOrder::kLocality);
  if (Status status = PinFlows(input, {}, output); !status) return tl::unexpected(status.error());
  return output;
}

}  // namespace

Policy FairFlowPolicy() {
  return {"ffa", "locality rings, flows fitted to routes by turns over the jobs", RunFfa};
}

}  // namespace tutti
