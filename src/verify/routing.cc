#include "tutti/verify/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "words.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMost = std::numeric_limits<int64_t>::max();

// Ascends from 0 to `last` and has `size` entries.
bool IsOffsets(const std::vector<int64_t>& offsets, size_t size, int64_t last) {
  return offsets.size() == size && offsets.front() == 0 && offsets.back() == last &&
         std::is_sorted(offsets.begin(), offsets.end());
}

// What one block of sources comes to. Merged in the order of sources.
struct Block {
  std::vector<RoutingViolation> violations;
  int64_t num_violations = 0;
  int32_t longest_path = 0;
};

class Judge {
 public:
  Judge(const Topology& topology, const Routing& routing, size_t most)
      : topology_(topology), routing_(routing), ranks_(routing.num_ranks), max_violations_(most) {}

  RoutingReport Run() {
    RoutingReport report;
    report.paths = routing_.num_paths();
    if (CheckStructure(report)) {
      CheckPairs(report);
      if (report.num_violations == 0 && !report.cancelled) CountRate(report);
    }
    return report;
  }

 private:
  size_t Pair(int32_t source, int32_t destination) const {
    return static_cast<size_t>(source) * static_cast<size_t>(ranks_) +
           static_cast<size_t>(destination);
  }
  int64_t Demand(int32_t source, int32_t destination) const {
    if (source == destination) return 0;
    return routing_.demand.empty() ? 1 : routing_.demand[Pair(source, destination)];
  }
  std::string NodeText(NodeId node) const { return verify::NodeText(topology_, node); }

  // False: the arrays cannot be walked.
  bool CheckStructure(RoutingReport& report) const {
    const auto fault = [&report](RoutingFault kind, std::string message) {
      report.violations.push_back({kind, std::move(message), -1});
      ++report.num_violations;
      return false;
    };
    if (ranks_ != topology_.num_ranks())
      return fault(RoutingFault::kWrongTopology,
                   fmt::format("the routing is of {} ranks, the network has {}", ranks_,
                               topology_.num_ranks()));
    if (routing_.topology_fingerprint != topology_.Fingerprint())
      return fault(
          RoutingFault::kWrongTopology,
          fmt::format("the routing was made for another network: its fingerprint is "
                      "{:016x}, that of '{}' is {:016x}",
                      routing_.topology_fingerprint, topology_.name(), topology_.Fingerprint()));
    const size_t pairs = static_cast<size_t>(ranks_) * static_cast<size_t>(ranks_);
    if (!routing_.demand.empty() && routing_.demand.size() != pairs)
      return fault(RoutingFault::kStructure,
                   fmt::format("the demand matrix has {} entries, {} ranks need {}",
                               routing_.demand.size(), ranks_, pairs));
    if (const auto wrong = FaultOfGroups()) return fault(RoutingFault::kStructure, *wrong);
    if (routing_.units_per_demand < 1)
      return fault(RoutingFault::kStructure,
                   fmt::format("units per demand must be >= 1, got {}", routing_.units_per_demand));
    const int64_t paths = routing_.num_paths();
    if (paths > std::numeric_limits<int32_t>::max())
      return fault(RoutingFault::kStructure, fmt::format("{} paths are too many", paths));
    if (!IsOffsets(routing_.first_path, pairs + 1, paths))
      return fault(RoutingFault::kStructure,
                   fmt::format("R1: first_path must have {} entries and ascend from 0 to {}",
                               pairs + 1, paths));
    if (!IsOffsets(routing_.first_hop, static_cast<size_t>(paths) + 1,
                   static_cast<int64_t>(routing_.hops.size())))
      return fault(RoutingFault::kStructure,
                   fmt::format("R2: first_hop must have {} entries and ascend from 0 to {}",
                               paths + 1, routing_.hops.size()));
    if (!routing_.layer.empty() && routing_.layer.size() != static_cast<size_t>(paths))
      return fault(RoutingFault::kStructure, fmt::format("R4: layers of {} paths, there are {}",
                                                         routing_.layer.size(), paths));
    return true;
  }

  // Groups say what the demand is.
  std::optional<std::string> FaultOfGroups() const {
    if (routing_.groups.empty()) return std::nullopt;
    const Result<Collective> collective = CollectiveOf(routing_);
    if (!collective) return collective.error().message;
    const size_t ranks = static_cast<size_t>(ranks_);
    if (routing_.demand.size() != ranks * ranks) return "a routing of groups without their demand";
    std::vector<int64_t> wanted(ranks * ranks, 0);
    for (const ShardId shard : collective->Shards()) {
      const size_t s = collective->contributors(shard).one.index(),
                   d = collective->destinations(shard).one.index();
      if (s != d) wanted[s * ranks + d] += collective->weight(shard);
    }
    for (size_t s = 0; s < ranks; ++s)
      for (size_t d = 0; d < ranks; ++d)
        if (s != d && routing_.demand[s * ranks + d] != wanted[s * ranks + d])
          return fmt::format("the demand {} is {}, the groups make it {}",
                             PairText(static_cast<int32_t>(s), static_cast<int32_t>(d)),
                             routing_.demand[s * ranks + d], wanted[s * ranks + d]);
    return std::nullopt;
  }

