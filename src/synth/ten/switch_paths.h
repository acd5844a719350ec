// SwitchPaths: how a chunk gets from one rank to another by switches, which only forward.
//
// Model       A path is a first link out of a rank and a rank that is reached behind it through
//             switches alone; a link between two ranks is a path of its own. To the matcher
//             (events.h) the paths are the links of a network of ranks. Which links a path takes
//             behind the first is decided when it is taken: at each switch, of the links that lead
//             nearer to the target, the one over which the chunk would be there first.
// Units       Picoseconds, of one chunk.
// Invariants  W1  Paths are numbered as the links of network(), and those with one first link are
//                 consecutive.
//             W2  A switch passes a chunk on once it has come in whole, as often as it likes and
//                 over one link at a time for each chunk that came in: ports in and out carry what
//                 they carry, and nothing is copied or added inside.
// Complexity  s switches, r ranks, m links, w paths: Make() O(r m log m + w), Route() the links out
//             of the switches on the way that lead nearer, each with a search in its calendar;
//             memory 16 s r + 80 w, and 4 for each target to which a link out of a switch leads
//             nearer.
// Threads     Immutable, share freely.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ten/calendar.h"
#include "ten/link_time.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

struct Hop {
  LinkId link;
  int64_t start_ps;
};

class SwitchPaths {
 public:
  // `topology` must outlive it; `time` is that of each link. kResourceExhausted: more paths than
  // memory, or a chunk that takes too long.
  static Result<SwitchPaths> Make(const Topology& topology, std::vector<LinkTime> time);

  const Topology& topology() const { return *topology_; }
  const Topology& network() const { return network_; }
  // By path: what it takes when nothing else is on it. hold_ps is that of its last link times
  // those who share it.
  std::span<const LinkTime> time() const { return time_of_path_; }
  const LinkTime& time_of_link(LinkId link) const { return time_[link.index()]; }

  // The links out of ranks, ascending, and the paths that begin with the k-th: [first, end).
  std::span<const LinkId> first_links() const { return first_links_; }
  uint32_t first_path(size_t k) const { return first_path_[k]; }
  uint32_t end_path(size_t k) const { return first_path_[k + 1]; }
  NodeId target(uint32_t path) const { return network_.head(LinkId{static_cast<int32_t>(path)}); }

  // Appends the hops to `target` of a chunk that comes to `at` at `arrival_ps`; when it is at the
  // target. A link in `carried` already carries it and is taken again for nothing. `busy`: by link.
  int64_t Route(NodeId at, NodeId target, int64_t arrival_ps, const std::vector<Calendar>& busy,
                std::span<const Hop> carried, std::vector<Hop>& hops) const;

 private:
  SwitchPaths(const Topology& topology, std::vector<LinkTime> time)
      : topology_(&topology), network_(topology), time_(std::move(time)) {}

  int64_t& left(NodeId node, NodeId target) { return left_[Cell(node, target)]; }
  int64_t left(NodeId node, NodeId target) const { return left_[Cell(node, target)]; }
  size_t Cell(NodeId node, NodeId target) const {
    return node.index() * static_cast<size_t>(topology_->num_ranks()) + target.index();
  }

  std::span<const LinkId> LinksNearer(NodeId at, NodeId target) const {
    const size_t cell = Cell(at, target);
    return {nearer_.data() + first_nearer_[cell], first_nearer_[cell + 1] - first_nearer_[cell]};
  }

  void MeasureLeft();
  void FindLinksNearer();
  Status MakeNetwork();
  void ShareLastLinks();

  const Topology* topology_;
  Topology network_;
  std::vector<LinkTime> time_, time_of_path_;
  std::vector<int64_t> left_;         // [node][rank] through switches alone; kUnreachable
  std::vector<LinkId> nearer_;        // [switch][rank]: the links out that lead nearer
  std::vector<size_t> first_nearer_;  // of each node and rank, and the end; ranks have none
  std::vector<LinkId> first_links_;
  std::vector<uint32_t> first_path_;  // of each first link, and the end
};

}  // namespace tutti::ten
