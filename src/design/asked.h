// What both frontiers (finder.h, flow_frontier.h) do with a question and with what they found.
#pragma once

#include <cstdint>
#include <vector>

#include "base.h"
#include "candidate.h"
#include "tutti/design/finder.h"

namespace tutti::design {

struct Asked {
  std::vector<BaseEntry> own;  // the asker's bases, measured
  uint32_t wanted = 0;         // properties of every candidate of the answer
};

// kInvalidArgument, kResourceExhausted: sizes, a collective or bases that cannot be asked for.
Result<Asked> Ask(const DesignQuestion& question);
tl::unexpected<Error> NoneReaches(const DesignQuestion& question);
Design ToDesign(const Candidate& candidate);

}  // namespace tutti::design
