// Time-stepped all-to-all as the linear program of the paper, decomposed by source: what whole
// chunks (time_stepped.h) are compared with, on small networks.
//
// Model       As time_stepped.h, for data that can be divided at will: a flow of each rank through
//             the network in steps, with waiting; the least sum over steps of the busiest carrier.
// Proof       `tb_limit` follows in integers from the prices of links in steps, whatever they are:
//             a block uses up at least its cheapest path through the steps, and in each step all
//             links together have no more to give than their bandwidth times their prices.
// Complexity  Simplex over ranks x (links + nodes) x steps columns, fewer on networks with
//             symmetries: seconds at 10,000.
// Errors      kInvalidArgument: fewer steps than the diameter. Those of LinearProgram::Solve.
// Reference   [alltoall-mcf] 3.1.3 (15) to (20), decomposed as in 3.1.2.
#pragma once

#include <cstdint>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct TimeSteppedLimit {
  double tb = 0;           // in M/B, as LinearProgram certifies it
  Rational tb_limit = {};  // no schedule of so many steps has a smaller TB
  int32_t columns = 0;
};

// `collective` is an all-to-all(v).
Result<TimeSteppedLimit> SolveTimeSteppedProgram(const Topology& topology,
                                                 const Collective& collective, int32_t steps);

}  // namespace tutti
