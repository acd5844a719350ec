// What a schedule does to its network and what its time is made of.
//
// Model       Traffic is exact and of any size: bytes = M * share. The chain is that of one
//             simulated run: from the last arrival back over what each message waited for last, the
//             data that it carries or the link that was still busy, to the start.
// Units       seconds as doubles where simulated, else exact.
// Invariants  The chain's latency_s + bandwidth_s + waiting_s is the simulated time.
// Complexity  Traffic O(transfers); the chain one simulation that records its messages.
// Errors      As Simulate() of sim/simulator.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct LinkTraffic {
  LinkId link{0};
  int64_t messages = 0;            // transfers of one step are one
  Rational share = {};             // of M
  Rational seconds_per_byte = {};  // of M: share / bandwidth
};

// A row per link, in the order of links.
std::vector<LinkTraffic> TrafficOf(const Topology& topology, const Schedule& schedule);
// The row that takes longest, of equal ones the first; the number of those equal to it, itself
// included. Needs a row.
const LinkTraffic& BusiestOf(const std::vector<LinkTraffic>& traffic);
int64_t CountAsBusy(const std::vector<LinkTraffic>& traffic);

// What the schedule sends out of the certificate's set of nodes, in shares of M, and what must
// leave it.
struct CutTraffic {
  Rational sent = {}, needed = {};
  std::vector<LinkId> links = {};  // out of the set
};
CutTraffic TrafficOver(const Topology& topology, const Schedule& schedule,
                       const CutCertificate& cut, const std::vector<LinkTraffic>& traffic);

// What one step of a step schedule takes with barriers. Host limits are not looked at.
struct StepTime {
  int32_t step = 0;
  LinkId busiest{0};
  Rational share = {};  // of M, over that link
  Rational seconds = {};
};
// Steps that carry something.
std::vector<StepTime> StepTimes(const Topology& topology, const Schedule& schedule,
                                int64_t size_bytes);

struct ChainMessage {
  LinkId link{0};
  int32_t step = 0;
  double start_s = 0, end_s = 0;  // end: arrived, or let go of the link that the next waited for
  double bytes = 0;
  bool waited_for_link = false;  // rather than for data
};

struct CriticalChain {
  double time_s = 0;
  double latency_s = 0, bandwidth_s = 0;    // of the chain's messages: alphas, bytes / bandwidth
  double waiting_s = 0;                     // neither: for a host, or for what the chain cannot see
  std::vector<ChainMessage> messages = {};  // in order of time
  LinkId longest_on{0};                     // the link that the chain spends most time on
  double longest_on_s = 0;
};
Result<CriticalChain> FindCriticalChain(const Topology& topology, const Schedule& schedule,
                                        SimOptions options);

}  // namespace tutti
