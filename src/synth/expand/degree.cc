// Definition 2: the schedule of a degree expansion.
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "expand/link_places.h"
#include "tutti/base/check.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

// The link u_i -> w_j that link l: u -> w of the base becomes, at (l n + i) n + j.
std::vector<LinkId> ExpandedLinks(const Topology& base, const Topology& expanded, int32_t n) {
  const expand::LinkPlaces base_places(base), places(expanded);
  std::vector<LinkId> links;
  links.reserve(static_cast<size_t>(expanded.num_links()));
  for (LinkId link : base.Links())
    for (int32_t i = 0; i < n; ++i)
      for (int32_t j = 0; j < n; ++j) {
        const std::optional<LinkId> found =
            places.Find(NodeId{base.tail(link).value * n + i},
                        NodeId{base.head(link).value * n + j}, base_places.PlaceOf(link));
        TUTTI_CHECK(found.has_value());
        links.push_back(*found);
      }
  return links;
}

}  // namespace

Result<Expansion> ExpandDegree(const Topology& base, const Schedule& schedule, int64_t n) {
  if (const Status status = expand::CheckBase("degree", base, schedule); !status)
    return tl::unexpected(status.error());
  Result<Topology> expanded = DegreeExpansion(base, n);
  if (!expanded) return tl::unexpected(expanded.error());
  const Result<int32_t> degree = expand::RegularDegree("degree", base);
  if (!degree) return tl::unexpected(degree.error());
  if (!base.is_homogeneous())
    return MakeError(ErrorCode::kInfeasible,
                     "degree of a schedule: the links of the base differ in bandwidth or alpha, "
                     "wanted all alike; 'bfb' makes a schedule for any network");
  const auto copies = static_cast<int32_t>(n);
  // A sibling's shard comes in one part over each in-link.
  const int64_t parts = copies > 1 && *degree > 0 ? n * *degree : 1;
  const int64_t units = schedule.units_per_shard;
  const int64_t finer = parts / std::gcd(parts, units);
  const Result<int32_t> units_per_shard = expand::MultiplyUnits(units, finer);
  if (!units_per_shard) return tl::unexpected(units_per_shard.error());
  const int64_t first_part = SaturatingMul(static_cast<int64_t>(schedule.transfers.size()), n * n);
  const int64_t last_step = expanded->num_ranks() * (n - 1) * parts;
  Result<Schedule> made =
      expand::Start(*expanded, *units_per_shard, schedule.seed, first_part + last_step);
  if (!made) return tl::unexpected(made.error());

  const std::vector<LinkId> links = ExpandedLinks(base, *expanded, copies);
  const auto factor = static_cast<int32_t>(finer);
  for (const Transfer& transfer : schedule.transfers)
    for (int32_t j = 0; j < copies; ++j)
      for (int32_t i = 0; i < copies; ++i) {
        const size_t link =
            (transfer.link.index() * static_cast<size_t>(copies) + static_cast<size_t>(j)) *
                static_cast<size_t>(copies) +
            static_cast<size_t>(i);
        made->transfers.push_back({ShardId{transfer.shard.value * copies + j}, links[link],
                                   transfer.begin * factor, transfer.end * factor, transfer.step,
                                   TransferOp::kCopy});
      }
  const int32_t last = expand::UsedSteps(schedule);
  const auto part = static_cast<int32_t>(*units_per_shard / parts);
  for (NodeId node : base.Nodes())
    for (int32_t i = 0; i < copies; ++i)
      for (int32_t j = 0; j < copies; ++j) {
        if (i == j) continue;
        int32_t begin = 0;
        for (LinkId link : expanded->InLinks(NodeId{node.value * copies + j})) {
          made->transfers.push_back({ShardId{node.value * copies + i}, link, begin, begin + part,
                                     last, TransferOp::kCopy});
          begin += part;
        }
      }
  made->num_steps = expand::UsedSteps(*made);
  return Expansion{*std::move(expanded), *std::move(made)};
}

}  // namespace tutti
