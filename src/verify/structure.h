// Rule V1: what can be said of a schedule without running it.
#pragma once

#include <optional>
#include <string>

#include "findings.h"
#include "tutti/sched/schedule.h"

namespace tutti::verify {

// The first fault that makes every other check meaningless (other topology, other collective,
// arrays of wrong length), in words.
std::optional<Violation> FaultOfWhole(const Topology& topology, const Collective& collective,
                                      const Schedule& schedule);

// The first fault of one transfer (S2, and that only ranks of reducing collectives reduce), as the
// end of a sentence that begins with the transfer.
struct TransferFault {
  ViolationKind kind;
  std::string message;
};
bool IsSound(const Topology& topology, const Collective& collective, const Schedule& schedule,
             const Transfer& transfer);
TransferFault FaultOfTransfer(const Topology& topology, const Collective& collective,
                              const Schedule& schedule, size_t index);

}  // namespace tutti::verify
