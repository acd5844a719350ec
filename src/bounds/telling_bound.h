// The limit of all-reduce by the moment at which the first rank knows a result.
//
// Model       Of every byte some rank v knows the whole sum first. The messages of the byte up to
//             then lead from every rank to v: at least one leaves every set of ranks without v. Each
//             other rank does not know the sum yet, so one more message comes into it later. Sorted
//             by v, with y_v bytes a second for which v is the first, a link's capacity is divided
//             between messages before (a) and after (d) that moment: out of every set S a is at least
//             the sum of y over ranks outside of S, into every rank u d is at least the sum of y
//             over the others. The largest sum of all y is what a second can bring at most. Turned around in
//             time the same holds of the transposed network: messages that let every rank know of every other
//             do so backwards, too.
//             The parts of any partition may stand for the ranks.
// Proof       Whatever cuts are in the linear program it is a relaxation, and its prices prove what
//             it cannot exceed, in fractions and whatever they are (lp/linear_program.h, all columns
//             have two bounds).
// Use         partition_bound.h adds these rows up; this is tighter where ranks have unlike links in
//             and out. Where every cable is two equal links partitions are tight already.
// Complexity  Tens of programs of 2 links + ranks columns, a flow a rank each.
// Reference   [forestcoll] appendix on all-reduce for trees, whose program has the cuts for d, too.
#pragma once

#include <optional>

#include "partition_bound.h"
#include "tutti/base/rational.h"

namespace tutti {

// The most units of capacity's bytes a second that an all-reduce of the parts can bring; nullopt
// where there are switches, the network is too large, or no answer is found. `parts` has at least 2.
std::optional<Rational> MostToldAtOnce(const CutNetwork& network, const Partition& parts);

}  // namespace tutti
