// The cells of a Machine: values, and the actions that touched them last.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "contribution_sets.h"
#include "happens_before.h"
#include "machine.h"

namespace tutti::lower {

struct Value {
  int64_t position = -1;  // shard * cells_per_slot + cell; -1: nothing was written
  int32_t set = -1;
  bool spoilt = false;  // after a fault: reported once, silent from then on
};

class MachineMemory {
 public:
  // All must outlive it.
  MachineMemory(const Machine& machine, const MachineIndex& index, HappensBefore& order,
                std::vector<PlanFault>& faults);

  Value Read(int32_t rank, const Operand& operand, int64_t at, int32_t action);
  void Write(int32_t rank, const Operand& operand, int64_t at, int32_t action, const Value& value);
  // Notes a fault where the two cannot be reduced.
  Value Reduce(const Value& a, const Value& b, int32_t action);
  // One piece of memory under two names.
  bool SameCells(int32_t rank, const Operand& a, const Operand& b) const {
    return CellOf(rank, a, 0) == CellOf(rank, b, 0);
  }
  // Faults of the results: one a rank and slot.
  void CheckResults();

 private:
  struct Slot {
    Value value;
    int32_t writer = -1;        // action
    int32_t first_reader = -1;  // since then, in readers_
  };
  struct Reader {
    int32_t action, next;
  };

  size_t CellOf(int32_t rank, const Operand& operand, int64_t at) const;
  void Initialise(NodeId rank);
  void CheckHome(int32_t rank, const Operand& operand, int64_t at, int32_t action,
                 const Value& value);
  std::string NameOf(const Value& value) const;
  std::string NameOfCell(const Operand& operand, int64_t at) const;

  const Machine& machine_;
  const MachineIndex& index_;
  HappensBefore& order_;
  std::vector<PlanFault>& faults_;
  ContributionSets sets_;
  std::vector<std::array<size_t, 3>> first_cell_;  // of each rank's buffers
  std::vector<std::vector<size_t>> output_cell_;   // first cell of each output slot
  std::vector<Slot> cells_;
  std::vector<Reader> readers_;
};

}  // namespace tutti::lower
