#include "tutti/advise/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tutti/base/units.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

// Machines and who is cabled to whom.
struct Machines {
  std::vector<int32_t> of_node;  // by node; -1: a switch of the fabric
  std::vector<std::set<int32_t>> neighbours;
  bool switched = false;
};

int32_t MachineOf(const Boxes& boxes, NodeId rank) {
  return boxes.found_by == Boxes::FoundBy::kNames ? boxes.box_of[rank.index()] : rank.value;
}

Machines MachinesOf(const Topology& topology, const Boxes& boxes) {
  Machines machines;
  machines.of_node.assign(static_cast<size_t>(topology.num_nodes()), -1);
  int32_t count = 0;
  for (NodeId rank : topology.Ranks()) {
    machines.of_node[rank.index()] = MachineOf(boxes, rank);
    count = std::max(count, MachineOf(boxes, rank) + 1);
  }
  for (int32_t node = topology.num_ranks(); node < topology.num_nodes(); ++node) {
    std::set<int32_t> around;
    for (LinkId link : topology.OutLinks(NodeId{node}))
      around.insert(machines.of_node[topology.head(link).index()]);
    if (around.size() == 1 && *around.begin() >= 0)
      machines.of_node[static_cast<size_t>(node)] = *around.begin();
    else
      machines.switched = true;
  }
  machines.neighbours.resize(static_cast<size_t>(count));
  for (LinkId link : topology.Links()) {
    const int32_t a = machines.of_node[topology.tail(link).index()],
                  b = machines.of_node[topology.head(link).index()];
    if (a >= 0 && b >= 0 && a != b) machines.neighbours[static_cast<size_t>(a)].insert(b);
  }
  return machines;
}

// A circle through all machines, tried depth first for so many steps.
class CircleSearch {
 public:
  explicit CircleSearch(const Machines& machines)
      : machines_(machines), used_(machines.neighbours.size(), false) {}

  std::vector<int32_t> Find() {
    order_.push_back(0);
    used_[0] = true;
    return Extend() ? order_ : std::vector<int32_t>();
  }

 private:
  static constexpr int32_t kMaxSteps = 100'000;

  bool Extend() {
    const std::set<int32_t>& next = machines_.neighbours[static_cast<size_t>(order_.back())];
    if (order_.size() == machines_.neighbours.size()) return next.contains(0);
    for (const int32_t machine : next) {
      if (used_[static_cast<size_t>(machine)] || ++steps_ > kMaxSteps) continue;
      used_[static_cast<size_t>(machine)] = true;
      order_.push_back(machine);
      if (Extend()) return true;
      order_.pop_back();
      used_[static_cast<size_t>(machine)] = false;
    }
    return false;
  }

  const Machines& machines_;
  std::vector<bool> used_;
  std::vector<int32_t> order_;
  int32_t steps_ = 0;
};

// Whether some rank reaches another one through ranks only: rails that nothing joins.
bool HasSeparateRails(const Topology& topology) {
  std::vector<bool> reached(static_cast<size_t>(topology.num_nodes()), false);
  std::vector<NodeId> todo{NodeId{0}};
  reached[0] = true;
  while (!todo.empty()) {
    const NodeId node = todo.back();
    todo.pop_back();
    if (topology.is_rank(node) && node.value != 0) continue;
    for (LinkId link : topology.OutLinks(node))
      if (const NodeId head = topology.head(link); !reached[head.index()]) {
        reached[head.index()] = true;
        todo.push_back(head);
      }
  }
  return std::find(reached.begin(), reached.begin() + topology.num_ranks(), false) !=
         reached.begin() + topology.num_ranks();
}

WiringKind KindOf(const Machines& machines, bool has_circle) {
  const size_t count = machines.neighbours.size();
  if (count <= 1) return WiringKind::kOneMachine;
  size_t least = count, most = 0, ends = 0;
  for (const std::set<int32_t>& neighbours : machines.neighbours) {
    least = std::min(least, neighbours.size());
    most = std::max(most, neighbours.size());
    ends += neighbours.size() == 1 ? 1 : 0;
  }
  if (least == count - 1) return WiringKind::kAllPairs;
  if (least == 2 && most == 2 && has_circle) return WiringKind::kRing;
  if (most == 2 && ends == 2) return WiringKind::kLine;
  return WiringKind::kOther;
}

// --- The ring ------------------------------------------------------------------------------------

