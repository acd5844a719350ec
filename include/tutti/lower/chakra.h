// Schedules as Chakra execution traces: what ASTRA-sim runs as a custom collective.
//
// Model       One trace a rank, a graph of nodes: a send or a receive for each message of the
//             schedule, and a computation where what arrived is reduced. A node depends on those
//             that brought or reduced what it reads, and on no other: receives are posted at the
//             start. All transfers of one step over one link are one message; of timed schedules
//             each is its own. Switches are taken out: messages are between ranks, and the
//             simulator's network forwards them.
// Units       Bytes of a message are those of its parts of shards, rounded up to whole bytes.
//             Reductions take no time (ASTRA-sim counts 1 ns).
// Invariants  Numbers of nodes ascend from 0; dependencies have smaller ones. The k-th message from
//             one rank to another has tag k at both.
// Complexity  O(transfers * units) time, O(ranks * shards * units) memory.
// Reference   docs/formats/chakra.md; docs/adr/0038-protobuf-by-hand.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct ChakraOptions {
  int64_t size_bytes = 0;  // [M] >= 1
  // A send waits for the one before it on the same link: what a link carries one after the
  // other is also given to the simulator so.
  bool in_order = false;
};

// The bytes of each rank's trace. kInvalidArgument: options, a schedule that sends what is not
// there; kInfeasible: too large.
Result<std::vector<std::string>> ToChakra(const Topology& topology, const Schedule& schedule,
                                          const ChakraOptions& options);

}  // namespace tutti
