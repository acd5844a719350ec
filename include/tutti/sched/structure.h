// S1 .. S4 of tutti/sched/schedule.h, for all that take a schedule but the verifier, which has its
// own. A schedule that is fine
// here may still be wrong: that is for the verifier to say.
#pragma once

#include <cstdint>
#include <string>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

// S1, and that the collective has the topology's ranks. The message says what was got.
Status CheckHeader(const Topology& topology, const Schedule& header);

// S2 .. S4 of transfers that come one after the other. O(1) each.
class TransferChecker {
 public:
  // Keeps nothing of its arguments.
  TransferChecker(const Topology& topology, const Schedule& header);

  // Whether this may be the next transfer. `start_ps` is ignored for step schedules.
  bool Accept(const Transfer& transfer, int64_t start_ps) {
    const int64_t time = timed_ ? start_ps : transfer.step;
    const bool fine = 0 <= transfer.shard.value && transfer.shard.value < num_shards_ &&
                      0 <= transfer.begin && transfer.begin < transfer.end &&
                      transfer.end <= units_ && 0 <= transfer.link.value &&
                      transfer.link.value < num_links_ && last_time_ <= time &&
                      0 <= transfer.step && transfer.step < step_limit_;
    if (fine) last_time_ = time;
    return fine;
  }
  // What is wrong with a transfer that Accept() has just refused.
  std::string Explain(const Transfer& transfer, int64_t start_ps) const;

 private:
  bool timed_;
  int32_t num_shards_, num_links_, units_, step_limit_;
  int64_t last_time_ = 0;
};

// Everything at once. kInvalidArgument naming the transfer.
Status CheckStructure(const Topology& topology, const Schedule& schedule);

// The same, and that the schedule was made for this very network: what simulation and lowering ask
// before they compute. kInvalidArgument.
Status CheckMadeFor(const Topology& topology, const Schedule& schedule);

}  // namespace tutti
