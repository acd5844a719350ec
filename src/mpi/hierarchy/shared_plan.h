// SharedPlan: who sends what to whom between nodes whose ranks share memory, and where in the
// windows of that memory things lie. Index arithmetic only.
//
// Model       Ranks are lined up so that every node is a range of *positions*. The ranks of a node
//             are cut into *parts* of consecutive positions. A part sends one message to every
//             other node: the blocks of its ranks for the ranks of that node, by source, then by
//             destination. At step t a node sends to the t-th after it and receives from the t-th
//             before it. Of a node's messages, in the order of steps and then of parts, the k-th is
//             sent by its rank k mod Q, and received by rank k mod Q of the other: both are spread
//             evenly, at the beginning of an exchange as at its end.
//               kRuns       every rank is a part (and sends its own messages)
//               kCoalesced  as few parts as give every rank kMessagesOfARank messages: with few
//                           nodes some, with more than that many times Q one
//             Messages fall into *waves*, so many for all nodes: in a wave are, of every part of
//             every node, about as many. Who posts all of a wave before waiting for any of it
//             cannot wait forever.
// Invariants
//               1  What sender and receiver know of a message is the same; two messages between the
//                  same two ranks are in the same order in both lists.
//               2  Waves do not fall along either list.
// Complexity  N nodes, P ranks: O(P log P + N^2) once per communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "hierarchy/groups.h"
#include "hierarchy/routes.h"

namespace tutti::mpi {

// Longer blocks go straight from rank to rank: one message instead of two copies, and windows
// stay small. Sizes of shorter ones fit two bytes.
inline constexpr int64_t kLongestShared = 65535;

class SharedPlan {
 public:
  enum class Form { kRuns, kCoalesced };
  static constexpr int kMessagesOfARank = 2;

  SharedPlan(const Groups& groups, int rank, Form form);

  int rank(int position) const { return rank_[static_cast<size_t>(position)]; }
  int size() const { return static_cast<int>(rank_.size()); }
  int nodes() const { return static_cast<int>(ranges_.size()); }
  int largest_node() const { return largest_node_; }
  Range node() const { return ranges_[static_cast<size_t>(node_)]; }  // mine
  Range range(int node) const { return ranges_[static_cast<size_t>(node)]; }
  int self() const { return self_; }  // index in my node
  int members() const { return node().size(); }

  struct Message {
    int peer;         // rank that sends it to this node, or that this node sends it to
    int node;         // the other
    Range sources;    // positions
    int member;       // of this node: who sends or receives it
    int turn, turns;  // when, of all that its part sends
    // Received ones: the first of its sources among all that `member` receives from. Of sent
    // ones: where in the window of `member` it is put together, in blocks of kLongestShared.
    int64_t place;

    int Wave(int waves) const { return static_cast<int>(int64_t{turn} * waves / turns); }
  };
  // All of this node, in order.
  const std::vector<Message>& received() const { return received_; }
  const std::vector<Message>& sent() const { return sent_; }
  // Whether `message`, a sent one, holds blocks of its sender only.
  bool IsOwn(const Message& message) const {
    return message.sources ==
           Range{node().begin + message.member, node().begin + message.member + 1};
  }
  // Whether ranks of this node put messages together.
  bool gathers() const { return gathers_; }
  // Most messages that any rank of any node sends or receives.
  int max_messages() const { return max_messages_; }

  // In bytes from the begin of a window. What is published and the blocks for the own node are
  // there twice: one call writes while others may still read what the call before wrote.
  struct Layout {
    int64_t starts;    // [member]: where the block for a member begins in the slot, uint32
    int64_t runs;      // [node]: bytes for the node, int64
    int64_t width;     // bytes that a size takes, 1 or 2, int64
    int64_t sizes;     // [position]: of the block from there
    int64_t slot;      // blocks for the own node
    int64_t twice;     // all the above again
    int64_t outgoing;  // messages put together here
    int64_t table;     // [member * rows + row]: where its block begins in `incoming`, uint32
    int64_t rows;      // of the table: sources that one rank receives from, at most
    int64_t incoming;
    int64_t bytes;
    int64_t incoming_bytes;
  };
  const Layout& layout() const { return layout_; }

 private:
  void LineUp(const Groups& groups, int rank);
  void CutIntoParts(Form form);
  void ListMessages();
  void LayOut();

  std::vector<int> rank_;
  std::vector<Range> ranges_;              // of nodes
  std::vector<std::vector<Range>> parts_;  // of each node
  int node_ = 0;
  int self_ = 0;
  int largest_node_ = 0;
  std::vector<Message> received_, sent_;
  bool gathers_ = false;
  int max_messages_ = 0;
  Layout layout_{};
};

}  // namespace tutti::mpi
