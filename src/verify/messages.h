// Findings in words: who, what, when, over which link, and the other culprit.
#pragma once

#include "findings.h"
#include "problem.h"

namespace tutti::verify {

// May run the shard again to find the culprit: for the few findings that are reported.
Violation Describe(const Problem& problem, const Finding& finding);

}  // namespace tutti::verify
