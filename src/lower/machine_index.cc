#include "machine_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/index.h"

namespace tutti::lower {

MachineIndex::MachineIndex(const Machine& machine, std::vector<PlanFault>& faults)
    : machine_(machine) {
  first_action_.push_back(0);
  for (size_t r = 0; r < machine.ranks.size(); ++r) {
    first_stream_.push_back(static_cast<int32_t>(streams_.size()));
    for (const ActionStream& stream : machine.ranks[r].streams) {
      streams_.push_back(&stream);
      rank_.push_back(static_cast<int32_t>(r));
      first_action_.push_back(first_action_.back() + static_cast<int32_t>(stream.actions.size()));
    }
  }
  for (int32_t s = 0; s < num_streams(); ++s) CheckStream(s, faults);
  if (!faults.empty()) return;
  Connect(faults);
}

int32_t MachineIndex::stream_of(int32_t action) const {
  const auto after = std::upper_bound(first_action_.begin(), first_action_.end(), action);
  return static_cast<int32_t>(after - first_action_.begin()) - 1;
}

std::string MachineIndex::NameOfStream(int32_t s) const {
  const Vocabulary& words = machine_.words;
  return fmt::format("{} {} {} {}", words.rank, rank(s), words.stream, s - first_stream(rank(s)));
}

std::string MachineIndex::NameOf(int32_t s, int32_t i) const {
  return fmt::format("{} {} {}", NameOfStream(s), machine_.words.action, i);
}

void MachineIndex::CheckStream(int32_t s, std::vector<PlanFault>& faults) const {
  const auto num_ranks = static_cast<int32_t>(machine_.ranks.size());
  const auto check_peer = [&](int32_t peer, std::string_view what) {
    if (peer >= -1 && peer < num_ranks && peer != rank(s)) return;
    faults.push_back({fmt::format("{}: {} peer {} is not another {} below {}", NameOfStream(s),
                                  what, peer, machine_.words.rank, num_ranks)});
  };
  check_peer(stream(s).send_peer, "send");
  check_peer(stream(s).recv_peer, "receive");
  if (stream(s).channel < 0)
    faults.push_back(
        {fmt::format("{}: channel {} is negative", NameOfStream(s), stream(s).channel)});
  for (int32_t i = 0; i < static_cast<int32_t>(stream(s).actions.size()); ++i)
    CheckAction(s, i, faults);
}

void MachineIndex::CheckAction(int32_t s, int32_t i, std::vector<PlanFault>& faults) const {
  const Action& action = stream(s).actions[Index(i)];
  if (action.sends && stream(s).send_peer < 0)
    faults.push_back({fmt::format("{}: sends, and the {} has no send peer", NameOf(s, i),
                                  machine_.words.stream)});
  if (action.receives && stream(s).recv_peer < 0)
    faults.push_back({fmt::format("{}: receives, and the {} has no receive peer", NameOf(s, i),
                                  machine_.words.stream)});
  const bool moves = action.sends || action.receives || action.reads || action.writes;
  if (moves && action.count < 1)
    faults.push_back({fmt::format("{}: count {} is not positive", NameOf(s, i), action.count)});
  if (action.reads) CheckRange(s, i, action.src, "reads", faults);
  if (action.writes) {
    CheckRange(s, i, action.dst, "writes", faults);
    if (action.dst.buffer == Buffer::kInput && !machine_.in_place)
      faults.push_back({fmt::format("{}: writes the {} buffer of an out-of-place call",
                                    NameOf(s, i), machine_.words.buffers[0])});
  }
  const std::vector<ActionStream>& own = machine_.ranks[Index(rank(s))].streams;
  for (const Dependency& dep : action.after) {
    const bool exists = dep.stream >= 0 && Index(dep.stream) < own.size() && dep.instruction >= 0 &&
                        Index(dep.instruction) < own[Index(dep.stream)].actions.size();
    if (!exists)
      faults.push_back(
          {fmt::format("{}: waits for {} {} {} {}, which does not exist", NameOf(s, i),
                       machine_.words.stream, dep.stream, machine_.words.action, dep.instruction)});
  }
}

void MachineIndex::CheckRange(int32_t s, int32_t i, const Operand& operand, std::string_view what,
                              std::vector<PlanFault>& faults) const {
  const auto buffer = static_cast<size_t>(operand.buffer);
  const int64_t count = stream(s).actions[Index(i)].count;
  const int64_t size = machine_.ranks[Index(rank(s))].cells[buffer];
  if (operand.offset >= 0 && count <= size && operand.offset <= size - count) return;
  faults.push_back({fmt::format("{}: {} {} [{}, {}), the buffer has {} {}s", NameOf(s, i), what,
                                machine_.words.buffers[buffer], machine_.UnitOf(operand.offset),
                                machine_.UnitOf(operand.offset + count), machine_.UnitOf(size),
                                machine_.words.unit)});
}

void MachineIndex::Connect(std::vector<PlanFault>& faults) {
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> found;
  sends_on_.assign(streams_.size(), -1);
  receives_on_.assign(streams_.size(), -1);
  sender_of_.assign(Index(num_actions()), -1);
  const auto open = [&](int32_t sender, int32_t receiver, int32_t channel) {
    const auto [at, added] =
        found.try_emplace({sender, receiver, channel}, static_cast<int32_t>(connections_.size()));
    if (added) connections_.emplace_back();
    return at->second;
  };
  const auto claim = [&](int32_t& end, int32_t s, std::string_view what) {
    if (end >= 0)
      faults.push_back({fmt::format("{} and {} both {} the same peer over channel {}",
                                    NameOfStream(end), NameOfStream(s), what, stream(s).channel)});
    end = s;
  };
  for (int32_t s = 0; s < num_streams(); ++s) {
    const ActionStream& own = stream(s);
    if (own.send_peer >= 0) {
      sends_on_[Index(s)] = open(rank(s), own.send_peer, own.channel);
      claim(connections_[Index(sends_on_[Index(s)])].sender, s, "send to");
    }
    if (own.recv_peer >= 0) {
      receives_on_[Index(s)] = open(own.recv_peer, rank(s), own.channel);
      claim(connections_[Index(receives_on_[Index(s)])].receiver, s, "receive from");
    }
    for (int32_t i = 0; i < static_cast<int32_t>(own.actions.size()); ++i) {
      if (own.actions[Index(i)].sends) connections_[Index(sends_on_[Index(s)])].sends.push_back(i);
      if (own.actions[Index(i)].receives)
        connections_[Index(receives_on_[Index(s)])].receives.push_back(i);
    }
  }
  if (!faults.empty()) return;
  for (const Connection& connection : connections_) Match(connection, faults);
}

void MachineIndex::Match(const Connection& connection, std::vector<PlanFault>& faults) {
  const size_t common = std::min(connection.sends.size(), connection.receives.size());
  for (size_t k = 0; k < common; ++k) {
    const int32_t send = action(connection.sender, connection.sends[k]);
    const int32_t recv = action(connection.receiver, connection.receives[k]);
    sender_of_[Index(recv)] = send;
    if (at(send).count == at(recv).count && at(send).units == at(recv).units) continue;
    faults.push_back(
        {fmt::format("message {}: {} sends {} {}s, {} receives {}", k, NameOf(send), at(send).units,
                     machine_.words.unit, NameOf(recv), at(recv).units)});
    return;  // what follows is only shifted
  }
  if (connection.sends.size() > common)
    faults.push_back(
        {fmt::format("{}: rank {} never receives it over channel {}",
                     NameOf(connection.sender, connection.sends[common]),
                     stream(connection.sender).send_peer, stream(connection.sender).channel)});
  if (connection.receives.size() > common)
    faults.push_back(
        {fmt::format("{}: rank {} never sends it over channel {}",
                     NameOf(connection.receiver, connection.receives[common]),
                     stream(connection.receiver).recv_peer, stream(connection.receiver).channel)});
}

}  // namespace tutti::lower