// The ring of one channel: ranks box after box.
std::vector<NodeId> RingOrder(const Topology& topology, const Boxes& boxes, int32_t channel) {
  std::vector<NodeId> order;
  if (!boxes.some()) {
    for (NodeId rank : topology.Ranks()) order.push_back(rank);
    return order;
  }
  std::vector<std::vector<NodeId>> of_box(boxes.sizes.size());
  for (NodeId rank : topology.Ranks())
    of_box[static_cast<size_t>(boxes.box_of[rank.index()])].push_back(rank);
  for (size_t box = 0; box < of_box.size(); ++box) {
    std::vector<NodeId>& ranks = of_box[box];
    std::rotate(ranks.begin(), ranks.begin() + channel % std::ssize(ranks), ranks.end());
    if (box % 2 == 1) std::reverse(ranks.begin(), ranks.end());
    order.insert(order.end(), ranks.begin(), ranks.end());
  }
  return order;
}

// One unit of flow between two ranks over all shortest paths, each node passing it on in the ratio
// of the bandwidths of its links.
class ShortestPaths {
 public:
  explicit ShortestPaths(const Topology& topology) : topology_(topology) {}

  // Adds `units` to the loads; the sum of alphas of the slowest way.
  int64_t Send(NodeId from, NodeId to, const Rational& units, std::vector<Rational>& load) {
    MeasureTo(to);
    std::map<std::pair<int32_t, int32_t>, Rational> at;  // by -distance and node
    std::map<int32_t, int64_t> alpha_ps;
    at[{-distance_[from.index()], from.value}] = units;
    int64_t max_ps = 0;
    while (!at.empty()) {
      const auto [key, flow] = *at.begin();
      at.erase(at.begin());
      const NodeId node{key.second};
      if (node == to) {
        max_ps = alpha_ps[to.value];
        continue;
      }
      Rational total;
      for (LinkId link : topology_.OutLinks(node))
        if (LeadsOn(link)) total += Rational(topology_.bandwidth(link));
      for (LinkId link : topology_.OutLinks(node)) {
        if (!LeadsOn(link)) continue;
        const NodeId head = topology_.head(link);
        const Rational part = flow * Rational(topology_.bandwidth(link)) / total;
        load[link.index()] += part;
        at[{-distance_[head.index()], head.value}] += part;
        alpha_ps[head.value] =
            std::max(alpha_ps[head.value], alpha_ps[node.value] + topology_.alpha_ps(link));
      }
    }
    return max_ps;
  }

 private:
  bool LeadsOn(LinkId link) const {
    return distance_[topology_.head(link).index()] + 1 == distance_[topology_.tail(link).index()];
  }
  void MeasureTo(NodeId to) {
    constexpr int32_t kFar = 1 << 30;
    distance_.assign(static_cast<size_t>(topology_.num_nodes()), kFar);
    distance_[to.index()] = 0;
    std::vector<NodeId> queue{to};
    for (size_t next = 0; next < queue.size(); ++next)
      for (LinkId link : topology_.InLinks(queue[next]))
        if (int32_t& distance = distance_[topology_.tail(link).index()]; distance == kFar) {
          distance = distance_[queue[next].index()] + 1;
          queue.push_back(topology_.tail(link));
        }
  }

  const Topology& topology_;
  std::vector<int32_t> distance_;  // hops to the end
};

}  // namespace

std::string_view Name(WiringKind kind) {
  switch (kind) {
    case WiringKind::kOneMachine:
      return "one machine";
    case WiringKind::kSwitched:
      return "switched";
    case WiringKind::kAllPairs:
      return "a cable between any two";
    case WiringKind::kRing:
      return "ring";
    case WiringKind::kLine:
      return "line";
    case WiringKind::kOther:
      return "other";
  }
  return "other";
}

namespace {

// GPUs of one box by their names, or of the one machine that comes without a box's name.
bool IsOneMachine(const Topology& topology) {
  if (topology.num_ranks() == 1) return true;
  const Result<ExpressionTree> tree = ParseExpressionTree(topology.expression());
  if (tree && tree->family == "dgx1") return true;
  std::string first;
  for (NodeId rank : topology.Ranks()) {
    const std::string& name = topology.node_name(rank);
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return false;
    if (first.empty()) first = name.substr(0, dot);
    if (name.compare(0, dot, first) != 0) return false;
  }
  return true;
}

}  // namespace

Wiring WiringOf(const Topology& topology, const Boxes& boxes) {
  if (IsOneMachine(topology)) return {.kind = WiringKind::kOneMachine, .machines = 1};
  const Machines machines = MachinesOf(topology, boxes);
  Wiring wiring{.machines = static_cast<int32_t>(machines.neighbours.size())};
  for (const std::set<int32_t>& neighbours : machines.neighbours)
    wiring.max_neighbours =
        std::max(wiring.max_neighbours, static_cast<int32_t>(neighbours.size()));
  if (machines.switched) {
    wiring.kind = WiringKind::kSwitched;
    wiring.separate_rails = boxes.some() && HasSeparateRails(topology);
    return wiring;
  }
  constexpr int32_t kMaxInCircle = 64;  // deeper, the search rarely ends
  if (wiring.machines > 2 && wiring.machines <= kMaxInCircle)
    wiring.circle = CircleSearch(machines).Find();
  wiring.kind = KindOf(machines, !wiring.circle.empty());
  return wiring;
}

