// Definition 14: the schedule of a Cartesian power.
#include <utility>
#include <vector>

#include "expand/common.h"
#include "expand/expand.h"
#include "expand/product_links.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

// The parts of node numbers that the given coordinates can make up, all others being 0.
std::vector<int32_t> Offsets(const expand::ProductLinks& links, int32_t base_size,
                             const std::vector<size_t>& coordinates) {
  std::vector<int32_t> offsets{0};
  for (size_t c : coordinates) {
    std::vector<int32_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(base_size));
    for (int32_t offset : offsets)
      for (int32_t value = 0; value < base_size; ++value)
        next.push_back(offset + value * links.stride(c));
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

Result<Expansion> ExpandPower(const Topology& base, const Schedule& schedule, int64_t n) {
  if (const Status status = expand::CheckBase("power", base, schedule); !status)
    return tl::unexpected(status.error());
  Result<Topology> power = CartesianPower(base, n);
  if (!power) return tl::unexpected(power.error());
  const int32_t units = schedule.units_per_shard;
  const Result<int32_t> units_per_shard = expand::MultiplyUnits(units, n);
  if (!units_per_shard) return tl::unexpected(units_per_shard.error());
  // In phase j a transfer of the base is made by N^(n-j) N^(j-1) nodes for N^(j-1) shards, in each
  // of n schedules.
  int64_t times = 0;
  for (int64_t j = 0, shards = 1; j < n; ++j, shards *= base.num_nodes())
    times += power->num_nodes() / base.num_nodes() * shards * n;
  Result<Schedule> made =
      expand::Start(*power, *units_per_shard, schedule.seed,
                    SaturatingMul(static_cast<int64_t>(schedule.transfers.size()), times));
  if (!made) return tl::unexpected(made.error());

  const std::vector<const Topology*> factors(static_cast<size_t>(n), &base);
  const expand::ProductLinks links(factors, *power);
  const int32_t steps = expand::UsedSteps(schedule);
  for (size_t phase = 0; phase < factors.size(); ++phase)
    for (size_t part = 0; part < factors.size(); ++part) {
      // Schedule `part` has been through `phase` coordinates from coordinate `part` on.
      const size_t now = (part + phase) % factors.size();
      std::vector<size_t> done, left;
      for (size_t i = 0; i < factors.size(); ++i)
        if (i != phase) (i < phase ? done : left).push_back((part + i) % factors.size());
      const std::vector<int32_t> xs = Offsets(links, base.num_nodes(), done);
      const std::vector<int32_t> zs = Offsets(links, base.num_nodes(), left);
      const int32_t stride = links.stride(now);
      const int32_t first_unit = static_cast<int32_t>(part) * units;
      const int32_t first_step = static_cast<int32_t>(phase) * steps;
      for (const Transfer& transfer : schedule.transfers) {
        const int32_t shard = transfer.shard.value * stride;
        const int32_t tail = base.tail(transfer.link).value * stride;
        for (int32_t z : zs)
          for (int32_t y : xs) {
            const LinkId link = links.Link(NodeId{y + tail + z}, now, transfer.link);
            for (int32_t x : xs)
              made->transfers.push_back({ShardId{x + shard + z}, link, first_unit + transfer.begin,
                                         first_unit + transfer.end, first_step + transfer.step,
                                         TransferOp::kCopy});
          }
      }
    }
  made->num_steps = static_cast<int32_t>(n) * steps;
  SortBySteps(*made);
  return Expansion{*std::move(power), *std::move(made)};
}

}  // namespace tutti
