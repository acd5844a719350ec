#include "ten/switch_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ten/shortest_times.h"
#include "tutti/base/check.h"
#include "tutti/base/memory.h"

namespace tutti::ten {
namespace {

constexpr int64_t kUnreachable = std::numeric_limits<int64_t>::max();
constexpr int64_t kBytesAWay = 80;

}  // namespace

Result<SwitchPaths> SwitchPaths::Make(const Topology& topology, std::vector<LinkTime> time) {
  const int64_t longest_ps = kLongestPs / (int64_t{topology.num_nodes()} * topology.num_nodes());
  for (const LinkTime& one : time)
    if (one.travel_ps > longest_ps)
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("a chunk takes longer than {} ps on a link", longest_ps));
  const int64_t ranks = topology.num_ranks();
  if (const Status fits =
          CheckMemory(fmt::format("the paths between {} ranks through switches", ranks),
                      16 * ranks * topology.num_nodes() + kBytesAWay * ranks * topology.num_links(),
                      AvailableMemoryBytes());
      !fits)
    return tl::unexpected(fits.error());
  SwitchPaths paths(topology, std::move(time));
  paths.MeasureLeft();
  paths.FindLinksNearer();
  if (const Status made = paths.MakeNetwork(); !made) return tl::unexpected(made.error());
  paths.ShareLastLinks();
  return paths;
}

// Links out of ranks count as farther than anything through switches.
void SwitchPaths::MeasureLeft() {
  const int64_t far_ps = kLongestPs / topology_->num_nodes();
  std::vector<int64_t> time;
  for (LinkId link : topology_->Links())
    time.push_back(topology_->is_rank(topology_->tail(link)) ? far_ps
                                                             : time_[link.index()].travel_ps);
  left_.resize(static_cast<size_t>(topology_->num_nodes()) *
               static_cast<size_t>(topology_->num_ranks()));
  for (NodeId target : topology_->Ranks()) {
    const std::vector<int64_t> times = TimesTo(*topology_, time, target);
    for (NodeId node : topology_->Nodes())
      left(node, target) = times[node.index()] < far_ps ? times[node.index()] : kUnreachable;
  }
}

void SwitchPaths::FindLinksNearer() {
  first_nearer_.reserve(left_.size() + 1);
  first_nearer_.push_back(0);
  for (NodeId node : topology_->Nodes())
    for (NodeId target : topology_->Ranks()) {
      if (!topology_->is_rank(node))
        for (LinkId link : topology_->OutLinks(node))
          if (left(topology_->head(link), target) < left(node, target)) nearer_.push_back(link);
      first_nearer_.push_back(nearer_.size());
    }
}

Status SwitchPaths::MakeNetwork() {
  Topology::Builder builder(topology_->num_ranks());
  uint32_t count = 0;
  for (LinkId link : topology_->Links()) {
    const NodeId tail = topology_->tail(link), head = topology_->head(link);
    if (!topology_->is_rank(tail)) continue;
    first_links_.push_back(link);
    first_path_.push_back(count);
    for (NodeId target : topology_->Ranks()) {
      if (target == tail || left(head, target) == kUnreachable) continue;
      builder.AddLink(tail, target, topology_->spec(link));
      const int64_t travel_ps = time_[link.index()].travel_ps + left(head, target);
      time_of_path_.push_back({time_[link.index()].hold_ps, travel_ps});
      ++count;
    }
  }
  first_path_.push_back(count);
  Result<Topology> network = std::move(builder).Build();
  if (!network) return tl::unexpected(network.error());
  network_ = *std::move(network);
  return {};
}

// A rank takes in no more over many paths than over the links into it.
void SwitchPaths::ShareLastLinks() {
  for (NodeId rank : topology_->Ranks()) {
    int64_t hold_ps = 0;
    for (LinkId link : topology_->InLinks(rank))
      hold_ps = std::max(hold_ps, time_[link.index()].hold_ps);
    const auto in_links = static_cast<int64_t>(topology_->InLinks(rank).size());
    for (LinkId path : network_.InLinks(rank)) {
      const auto sharing = static_cast<int64_t>(network_.InLinks(rank).size());
      LinkTime& time = time_of_path_[path.index()];
      time.hold_ps = std::max(time.hold_ps, hold_ps * sharing / in_links);
    }
  }
}

int64_t SwitchPaths::Route(NodeId at, NodeId target, int64_t arrival_ps,
                           const std::vector<Calendar>& busy, std::span<const Hop> carried,
                           std::vector<Hop>& hops) const {
  while (at != target) {
    Hop best{LinkId{-1}, 0};
    int64_t best_ps = kUnreachable;
    for (LinkId link : LinksNearer(at, target)) {
      const NodeId head = topology_->head(link);
      const LinkTime& time = time_[link.index()];
      const auto same = std::find_if(carried.begin(), carried.end(),
                                     [link](const Hop& hop) { return hop.link == link; });
      const int64_t start_ps = same != carried.end()
                                   ? same->start_ps
                                   : busy[link.index()].FirstFree(arrival_ps, time.hold_ps);
      const int64_t there_ps = start_ps + time.travel_ps + left(head, target);
      if (there_ps >= best_ps) continue;
      best_ps = there_ps;
      best = {link, start_ps};
    }
    TUTTI_CHECK(best_ps < kUnreachable);  // the target is behind this switch
    hops.push_back(best);
    arrival_ps = best.start_ps + time_[best.link.index()].travel_ps;
    at = topology_->head(best.link);
  }
  return arrival_ps;
}

}  // namespace tutti::ten
