#include "forest/splitting.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/graph/max_flow.h"

namespace tutti::forest {
namespace {

// Flows that take about a second.
constexpr int64_t kMaxQuickFlows = int64_t{1} << 20;

// What a switch takes in from a node, or gives out to it.
struct Port {
  int32_t node;
  int64_t trees;
  int32_t group = 0;  // parts of the network that only this switch joins
  int32_t place = 0;  // in its group
};
struct Ports {
  std::vector<Port> in, out;
};

struct Pair {
  size_t in, out;  // of Ports
};

class Parts {
 public:
  explicit Parts(int32_t count) : parent_(static_cast<size_t>(count)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int32_t Of(int32_t node) {
    while (At(node) != node) node = At(node) = At(At(node));
    return node;
  }
  void Join(int32_t a, int32_t b) { At(Of(a)) = Of(b); }

 private:
  int32_t& At(int32_t node) { return parent_[static_cast<size_t>(node)]; }
  std::vector<int32_t> parent_;
};

Ports PortsOf(const TreeNetwork& network, int32_t hub) {
  Ports ports;
  Parts parts(network.num_nodes);
  for (const auto& [ends, lane] : network.lanes) {
    if (ends.second == hub) ports.in.push_back({ends.first, lane.trees()});
    if (ends.first == hub) ports.out.push_back({ends.second, lane.trees()});
    if (ends.first != hub && ends.second != hub) parts.Join(ends.first, ends.second);
  }
  for (std::vector<Port>* side : {&ports.in, &ports.out}) {
    std::map<int32_t, int32_t> places;
    for (Port& port : *side) {
      port.group = parts.Of(port.node);
      port.place = places[port.group]++;
    }
  }
  // Groups by number, in the order of their first nodes.
  std::map<int32_t, int32_t> number;
  for (std::vector<Port>* side : {&ports.in, &ports.out})
    for (Port& port : *side)
      port.group =
          number.try_emplace(port.group, static_cast<int32_t>(number.size())).first->second;
  return ports;
}

int32_t NumGroups(const Ports& ports) {
  int32_t most = 0;
  for (const Port& port : ports.in) most = std::max(most, port.group + 1);
  for (const Port& port : ports.out) most = std::max(most, port.group + 1);
  return most;
}

// Pairs worth a lane, the nearest places in the next groups first.
std::vector<Pair> PairsOf(const Ports& ports) {
  const int32_t groups = NumGroups(ports);
  std::vector<std::pair<std::pair<int32_t, int32_t>, Pair>> keyed;
  for (size_t i = 0; i < ports.in.size(); ++i)
    for (size_t o = 0; o < ports.out.size(); ++o) {
      const Port &in = ports.in[i], &out = ports.out[o];
      if (in.node == out.node || (groups > 1 && in.group == out.group)) continue;
      const int32_t size = static_cast<int32_t>(ports.out.size());
      const int32_t turn = (out.place - in.place + size) % size;
      keyed.push_back({{turn, (out.group - in.group + groups) % groups}, {i, o}});
    }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Pair> pairs;
  for (const auto& [key, pair] : keyed) pairs.push_back(pair);
  return pairs;
}

// How many trees each pair gets when all get about as many.
std::vector<int64_t> SpreadEvenly(Ports ports, const std::vector<Pair>& pairs) {
  constexpr int kPasses = 64;
  std::vector<int64_t> given(pairs.size(), 0);
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<int64_t> in_pairs(ports.in.size(), 0), out_pairs(ports.out.size(), 0);
    for (const Pair& pair : pairs)
      if (ports.in[pair.in].trees > 0 && ports.out[pair.out].trees > 0) {
        ++in_pairs[pair.in];
        ++out_pairs[pair.out];
      }
    const Ports before = ports;
    bool any = false;
    for (size_t k = 0; k < pairs.size(); ++k) {
      int64_t &in = ports.in[pairs[k].in].trees, &out = ports.out[pairs[k].out].trees;
      if (in == 0 || out == 0) continue;
      const int64_t share =
          std::min(before.in[pairs[k].in].trees / std::max<int64_t>(1, in_pairs[pairs[k].in]),
                   before.out[pairs[k].out].trees / std::max<int64_t>(1, out_pairs[pairs[k].out]));
      const int64_t amount = std::min({in, out, std::max<int64_t>(1, share)});
      given[k] += amount;
      in -= amount;
      out -= amount;
      any = true;
    }
    if (!any) break;
  }
  return given;
}

// `trees` of the paths of a lane, taken off its end.
std::vector<LanePath> TakeOff(Lane& lane, int64_t trees) {
  std::vector<LanePath> taken;
  while (trees > 0) {
    LanePath& last = lane.paths.back();
    const int64_t amount = std::min(trees, last.trees);
    taken.push_back({last.links, amount});
    last.trees -= amount;
    trees -= amount;
    if (last.trees == 0) lane.paths.pop_back();
  }
  return taken;
}

void Split(TreeNetwork& network, int32_t in, int32_t hub, int32_t out, int64_t trees) {
  if (trees == 0) return;
  const auto arriving = network.lanes.find({in, hub}), leaving = network.lanes.find({hub, out});
  TUTTI_CHECK(arriving != network.lanes.end() && leaving != network.lanes.end());
  std::vector<LanePath> first = TakeOff(arriving->second, trees);
  std::vector<LanePath> second = TakeOff(leaving->second, trees);
  if (arriving->second.paths.empty()) network.lanes.erase(arriving);
  if (leaving->second.paths.empty()) network.lanes.erase(leaving);
  if (in == out) return;  // back to where it came from: nobody's loss
  std::vector<LanePath>& paths = network.lanes[{in, out}].paths;
  for (size_t a = 0, b = 0; a < first.size() && b < second.size();) {
    const int64_t amount = std::min(first[a].trees, second[b].trees);
    LanePath path{first[a].links, amount};
    path.links.insert(path.links.end(), second[b].links.begin(), second[b].links.end());
    paths.push_back(std::move(path));
    if ((first[a].trees -= amount) == 0) ++a;
    if ((second[b].trees -= amount) == 0) ++b;
  }
}

void Remove(TreeNetwork& network, int32_t hub) {
  std::erase_if(network.lanes, [hub](const auto& entry) {
    return entry.first.first == hub || entry.first.second == hub;
  });
}

void SpreadOut(TreeNetwork& network, int32_t hub) {
  const Ports ports = PortsOf(network, hub);
  const std::vector<Pair> pairs = PairsOf(ports);
  const std::vector<int64_t> given = SpreadEvenly(ports, pairs);
  for (size_t k = 0; k < pairs.size(); ++k)
    Split(network, ports.in[pairs[k].in].node, hub, ports.out[pairs[k].out].node, given[k]);
  Remove(network, hub);
}

// All switches from `first` to `last`, where the flows then suffice.
bool SplitAtOnce(TreeNetwork& network, int32_t first, int32_t last) {
  TreeNetwork split = network;
  for (int32_t hub = first; hub <= last; ++hub) SpreadOut(split, hub);
  if (!FlowsSuffice(split)) return false;
  network = std::move(split);
  return true;
}

// Pair after pair, each as far as all flows allow.
class PairSplitter {
 public:
  PairSplitter(TreeNetwork& network, int32_t hub)
      : network_(network), hub_(hub), ports_(PortsOf(network, hub)), total_(network.total()) {
    for (const auto& [ends, lane] : network.lanes) AddArc(ends, lane.trees());
    for (const Port& in : ports_.in)
      for (const Port& out : ports_.out)
        if (in.node != out.node && !arc_.contains({in.node, out.node}))
          AddArc({in.node, out.node}, 0);
    flow_.emplace(network.num_nodes, arcs_);
  }

