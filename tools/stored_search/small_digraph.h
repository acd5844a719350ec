// SmallDigraph: a regular digraph on at most 16 nodes as bit masks, for searches over many of them.
//
// Invariants  Every node has `degree` out-links to different nodes, none to itself, and as many
//             in-links. Link `degree` v + i is the i-th of node v, by head.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::stored_search {

inline constexpr int kMaxNodes = 16;

class SmallDigraph {
 public:
  // heads[v]: bit mask of the nodes that v sends to. None: not regular, a self-loop, too large.
  static std::optional<SmallDigraph> Make(const std::vector<uint32_t>& heads);
  // None: as above, or parallel links.
  static std::optional<SmallDigraph> Make(const Topology& topology);

  int num_nodes() const { return num_nodes_; }
  int degree() const { return degree_; }
  int num_links() const { return num_nodes_ * degree_; }
  uint32_t out_mask(int node) const { return out_[static_cast<size_t>(node)]; }
  int head(int link) const { return head_[static_cast<size_t>(link)]; }
  int tail(int link) const { return link / degree_; }
  // Links into `node`, ascending.
  const std::vector<int>& InLinks(int node) const { return in_links_[static_cast<size_t>(node)]; }
  static constexpr int kUnreached = 99;
  int Distance(int from, int to) const {
    return distance_[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
  int diameter() const { return diameter_; }  // kUnreached where some pair is not connected

  SmallDigraph Transposed() const;
  // With links of the default bandwidth and alpha.
  Topology ToTopology() const;

  // Out-masks in the order of a breadth-first numbering. Two connected digraphs are isomorphic just
  // when their least codes are the same, and each numbering of one is a code of all that are
  // isomorphic to it. AllCodes: of every start and every order of siblings, ascending; up to
  // n (d!)^n of them, so for d = 2 and n = 8.
  using Code = std::vector<uint32_t>;
  Code OneCode() const;
  std::vector<Code> AllCodes() const;

  bool IsIsomorphicTo(const SmallDigraph& other) const;

 private:
  std::vector<uint32_t> Renamed(const std::vector<int>& number) const;

  int num_nodes_ = 0, degree_ = 0, diameter_ = 0;
  std::vector<uint32_t> out_, in_;
  std::vector<int> head_;
  std::vector<std::vector<int>> in_links_, distance_;
};

}  // namespace tutti::stored_search
