// Topology: the immutable machine model that every other room schedules against.
//
// Model       A directed multigraph. A *node* is a rank (sends, receives, reduces) or only forwards
//             (a switch); a switch may be one that *reduces* what passes it. A *link* runs from its tail to its head; a duplex cable is two links.
//             Self-loops (genkautz, debruijn) are ports without a link: they count in degrees and
//             in B, carry no traffic and are no links. A rank may have a *host limit*: what all
//             its links together bring into its host, and take out of it, where hosts forward (what
//             a host passes on counts both ways). Step schedules, flows and bounds keep to it.
// Units       bandwidth: whole bytes a second. alpha: whole picoseconds, what a message waits once
//             a link. Integers, so that cuts and loads compare exactly.
// Invariants  T1  Nodes are [0, num_nodes()), ranks first: rank r is node r. num_ranks() >= 1.
//             T2  Links are [0, num_links()), sorted by tail, ties in order of AddLink.
//             T3  1 <= bandwidth <= 2^50, 0 <= alpha_ps <= 10^15, tail != head.
//             T4  The same builder calls give the same ids on every machine.
//             T5  Every rank reaches every rank (Build() refuses and names a pair that does not).
//             T6  Node names are unique, without control characters; default: the node's number.
//             T7  1 <= host limit <= 2^50; only ranks have one.
//             T8  original() has as many ranks and no original() itself.
//             T9  Every rank reduces; of switches, those that the builder was told to.
// Complexity  Build() O(n + m log m), accessors O(1), about 40 m + 12 n bytes.
// Threads     Topology: immutable, share freely. Builder: one thread at a time.
// Errors      Wrong input is a Result naming the call at fault; a wrong id is a caller's bug.
// Reference   [direct-connect] 3.1 "Communication Topology & Schedule"; deviation: parallel links
//             and switches exist, and each link has its own alpha and bandwidth (E.3).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/graph/digraph.h"

namespace tutti {

// A link's bandwidth is 1 .. kMaxBandwidth bytes/s, its alpha 0 .. kMaxAlphaPs picoseconds.
inline constexpr int64_t kMaxBandwidth = int64_t{1} << 50;
inline constexpr int64_t kMaxAlphaPs = 1'000'000'000'000'000;

struct LinkSpec {
  int64_t bandwidth = 50'000'000'000;  // bytes/s
  int64_t alpha_ps = 500'000;          // 0.5 us
  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

// What torus(...) and mesh(...) remember of themselves: ranks are row-major over `dims`, the first
// dimension slowest. Algorithms that work dimension by dimension need it.
struct GridShape {
  std::vector<int32_t> dims;
  bool wraps = false;
  friend bool operator==(const GridShape&, const GridShape&) = default;
};

class Topology;

// What is known of a network beside its nodes and links. Copies, transposes and files keep it.
struct TopologyOrigin {
  std::string name;                          // a headline for people
  std::string expression;                    // how it was made; empty: not known
  std::optional<GridShape> grid;             // ranks are the positions of a torus or mesh
  std::shared_ptr<const Topology> original;  // what `unwind` took the switches out of
};

class Topology {
 public:
  class Builder;

  const Digraph& graph() const { return graph_; }
  int32_t num_nodes() const { return graph_.num_nodes(); }
  int32_t num_ranks() const { return num_ranks_; }
  int32_t num_links() const { return graph_.num_links(); }
  bool is_rank(NodeId node) const { return node.value < num_ranks_; }
  bool has_switches() const { return num_ranks_ < num_nodes(); }
  // Whether contributions that meet at `node` can be added there: at ranks, and at switches that
  // compute in the network as NVLink SHARP and InfiniBand SHARP do.
  bool reduces(NodeId node) const {
    return is_rank(node) ||
           (has_reducing_switches() && reducing_[node.index() - static_cast<size_t>(num_ranks_)]);
  }
  bool has_reducing_switches() const { return !reducing_.empty(); }
  IdRange<NodeId> Nodes() const { return graph_.Nodes(); }
  IdRange<NodeId> Ranks() const { return {0, num_ranks_}; }
  IdRange<LinkId> Links() const { return graph_.Links(); }
  NodeId tail(LinkId link) const { return graph_.tail(link); }
  NodeId head(LinkId link) const { return graph_.head(link); }
  IdRange<LinkId> OutLinks(NodeId node) const { return graph_.OutLinks(node); }
  std::span<const LinkId> InLinks(NodeId node) const { return graph_.InLinks(node); }

  const LinkSpec& spec(LinkId link) const { return spec_[link.index()]; }
  int64_t bandwidth(LinkId link) const { return spec(link).bandwidth; }
  int64_t alpha_ps(LinkId link) const { return spec(link).alpha_ps; }

