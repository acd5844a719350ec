// `-a expand`: the schedule that the expression of a network asks for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "expand/link_places.h"
#include "registry.h"
#include "tutti/base/check.h"
#include "tutti/sched/transform.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/stored.h"
#include "tutti/topo/operators.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

// A product is none: breadth-first broadcast on it is as good as the closed form of theorem 13, and
// in at most d chunks per shard.
bool IsExpansion(const ExpressionTree& tree) {
  constexpr std::array<std::string_view, 5> kOperators{"line", "degree", "power", "bidirectional",
                                                       "transpose"};
  return std::find(kOperators.begin(), kOperators.end(), tree.family) != kOperators.end();
}

std::vector<NodeId> AllNodes(const Topology& topology) {
  std::vector<NodeId> nodes;
  for (NodeId node : topology.Nodes()) nodes.push_back(node);
  return nodes;
}

// For each link of `from` the one of `to` with the same ends; none where the two are not the same
// network but for bandwidth and alpha.
std::optional<std::vector<LinkId>> SameLinks(const Topology& from, const Topology& to) {
  if (from.num_ranks() != to.num_ranks() || from.num_nodes() != to.num_nodes() ||
      from.num_links() != to.num_links())
    return std::nullopt;
  for (NodeId node : from.Nodes())
    if (from.self_loops(node).size() != to.self_loops(node).size()) return std::nullopt;
  const expand::LinkPlaces from_places(from), to_places(to);
  std::vector<LinkId> links;
  for (LinkId link : from.Links()) {
    const std::optional<LinkId> found =
        to_places.Find(from.tail(link), from.head(link), from_places.PlaceOf(link));
    if (!found) return std::nullopt;
    links.push_back(*found);
  }
  return links;
}

// TransposeTopology() with links in canonical order, as `transpose(G)` has them: the ranks of its
// line digraph are counted in that order.
Topology Transposed(const Topology& topology) {
  std::vector<LinkId> links;
  for (LinkId link : topology.Links()) links.push_back(link);
  const auto key = [&topology](LinkId link) {
    return std::tuple(topology.head(link), topology.tail(link), topology.bandwidth(link),
                      topology.alpha_ps(link));
  };
  std::stable_sort(links.begin(), links.end(),
                   [&key](LinkId a, LinkId b) { return key(a) < key(b); });
  Topology::Builder builder(topology.num_ranks(), topology.num_nodes() - topology.num_ranks());
  for (NodeId node : topology.Nodes())
    for (const LinkSpec& loop : topology.self_loops(node)) builder.AddLink(node, node, loop);
  for (LinkId link : links)
    builder.AddLink(topology.head(link), topology.tail(link), topology.spec(link));
  Result<Topology> transposed = std::move(builder).Build();
  TUTTI_CHECK(transposed.has_value());  // what was valid stays valid
  return *std::move(transposed);
}

// The expression that made `topology`. Where all links are alike it need not be their bandwidth and
// alpha that the expression tells: schedules are the same.
Result<ExpressionTree> RecipeOf(const Topology& topology, const ParseLimits& limits) {
  const auto fault = [](const std::string& message) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("how the network was made is not known: {}; 'bfb' makes a "
                                 "schedule for any network",
                                 message));
  };
  const std::string& expression = topology.expression();
  if (expression.empty())
    return fault(fmt::format("no expression of its links comes with '{}'", topology.name()));
  Result<ExpressionTree> tree = ParseExpressionTree(expression);
  if (!tree)
    return fault(fmt::format("'{}' is no expression ({})", expression, tree.error().message));
  const Result<Topology> named = ParseTopology(expression, limits);
  if (!named)
    return fault(fmt::format("'{}' stands for no network ({})", expression, named.error().message));
  const bool same = named->Fingerprint() == topology.Fingerprint() ||
                    (named->is_homogeneous() && topology.is_homogeneous() &&
                     SameLinks(*named, topology).has_value());
  if (same) return tree;
  return fault(fmt::format(
      "'{}' stands for another network, with {} ranks and {} links; this one has {} and {}{}",
      expression, named->num_ranks(), named->num_links(), topology.num_ranks(),
      topology.num_links(),
      SameLinks(*named, topology).has_value() ? ", and other bandwidths or alphas" : ""));
}

