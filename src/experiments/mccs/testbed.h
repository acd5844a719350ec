// The paper's testbed, in network namespaces of this machine: four hosts with two devices each, daemons, a controller,
// tenants (scripts/testbed, scripts/testbed_cluster), and what came out of a run.
//
// Model       Speeds are the paper's divided by 500: NICs and links between switches 100 Mbit/s, links of hosts 200;
//             bytes of a collective are divided alike, times stay. A seed is that of the hash by which switches
//             choose routes of connections that nobody pinned. Phases of a run lie between its steps; iterations
//             count that lie in them whole.
// Errors      kNotFound: the kernel refuses namespaces, or a tool is missing (says which). kIo: a run failed, with what
//             it said.
// Reference   [mccs] 6, figure 5
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cells.h"
#include "experiment.h"
#include "mccs/mccs.h"
#include "tutti/base/result.h"

namespace tutti::mccs {

inline constexpr double kScaleDown = 500;  // of bandwidths and bytes
inline constexpr double kNicMbit = 100;    // of a virtual NIC and a link between switches
inline constexpr const char* kTestbedNetwork =
    "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)";

struct Place {
  int32_t host = 0, device = 0;
};

struct TestbedTenant {
  std::string name;
  std::vector<Place> ranks;  // in the order that the tenant names them
  int64_t bytes = 1'000'000;
  int32_t priority = 0;
  double compute_ms = 0;
  std::string collective = "all-reduce";
};

struct TestbedStep {
  double after_s = 0;
  // JSON of what is done: {"apply": {"policy": "ffa"}} (scripts/testbed_cluster).
  std::string what;
};

struct TestbedRun {
  std::string switches = "spine-leaf";
  std::string network = kTestbedNetwork;
  int32_t seed = 1;
  std::vector<TestbedTenant> tenants;
  std::vector<TestbedStep> steps;
  double last_s = 0;     // how long the last phase is
  int32_t follow_s = 0;  // how often the controller looks by itself; 0: only when told
};

struct Iteration {
  double begin_s = 0, end_s = 0;  // of the machine's clock
};

struct TestbedOutcome {
  std::map<std::string, std::vector<Iteration>> tenants;
  std::vector<std::pair<double, double>> steps;  // begun, done
  std::vector<std::string> errors;               // of each step; empty: none
  double end_s = 0;
  int32_t failed_before = 0;  // runs that RunTestbeds made again
  bool kept = false;          // taken from the folder of runs made before

  // Seconds of the collectives that lie whole between two times.
  std::vector<double> CollectiveTimes(const std::string& tenant, double from_s, double to_s) const;
  // Iterations of the phase after a step: seconds of their collectives, seconds from one to the next.
  std::vector<double> CollectiveTimes(const std::string& tenant, size_t phase) const;
  std::vector<double> Periods(const std::string& tenant, size_t phase) const;
};

Result<TestbedOutcome> RunTestbed(const TestbedRun& run);
// In their order; one that failed, as where a slow machine's connections are taken for lost, is made again twice at most.
// So many at once as the machine has processors for: tenants that send all the time at 800 Mbit/s in all need one and a half,
// those that compute between their collectives a half.
// With ExperimentOptions::simulated each run is kept there when it ends, by a hash of what is run and of the programs, and
// what is there is not run again: experiments of minutes can be made in pieces.
Result<std::vector<TestbedOutcome>> RunTestbeds(const std::vector<TestbedRun>& runs,
                                                const ExperimentOptions& options, size_t at_once);

// How many runs were made again, and how many were taken from the folder; what is none is not said.
std::vector<std::string> NotesOf(const std::vector<TestbedOutcome>& outcomes);

double MeanOf(const std::vector<double>& values);
// Mbit/s of an all-reduce or all-gather of a tenant.
double BusMbit(const TestbedTenant& tenant, double seconds);
// A vertical line at the time of a command, for charts over time.
ChartSeries CommandLineAt(double second, double height, std::string name);
// {"apply": {"policy": ...}}
std::string ApplyPolicy(const std::string& policy);

// The four ways of sharing the testbed of figure 5b: tenants and what is fair for each, Mbit/s of bus bandwidth.
struct SetUp {
  std::vector<TestbedTenant> tenants;
  std::vector<double> fair_mbit;
};
std::array<SetUp, 4> SetUps();

}  // namespace tutti::mccs
