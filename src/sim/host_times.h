// When hosts with a limit have let the messages of a step through: each is like two more links, one
// for all that its rank sends and one for all that it takes in, with the least alpha of its links
// that way (sched/cost.h).
//
// Model       A step's messages through one side of a host are one batch.
//             With a barrier all of a batch have arrived when the limit has let all of it through.
//             Eager: messages go through in the order of their starts (then the smaller first), one
//             after the other; a batch begins when the one of the step before is through, with held
//             links an alpha after. No batch takes longer than with the barrier.
//             A limit that the links that way together do not exceed is none.
// Complexity  O(messages log messages) a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step_messages.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti::sim {

class HostTimes {
 public:
  using Message = StepMessages::Message;

  HostTimes(const Topology& topology, LinkModel link_model);

  bool none() const { return out_.empty(); }

  // The messages of the next step. Before the calls below.
  void Count(std::span<const Message> messages);

  // Barrier: how long after the start of its step a message arrives at the soonest.
  double AfterBarrier(const Message& message);

  // Eager: when the hosts of the message are through with the steps before.
  double FreeFor(const Message& message);
  // Eager, once all starts are known: for each message when it arrives at the soonest.
  const std::vector<double>& LetThrough(std::span<const Message> messages);

 private:
  struct Host {
    double bandwidth = 0;  // 0: no limit
    double alpha_s = 0;
    double free_s = 0;
    // Bytes of the step at hand.
    double bytes = 0, last_start_s = 0, done_s = 0;
  };

  template <class Links>
  void Set(const Links& links, int64_t limit, Host& host) const;
  static Host* Find(std::vector<Host>& hosts, NodeId node);
  template <class Visit>  // (host), at most two
  void ForHosts(const Message& message, const Visit& visit);
  double LetThrough(const Message& message, Host& host) const;

  const Topology& topology_;
  bool held_;
  std::vector<Host> out_, in_;   // by rank; empty without limits
  std::vector<double> arrival_;  // of a message
  std::vector<size_t> order_;
};

}  // namespace tutti::sim
