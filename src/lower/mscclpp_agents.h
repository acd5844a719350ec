// Who acts in an MSCCL++ plan, and who can ever learn of whom.
//
// An agent is a thread block or an end of a port channel, which moves data by itself. Agents learn
// of each other by signals, flushes, barriers and semaphores only: those that no chain of such
// operations joins are in different components, and never in a certain order. So a clock has an
// entry for each agent of its component only.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "mscclpp_file.h"

namespace tutti::lower {

// The other end of each channel: the k-th from a to b is the k-th from b to a.
class PpChannels {
 public:
  explicit PpChannels(const PpFile& file);

  size_t count() const { return place_.size(); }  // of ends
  int32_t End(size_t rank, size_t type, int32_t channel) const {
    return first_.at({rank, type}) + channel;
  }
  // -1: the executor makes an end that nobody waits at.
  int32_t Other(size_t rank, size_t type, int32_t channel) const;

 private:
  const PpFile& file_;
  std::map<std::tuple<size_t, size_t, int32_t>, std::vector<int32_t>> ends_;
  std::map<std::pair<size_t, size_t>, int32_t> first_;
  std::vector<int32_t> place_;
};

class PpAgents {
 public:
  PpAgents(const PpFile& file, const PpChannels& channels);

  int32_t count() const { return static_cast<int32_t>(component_.size()); }
  // Thread blocks come first, rank by rank.
  int32_t OfPort(int32_t end) const { return port_.at(end); }
  const std::map<int32_t, int32_t>& ports() const { return port_; }  // agents by end

  int32_t component(int32_t agent) const { return component_[static_cast<size_t>(agent)]; }
  int32_t place(int32_t agent) const { return place_[static_cast<size_t>(agent)]; }
  size_t ComponentSize(int32_t agent) const {
    return static_cast<size_t>(size_[static_cast<size_t>(component(agent))]);
  }
  // Entries of one clock for each agent.
  int64_t ClockEntries() const;

 private:
  std::map<int32_t, int32_t> port_;
  std::vector<int32_t> component_, place_;  // of each agent: its component, and its number in there
  std::vector<int32_t> size_;               // of each component
};

}  // namespace tutti::lower
