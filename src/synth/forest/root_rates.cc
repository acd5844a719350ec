#include "forest/root_rates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/graph/max_flow.h"
#include "tutti/lp/linear_program.h"

namespace tutti::forest {
namespace {

constexpr int32_t kMaxRootRanks = 64, kMaxRootLinks = 1024, kMaxRateRounds = 400;
constexpr int64_t kTrees = 1 << 10;  // about, in all
constexpr double kScale = 1 << 30;   // of flows that look for broken cuts
constexpr double kSlack = 1e-7;      // of a cut, relative to all rates

// Shares of the links and rates of the roots, in bandwidths of the fastest link.
struct Shares {
  std::vector<double> up, down;  // by link
  std::vector<double> rates;     // by rank
  double total() const { return std::accumulate(rates.begin(), rates.end(), 0.0); }
};

class RateProgram {
 public:
  explicit RateProgram(const Topology& topology)
      : topology_(topology), program_(LinearProgram::Goal::kMaximize) {
    int64_t fastest = 1;
    for (LinkId link : topology.Links()) fastest = std::max(fastest, topology.bandwidth(link));
    for (LinkId link : topology.Links())
      bandwidth_.push_back(static_cast<double>(topology.bandwidth(link)) /
                           static_cast<double>(fastest));
    for (const double most : bandwidth_) program_.AddColumn(0, most, 0);  // up
    for (const double most : bandwidth_) program_.AddColumn(0, most, 0);  // down
    const double all = std::accumulate(bandwidth_.begin(), bandwidth_.end(), 0.0);
    for (int32_t rank = 0; rank < topology.num_ranks(); ++rank) program_.AddColumn(0, all, 1);
    for (LinkId link : topology.Links())
      program_.AddRow(-LinearProgram::kNoLimit, bandwidth_[link.index()],
                      {{Up(link), 1}, {Down(link), 1}});
    for (NodeId rank : topology.Ranks()) {
      std::vector<bool> alone(static_cast<size_t>(topology.num_nodes()), false);
      alone[rank.index()] = true;
      AddCut(alone, true);
      AddCut(alone, false);
    }
  }

  Result<std::optional<Shares>> Solve() {
    for (int32_t round = 0; round < kMaxRateRounds; ++round) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Result<LpSolution> solution = program_.Solve(LinearProgram::Check::kAsFound);
      if (!solution) {
        if (solution.error().code == ErrorCode::kCancelled) return tl::unexpected(solution.error());
        return std::nullopt;
      }
      Shares shares = Read(solution->columns);
      const bool reduced = AddBrokenCuts(shares, true), spread = AddBrokenCuts(shares, false);
      if (!reduced && !spread) return shares;
    }
    return std::nullopt;
  }

  const std::vector<double>& bandwidth() const { return bandwidth_; }

 private:
  int32_t Up(LinkId link) const { return link.value; }
  int32_t Down(LinkId link) const { return topology_.num_links() + link.value; }
  int32_t Rate(NodeId rank) const { return 2 * topology_.num_links() + rank.value; }

  Shares Read(const std::vector<double>& columns) const {
    const auto links = static_cast<std::ptrdiff_t>(topology_.num_links());
    Shares shares{{columns.begin(), columns.begin() + links},
                  {columns.begin() + links, columns.begin() + 2 * links},
                  {columns.begin() + 2 * links, columns.end()}};
    for (std::vector<double>* values : {&shares.up, &shares.down, &shares.rates})
      for (double& value : *values) value = std::max(0.0, value);
    return shares;
  }

  // What is spread into `inside`, or reduced out of it, is at least what roots outside start.
  void AddCut(const std::vector<bool>& inside, bool reduces) {
    std::vector<LinearProgram::Entry> entries;
    for (LinkId link : topology_.Links()) {
      const bool tail = inside[topology_.tail(link).index()];
      const bool head = inside[topology_.head(link).index()];
      if (reduces ? tail && !head : head && !tail)
        entries.push_back({reduces ? Up(link) : Down(link), 1});
    }
    for (NodeId rank : topology_.Ranks())
      if (!inside[rank.index()]) entries.push_back({Rate(rank), -1});
    program_.AddRow(0, LinearProgram::kNoLimit, entries);
  }

  bool AddBrokenCuts(const Shares& shares, bool reduces) {
    const std::vector<double>& share = reduces ? shares.up : shares.down;
    const auto scaled = [](double value) { return static_cast<int64_t>(value * kScale); };
    std::vector<MaxFlow<int64_t>::Arc> arcs;
    for (LinkId link : topology_.Links()) {
      NodeId tail = topology_.tail(link), head = topology_.head(link);
      if (reduces) std::swap(tail, head);
      arcs.push_back({tail, head, scaled(share[link.index()])});
    }
    MaxFlow<int64_t> flow(topology_.num_nodes(), arcs);
    int64_t wanted = 0;
    for (NodeId rank : topology_.Ranks()) {
      const int64_t rate = scaled(shares.rates[rank.index()]);
      flow.SetSupply(rank, rate);
      wanted += rate;
    }
    const auto enough =
        static_cast<int64_t>(static_cast<double>(wanted) * (1 - kSlack)) - topology_.num_links();
    bool added = false;
    for (NodeId rank : topology_.Ranks()) {
      if (flow.Run(rank, wanted) >= enough) continue;
      AddCut(flow.SinkSide(), reduces);
      added = true;
    }
    return added;
  }

