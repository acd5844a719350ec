// Routes: who carries which block in the hierarchical algorithms, for nodes of unequal numbers of
// ranks placed in any order, over any number of levels. Index arithmetic only.
//
// Model       Ranks are lined up so that every group of every level is a range of *positions*.
//             Level 0 are the finest groups, the last level is one group of all ranks. Around one
//             rank these are nested ranges groups[0] in groups[1] ... in groups[L-1] = [0, P).
//             The *holder* of a destination at level l is the member of groups[l] that has, once
//             level l is done, the blocks of all members of groups[l] for this destination:
//               holder(L-1, d) = d
//               holder(l, d)   = t if t = holder(l+1, d) lies in groups[l], else
//                                groups[l].begin + t mod |groups[l]|
//             With two levels and Q ranks on the node: the holder of a destination on another node
//             is the member with index d mod Q. With equal nodes this is the rank with the
//             destination's own index in its node ([tuna] IV-A, the Q-port model). With unequal
//             ones every member serves between floor and ceiling of (P - Q) / Q destinations, and
//             what a holder sends on at a level always goes from one member of a group to whole
//             holders of another: one message per pair.
//             Level 0 gathers blocks at their holders by TuNA in the group; phase l >= 1 is a
//             direct exchange between the groups of level l-1 inside each group of level l, in
//             steps: at step t a group sends to the t-th after it and receives from the t-th before
//             it.
// Invariants  (of the lists below)
//               1  held(l) are the destinations whose holder at level l is this rank, itself among
//                  them, in the order of their holders at levels l+1, l+2, ...: what one message of
//                  phase l+1 takes is a run of held(l), in the order in which the receiver holds
//                  it.
//               2  Sender and receiver of a phase agree: a rank sends to r exactly if r receives
//                  from it.
//               3  A phase can be run with any window of messages in flight without deadlock when
//                  receives of a step are posted before its sends: every rank posts in the order of
//                  steps and waits only for its own oldest.
// Complexity  P ranks, L levels: Routes takes O(P (L + log P)) once per communicator.
// Reference   [tuna] IV, Algorithms 2 and 3.
// Deviation   The paper takes P = Q N, ranks in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hierarchy/groups.h"

namespace tutti::mpi {

struct Range {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  bool contains(int value) const { return begin <= value && value < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

class Routes {
 public:
  struct Send {
    int to;      // position
    Range held;  // of held(l - 1): what goes there
  };
  struct Receive {
    int from;       // position
    Range sources;  // positions whose blocks come, for all of held(l)
  };
  // A step of a phase: at most one message comes in, any number go out.
  struct Step {
    Receive receive;
    Range sends;  // of Phase::sends
  };
  struct Phase {
    std::vector<Step> steps;
    std::vector<Send> sends;
    Range kept;  // of held(l - 1): what stays here, the same destinations as held(l)
  };

  // For `rank`: two levels, the nodes and all ranks, or every level of `groups`.
  enum class Levels { kNodes, kAll };
  Routes(const Groups& groups, int rank, Levels levels);

  int size() const { return static_cast<int>(rank_.size()); }
  int num_levels() const { return static_cast<int>(groups_.size()); }
  int position() const { return position_; }
  // The rank at a position.
  int rank(int position) const { return rank_[static_cast<size_t>(position)]; }
  Range group(int level) const { return groups_[static_cast<size_t>(level)]; }

  // Destinations (positions) that the member of group(0) with this index holds after level 0, in
  // the order of invariant 1.
  const std::vector<int>& bundle(int member) const { return bundles_[static_cast<size_t>(member)]; }
  const std::vector<int>& held(int level) const { return held_[static_cast<size_t>(level)]; }
  // For levels 1 ... num_levels() - 1.
  const Phase& phase(int level) const { return phases_[static_cast<size_t>(level)]; }

 private:
  int position_ = 0;
  std::vector<int> rank_;
  std::vector<Range> groups_;
  std::vector<std::vector<int>> bundles_;
  std::vector<std::vector<int>> held_;
  std::vector<Phase> phases_;
};

}  // namespace tutti::mpi
