// What the experiments of [direct-connect] share: its alpha, its M/B, its units of time, and how a
// network's all-gather is measured.
#pragma once

#include <string_view>

#include "cells.h"
#include "experiment.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/design/finder.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/topology.h"

namespace tutti::direct {

// Section 5.4: alpha = 10 us, and M/B = 1 MiB / 100 Gbit/s = 83.88608 us.
Rational AlphaUs();
Rational MiBOverBandwidthUs();

// 2 (TL + TB), in us, of an all-reduce over `mebibytes` MiB from an all-gather's tl and tb.
Rational AllReduceUs(int32_t tl, const Rational& tb, int32_t mebibytes = 1);
// The same of the two halves of this design, which cost something else where the network is not
// reverse-symmetric.
Rational AllReduceUs(const Design& design, int32_t mebibytes = 1);
// What an all-to-all of 1 MiB a rank takes on a network of `ranks` ranks and `degree` ports whose
// concurrent flow is f (unit link capacity): M/N over f B/d.
Rational AllToAllUs(int32_t ranks, int32_t degree, const Rational& flow);

// Made, proven and counted. kInfeasible names the first violation.
Result<StepCost> MeasureSchedule(const Topology& topology, CollectiveKind kind,
                                 std::string_view algorithm);

using tutti::Figure;
using tutti::WithinSize;
using tutti::Word;

}  // namespace tutti::direct
