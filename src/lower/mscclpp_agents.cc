#include "mscclpp_agents.h"

#include <numeric>

#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

// What agents learn of each other by: ends of channels, barriers, semaphores. Each is a node beside
// the agents; nodes that one operation names are joined.
class ComponentJoiner {
 public:
  ComponentJoiner(const PpFile& file, const PpChannels& channels) : channels_(channels) {
    parent_.resize(channels.count());
    for (const PpRank& rank : file.ranks) {
      first_.push_back(Add(Index(kPpMaxBarriers) + rank.semaphores.size()));
      blocks_.push_back(Add(rank.blocks.size()));
    }
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t r = 0; r < file.ranks.size(); ++r)
      for (size_t b = 0; b < file.ranks[r].blocks.size(); ++b)
        for (const PpOperation& operation : file.ranks[r].blocks[b].operations) {
          Join(r, Block(r, b), operation);
          for (const PpOperation& inner : operation.inner) Join(r, Block(r, b), inner);
        }
  }

  // Ends are numbered as PpChannels does.
  int32_t Block(size_t rank, size_t block) const {
    return blocks_[rank] + static_cast<int32_t>(block);
  }
  int32_t Find(int32_t node) {
    while (parent_[Index(node)] != node) {
      parent_[Index(node)] = parent_[Index(parent_[Index(node)])];
      node = parent_[Index(node)];
    }
    return node;
  }

 private:
  int32_t Add(size_t nodes) {
    const size_t first = parent_.size();
    parent_.resize(first + nodes);
    return static_cast<int32_t>(first);
  }
  void Unite(int32_t a, int32_t b) { parent_[Index(Find(a))] = Find(b); }

  void Join(size_t rank, int32_t block, const PpOperation& operation) {
    if (operation.barrier >= 0)
      Unite(block, first_[rank] + static_cast<int32_t>(operation.barrier));
    for (const int32_t id : operation.semaphores)
      Unite(block, first_[rank] + static_cast<int32_t>(kPpMaxBarriers) + id);
    if (operation.type != PpChannelType::kMemory && operation.type != PpChannelType::kPort) return;
    const auto type = static_cast<size_t>(operation.type);
    for (const int32_t channel : operation.channels) {
      const int32_t end = channels_.End(rank, type, channel);
      Unite(block, end);
      const int32_t other = channels_.Other(rank, type, channel);
      if (other >= 0) Unite(end, other);
    }
  }

  const PpChannels& channels_;
  std::vector<int32_t> first_, blocks_;  // of each rank: its first barrier; its first thread block
  std::vector<int32_t> parent_;
};

}  // namespace

PpChannels::PpChannels(const PpFile& file) : file_(file) {
  for (size_t r = 0; r < file.ranks.size(); ++r)
    for (size_t type = 0; type < 2; ++type)
      for (const int32_t peer : file.ranks[r].peers[type]) {
        const auto end = static_cast<int32_t>(place_.size());
        first_.try_emplace({r, type}, end);
        std::vector<int32_t>& list = ends_[{r, type, peer}];
        place_.push_back(static_cast<int32_t>(list.size()));
        list.push_back(end);
      }
}

int32_t PpChannels::Other(size_t rank, size_t type, int32_t channel) const {
  const int32_t peer = file_.ranks[rank].peers[type][Index(channel)];
  const auto at = ends_.find({Index(peer), type, static_cast<int32_t>(rank)});
  const int32_t place = place_[Index(End(rank, type, channel))];
  if (at == ends_.end() || Index(place) >= at->second.size()) return -1;
  return at->second[Index(place)];
}

PpAgents::PpAgents(const PpFile& file, const PpChannels& channels) {
  ComponentJoiner joiner(file, channels);
  std::map<int32_t, int32_t> components;
  const auto add = [&](int32_t node) {
    const int32_t component =
        components.try_emplace(joiner.Find(node), static_cast<int32_t>(components.size()))
            .first->second;
    if (Index(component) == size_.size()) size_.push_back(0);
    component_.push_back(component);
    place_.push_back(size_[Index(component)]++);
  };
  for (size_t r = 0; r < file.ranks.size(); ++r)
    for (size_t b = 0; b < file.ranks[r].blocks.size(); ++b) add(joiner.Block(r, b));
  for (size_t r = 0; r < file.ranks.size(); ++r)
    for (size_t c = 0; c < file.ranks[r].peers[1].size(); ++c) {
      const int32_t end = channels.End(r, 1, static_cast<int32_t>(c));
      port_[end] = count();
      add(end);
    }
}

int64_t PpAgents::ClockEntries() const {
  int64_t entries = 0;
  for (const int64_t size : size_) entries += size * size;
  return entries;
}

}  // namespace tutti::lower