// What a base network runs: the stored schedule where it is one of those that have one, else
// breadth-first broadcast.
Result<Schedule> MakeBase(const Topology& topology, const Collective& collective,
                          const SynthOptions& options) {
  if (collective.kind() == CollectiveKind::kAllGather) {
    Result<Schedule> stored = MakeStored(topology, collective, options);
    if (stored || stored.error().code != ErrorCode::kInfeasible) return stored;
  }
  return MakeBfb(topology, collective, options);
}

// A network, or its transpose, with an all-gather. The nodes of both are the same.
struct Made {
  Topology network;               // that of the schedule
  std::optional<Topology> plain;  // where `network` is the transpose: what it is the transpose of
  Schedule schedule;
};

class RecipeMaker {
 public:
  explicit RecipeMaker(const SynthOptions& options) : options_(options) {}

  Result<Made> Make(const ExpressionTree& tree, bool transposed) const {
    if (!IsExpansion(tree)) return MakeLeaf(tree, transposed);
    if (tree.bandwidth.size() > 1 || tree.alpha_ps.size() > 1)
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("{}: its dimensions have different links, so that equal parts "
                                   "of a shard are not what they can carry; use 'bfb'",
                                   tree.text));
    Result<Made> made = MakeOperator(tree, transposed);
    if (!made || tree.parallel == 1) return made;
    return Multiply(*std::move(made), tree.parallel);
  }

 private:
  Result<Made> MakeLeaf(const ExpressionTree& tree, bool transposed) const {
    Result<Topology> topology = ParseTopology(tree.text);
    if (!topology) return tl::unexpected(topology.error());
    // What a file holds may itself have been expanded; its name tells.
    if (tree.family.empty()) {
      const Result<ExpressionTree> recipe = RecipeOf(*topology, {.allow_files = false});
      if (recipe && IsExpansion(*recipe)) return MakeFor(*topology, *recipe, transposed);
    }
    return MakeBest(*std::move(topology), transposed);
  }

  Result<Made> MakeBest(Topology topology, bool transposed) const {
    Topology network = transposed ? Transposed(topology) : topology;
    const Result<Collective> all_gather =
        Collective::Make(CollectiveKind::kAllGather, network.num_ranks());
    if (!all_gather) return tl::unexpected(all_gather.error());
    Result<Schedule> schedule = MakeBase(network, *all_gather, options_);
    if (!schedule) return tl::unexpected(schedule.error());
    Made made{.network = std::move(network), .plain = {}, .schedule = *std::move(schedule)};
    if (transposed) made.plain = std::move(topology);
    return made;
  }

  // By `recipe`, and then with the links of `topology` itself.
  Result<Made> MakeFor(const Topology& topology, const ExpressionTree& recipe,
                       bool transposed) const {
    Result<Made> made = Make(recipe, transposed);
    if (!made) return made;
    Topology network = transposed ? Transposed(topology) : topology;
    const std::optional<std::vector<LinkId>> links = SameLinks(made->network, network);
    TUTTI_CHECK(links.has_value());  // RecipeOf() has compared them
    Result<Schedule> schedule =
        Rename(made->schedule, AllNodes(network), *links, network.Fingerprint());
    if (!schedule) return tl::unexpected(schedule.error());
    made->schedule = *std::move(schedule);
    made->network = std::move(network);
    if (transposed) made->plain = topology;
    return made;
  }

  Result<Made> MakeOperator(const ExpressionTree& tree, bool transposed) const {
    const ExpressionTree& operand = tree.operands.front();
    if (tree.family == "transpose") return Turn(Make(operand, !transposed), transposed);
    if (tree.family == "bidirectional") return MakeBidirectional(operand, transposed);
    Result<Made> made = Make(operand, transposed);
    if (!made) return made;
    if (tree.family == "line") {
      const int64_t times = tree.sizes.empty() ? tree.option("k").value_or(1) : tree.sizes[0];
      for (int64_t time = 0; made && time < times; ++time) made = MakeLine(*std::move(made));
      return made;
    }
    const bool is_degree = tree.family == "degree";
    const auto build = is_degree ? DegreeExpansion : CartesianPower;
    const auto expand = is_degree ? ExpandDegree : ExpandPower;
    Result<Expansion> expansion = expand(made->network, made->schedule, tree.sizes[0]);
    if (!expansion) return tl::unexpected(expansion.error());
    Made result{.network = std::move(expansion->topology),
                .plain = {},
                .schedule = std::move(expansion->schedule)};
    if (made->plain) {
      Result<Topology> plain = build(*made->plain, tree.sizes[0]);
      if (!plain) return tl::unexpected(plain.error());
      result.plain = *std::move(plain);
    }
    return result;
  }

  // `made` was made the other way round.
  static Result<Made> Turn(Result<Made> made, bool transposed) {
    if (!made) return made;
    if (transposed)
      made->plain = Transposed(made->network);
    else
      made->plain.reset();
    return made;
  }

  // The union is its own transpose.
  Result<Made> MakeBidirectional(const ExpressionTree& operand, bool transposed) const {
    Result<Made> forward = Make(operand, false);
    if (!forward) return forward;
    Result<Made> backward = Make(operand, true);
    if (!backward) return backward;
    const Topology transpose = TransposeTopology(forward->network);
    const std::optional<std::vector<LinkId>> links = SameLinks(backward->network, transpose);
    TUTTI_CHECK(links.has_value());
    const Result<Schedule> back =
        Rename(backward->schedule, AllNodes(transpose), *links, transpose.Fingerprint());
    if (!back) return tl::unexpected(back.error());
    Result<Expansion> both = ExpandBidirectional(forward->network, forward->schedule, *back);
    if (!both) return tl::unexpected(both.error());
    Made made{
        .network = std::move(both->topology), .plain = {}, .schedule = std::move(both->schedule)};
    if (transposed) made.plain = made.network;
    return made;
  }

  // The line digraph of the transpose is the transpose of the line digraph, with other numbers: a
  // rank is the port that it is in the plain network.
  static Result<Made> MakeLine(Made made) {
    Result<Expansion> line = ExpandLine(made.network, made.schedule);
    if (!line) return tl::unexpected(line.error());
    if (!made.plain)
      return Made{
          .network = std::move(line->topology), .plain = {}, .schedule = std::move(line->schedule)};
    Result<Topology> plain = LineDigraph(*made.plain);
    if (!plain) return tl::unexpected(plain.error());
    Topology network = Transposed(*plain);
    const std::vector<NodeId> nodes = TurnedPorts(made.network, *made.plain);
    const Result<std::vector<LinkId>> links = LinkMapOf(line->topology, network, nodes);
    if (!links) return tl::unexpected(links.error());
    Result<Schedule> schedule = Rename(line->schedule, nodes, *links, network.Fingerprint());
    if (!schedule) return tl::unexpected(schedule.error());
    return Made{.network = std::move(network),
                .plain = *std::move(plain),
                .schedule = *std::move(schedule)};
  }

  // For each port of `turned` the one of `plain` that it is.
  static std::vector<NodeId> TurnedPorts(const Topology& turned, const Topology& plain) {
    const expand::LinkPlaces turned_places(turned), plain_places(plain);
    std::vector<NodeId> port_of(static_cast<size_t>(plain.num_links()));
    std::vector<std::vector<NodeId>> loops(static_cast<size_t>(plain.num_nodes()));
    int32_t rank = 0;
    for (const LinePort& port : LinePorts(plain)) {
      if (port.link)
        port_of[port.link->index()] = NodeId{rank};
      else
        loops[port.tail.index()].push_back(NodeId{rank});
      ++rank;
    }
    std::vector<NodeId> ports;
    std::vector<size_t> seen(loops.size(), 0);
    for (const LinePort& port : LinePorts(turned)) {
      if (!port.link) {
        ports.push_back(loops[port.tail.index()][seen[port.tail.index()]++]);
        continue;
      }
      const std::optional<LinkId> link =
          plain_places.Find(port.head, port.tail, turned_places.PlaceOf(*port.link));
      TUTTI_CHECK(link.has_value());
      ports.push_back(port_of[link->index()]);
    }
    return ports;
  }

  static Result<Made> Multiply(const Made& made, int64_t k) {
    Result<Expansion> multiplied = ExpandParallel(made.network, made.schedule, k);
    if (!multiplied) return tl::unexpected(multiplied.error());
    Made result{.network = std::move(multiplied->topology),
                .plain = {},
                .schedule = std::move(multiplied->schedule)};
    if (made.plain) result.plain = Transposed(result.network);
    return result;
  }

  const SynthOptions options_;
};

