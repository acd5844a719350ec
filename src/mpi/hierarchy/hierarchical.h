// The hierarchical all-to-all-v: TuNA inside the finest groups gathers the blocks of a group at
// their holders (routes.h), then groups exchange directly, level after level.
//   coalesced  a message holds all blocks of one group for one holder
//   staggered  between nodes every block is a message of its own
// Routes of two levels give the paper's TuNA_l^g, of more the multilevel form.
//
// Model       Sizes run ahead of the data. Rounds of one digit are independent of each other, so
//             the sizes of a digit travel together: ceil(log_r Q) waits, over which the data of the
//             first digit's rounds are on their way already. With all sizes known, an arriving
//             block is copied to where it is sent from at the next level: no step of rearrangement,
//             and no MAX all-reduce for a buffer. Between nodes no sizes are sent at all: a
//             receiver knows them from its own counts. Nor are any in a uniform all-to-all.
// Units       radix is the base of TuNA in the finest group (0: RadixFor); window counts messages
//             in flight each way between groups (0: 32) [block_count].
// Complexity  A block is copied once per hop in its group, once to its holder's place, once per
//             level more, and once at the end if its neighbours do not lie beside it in the receive
//             buffer.
//             Memory: what this rank forwards at two consecutive levels (at two levels: once), plus
//             the messages in flight.
// Errors      An MPI error code; MPI_ERR_NO_MEM if there is no memory for blocks on their way,
//             which a rank may find only after it has sent messages.
// Reference   [tuna] IV, Algorithms 2 and 3. Deviations: unequal nodes, any placement, more levels;
//             a window that slides instead of batches; sizes ahead of the data.
#pragma once

#include "block_exchange.h"
#include "hierarchy/routes.h"
#include "trace.h"

namespace tutti::mpi {

int CoalescedExchange(const BlockExchange& exchange, const Routes& routes, int radix, int window,
                      Trace* trace);

int StaggeredExchange(const BlockExchange& exchange, const Routes& routes, int radix, int window,
                      Trace* trace);

}  // namespace tutti::mpi
