// What the experiments of [mccs] share: the simulated cluster and its jobs, policies as strategies of
// the simulation, means with their intervals.
//
// Model       24 racks of 4 hosts with 8 GPUs and 8 NICs, 16 spines, links of 200 Gbit/s: twice as
//             much below the leaves as above. 50 jobs, 16 or 32 ranks with equal probability, arrivals
//             as a Poisson process with a mean of 200 ms between them; all-reduces of 100 MB. The
//             paper does not say how many iterations a job has and how long it computes between them:
//             10 to 60, and 20 to 100 ms, drawn for each job.
//             A seed draws jobs, placement, what a policy leaves to chance and the hash of the
//             switches; all strategies see the same jobs.
// Reference   [mccs] 6.5, figure 11.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "experiment.h"
#include "tutti/base/estimate.h"
#include "tutti/base/result.h"
#include "tutti/control/policy.h"
#include "tutti/sim/cluster_simulation.h"
#include "tutti/topo/topology.h"

namespace tutti::mccs {

inline constexpr int32_t kSeeds = 10;
inline constexpr int32_t kRanksARack = 32;

struct Cluster {
  Topology topology;
  ClusterView view;
};
// The paper's with so many of its 24 racks.
Result<Cluster> MakeCluster(int32_t racks);

struct Run {
  std::string_view policy;  // of control/policy.h
  int32_t rings = 16;
  NicChoice nics = NicChoice::kBalanced;
  Placement placement = Placement::kRandom;
  FlowCoupling coupling = FlowCoupling::kLockStep;
};
// By seed, the mean time of an all-reduce of each job, in seconds. Seeds run in parallel.
Result<std::vector<std::vector<double>>> JobTimes(const Cluster& cluster, const Run& run,
                                                  int32_t seeds);

// By seed, the mean over jobs of slow / fast; then over seeds.
Estimate SpeedUp(const std::vector<std::vector<double>>& slow,
                 const std::vector<std::vector<double>>& fast);

ResultCell Number(double value, std::string paper = "");
// "+- 0.05"
ResultCell Half(const Estimate& estimate);

}  // namespace tutti::mccs