  // Ports in and out, self-loops included.
  int32_t in_degree(NodeId node) const;
  int32_t out_degree(NodeId node) const;
  std::span<const LinkSpec> self_loops(NodeId node) const;
  // Every node has the same number of ports in and out; then that number.
  std::optional<int32_t> regular_degree() const;
  // All links (and self-loops) have one alpha and one bandwidth.
  bool is_homogeneous() const;
  // [B]: the largest total bandwidth into a rank, self-loops included. Bytes/s.
  int64_t max_in_bandwidth() const;

  // Bandwidth of the slowest link, bytes/s: the unit of f. 0 without links.
  int64_t min_bandwidth() const;
  // Bytes/s into the host of a rank, and as many out of it; nullopt: as much as its links carry.
  std::optional<int64_t> host_bandwidth(NodeId rank) const;
  bool has_host_limits() const { return !host_bandwidth_.empty(); }

  // The expression or file it came from; only for people.
  const std::string& name() const { return origin_.name; }
  const std::string& node_name(NodeId node) const { return node_name_[node.index()]; }
  // An expression (expression.h) of a network with the same nodes and as many links and self-loops
  // between any two; bandwidths, alphas, host limits and the order of links may differ. Empty: none
  // is known. Readers of files have checked it, unless it names a file.
  const std::string& expression() const { return origin_.expression; }
  // Links join neighbours on this grid and no others.
  const std::optional<GridShape>& grid() const { return origin_.grid; }
  // The network with switches that `unwind` made this one of, with the same ranks: what its links
  // can carry bounds every schedule. nullptr: not unwound, or with other bandwidths than those that
  // its switches have.
  const Topology* original() const { return origin_.original.get(); }
  const TopologyOrigin& origin() const { return origin_; }
  // The same nodes and links with another origin, which must fit T8 and the number of ranks.
  Topology WithOrigin(TopologyOrigin origin) &&;

  // 64 bits over everything a schedule depends on (ranks, links, alpha, bandwidth, self-loops,
  // host limits, which switches reduce); names do not count.
  uint64_t Fingerprint() const;
  // Canonical text, one link a line in id order: equal topologies print equal bytes.
  std::string ToText() const;

 private:
  Topology() = default;

  int32_t num_ranks_ = 0;
  Digraph graph_;
  std::vector<LinkSpec> spec_;
  std::vector<std::vector<LinkSpec>> self_loops_;  // empty, or one list a node
  std::vector<int64_t> host_bandwidth_;            // empty, or one a rank: 0 is none
  std::vector<bool> reducing_;                     // empty, or one a switch
  std::vector<std::string> node_name_;
  TopologyOrigin origin_;
};

// Collects links in any order. Faults are kept and reported by Build().
class Topology::Builder {
 public:
  explicit Builder(int32_t num_ranks, int32_t num_switches = 0)
      : num_ranks_(num_ranks), num_switches_(num_switches) {}

  // tail == head adds a self-loop (a port without a link).
  void AddLink(NodeId tail, NodeId head, LinkSpec spec);
  // Both directions, each with the whole `spec`: a duplex cable.
  void AddDuplex(NodeId a, NodeId b, LinkSpec spec) {
    AddLink(a, b, spec);
    AddLink(b, a, spec);
  }
  void SetName(std::string name) { origin_.name = std::move(name); }
  void SetExpression(std::string expression) { origin_.expression = std::move(expression); }
  // One name a node, or none at all.
  void SetNodeNames(std::vector<std::string> names) { node_names_ = std::move(names); }
  void SetGrid(GridShape grid) { origin_.grid = std::move(grid); }
  void SetOriginal(std::shared_ptr<const Topology> original) {
    origin_.original = std::move(original);
  }
  void SetOrigin(TopologyOrigin origin) { origin_ = std::move(origin); }
  // Bytes/s; the last call for a rank holds.
  void SetHostBandwidth(NodeId rank, int64_t bandwidth) {
    host_limits_.push_back({rank, bandwidth});
  }
  // Those of `other`, rank by rank.
  void CopyHostLimits(const Topology& other);
  // Says of a switch that it reduces (T9).
  void SetReduces(NodeId node) { reducing_.push_back(node); }
  // Takes for each switch what `other`, which has the same nodes, says of it.
  void CopyReducingSwitches(const Topology& other);

  // Consumes the builder. kInvalidArgument: breaks T1, T3, T5 .. T9 or a grid of another size.
  Result<Topology> Build() &&;

 private:
  struct Pending {
    NodeId tail, head;
    LinkSpec spec;
  };
  struct HostLimit {
    NodeId rank;
    int64_t bandwidth;
  };
  int32_t num_ranks_, num_switches_;
  std::vector<Pending> pending_;
  std::vector<HostLimit> host_limits_;
  std::vector<NodeId> reducing_;
  std::vector<std::string> node_names_;
  TopologyOrigin origin_;
};

}  // namespace tutti
