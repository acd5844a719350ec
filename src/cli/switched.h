// --network, --ecmp, --routes: schedules between ranks, timed over the switches that join the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "tutti/base/estimate.h"
#include "tutti/sim/connection_simulator.h"

namespace tutti::cli {

struct SwitchedFlags {
  std::string network, seeds, policy;

  void AddTo(Command command);
  bool given() const { return !seeds.empty() || !policy.empty(); }
};

// Results for one schedule and size. Times are those of steps with a barrier.
struct SwitchedTimes {
  std::vector<double> by_seed_s;  // of --ecmp, in the order of its seeds
  Estimate ecmp;
  size_t worst = 0;       // of the seeds
  double ecmp_busbw = 0;  // at the mean
  std::optional<ConnectionSimReport> pinned;
  // What schedules are compared by: pinned, or the mean over seeds.
  double time_s() const { return pinned ? pinned->time_s : ecmp.mean; }
};

class SwitchedNetwork {
 public:
  // Nothing where the flags ask for nothing.
  static Result<std::optional<SwitchedNetwork>> Make(const SwitchedFlags& flags);

  Result<SwitchedTimes> Simulate(const Topology& logical, const Schedule& schedule,
                                 int64_t size_bytes) const;

  const Topology& topology() const { return topology_; }
  // Keys `ecmp` and `pinned`.
  void Describe(const SwitchedTimes& times, Json& out) const;
  // Heads of columns, and the cells of one schedule.
  std::vector<std::string> Columns() const;
  std::vector<std::string> Cells(const SwitchedTimes& times) const;
  // "over spine_leaf(2,2,4), flows share links fairly, steps with a barrier; ..."
  std::string Title() const;

 private:
  explicit SwitchedNetwork(Topology topology) : topology_(std::move(topology)) {}

  Topology topology_;
  std::vector<uint64_t> seeds_;
  std::string policy_;
};

}  // namespace tutti::cli