  Status Run() {
    std::vector<Pair> pairs = PairsOf(ports_);
    // Then all others, and what goes back to where it came from.
    for (const bool back : {false, true})
      for (size_t i = 0; i < ports_.in.size(); ++i)
        for (size_t o = 0; o < ports_.out.size(); ++o)
          if (back == (ports_.in[i].node == ports_.out[o].node)) pairs.push_back({i, o});
    for (const Pair& pair : pairs) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      SplitPair(ports_.in[pair.in], ports_.out[pair.out]);
    }
    Remove(network_, hub_);
    if (FlowsSuffice(network_)) return {};
    return MakeError(ErrorCode::kInfeasible,
                     "'forest' cannot take the switches out without loss: some node takes in more "
                     "than it gives out, or less");
  }

 private:
  using Ends = std::pair<int32_t, int32_t>;

  void AddArc(const Ends& ends, int64_t trees) {
    arc_[ends] = static_cast<int32_t>(arcs_.size());
    arcs_.push_back({NodeId{ends.first}, NodeId{ends.second}, trees});
  }

  void Shift(const Port& in, const Port& out, int64_t trees) {
    const auto add = [&](const Ends& ends, int64_t amount) {
      const int32_t arc = arc_.at(ends);
      int64_t& capacity = arcs_[static_cast<size_t>(arc)].capacity;
      capacity += amount;
      flow_->SetCapacity(arc, capacity);
    };
    add({in.node, hub_}, -trees);
    add({hub_, out.node}, -trees);
    if (in.node != out.node) add({in.node, out.node}, trees);
  }

  void SplitPair(Port& in, Port& out) {
    int64_t trees = std::min(in.trees, out.trees);
    if (trees == 0) return;
    Shift(in, out, trees);
    for (int32_t rank = 0; rank < network_.num_ranks; ++rank)
      flow_->SetSupply(NodeId{rank}, network_.trees_of[static_cast<size_t>(rank)]);
    for (int32_t rank = 0; rank < network_.num_ranks && trees > 0; ++rank) {
      for (;;) {
        const int64_t lack = total_ - flow_->Run(NodeId{rank}, total_);
        if (lack == 0) break;
        const int64_t back = std::min(lack, trees);
        Shift(in, out, -back);
        trees -= back;
        if (trees == 0) return;
      }
      flow_->SetUnlimitedSupply(NodeId{rank});
    }
    Split(network_, in.node, hub_, out.node, trees);
    in.trees -= trees;
    out.trees -= trees;
  }

  TreeNetwork& network_;
  const int32_t hub_;
  Ports ports_;
  const int64_t total_;
  std::map<Ends, int32_t> arc_;
  std::vector<MaxFlow<int64_t>::Arc> arcs_;
  std::optional<MaxFlow<int64_t>> flow_;
};

}  // namespace

Status SplitSwitches(TreeNetwork& network, Effort effort) {
  if (network.num_nodes == network.num_ranks) return {};
  if (SplitAtOnce(network, network.num_ranks, network.num_nodes - 1)) return {};
  for (int32_t hub = network.num_nodes - 1; hub >= network.num_ranks; --hub) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (SplitAtOnce(network, hub, hub)) continue;
    const Ports ports = PortsOf(network, hub);
    const auto pairs = static_cast<int64_t>(ports.in.size() * ports.out.size());
    if (effort == Effort::kQuick && pairs * network.num_ranks > kMaxQuickFlows)
      return MakeError(ErrorCode::kInfeasible,
                       "switches that come out pair by pair take many flows");
    if (const Status split = PairSplitter(network, hub).Run(); !split) return split;
  }
  return {};
}

}  // namespace tutti::forest