  void CheckPairs(RoutingReport& report) const {
    constexpr int64_t kGrain = 16;
    std::vector<Block> blocks(static_cast<size_t>((ranks_ + kGrain - 1) / kGrain));
    ParallelFor(static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> seen_by(static_cast<size_t>(topology_.num_nodes()), -1);
      for (int64_t b = begin; b < end; ++b) {
        const int64_t last = std::min<int64_t>(ranks_, (b + 1) * kGrain);
        for (int64_t source = b * kGrain; source < last && !CancelRequested(); ++source)
          for (int32_t destination = 0; destination < ranks_; ++destination)
            CheckPair(static_cast<int32_t>(source), destination, seen_by,
                      blocks[static_cast<size_t>(b)]);
      }
    });
    report.cancelled = CancelRequested();
    for (Block& block : blocks) {
      report.num_violations += block.num_violations;
      report.longest_path = std::max(report.longest_path, block.longest_path);
      for (RoutingViolation& violation : block.violations)
        if (report.violations.size() < max_violations_)
          report.violations.push_back(std::move(violation));
    }
  }

  // `text` is called only where the message is kept.
  template <class Text>
  void Add(Block& block, RoutingFault kind, int64_t path, const Text& text) const {
    ++block.num_violations;
    if (block.violations.size() < max_violations_) block.violations.push_back({kind, text(), path});
  }

  std::string PairText(int32_t source, int32_t destination) const {
    return fmt::format("from {} to {}", NodeText(NodeId{source}), NodeText(NodeId{destination}));
  }

  // `seen_by[node]`: the last path that visited it.
  void CheckPair(int32_t source, int32_t destination, std::vector<int64_t>& seen_by,
                 Block& block) const {
    Wide sum = 0;
    for (const PathId path : routing_.Paths(NodeId{source}, NodeId{destination})) {
      const int64_t weight = routing_.weight[path.index()];
      sum += weight;
      if (weight < 1)
        Add(block, RoutingFault::kSplit, path.value, [&] {
          return fmt::format("path {} {} has the weight {}; accepted are weights >= 1", path.value,
                             PairText(source, destination), weight);
        });
      CheckLayer(source, destination, path, block);
      CheckPath(source, destination, path, seen_by, block);
    }
    const int64_t demand = Demand(source, destination);
    if (demand < 0)
      Add(block, RoutingFault::kStructure, -1, [&] {
        return fmt::format("the demand {} is {}; accepted are numbers >= 0",
                           PairText(source, destination), demand);
      });
    const Wide wanted = Wide{demand} * routing_.units_per_demand;
    if (sum == wanted && sum <= kMost) {
      if (demand > 0 || routing_.Paths(NodeId{source}, NodeId{destination}).empty()) return;
    }
    Add(block, RoutingFault::kSplit, -1, [&] {
      if (wanted > kMost || sum > kMost)
        return fmt::format("the units {} do not fit in 63 bits", PairText(source, destination));
      return fmt::format("the weights of the {} paths {} sum to {} units, its demand is {}",
                         routing_.Paths(NodeId{source}, NodeId{destination}).size(),
                         PairText(source, destination), static_cast<int64_t>(sum),
                         static_cast<int64_t>(wanted));
    });
  }

  void CheckLayer(int32_t source, int32_t destination, PathId path, Block& block) const {
    if (routing_.layer.empty()) return;
    const int32_t layer = routing_.layer[path.index()];
    if (0 <= layer && layer < routing_.num_layers) return;
    Add(block, RoutingFault::kLayer, path.value, [&] {
      return fmt::format("path {} {} is in layer {} of {}", path.value,
                         PairText(source, destination), layer, routing_.num_layers);
    });
  }

  void CheckPath(int32_t source, int32_t destination, PathId path, std::vector<int64_t>& seen_by,
                 Block& block) const {
    const auto where = [&](int32_t hop) {
      return fmt::format("path {} {}, hop {}", path.value, PairText(source, destination), hop);
    };
    NodeId at{source};
    seen_by[at.index()] = path.value;
    int32_t hop = 0;
    for (const LinkId link : routing_.Hops(path)) {
      if (link.value < 0 || link.value >= topology_.num_links())
        return Add(block, RoutingFault::kBrokenPath, path.value,
                   [&] { return fmt::format("{}: there is no link {}", where(hop), link.value); });
      if (topology_.tail(link) != at)
        return Add(block, RoutingFault::kBrokenPath, path.value, [&] {
          return fmt::format("{}: link {} ({}) does not leave {}", where(hop), link.value,
                             verify::LinkText(topology_, link), NodeText(at));
        });
      at = topology_.head(link);
      if (seen_by[at.index()] == path.value)
        return Add(block, RoutingFault::kNodeTwice, path.value,
                   [&] { return fmt::format("{}: visits {} twice", where(hop), NodeText(at)); });
      seen_by[at.index()] = path.value;
      ++hop;
    }
    if (at.value != destination)
      Add(block, RoutingFault::kBrokenPath, path.value, [&] {
        return fmt::format("path {} {} ends at {}", path.value, PairText(source, destination),
                           NodeText(at));
      });
    block.longest_path = std::max(block.longest_path, hop);
  }

  void CountRate(RoutingReport& report) const {
    std::vector<Wide> load(static_cast<size_t>(topology_.num_links()), 0);
    for (size_t path = 0; path < routing_.weight.size(); ++path)
      for (auto hop = static_cast<size_t>(routing_.first_hop[path]);
           hop < static_cast<size_t>(routing_.first_hop[path + 1]); ++hop)
        load[routing_.hops[hop].index()] += routing_.weight[path];
    Rational longest = LongestOfHosts();
    int64_t least = 0;
    for (const LinkId link : topology_.Links()) {
      if (load[link.index()] > kMost) {
        report.violations.push_back({RoutingFault::kOverflow,
                                     fmt::format("the units over link {} ({}) do not fit in 63 "
                                                 "bits",
                                                 link.value, verify::LinkText(topology_, link)),
                                     -1});
        ++report.num_violations;
        return;
      }
      const int64_t bandwidth = topology_.bandwidth(link);
      least = least == 0 ? bandwidth : std::min(least, bandwidth);
      longest = std::max(longest,
                         Rational(static_cast<int64_t>(load[link.index()])) / Rational(bandwidth));
    }
    if (longest.is_zero()) return;
    report.rate = Mean() * Rational(routing_.units_per_demand) / (longest * Rational(least));
  }

  // Seconds that the busiest host with a limit needs for the units of all paths that begin or end
  // at its rank, at 1 byte a unit.
  Rational LongestOfHosts() const {
    Rational longest;
    if (!topology_.has_host_limits()) return longest;
    std::vector<Rational> sent(static_cast<size_t>(ranks_)), received = sent;
    for (int32_t source = 0; source < ranks_; ++source)
      for (int32_t destination = 0; destination < ranks_; ++destination)
        for (const PathId path : routing_.Paths(NodeId{source}, NodeId{destination})) {
          const Rational units(routing_.weight[path.index()]);
          sent[static_cast<size_t>(source)] += units;
          received[static_cast<size_t>(destination)] += units;
        }
    for (const NodeId rank : topology_.Ranks())
      if (const std::optional<int64_t> limit = topology_.host_bandwidth(rank))
        for (const auto* units : {&sent, &received})
          longest = std::max(longest, (*units)[rank.index()] / Rational(*limit));
    return longest;
  }

  Rational Mean() const {
    if (routing_.demand.empty()) return Rational(1);
    Rational total;
    for (int32_t source = 0; source < ranks_; ++source)
      for (int32_t destination = 0; destination < ranks_; ++destination)
        total += Rational(Demand(source, destination));
    int64_t pairs = routing_.groups.empty() ? int64_t{ranks_} * (ranks_ - 1) : 0;
    for (const auto& group : routing_.groups) {
      const auto k = static_cast<int64_t>(group.size());
      pairs += k * (k - 1);
    }
    return total / Rational(pairs);
  }

  const Topology& topology_;
  const Routing& routing_;
  int32_t ranks_;
  size_t max_violations_;
};

}  // namespace

std::string_view Name(RoutingFault kind) {
  constexpr std::string_view kNames[] = {"structure", "wrong-topology", "broken-path", "node-twice",
                                         "split",     "layer",          "overflow"};
  return kNames[static_cast<size_t>(kind)];
}

RoutingReport CheckRouting(const Topology& topology, const Routing& routing,
                           const VerifyOptions& options) {
  return Judge(topology, routing, static_cast<size_t>(std::max(options.max_violations, 0))).Run();
}

}  // namespace tutti
