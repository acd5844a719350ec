#include "tutti/sched/group_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "tutti/sched/schedule.h"

namespace tutti {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

std::optional<int32_t> Number(std::string_view text) {
  int32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

// "A", "A-B" or "A-B/S".
Status AppendRange(std::string_view item, int32_t num_ranks, std::vector<NodeId>& ranks) {
  const auto bad = [&] {
    return InvalidArgument(
        fmt::format("'{}' is no rank (0 to {}) and no range of ranks such as 0-7 or 0-14/2", item,
                    num_ranks - 1));
  };
  const size_t dash = item.find('-');
  if (dash == std::string_view::npos) {
    const auto rank = Number(item);
    if (!rank || *rank >= num_ranks) return bad();
    ranks.push_back(NodeId{*rank});
    return {};
  }
  const std::string_view rest = item.substr(dash + 1);
  const size_t slash = rest.find('/');
  const auto first = Number(item.substr(0, dash)), last = Number(rest.substr(0, slash));
  const auto step = slash == std::string_view::npos ? 1 : Number(rest.substr(slash + 1));
  if (!first || !last || !step || *step < 1 || *first > *last || *last >= num_ranks) return bad();
  for (int64_t rank = *first; rank <= *last; rank += *step)
    ranks.push_back(NodeId{static_cast<int32_t>(rank)});
  return {};
}

// Ranks with equal keys, in the order of the keys.
template <class KeyOf>
void AppendByKey(int32_t num_ranks, const KeyOf& key_of, RankGroups& groups) {
  std::map<int64_t, std::vector<NodeId>> by_key;
  for (int32_t rank = 0; rank < num_ranks; ++rank) by_key[key_of(rank)].push_back(NodeId{rank});
  for (auto& [key, ranks] : by_key) groups.push_back(std::move(ranks));
}

Status AppendAxis(std::string_view axes, const Topology& topology, int32_t num_ranks,
                  RankGroups& groups) {
  const std::optional<GridShape>& grid = topology.grid();
  if (!grid || num_ranks != topology.num_ranks())
    return InvalidArgument(
        fmt::format("axis={} is for all ranks of a torus or mesh; name the groups by ranks", axes));
  const auto dims = static_cast<int32_t>(grid->dims.size());
  std::vector<bool> varies(grid->dims.size(), false);
  for (const std::string_view part : Split(axes, "+")) {
    const auto axis = Number(part);
    if (!axis || *axis >= dims)
      return InvalidArgument(fmt::format(
          "axis={}: '{}' is no dimension of the grid, which has 0 to {}", axes, part, dims - 1));
    varies[static_cast<size_t>(*axis)] = true;
  }
  AppendByKey(
      num_ranks,
      [&](int32_t rank) {
        int64_t key = 0, scale = 1;
        for (size_t d = varies.size(); d-- > 0; rank /= grid->dims[d]) {
          if (!varies[d]) key += scale * (rank % grid->dims[d]);
          if (!varies[d]) scale *= grid->dims[d];
        }
        return key;
      },
      groups);
  return {};
}

Status AppendGroup(std::string_view text, const Topology& topology, int32_t num_ranks,
                   RankGroups& groups) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    Result<std::vector<NodeId>> ranks = ParseRankList(text, num_ranks);
    if (!ranks) return tl::unexpected(ranks.error());
    groups.push_back(*std::move(ranks));
    return {};
  }
  const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
  if (key == "axis") return AppendAxis(value, topology, num_ranks, groups);
  if (key != "every" && key != "blocks")
    return InvalidArgument(
        fmt::format("'{}': groups are lists of ranks, every=S, blocks=K or axis=D", text));
  const auto number = Number(value);
  if (!number || *number < 1 || num_ranks % *number != 0)
    return InvalidArgument(
        fmt::format("'{}': wanted a number that divides the {} ranks", text, num_ranks));
  AppendByKey(
      num_ranks, [&](int32_t rank) { return key == "every" ? rank % *number : rank / *number; },
      groups);
  return {};
}

std::string_view WithoutRemark(std::string_view line) { return line.substr(0, line.find('#')); }

}  // namespace

Result<std::vector<NodeId>> ParseRankList(std::string_view text, int32_t num_ranks) {
  std::vector<NodeId> ranks;
  for (const std::string_view item : Split(text, ","))
    if (const Status added = AppendRange(Trimmed(item), num_ranks, ranks); !added)
      return tl::unexpected(added.error());
  return ranks;
}

Result<RankGroups> ParseGroups(std::string_view text, const Topology& topology, int32_t num_ranks) {
  RankGroups groups;
  for (const std::string_view line : Split(text, "\n"))
    for (const std::string_view part : Split(WithoutRemark(line), ";")) {
      if (Trimmed(part).empty()) continue;
      const size_t before = groups.size();
      if (const Status added = AppendGroup(Trimmed(part), topology, num_ranks, groups); !added)
        return Within(fmt::format("group {}", before), added.error());
    }
  if (groups.empty()) return InvalidArgument("no groups are named");
  return groups;
}

Result<std::vector<NodeId>> ParsePlacement(std::string_view text, const Topology& topology) {
  std::vector<NodeId> ranks;
  for (const std::string_view line : Split(text, "\n"))
    for (const std::string_view item : Split(WithoutRemark(line), ","))
      if (!Trimmed(item).empty())
        if (const Status added = AppendRange(Trimmed(item), topology.num_ranks(), ranks); !added)
          return tl::unexpected(added.error());
  std::vector<NodeId> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return InvalidArgument(fmt::format("two ranks of the job lie on rank {}", twice->value));
  if (ranks.size() < 2)
    return InvalidArgument(
        fmt::format("{} ranks of the job are placed, wanted at least 2", ranks.size()));
  return ranks;
}

std::vector<NodeId> NearestOrder(const Topology& topology, int64_t size_bytes) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> length;
  for (const LinkId link : topology.Links()) {
    const int64_t busy = BandwidthPs(Rational(size_bytes), topology.bandwidth(link));
    length.push_back(busy > kFar / 4 ? kFar / 4 : busy + topology.alpha_ps(link));
  }
  std::vector<bool> placed(static_cast<size_t>(topology.num_ranks()), false);
  std::vector<NodeId> order{NodeId{0}};
  placed[0] = true;
  while (order.size() < placed.size()) {
    std::vector<int64_t> distance(static_cast<size_t>(topology.num_nodes()), kFar);
    using Entry = std::pair<int64_t, NodeId>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    distance[order.back().index()] = 0;
    queue.emplace(0, order.back());
    // The first rank left that comes out of the queue is the nearest.
    for (;;) {
      const auto [at, node] = queue.top();
      queue.pop();
      if (at > distance[node.index()]) continue;
      if (topology.is_rank(node) && !placed[node.index()]) {
        placed[node.index()] = true;
        order.push_back(node);
        break;
      }
      for (const LinkId link : topology.OutLinks(node)) {
        const NodeId head = topology.head(link);
        const int64_t there = at > kFar / 2 ? kFar / 2 : at + length[link.index()];
        if (there >= distance[head.index()]) continue;
        distance[head.index()] = there;
        queue.emplace(there, head);
      }
    }
  }
  return order;
}

}  // namespace tutti
