#include "restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "tutti/base/parallel.h"

namespace tutti {
namespace {

constexpr int32_t kNone = -1;

Status CheckStart(const FlowStart& start) {
  const ConcurrentFlow& flow = *start.flow;
  const auto nodes = static_cast<int64_t>(start.node_names.size());
  const auto fault = [](const std::string& message) {
    return InvalidArgument("the flow to start from " + message);
  };
  if (flow.flow_from.size() > start.node_names.size())
    return fault(fmt::format("has {} sources and {} nodes", flow.flow_from.size(), nodes));
  if (flow.lengths.size() != flow.bundles.size())
    return fault(
        fmt::format("has {} lengths of {} bundles", flow.lengths.size(), flow.bundles.size()));
  for (const LinkBundle& bundle : flow.bundles)
    for (NodeId node : {bundle.tail, bundle.head})
      if (node.value < 0 || node.value >= nodes)
        return fault(fmt::format("has a bundle at node {} of {}", node.value, nodes));
  for (const auto& from : flow.flow_from)
    for (const BundleFlow& part : from)
      if (part.bundle < 0 || static_cast<size_t>(part.bundle) >= flow.bundles.size())
        return fault(fmt::format("names bundle {} of {}", part.bundle, flow.bundles.size()));
  return {};
}

// Where the nodes and bundles of the start are now.
struct Matching {
  std::vector<int32_t> node, bundle;  // kNone: gone
};

Matching Match(const Topology& topology, const FlowNetwork& network, const FlowStart& start) {
  std::map<std::string_view, int32_t> by_name;
  for (NodeId node : topology.Nodes()) by_name.emplace(topology.node_name(node), node.value);
  Matching matching;
  for (const std::string& name : start.node_names) {
    const auto found = by_name.find(name);
    matching.node.push_back(found == by_name.end() ? kNone : found->second);
  }
  for (const LinkBundle& bundle : start.flow->bundles) {
    const int32_t tail = matching.node[bundle.tail.index()];
    const int32_t head = matching.node[bundle.head.index()];
    matching.bundle.push_back(kNone);
    if (tail == kNone || head == kNone) continue;
    const auto first = network.tail.begin() + network.first_in[static_cast<size_t>(head)];
    const auto end = network.tail.begin() + network.first_in[static_cast<size_t>(head) + 1];
    const auto at = std::lower_bound(first, end, tail);
    if (at != end && *at == tail)
      matching.bundle.back() = static_cast<int32_t>(at - network.tail.begin());
  }
  return matching;
}

// Lengths of what has stayed; what is new is as long as that on average.
std::vector<double> LengthsOf(const FlowNetwork& network, const Matching& matching,
                              const FlowStart& start) {
  std::vector<double> price(network.num_bundles(), -1);
  double sum = 0, known = 0;
  for (size_t e = 0; e < matching.bundle.size(); ++e) {
    if (matching.bundle[e] == kNone) continue;
    const auto now = static_cast<size_t>(matching.bundle[e]);
    price[now] = static_cast<double>(start.flow->lengths[e]) * network.capacity[now];
    sum += price[now];
    known += 1;
  }
  const double mean = sum > 0 ? sum / known : 1;
  for (size_t e = 0; e < price.size(); ++e)
    price[e] = (price[e] < 0 || sum <= 0 ? mean : price[e]) / network.capacity[e];
  return price;
}

// The flow of one source, taken over.
class Takeover {
 public:
  Takeover(const FlowNetwork& network, const DemandTable& demand, double mean_demand)
      : network_(network),
        demand_(demand),
        mean_demand_(mean_demand),
        in_(static_cast<size_t>(network.num_nodes)),
        out_(static_cast<size_t>(network.num_nodes)),
        is_fed_(static_cast<size_t>(network.num_nodes)) {}

  // Without an order where the old flow cannot be set right.
  SourceFlow Run(int32_t source, const std::vector<BundleFlow>& old, const Matching& matching) {
    for (auto& list : in_) list.clear();
    for (auto& list : out_) list.clear();
    heads_.clear();
    for (const BundleFlow& part : old) {
      const int32_t bundle = matching.bundle[static_cast<size_t>(part.bundle)];
      if (bundle == kNone || part.units <= 0) continue;
      const int32_t head = network_.head[static_cast<size_t>(bundle)];
      if (head == source) continue;
      Add(bundle, static_cast<double>(part.units));
    }
    if (!Attach(source) || !Sort(source)) return {};
    return Draw(source);
  }

 private:
  struct Part {
    int32_t bundle;
    double weight;
  };
  void Add(int32_t bundle, double weight) {
    const auto e = static_cast<size_t>(bundle);
    std::vector<Part>& parts = in_[static_cast<size_t>(network_.head[e])];
    for (Part& part : parts) {
      if (part.bundle != bundle) continue;
      part.weight += weight;
      return;
    }
    if (parts.empty()) heads_.push_back(network_.head[e]);
    parts.push_back({bundle, weight});
    out_[static_cast<size_t>(network_.tail[e])].push_back(network_.head[e]);
  }

