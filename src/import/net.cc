#include <algorithm>
#include <tuple>

#include "merge.h"

namespace tutti::import {

std::vector<std::string> Net::Prune() {
  pruned_.assign(switches_.size(), 0);
  std::vector<std::vector<Node>> neighbours(switches_.size());
  const auto index = [](Node node) { return static_cast<size_t>(-1 - node); };
  for (const auto& [ends, bandwidth] : cables_) {
    if (ends.first < 0) neighbours[index(ends.first)].push_back(ends.second);
    if (ends.second < 0) neighbours[index(ends.second)].push_back(ends.first);
  }
  std::vector<size_t> degree, todo;
  for (size_t i = 0; i < switches_.size(); ++i) {
    degree.push_back(neighbours[i].size());
    if (degree[i] <= 1) todo.push_back(i);
  }
  std::vector<std::string> names;
  while (!todo.empty()) {
    const size_t at = todo.back();
    todo.pop_back();
    if (pruned_[at] != 0) continue;
    pruned_[at] = 1;
    names.push_back(switches_[at]);
    for (Node other : neighbours[at])
      if (other < 0 && pruned_[index(other)] == 0 && --degree[index(other)] <= 1)
        todo.push_back(index(other));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Topology> Net::Build(int64_t alpha_ps, const std::string& name) const {
  std::vector<std::string> names = ranks_;
  std::vector<int32_t> number;
  for (size_t i = 0; i < switches_.size(); ++i) {
    number.push_back(static_cast<int32_t>(names.size()));
    if (pruned_.empty() || pruned_[i] == 0) names.push_back(switches_[i]);
  }
  const auto is_there = [this](Node node) {
    return node >= 0 || pruned_.empty() || pruned_[static_cast<size_t>(-1 - node)] == 0;
  };
  const auto id = [&number](Node node) {
    return NodeId{node >= 0 ? node : number[static_cast<size_t>(-1 - node)]};
  };
  // In the order of expressions: by tail, then head.
  std::vector<std::tuple<int32_t, int32_t, int64_t>> links;
  for (const auto& [ends, bandwidth] : cables_) {
    if (!is_there(ends.first) || !is_there(ends.second)) continue;
    const int32_t a = id(ends.first).value, b = id(ends.second).value;
    links.emplace_back(a, b, bandwidth);
    links.emplace_back(b, a, bandwidth);
  }
  std::sort(links.begin(), links.end());
  const auto ranks = static_cast<int32_t>(ranks_.size());
  Topology::Builder builder(ranks, static_cast<int32_t>(names.size()) - ranks);
  for (const auto& [tail, head, bandwidth] : links)
    builder.AddLink(NodeId{tail}, NodeId{head}, {.bandwidth = bandwidth, .alpha_ps = alpha_ps});
  builder.SetName(name);
  builder.SetNodeNames(std::move(names));
  return std::move(builder).Build();
}

}  // namespace tutti::import
