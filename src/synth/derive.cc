#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "tutti/sched/transform.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

// A schedule of `collective`, which is the reverse of one that `make` can make.
Result<Schedule> MakeReversed(const Topology& topology, const Collective& collective,
                              const MakeForward& make) {
  const Collective forward = collective.Reversed();
  const uint64_t fingerprint = topology.Fingerprint();
  if (const auto partner = ReverseLinks(topology)) {
    const Result<Schedule> made = make(topology, forward);
    if (!made) return made;
    return Reverse(*made, *partner, fingerprint);
  }
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  const Result<Schedule> made = make(transpose, forward);
  if (!made) return made;
  return Reverse(*made, link_map, fingerprint);
}

Result<Schedule> MakeAllReduce(const Topology& topology, const Collective& collective,
                               const MakeForward& make) {
  const bool one_shard = collective.num_shards() == 1;
  const auto down = one_shard ? CollectiveKind::kReduce : CollectiveKind::kReduceScatter;
  const Result<Collective> first = Collective::Make(down, collective.num_ranks());
  if (!first) return tl::unexpected(first.error());
  const Result<Schedule> reduced = MakeReversed(topology, *first, make);
  if (!reduced) return reduced;
  const Result<Schedule> spread = make(topology, first->Reversed());
  if (!spread) return spread;
  return Concatenate(*reduced, *spread, collective);
}

}  // namespace

Result<Schedule> DeriveFromForward(const Topology& topology, const Collective& collective,
                                   const MakeForward& make) {
  switch (collective.kind()) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast:
      return make(topology, collective);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduce:
      return MakeReversed(topology, collective, make);
    case CollectiveKind::kAllReduce:
      return MakeAllReduce(topology, collective, make);
    default:
      return InvalidArgument(
          fmt::format("{} is not derived from all-gather or broadcast", Name(collective.kind())));
  }
}

}  // namespace tutti
