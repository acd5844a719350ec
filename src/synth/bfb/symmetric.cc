#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "bfb/delivery.h"
#include "bfb/plan.h"
#include "tutti/base/check.h"
#include "tutti/sched/transform.h"
#include "tutti/synth/symmetric_bfb.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

// Links into each rank by their class (translations.h), on the network or on its transpose.
class ClassedLinks {
 public:
  // The network itself.
  ClassedLinks(const Topology& topology, const Translations& translations)
      : ClassedLinks(topology, translations, nullptr) {}
  // Its transpose, whose links come from `link_map` of the network's.
  ClassedLinks(const Topology& topology, const Translations& translations,
               const std::vector<LinkId>* link_map)
      : num_classes_(static_cast<size_t>(translations.num_classes())) {
    class_.reserve(static_cast<size_t>(topology.num_links()));
    in_link_.resize(static_cast<size_t>(topology.num_links()));
    for (LinkId link : topology.Links()) {
      const LinkId original = link_map == nullptr ? link : (*link_map)[link.index()];
      class_.push_back(translations.LinkClass(original));
      in_link_[Place(topology.head(link), class_.back())] = link;
    }
  }

  int32_t ClassOf(LinkId link) const { return class_[link.index()]; }
  LinkId InLink(NodeId head, int32_t link_class) const { return in_link_[Place(head, link_class)]; }

 private:
  size_t Place(NodeId head, int32_t link_class) const {
    return head.index() * num_classes_ + static_cast<size_t>(link_class);
  }

  size_t num_classes_;
  std::vector<int32_t> class_;
  std::vector<LinkId> in_link_;
};

// The all-gather of `topology`, as shard 0 sees it. `inverses` as Translations::Inverses().
Result<Schedule> MakeRoot(const Topology& topology, const ClassedLinks& links,
                          const NodePermutation& inverses, const Collective& all_gather,
                          const SynthOptions& options) {
  BfbModel model(topology, all_gather, options.size_bytes);
  model.LookAtRank0Only();
  const Result<BfbPlan> plan = MakeBfbPlan(model, BfbUnitsFor(topology, all_gather, options));
  if (!plan) return tl::unexpected(plan.error());
  Schedule root{.collective = all_gather};
  NoteUnits(*plan, options);
  root.units_per_shard = plan->units_per_shard;
  root.num_steps = static_cast<int32_t>(plan->step_time.size());
  const Status made = model.ForEachBlock("bfb: schedule", [&](ReceiverBlock& block) {
    SourceLayers layers(model.table);
    LoadProblem problem;
    while (const std::optional<NodeId> receiver = block.Next())
      model.ForEachStep(*receiver, layers, problem, [&](int32_t step, const LoadProblem& one) {
        const Delivery delivery = Deliver(model, one, plan->units_per_shard);
        const size_t begin = root.transfers.size();
        root.transfers.resize(begin + static_cast<size_t>(delivery.num_transfers));
        WriteTransfers(delivery, layers.GroupedShards(), topology.InLinks(*receiver), step,
                       plan->units_per_shard, root.transfers.data() + begin);
      });
  });
  if (!made) return tl::unexpected(made.error());
  // What rank 0 gets of shard v, moved by the translation that takes v to rank 0.
  for (Transfer& transfer : root.transfers) {
    transfer.link = links.InLink(inverses[static_cast<size_t>(transfer.shard.value)],
                                 links.ClassOf(transfer.link));
    transfer.shard = ShardId{0};
  }
  return root;
}

Result<Schedule> MakeReduction(const Topology& topology, const Translations& translations,
                               const NodePermutation& inverses, const Collective& all_gather,
                               const SynthOptions& options) {
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  const Result<Schedule> forward = MakeRoot(
      transpose, ClassedLinks(transpose, translations, &link_map), inverses, all_gather, options);
  if (!forward) return forward;
  return Reverse(*forward, link_map, topology.Fingerprint());
}

// One after the other, in common units.
Result<Schedule> Join(const Schedule& reduction, const Schedule& gather,
                      const Collective& all_reduce) {
  const int64_t units =
      std::lcm(int64_t{reduction.units_per_shard}, int64_t{gather.units_per_shard});
  const auto refined = [units](const Schedule& half) {
    return Refine(half, static_cast<int32_t>(units / half.units_per_shard));
  };
  const Result<Schedule> first = refined(reduction), second = refined(gather);
  if (!first) return first;
  if (!second) return second;
  Schedule joined{.collective = all_reduce};
  joined.units_per_shard = first->units_per_shard;
  joined.num_steps = first->num_steps + second->num_steps;
  joined.transfers = first->transfers;
  joined.transfers.reserve(first->transfers.size() + second->transfers.size());
  for (Transfer transfer : second->transfers) {
    transfer.step += first->num_steps;
    joined.transfers.push_back(transfer);
  }
  return joined;
}

Result<Schedule> MakeWhole(const Topology& topology, const Translations& translations,
                           const Collective& collective, const SynthOptions& options) {
  const Result<Collective> all_gather =
      Collective::Make(CollectiveKind::kAllGather, collective.num_ranks());
  if (!all_gather) return tl::unexpected(all_gather.error());
  const NodePermutation inverses = translations.Inverses();
  std::vector<Schedule> halves;
  if (collective.kind() != CollectiveKind::kAllGather) {
    Result<Schedule> half = MakeReduction(topology, translations, inverses, *all_gather, options);
    if (!half) return half;
    halves.push_back(*std::move(half));
  }
  if (collective.kind() != CollectiveKind::kReduceScatter) {
    Result<Schedule> half =
        MakeRoot(topology, ClassedLinks(topology, translations), inverses, *all_gather, options);
    if (!half) return half;
    halves.push_back(*std::move(half));
  }
  if (halves.size() == 1) return std::move(halves.front());
  return Join(halves[0], halves[1], collective);
}

}  // namespace

Result<SymmetricSchedule> MakeSymmetricBfb(const Topology& topology,
                                           const Translations& translations,
                                           const Collective& collective,
                                           const SynthOptions& options) {
  if (Status fine = CheckBfbInput(topology, collective, options); !fine)
    return tl::unexpected(fine.error());
  if (!HasSymmetricForm(collective))
    return InvalidArgument(
        fmt::format("{} over {} shards has no symmetric form; all-gather, reduce-scatter and "
                    "all-reduce over as many shards as ranks have",
                    Name(collective.kind()), collective.num_shards()));
  if (topology.has_host_limits())
    return MakeError(ErrorCode::kInfeasible,
                     "the network has host limits, which the form of one rank does not hold");
  TUTTI_CHECK(translations.num_ranks() == topology.num_ranks());
  Result<Schedule> root = MakeWhole(topology, translations, collective, options);
  if (!root) return tl::unexpected(root.error());
  root->topology_fingerprint = topology.Fingerprint();
  root->algorithm = "bfb";
  root->seed = options.seed;
  return SymmetricSchedule{*std::move(root), translations.generators()};
}

}  // namespace tutti