// The part of an all-gather that spreads the root's shard.
Schedule OnlyRoot(const Schedule& all_gather, const Collective& broadcast) {
  Schedule schedule{.collective = broadcast};
  schedule.units_per_shard = all_gather.units_per_shard;
  schedule.topology_fingerprint = all_gather.topology_fingerprint;
  for (Transfer transfer : all_gather.transfers) {
    if (transfer.shard.value != broadcast.root().value) continue;
    transfer.shard = ShardId{0};
    schedule.transfers.push_back(transfer);
  }
  schedule.num_steps = expand::UsedSteps(schedule);
  return schedule;
}

// options.chunks equal chunks per shard instead of as many as are needed.
Result<Schedule> InChunks(Schedule schedule, int32_t chunks) {
  if (chunks == 0 || chunks == schedule.units_per_shard) return schedule;
  if (chunks % schedule.units_per_shard != 0)
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("the expanded schedule needs a multiple of {} chunks per shard, got "
                    "{}",
                    schedule.units_per_shard, chunks));
  return Refine(schedule, chunks / schedule.units_per_shard);
}

Result<Schedule> SynthesizeExpanded(const Topology& topology, const Collective& collective,
                                    const SynthOptions& options) {
  return DeriveFromForward(topology, collective,
                           [&options](const Topology& network, const Collective& forward) {
                             return MakeExpanded(network, forward, options);
                           });
}

}  // namespace

