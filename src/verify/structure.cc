#include "structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "words.h"

namespace tutti::verify {
namespace {

bool Timed(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

std::optional<std::string> FaultOfArrays(const Schedule& schedule) {
  const size_t count = schedule.transfers.size();
  if (count > std::numeric_limits<uint32_t>::max())
    return fmt::format("{} transfers; at most 2^32 - 1 can be verified in memory", count);
  if (schedule.units_per_shard < 1)
    return fmt::format("units_per_shard is {}, wanted at least 1", schedule.units_per_shard);
  if (schedule.num_steps < 0)
    return fmt::format("num_steps is {}, wanted at least 0", schedule.num_steps);
  const size_t wanted = Timed(schedule) ? count : 0;
  if (schedule.start_ps.size() != wanted)
    return fmt::format("{} start times for {} transfers of a {} schedule, wanted {}",
                       schedule.start_ps.size(), count, Timed(schedule) ? "timed" : "step", wanted);
  if (Timed(schedule) && schedule.num_steps != 0)
    return fmt::format("a timed schedule with {} steps, wanted 0", schedule.num_steps);
  if (Timed(schedule) && schedule.size_bytes < 1)
    return fmt::format("a timed schedule for a size of {} bytes, wanted at least 1",
                       schedule.size_bytes);
  return std::nullopt;
}

}  // namespace

std::optional<Violation> FaultOfWhole(const Topology& topology, const Collective& collective,
                                      const Schedule& schedule) {
  if (collective.num_ranks() != topology.num_ranks())
    return Violation{ViolationKind::kWrongTopology,
                     fmt::format("the collective is over {} ranks, the topology has {}",
                                 collective.num_ranks(), topology.num_ranks())};
  if (schedule.topology_fingerprint != topology.Fingerprint())
    return Violation{
        ViolationKind::kWrongTopology,
        fmt::format("the schedule was made for another topology: its fingerprint is {:016x}, that "
                    "of this topology {:016x}",
                    schedule.topology_fingerprint, topology.Fingerprint())};
  if (schedule.collective != collective)
    return Violation{
        ViolationKind::kStructure,
        fmt::format("the schedule was made for {} of {} shards, not for this {} of {} shards{}",
                    Name(schedule.collective.kind()), schedule.collective.num_shards(),
                    Name(collective.kind()), collective.num_shards(),
                    schedule.collective.root() != collective.root() ? " (another root)" : "") +
            (std::ranges::equal(schedule.collective.groups(), collective.groups())
                 ? ""
                 : " (other groups)")};
  if (const auto fault = FaultOfArrays(schedule))
    return Violation{ViolationKind::kStructure, *fault};
  return std::nullopt;
}

namespace {

// An end of the transfer's link that takes no part.
std::optional<NodeId> FirstIdle(const Topology& topology, const Collective& collective,
                                const Transfer& transfer) {
  for (const NodeId node : {topology.tail(transfer.link), topology.head(transfer.link)})
    if (collective.IsIdle(node)) return node;
  return std::nullopt;
}

}  // namespace

bool IsSound(const Topology& topology, const Collective& collective, const Schedule& schedule,
             const Transfer& transfer) {
  const int32_t num_steps = Timed(schedule) ? 1 : schedule.num_steps;
  if (transfer.link.value < 0 || transfer.link.value >= topology.num_links()) return false;
  if (transfer.shard.value < 0 || transfer.shard.value >= collective.num_shards()) return false;
  if (transfer.begin < 0 || transfer.begin >= transfer.end ||
      transfer.end > schedule.units_per_shard)
    return false;
  if (transfer.step < 0 || transfer.step >= num_steps) return false;
  if (collective.others() == Others::kIdle && FirstIdle(topology, collective, transfer))
    return false;
  if (transfer.op == TransferOp::kCopy) return true;
  return transfer.op == TransferOp::kReduce && collective.reduces() &&
         topology.reduces(topology.head(transfer.link));
}

TransferFault FaultOfTransfer(const Topology& topology, const Collective& collective,
                              const Schedule& schedule, size_t index) {
  const Transfer& transfer = schedule.transfers[index];
  const auto structure = [](std::string message) {
    return TransferFault{ViolationKind::kStructure, std::move(message)};
  };
  if (transfer.link.value < 0 || transfer.link.value >= topology.num_links())
    return {ViolationKind::kMissingLink,
            fmt::format("uses link {}, which does not exist; the topology has links 0 to {}",
                        transfer.link.value, topology.num_links() - 1)};
  if (transfer.shard.value < 0 || transfer.shard.value >= collective.num_shards())
    return structure(fmt::format("carries shard {}; {} has shards 0 to {}", transfer.shard.value,
                                 Name(collective.kind()), collective.num_shards() - 1));
  if (transfer.begin < 0 || transfer.begin >= transfer.end ||
      transfer.end > schedule.units_per_shard)
    return structure(
        fmt::format("carries units [{}, {}) of shard {}; wanted a non-empty part of "
                    "[0, {})",
                    transfer.begin, transfer.end, transfer.shard.value, schedule.units_per_shard));
  if (Timed(schedule) && transfer.step != 0)
    return structure(fmt::format("is in step {} of a timed schedule, wanted 0", transfer.step));
  if (transfer.step < 0 || transfer.step >= schedule.num_steps)
    if (!Timed(schedule))
      return structure(fmt::format("is in step {}; the schedule has {} steps", transfer.step,
                                   schedule.num_steps));
  if (Timed(schedule) && schedule.start_ps[index] < 0)
    return structure(fmt::format("starts at {} ps, before 0", schedule.start_ps[index]));
  if (transfer.op != TransferOp::kCopy && transfer.op != TransferOp::kReduce)
    return structure(fmt::format("has the unknown operation {}", static_cast<int>(transfer.op)));
  if (const std::optional<NodeId> idle = FirstIdle(topology, collective, transfer))
    return structure(fmt::format("passes {}, which is in no group and takes no part",
                                 NodeText(topology, *idle)));
  const NodeId head = topology.head(transfer.link);
  if (transfer.op == TransferOp::kReduce && !topology.reduces(head))
    return structure(fmt::format("reduces in {}, which only forwards", NodeText(topology, head)));
  if (transfer.op == TransferOp::kReduce && !collective.reduces())
    return structure(fmt::format("reduces, but {} only copies", Name(collective.kind())));
  // What is left is S3.
  return structure(Timed(schedule)
                       ? fmt::format("starts at {} after a transfer that starts at {}; transfers "
                                     "must ascend in time",
                                     TimeText(schedule.start_ps[index]),
                                     TimeText(schedule.start_ps[index - 1]))
                       : fmt::format("is in step {} after a transfer in step {}; transfers must "
                                     "ascend in step",
                                     transfer.step, schedule.transfers[index - 1].step));
}

}  // namespace tutti::verify
