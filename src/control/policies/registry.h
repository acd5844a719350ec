// The policies, one function each; registry.cc lists them.
#pragma once

#include "tutti/control/policy.h"

namespace tutti {

Policy RandomRingPolicy();
Policy NamedRingPolicy();
Policy LocalityRingPolicy();
Policy FairFlowPolicy();
Policy PriorityFlowPolicy();
Policy WeightedPolicy();
Policy DeadlinePolicy();
Policy AdmissionPolicy();

}  // namespace tutti