Result<Expansion> MakeFromExpression(const ExpressionTree& tree, const SynthOptions& options) {
  Result<Made> made = RecipeMaker(options).Make(tree, false);
  if (!made) return tl::unexpected(made.error());
  return Expansion{std::move(made->network), std::move(made->schedule)};
}

Result<Schedule> MakeExpanded(const Topology& topology, const Collective& collective,
                              const SynthOptions& options) {
  if (options.chunks < 0)
    return InvalidArgument(fmt::format("chunks must be >= 0, got {}", options.chunks));
  const Result<ExpressionTree> tree = RecipeOf(topology, {});
  if (!tree) return tl::unexpected(tree.error());
  if (!IsExpansion(*tree)) {
    Result<Schedule> schedule = MakeBase(topology, collective, options);
    if (schedule) schedule->algorithm = "expand";
    return schedule;
  }
  SynthOptions needed = options;
  needed.chunks = 0;
  const Result<Expansion> made = MakeFromExpression(*tree, needed);
  if (!made) return tl::unexpected(made.error());
  const std::optional<std::vector<LinkId>> links = SameLinks(made->topology, topology);
  if (!links)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes another network now than a moment ago: a file that it "
                                 "names has changed",
                                 tree->text));
  Result<Schedule> schedule =
      Rename(made->schedule, AllNodes(topology), *links, topology.Fingerprint());
  if (!schedule) return schedule;
  if (collective.kind() == CollectiveKind::kBroadcast) schedule = OnlyRoot(*schedule, collective);
  schedule = InChunks(*std::move(schedule), options.chunks);
  if (!schedule) return schedule;
  schedule->algorithm = "expand";
  schedule->seed = options.seed;
  return schedule;
}

Synthesizer ExpandSynthesizer() {
  return {.name = "expand",
          .description =
              "the schedule that the network's expression asks for: line, degree, power, "
              "product, bidirectional of smaller ones",
          .collectives = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                          CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                          CollectiveKind::kReduce},
          .synthesize = SynthesizeExpanded};
}

}  // namespace tutti
