// Puts block programs together; for the two files that make them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <utility>

#include "tutti/base/result.h"
#include "tutti/lower/block_program.h"
#include "tutti/lower/lowering.h"

namespace tutti::lower {

class BlockBuilder {
 public:
  static constexpr int64_t kMaxSteps = int64_t{1} << 22;

  explicit BlockBuilder(BlockProgram program) : program_(std::move(program)) {}

  int32_t AddCounters(int64_t count, int32_t start = 0) {
    const auto first = static_cast<int32_t>(program_.counters.size());
    program_.counters.resize(program_.counters.size() + static_cast<size_t>(count), start);
    return first;
  }
  // Cells behind those that the rank's scratch has.
  int64_t AddScratch(int32_t rank, int64_t cells) {
    int64_t& scratch = program_.scratch_cells[static_cast<size_t>(rank)];
    return std::exchange(scratch, scratch + cells);
  }

  void AddBlock(int32_t rank, int32_t number) { program_.blocks.push_back({rank, number, {}}); }
  // For the steps that follow.
  void SetOrigin(size_t origin) { origin_ = static_cast<int32_t>(origin); }

  void Post(int32_t counter, int64_t count = 1) { Sync(BlockAction::kPost, counter, count, 0); }
  void Take(int32_t counter) { Sync(BlockAction::kTake, counter, 1, 0); }
  void Reach(int32_t counter, int32_t value, int64_t count = 1) {
    Sync(BlockAction::kReach, counter, count, value);
  }
  void Meet(int32_t counter, int64_t blocks) { Sync(BlockAction::kMeet, counter, blocks, 0); }
  void Reduce(std::span<const BlockRange> from, std::span<const BlockRange> to, int64_t cells) {
    BlockStep* step = cells > 0 ? Add(BlockAction::kReduce) : nullptr;
    if (step == nullptr) return;
    step->first_range = static_cast<int32_t>(program_.ranges.size());
    step->num_sources = static_cast<int32_t>(from.size());
    step->num_targets = static_cast<int32_t>(to.size());
    step->cells = cells;
    program_.ranges.insert(program_.ranges.end(), from.begin(), from.end());
    program_.ranges.insert(program_.ranges.end(), to.begin(), to.end());
  }

  bool too_large() const { return steps_ > kMaxSteps; }
  Result<BlockProgram> Finish() && {
    if (!too_large()) return std::move(program_);
    const Block& last = program_.blocks.back();
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("too large to run: more than {} actions up to gpu {} tb {} {}",
                                 kMaxSteps, last.rank, last.number, origin_));
  }

 private:
  BlockStep* Add(BlockAction action) {
    if (++steps_ > kMaxSteps) return nullptr;
    BlockStep& step = program_.blocks.back().steps.emplace_back();
    step.action = action;
    step.origin = origin_;
    return &step;
  }
  void Sync(BlockAction action, int32_t counter, int64_t count, int32_t value) {
    BlockStep* step = Add(action);
    if (step == nullptr) return;
    step->counter = counter;
    step->count = static_cast<int32_t>(count);
    step->value = value;
  }

  BlockProgram program_;
  int64_t steps_ = 0;
  int32_t origin_ = 0;
};

// Why a file with these faults is not run.
inline Error NotCorrect(const std::vector<PlanFault>& faults) {
  return {ErrorCode::kInfeasible,
          fmt::format("is not run, since it is not correct: {}{}", faults.front().message,
                      faults.size() > 1 ? fmt::format(" (and {} more)", faults.size() - 1) : "")};
}

}  // namespace tutti::lower
