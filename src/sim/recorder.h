// What every way of simulating shares: how long a message takes, and the report it goes into.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/sim/simulator.h"

namespace tutti::sim {

class Recorder {
 public:
  Recorder(const Topology& topology, const Schedule& schedule, const SimOptions& options);

  // Bytes of a transfer.
  double Bytes(const Transfer& transfer) const {
    return bytes_per_unit_ * (static_cast<double>(transfer.units()) *
                              static_cast<double>(schedule_.collective.weight(transfer.shard)));
  }
  LinkModel link_model() const { return options_.link_model; }
  // For how long a message keeps its link, and when after its start it has arrived. Sums of the
  // same terms in the same order, so that travel >= hold also after rounding.
  struct Durations {
    double hold_s = 0, travel_s = 0;
  };
  Durations Of(LinkId link, double bytes) const {
    const double wire = bytes / bandwidth_[link.index()];
    const double travel = alpha_s_[link.index()] + wire;
    return {options_.link_model == LinkModel::kHeld ? travel : wire, travel};
  }

  // The message is complete: count it.
  void Add(const SimMessage& message, double hold_s);
  SimReport Finish() &&;

 private:
  const Schedule& schedule_;
  const SimOptions& options_;
  double bytes_per_unit_;
  std::vector<double> alpha_s_, bandwidth_;
  std::vector<double> starts_, arrivals_;
  SimReport report_;
};

}  // namespace tutti::sim