  // Nodes that are to get or to give something and have no way in get one.
  bool Attach(int32_t source) {
    for (int32_t v = 0; v < network_.num_nodes; ++v) {
      const auto at = static_cast<size_t>(v);
      if (v == source || !in_[at].empty()) continue;
      if (out_[at].empty() && demand_(source, v) == 0) continue;
      MarkFed(v);
      bool any = false;
      for (int32_t e = network_.first_in[at]; e < network_.first_in[at + 1]; ++e) {
        const int32_t tail = network_.tail[static_cast<size_t>(e)];
        const auto u = static_cast<size_t>(tail);
        if (is_fed_[u] || (tail != source && in_[u].empty())) continue;
        Add(e, 1);
        any = true;
      }
      if (!any) return false;
    }
    return true;
  }
  void MarkFed(int32_t from) {
    std::fill(is_fed_.begin(), is_fed_.end(), 0);
    std::vector<int32_t> todo = {from};
    is_fed_[static_cast<size_t>(from)] = 1;
    while (!todo.empty()) {
      const auto u = static_cast<size_t>(todo.back());
      todo.pop_back();
      for (int32_t v : out_[u]) {
        if (is_fed_[static_cast<size_t>(v)]) continue;
        is_fed_[static_cast<size_t>(v)] = 1;
        todo.push_back(v);
      }
    }
  }

  // Each node behind those that feed it, else in the order of the old flow, which is about that of
  // their distances. False: there is a cycle, or a node that the source does not feed.
  bool Sort(int32_t source) {
    std::fill(is_fed_.begin(), is_fed_.end(), 0);  // here: has its place
    is_fed_[static_cast<size_t>(source)] = 1;
    order_ = {source};
    std::vector<int32_t>& waiting = heads_;
    for (size_t left = 0; !waiting.empty() && waiting.size() != left;) {
      left = waiting.size();
      size_t kept = 0;
      for (const int32_t v : waiting) {
        const auto fed = [this](const Part& part) {
          return is_fed_[static_cast<size_t>(network_.tail[static_cast<size_t>(part.bundle)])] != 0;
        };
        const std::vector<Part>& parts = in_[static_cast<size_t>(v)];
        if (std::all_of(parts.begin(), parts.end(), fed)) {
          is_fed_[static_cast<size_t>(v)] = 1;
          order_.push_back(v);
        } else {
          waiting[kept++] = v;
        }
      }
      waiting.resize(kept);
    }
    return waiting.empty();
  }

  SourceFlow Draw(int32_t source) {
    std::vector<double> need(in_.size(), 0);
    for (size_t i = order_.size(); i-- > 1;) {
      const auto v = static_cast<size_t>(order_[i]);
      need[v] += static_cast<double>(demand_(source, order_[i])) / mean_demand_;
      double total = 0;
      for (const Part& part : in_[v]) total += part.weight;
      for (Part& part : in_[v]) {
        part.weight *= need[v] / total;
        need[static_cast<size_t>(network_.tail[static_cast<size_t>(part.bundle)])] += part.weight;
      }
    }
    SourceFlow flow;
    flow.order.push_back(source);
    for (size_t i = 1; i < order_.size(); ++i) {
      std::vector<Part>& parts = in_[static_cast<size_t>(order_[i])];
      std::sort(parts.begin(), parts.end(),
                [](const Part& a, const Part& b) { return a.bundle < b.bundle; });
      const size_t before = flow.bundles.size();
      for (const Part& part : parts) {
        if (part.weight <= 0) continue;
        flow.bundles.push_back(part.bundle);
        flow.flow.push_back(part.weight);
      }
      if (flow.bundles.size() > before) flow.order.push_back(order_[i]);
    }
    return flow;
  }

  const FlowNetwork& network_;
  const DemandTable& demand_;
  double mean_demand_;
  std::vector<std::vector<Part>> in_;      // of a node: what feeds it
  std::vector<std::vector<int32_t>> out_;  // of a node: whom it feeds
  std::vector<char> is_fed_;               // by the node that is looked at
  std::vector<int32_t> heads_;             // nodes that something feeds
  std::vector<int32_t> order_;
};

}  // namespace

std::vector<std::string> NodeNamesOf(const Topology& topology) {
  std::vector<std::string> names;
  for (NodeId node : topology.Nodes()) names.push_back(topology.node_name(node));
  return names;
}

Result<Restart> RestartFrom(const Topology& topology, const FlowNetwork& network,
                            const DemandTable& demand, double mean_demand, const FlowStart& start) {
  if (const Status status = CheckStart(start); !status) return tl::unexpected(status.error());
  const Matching matching = Match(topology, network, start);
  Restart restart{{}, LengthsOf(network, matching, start)};
  std::vector<const std::vector<BundleFlow>*> old(static_cast<size_t>(network.num_ranks), nullptr);
  for (size_t s = 0; s < start.flow->flow_from.size(); ++s)
    if (matching.node[s] != kNone && matching.node[s] < network.num_ranks)
      old[static_cast<size_t>(matching.node[s])] = &start.flow->flow_from[s];
  restart.flows.resize(old.size());
  ParallelFor(network.num_ranks, 16, [&](int64_t begin, int64_t end) {
    Takeover takeover(network, demand, mean_demand);
    for (int64_t s = begin; s < end; ++s)
      if (old[static_cast<size_t>(s)] != nullptr)
        restart.flows[static_cast<size_t>(s)] =
            takeover.Run(static_cast<int32_t>(s), *old[static_cast<size_t>(s)], matching);
  });
  return restart;
}

}  // namespace tutti
