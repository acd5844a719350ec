#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "machine.h"
#include "tutti/lower/lowering.h"

namespace tutti {
namespace {

// Slots are cut where any instruction starts or ends: one cell is what lies between.
class Cells {
 public:
  explicit Cells(const Plan& plan)
      : units_(plan.units_per_shard), starts_{0, plan.units_per_shard} {
    for (const RankPlan& rank : plan.ranks)
      for (const Stream& stream : rank.streams)
        for (const Instruction& instruction : stream.instructions)
          for (const Operand& operand : {instruction.src, instruction.dst}) {
            starts_.push_back(operand.offset % units_);
            starts_.push_back((operand.offset + instruction.count) % units_);
          }
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  }
  const std::vector<int64_t>& starts() const { return starts_; }
  int64_t per_slot() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // Offset within a unit where a cell starts.
  int64_t At(int64_t unit) const {
    const auto start = std::lower_bound(starts_.begin(), starts_.end(), unit % units_);
    return unit / units_ * per_slot() + (start - starts_.begin());
  }

 private:
  int64_t units_;
  std::vector<int64_t> starts_;
};

lower::Action ToAction(const Instruction& instruction, const Cells& cells) {
  lower::Action action;
  action.sends = instruction.op == OpCode::kSend;
  action.receives = instruction.op == OpCode::kRecv || instruction.op == OpCode::kRecvReduce;
  action.reads = instruction.op != OpCode::kRecv;
  action.writes = instruction.op != OpCode::kSend;
  const int64_t first = action.reads ? instruction.src.offset : instruction.dst.offset;
  action.src = {instruction.src.buffer, cells.At(instruction.src.offset)};
  action.dst = {instruction.dst.buffer, cells.At(instruction.dst.offset)};
  action.count = cells.At(first + instruction.count) - cells.At(first);
  action.units = instruction.count;
  action.after = instruction.after;
  return action;
}

// What numbers must satisfy before anything is computed from them.
void CheckNumbers(const Plan& plan, std::vector<PlanFault>& faults) {
  constexpr int64_t kLargest = int64_t{1} << 56;
  for (size_t r = 0; r < plan.ranks.size(); ++r)
    for (size_t s = 0; s < plan.ranks[r].streams.size(); ++s) {
      const std::vector<Instruction>& list = plan.ranks[r].streams[s].instructions;
      for (size_t i = 0; i < list.size(); ++i)
        for (const int64_t number : {list[i].src.offset, list[i].dst.offset, list[i].count})
          if (number < 0 || number > kLargest)
            faults.push_back({fmt::format(
                "rank {} stream {} instruction {}: an offset or count is {}", r, s, i, number)});
    }
}

void CheckDependencies(const Plan& plan, std::vector<PlanFault>& faults) {
  for (size_t r = 0; r < plan.ranks.size(); ++r)
    for (size_t s = 0; s < plan.ranks[r].streams.size(); ++s) {
      const std::vector<Instruction>& list = plan.ranks[r].streams[s].instructions;
      for (size_t i = 0; i < list.size(); ++i)
        for (const Dependency& dep : list[i].after)
          if (dep.stream == static_cast<int32_t>(s))
            faults.push_back({fmt::format(
                "rank {} stream {} instruction {}: waits for its own stream", r, s, i)});
    }
}

void CheckSlots(const Plan& plan, std::vector<PlanFault>& faults) {
  const Collective& collective = plan.collective;
  if (plan.ranks.size() != static_cast<size_t>(collective.num_ranks())) {
    faults.push_back({fmt::format("the plan has {} ranks, its collective {}", plan.ranks.size(),
                                  collective.num_ranks())});
    return;
  }
  if (plan.units_per_shard < 1)
    faults.push_back({fmt::format("units_per_shard is {}", plan.units_per_shard)});
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& rank = plan.ranks[r];
    const NodeId node{static_cast<int32_t>(r)};
    if (rank.input_slots != NumInputSlots(collective, node) ||
        rank.output_slots != NumOutputSlots(collective, node) || rank.scratch_slots < 0)
      faults.push_back({fmt::format(
          "rank {}: {} input, {} output and {} scratch slots; {} has {} and {}", r,
          rank.input_slots, rank.output_slots, rank.scratch_slots, Name(collective.kind()),
          NumInputSlots(collective, node), NumOutputSlots(collective, node))});
    const auto check_weights = [&](const std::vector<int64_t>& weights, int32_t slots) {
      if (!weights.empty() && weights.size() != static_cast<size_t>(slots))
        faults.push_back(
            {fmt::format("rank {}: {} weights for {} slots", r, weights.size(), slots)});
    };
    check_weights(rank.input_weights, rank.input_slots);
    check_weights(rank.output_weights, rank.output_slots);
    check_weights(rank.scratch_weights, rank.scratch_slots);
    if (!rank.scratch_shards.empty() &&
        rank.scratch_shards.size() != static_cast<size_t>(std::max(0, rank.scratch_slots)))
      faults.push_back({fmt::format("rank {}: the shards of {} scratch slots are given, it has {}",
                                    r, rank.scratch_shards.size(), rank.scratch_slots)});
    for (size_t slot = 0; slot < rank.scratch_shards.size(); ++slot)
      if (rank.scratch_shards[slot] < 0 || rank.scratch_shards[slot] >= collective.num_shards())
        faults.push_back(
            {fmt::format("rank {}: scratch slot {} holds shard {}; there are {} shards", r, slot,
                         rank.scratch_shards[slot], collective.num_shards())});
  }
}

}  // namespace

std::vector<PlanFault> CheckPlan(const Plan& plan, const CheckOptions& options) {
  std::vector<PlanFault> faults;
  CheckSlots(plan, faults);
  CheckDependencies(plan, faults);
  CheckNumbers(plan, faults);
  if (options.fifo_depth < 0)
    faults.push_back({fmt::format("fifo_depth {} is negative", options.fifo_depth)});
  if (!faults.empty()) return faults;

  const Cells cells(plan);
  lower::Machine machine{plan.collective,
                         cells.per_slot(),
                         cells.starts(),
                         options.in_place,
                         false,
                         true,
                         options.fifo_depth,
                         {},
                         {}};
  int64_t total = 0;
  for (const RankPlan& rank : plan.ranks) {
    lower::MachineRank& to = machine.ranks.emplace_back();
    to.cells = {rank.input_slots * machine.cells_per_slot,
                rank.output_slots * machine.cells_per_slot,
                rank.scratch_slots * machine.cells_per_slot};
    for (const int64_t buffer : to.cells) total += buffer;
    to.weights = {rank.input_weights, rank.output_weights, rank.scratch_weights};
    to.scratch_shards = rank.scratch_shards;
    for (const Stream& stream : rank.streams) {
      lower::ActionStream& list = to.streams.emplace_back();
      list.send_peer = stream.send_peer;
      list.recv_peer = stream.recv_peer;
      list.channel = stream.channel;
      for (const Instruction& instruction : stream.instructions)
        list.actions.push_back(ToAction(instruction, cells));
    }
  }
  constexpr int64_t kMaxCells = int64_t{1} << 27;
  if (total > kMaxCells)
    return {{fmt::format("too large to check: {} separate pieces of memory, at most {}", total,
                         kMaxCells)}};
  return lower::RunMachine(machine);
}

}  // namespace tutti
