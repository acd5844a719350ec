// Numbers for the streams, actions and connections of a Machine, and its faults of format.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "machine.h"

namespace tutti::lower {

// The two ends of a connection. Streams are numbered over all ranks.
struct Connection {
  int32_t sender = -1, receiver = -1;
  std::vector<int32_t> sends, receives;  // actions, in order
};

class MachineIndex {
 public:
  // `machine` must outlive it. Faults of format go to `faults`; run only when there are none.
  MachineIndex(const Machine& machine, std::vector<PlanFault>& faults);

  int32_t num_streams() const { return static_cast<int32_t>(streams_.size()); }
  int32_t num_actions() const { return first_action_.back(); }
  const ActionStream& stream(int32_t s) const { return *streams_[static_cast<size_t>(s)]; }
  int32_t rank(int32_t s) const { return rank_[static_cast<size_t>(s)]; }
  int32_t first_stream(int32_t rank) const { return first_stream_[static_cast<size_t>(rank)]; }
  int32_t action(int32_t s, int32_t i) const { return first_action_[static_cast<size_t>(s)] + i; }
  int32_t stream_of(int32_t action) const;
  int32_t index_of(int32_t action) const {
    return action - first_action_[static_cast<size_t>(stream_of(action))];
  }
  const Action& at(int32_t action) const {
    return stream(stream_of(action)).actions[static_cast<size_t>(index_of(action))];
  }

  // Connections that stream s sends and receives on, -1 for none.
  int32_t send_connection(int32_t s) const { return sends_on_[static_cast<size_t>(s)]; }
  int32_t recv_connection(int32_t s) const { return receives_on_[static_cast<size_t>(s)]; }
  const std::vector<Connection>& connections() const { return connections_; }
  // The action that sends what this receiving action gets, -1 for none.
  int32_t SenderOf(int32_t action) const { return sender_of_[static_cast<size_t>(action)]; }

  // "rank 1 stream 2 instruction 3".
  std::string NameOf(int32_t s, int32_t i) const;
  std::string NameOf(int32_t action) const { return NameOf(stream_of(action), index_of(action)); }
  std::string NameOfStream(int32_t s) const;

 private:
  void CheckStream(int32_t s, std::vector<PlanFault>& faults) const;
  void CheckAction(int32_t s, int32_t i, std::vector<PlanFault>& faults) const;
  void CheckRange(int32_t s, int32_t i, const Operand& operand, std::string_view what,
                  std::vector<PlanFault>& faults) const;
  void Connect(std::vector<PlanFault>& faults);
  void Match(const Connection& connection, std::vector<PlanFault>& faults);

  const Machine& machine_;
  std::vector<const ActionStream*> streams_;
  std::vector<int32_t> rank_, first_stream_, first_action_, sends_on_, receives_on_, sender_of_;
  std::vector<Connection> connections_;
};

}  // namespace tutti::lower
