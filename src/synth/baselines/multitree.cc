// multitree: spanning trees from all ranks at once, level by level, each link used once a step.
//
// Model       Every rank is the root of a tree that spreads its shard. Step after step, the trees
//             take turns by root; in its turn a tree takes one link that is free in this step, from
//             the rank that joined it first of those that were in it before the step, to a rank not
//             yet in it. When no tree can take another link the next step begins. Only which links
//             there are counts, not their speed, and a shard is never cut: chunks only name finer
//             units.
// Cost        steps shards of M / N over one link.
// Complexity  O(N * (frontier of a tree) * degree) a step, O(N^2) memory.
// Reference   [multitree] Huang, Majumder, Kim, Muzahid, Yum, Kim, "Communication
//             Algorithm-Architecture Co-Design for Distributed Deep Learning" (ISCA 2021), as
//             [tacos] sections V.A, VI.4 and VII tell it: height-balanced trees from all ranks,
//             connectivity only, no overlap of chunks. Assumption: order of the turns and of
//             parents.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "classic/common.h"
#include "registry.h"
#include "switches.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace baselines {
namespace {

constexpr std::string_view kMultiTree = "multitree";

class Trees {
 public:
  explicit Trees(const Topology& topology)
      : topology_(topology), trees_(static_cast<size_t>(topology.num_ranks())) {
    const auto n = static_cast<size_t>(topology.num_ranks());
    left_ = n * (n - 1);
    for (NodeId root : topology.Ranks()) {
      Tree& tree = trees_[root.index()];
      tree.has.assign(n, false);
      tree.has[root.index()] = true;
      tree.active = {root};
    }
  }

  bool Complete() const { return left_ == 0; }

  // Calls take(root, link) for every link of one step.
  template <class Take>
  void GrowOneStep(const Take& take) {
    std::vector<bool> used(static_cast<size_t>(topology_.num_links()), false);
    for (Tree& tree : trees_) {
      tree.next = 0;
      tree.joined.clear();
    }
    for (bool some = true; some;) {
      some = false;
      for (NodeId root : topology_.Ranks()) {
        Tree& tree = trees_[root.index()];
        if (const std::optional<LinkId> link = NextLink(tree, used)) {
          used[link->index()] = true;
          tree.has[topology_.head(*link).index()] = true;
          tree.joined.push_back(topology_.head(*link));
          --left_;
          take(root, *link);
          some = true;
        }
      }
    }
    for (Tree& tree : trees_) {
      std::erase_if(tree.active, [&](NodeId rank) { return !CanGrowFrom(tree, rank); });
      tree.active.insert(tree.active.end(), tree.joined.begin(), tree.joined.end());
    }
  }

 private:
  struct Tree {
    std::vector<bool> has;
    std::vector<NodeId> active;  // in the order of joining; those that have all neighbours left out
    std::vector<NodeId> joined;  // in this step
    size_t next = 0;             // of `active`: those before have no free link in this step
  };

  bool CanGrowFrom(const Tree& tree, NodeId rank) const {
    for (LinkId link : topology_.OutLinks(rank))
      if (!tree.has[topology_.head(link).index()]) return true;
    return false;
  }

  std::optional<LinkId> NextLink(Tree& tree, const std::vector<bool>& used) const {
    for (; tree.next < tree.active.size(); ++tree.next)
      for (LinkId link : topology_.OutLinks(tree.active[tree.next]))
        if (!used[link.index()] && !tree.has[topology_.head(link).index()]) return link;
    return std::nullopt;
  }

  const Topology& topology_;
  std::vector<Tree> trees_;
  size_t left_;  // ranks that are not yet in a tree, over all trees
};

Result<Schedule> MakeMultiTreeForward(const Topology& topology, const Collective& forward,
                                      const SynthOptions& options) {
  if (forward.kind() != CollectiveKind::kAllGather)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes all-reduce over N shards, not over one", kMultiTree));
  return classic::ChunksOf(options, 1, 1, kMultiTree, "")
      .and_then(
          [&](int32_t chunks) { return classic::ForwardBuilder::Make(topology, forward, chunks); })
      .map([&](classic::ForwardBuilder builder) {
        Trees trees(topology);
        for (int32_t step = 0; !trees.Complete() && !CancelRequested(); ++step)
          trees.GrowOneStep([&](NodeId root, LinkId link) {
            builder.SendOver(link, ShardId{root.value}, builder.Whole(), step);
          });
        return std::move(builder).Finish(kMultiTree, options.seed);
      });
}

Result<Schedule> SynthesizeMultiTree(const Topology& topology, const Collective& collective,
                                     const SynthOptions& options) {
  if (topology.has_switches())
    return NeedsUnwinding(kMultiTree, "grows trees over links between ranks", topology);
  return classic::MakeClassic(kMultiTree, topology, collective, options, MakeMultiTreeForward);
}

// A link brings one whole shard a step.
int32_t FewestSteps(int32_t others, int32_t links) { return (others + links - 1) / links; }

Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& options) {
  Forecast forecast = ForecastByDeliveries(collective, options, kUsualNsADelivery);
  const int32_t others = collective.num_ranks() - 1;
  if (others == 0) return forecast;
  int32_t in = 0, out = 0;
  for (NodeId rank : topology.Ranks()) {
    in = std::max(in, FewestSteps(others, static_cast<int32_t>(topology.InLinks(rank).size())));
    out = std::max(out, FewestSteps(others, topology.OutLinks(rank).size()));
  }
  if (collective.kind() == CollectiveKind::kAllGather) forecast.min_steps = in;
  if (collective.kind() == CollectiveKind::kReduceScatter) forecast.min_steps = out;
  if (collective.kind() == CollectiveKind::kAllReduce) forecast.min_steps = in + out;
  return forecast;
}

}  // namespace
}  // namespace baselines

Synthesizer MultiTreeSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = baselines::kMultiTree,
          .description = "MultiTree: trees from all ranks, level by level, a link once a step",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
          .synthesize = baselines::SynthesizeMultiTree,
          .forecast = baselines::ForecastOf,
          .groups = GroupUse::kOwnLinks};
}

}  // namespace tutti