namespace {

void AdviseDirect(const Wiring& wiring, NcclAdvice& advice) {
  advice.settings.push_back(
      {"NCCL_IB_HCA", "",
       fmt::format("the NICs that have a cable to another machine and no others: up to {} a "
                   "machine, as =NAME:PORT,..; NCCL would also take those that lead elsewhere",
                   wiring.max_neighbours)});
  if (wiring.max_neighbours > 1) {
    advice.settings.push_back({"NCCL_IB_SUBNET_AWARE_ROUTING", "1",
                               "each cable is a subnet of its own, so that a peer is reached only "
                               "from the NIC in its subnet (undocumented variable of NCCL)"});
    advice.settings.push_back(
        {"NCCL_CROSS_NIC", "1",
         "a ring comes in from one neighbour and goes out to the other, which "
         "are on different NICs"});
    advice.notes.emplace_back(
        "give both ends of a cable addresses of one subnet, and each cable another subnet; where "
        "that is wrong, connections end with ibv_modify_qp error 110");
  }
  if (wiring.kind == WiringKind::kAllPairs) return;
  if (!wiring.circle.empty())
    advice.settings.push_back(
        {"NCCL_ALGO", "Ring", "trees need pairs of machines that no cable joins"});
  advice.notes.emplace_back(
      "NCCL connects its trees even with NCCL_ALGO=Ring (NVIDIA/nccl#1034): between machines "
      "without a cable that can end the start of a job; then it takes a patched NCCL that skips "
      "them, a net plug-in that relays, or a library that opens only the links of a schedule");
  if (wiring.circle.empty())
    advice.notes.emplace_back(
        "no ring of cables passes all machines: NCCL's ring would need a pair that none joins");
}

}  // namespace

NcclAdvice AdviseNccl(const Wiring& wiring) {
  NcclAdvice advice;
  if (wiring.kind == WiringKind::kOneMachine) {
    advice.notes.emplace_back("one machine: NCCL finds its own way, nothing needs to be set");
    return advice;
  }
  if (wiring.kind == WiringKind::kSwitched) {
    if (wiring.separate_rails)
      advice.settings.push_back({"NCCL_CROSS_NIC", "0",
                                 "a ring or tree keeps to one rail: what changes rails has no way "
                                 "through the switches"});
    else
      advice.notes.emplace_back(
          "all NICs reach each other through switches: NCCL needs no setting for that");
  } else {
    AdviseDirect(wiring, advice);
  }
  advice.notes.emplace_back(
      "to see which rings and trees were made: NCCL_DEBUG=INFO "
      "NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING, not in production; /etc/nccl.conf and ~/.nccl.conf may "
      "set variables, too");
  return advice;
}

std::optional<Rational> RingEstimate::Seconds(CollectiveKind kind, int32_t ranks,
                                              int64_t size_bytes) const {
  int64_t rounds = 0;
  Rational bytes(size_bytes);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      rounds = 2;
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      rounds = 1;
      break;
    default:
      return std::nullopt;
  }
  if (kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kReduce)
    bytes *= Rational(ranks - 1, ranks);
  return Rational(rounds) *
         (Rational(ranks - 1) * Rational(hop_ps, kPicosecondsPerSecond) + bytes * seconds_per_byte);
}

RingEstimate EstimateRing(const Topology& topology, const Boxes& boxes) {
  RingEstimate estimate;
  if (boxes.some()) estimate.channels = *std::min_element(boxes.sizes.begin(), boxes.sizes.end());
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  for (int32_t channel = 0; channel < estimate.channels; ++channel) {
    const std::vector<NodeId> order = RingOrder(topology, boxes, channel);
    for (size_t i = 0; i < order.size(); ++i)
      if (const NodeId next = order[(i + 1) % order.size()]; next != order[i])
        ++pairs[{order[i].value, next.value}];
  }
  std::vector<Rational> load(static_cast<size_t>(topology.num_links()));
  ShortestPaths paths(topology);
  for (const auto& [pair, times] : pairs)
    estimate.hop_ps =
        std::max(estimate.hop_ps, paths.Send(NodeId{pair.first}, NodeId{pair.second},
                                             Rational(times, estimate.channels), load));
  for (LinkId link : topology.Links())
    estimate.seconds_per_byte = std::max(estimate.seconds_per_byte,
                                         load[link.index()] / Rational(topology.bandwidth(link)));
  return estimate;
}

}  // namespace tutti
