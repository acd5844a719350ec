// Rule V5: a link of a timed schedule carries one message at a time, for as long as the schedule's
// link model says. O(transfers), links in parallel.
#pragma once

#include "findings.h"
#include "problem.h"

namespace tutti::verify {

// When the link is free again after a transfer.
int64_t LinkFreeAt(const Problem& problem, uint32_t index);

void CheckLinkOverlaps(const Problem& problem, Findings& findings);

}  // namespace tutti::verify