  const Topology& topology_;
  LinearProgram program_;
  std::vector<double> bandwidth_;
};

// Whole trees in proportion to the rates, `total` in all: the largest remainders are rounded up.
std::vector<int64_t> WholeTrees(const std::vector<double>& rates, int64_t total) {
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  std::vector<int64_t> trees;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = total;
  for (size_t rank = 0; rank < rates.size(); ++rank) {
    const double exact = rates[rank] / sum * static_cast<double>(total);
    trees.push_back(static_cast<int64_t>(exact));
    remainders.emplace_back(-(exact - std::floor(exact)), rank);
    left -= trees.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left)
    ++trees[remainders[i].second];
  return trees;
}

TreeNetwork Lanes(const Topology& topology, const std::vector<int64_t>& trees_of,
                  const std::vector<int64_t>& trees_on) {
  const int64_t total = std::accumulate(trees_of.begin(), trees_of.end(), int64_t{0});
  TreeNetwork network{.num_nodes = topology.num_nodes(),
                      .num_ranks = topology.num_ranks(),
                      .lanes = {},
                      .trees_of = trees_of,
                      .trees_at_each = total / topology.num_ranks(),
                      .loss = {}};
  for (LinkId link : topology.Links()) {
    const int64_t count = std::min(trees_on[link.index()], total);
    if (count == 0) continue;
    network.lanes[{topology.tail(link).value, topology.head(link).value}].paths.push_back(
        {{link}, count});
  }
  return network;
}

// The networks in whole trees, at a scale of trees a bandwidth.
class WholeShares {
 public:
  WholeShares(const Topology& topology, const Topology& transpose,
              const std::vector<LinkId>& link_map, Shares shares, std::vector<int64_t> trees_of)
      : topology_(topology),
        transpose_(transpose),
        link_map_(link_map),
        shares_(std::move(shares)),
        trees_of_(std::move(trees_of)) {}

  RootRates At(double scale) const {
    std::vector<int64_t> up, down;
    for (size_t l = 0; l < shares_.down.size(); ++l) {
      const auto all = static_cast<int64_t>((shares_.up[l] + shares_.down[l]) * scale + kNearly);
      // Both get their share of what is whole.
      const double wanted = shares_.up[l] * scale;
      up.push_back(std::min(all, static_cast<int64_t>(std::round(wanted))));
      down.push_back(all - up.back());
    }
    std::vector<int64_t> turned;
    for (LinkId link : transpose_.Links()) turned.push_back(up[link_map_[link.index()].index()]);
    return {Lanes(transpose_, trees_of_, turned), Lanes(topology_, trees_of_, down), {}};
  }

  // The least scale within a part in 2048 above `least` that suffices.
  std::optional<RootRates> Fit(double least) const {
    constexpr int64_t kParts = 2048;
    const auto at = [&](int64_t parts) {
      return At(least * static_cast<double>(kParts + parts) / static_cast<double>(kParts));
    };
    const auto suffices = [](const RootRates& rates) {
      return FlowsSuffice(rates.up) && FlowsSuffice(rates.down);
    };
    int64_t low = -1, high = 1;
    while (!suffices(at(high))) {
      if (high > kParts) return std::nullopt;
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (suffices(at(middle)) ? high : low) = middle;
    }
    return at(high);
  }

 private:
  static constexpr double kNearly = 1e-6;

  const Topology& topology_;
  const Topology& transpose_;
  const std::vector<LinkId>& link_map_;
  Shares shares_;
  std::vector<int64_t> trees_of_;
};

// What no tree needs may be used by either direction.
void ShareTheRest(const std::vector<double>& bandwidth, Shares& shares) {
  for (size_t l = 0; l < bandwidth.size(); ++l) {
    const double rest = std::max(0.0, bandwidth[l] - shares.up[l] - shares.down[l]) / 2;
    shares.up[l] += rest;
    shares.down[l] += rest;
  }
}

Rational BusiestLink(const Topology& topology, const std::vector<LinkId>& link_map,
                     const RootRates& rates) {
  std::vector<int64_t> trees(static_cast<size_t>(topology.num_links()), 0);
  for (const auto& [ends, lane] : rates.down.lanes)
    for (const LanePath& path : lane.paths) trees[path.links.front().index()] += path.trees;
  for (const auto& [ends, lane] : rates.up.lanes)
    for (const LanePath& path : lane.paths)
      trees[link_map[path.links.front().index()].index()] += path.trees;
  Rational busiest;
  for (LinkId link : topology.Links())
    busiest = std::max(busiest, Rational(trees[link.index()], rates.down.total()) /
                                    Rational(topology.bandwidth(link)));
  return busiest;
}

}  // namespace

Result<std::optional<RootRates>> FindRootRates(const Topology& topology, const Topology& transpose,
                                               const std::vector<LinkId>& link_map,
                                               int64_t shards) {
  if (topology.has_host_limits() || topology.num_ranks() > kMaxRootRanks ||
      topology.num_links() > kMaxRootLinks)
    return std::nullopt;
  RateProgram program(topology);
  Result<std::optional<Shares>> shares = program.Solve();
  if (!shares) return tl::unexpected(shares.error());
  if (!*shares || (*shares)->total() <= 0) return std::nullopt;
  const int64_t total = (kTrees + shards - 1) / shards * shards;
  std::vector<int64_t> trees_of = WholeTrees((*shares)->rates, total);
  const double scale = static_cast<double>(total) / (*shares)->total();
  ShareTheRest(program.bandwidth(), **shares);
  const WholeShares whole(topology, transpose, link_map, **std::move(shares), std::move(trees_of));
  std::optional<RootRates> rates = whole.Fit(scale);
  if (rates) rates->seconds_per_byte = BusiestLink(topology, link_map, *rates);
  return rates;
}

}  // namespace tutti::forest
