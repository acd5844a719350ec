// The memory of all ranks under an MSCCL++ plan: values, and who touched them when.
//
// A cell is a chunk, or an equal part of one where thread blocks share chunks. Whoever touches
// cells is an *agent*: a thread block, or a port channel, which moves data by itself. An agent's
// accesses carry its phase; another agent has seen a phase when its clock says so.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contribution_sets.h"
#include "mscclpp_file.h"
#include "tutti/coll/collective.h"

namespace tutti::lower {

struct PpStamp {
  int32_t agent = -1, phase = 0;
  int32_t operation = -1;  // for faults
};

struct PpValue {
  int64_t position = -1;  // chunk of the whole data * cells a chunk + cell; -1: never written
  int32_t set = -1;       // whose contributions
  bool packet = false;
  bool spoilt = false;  // after a fault: reported once
};

// What a plan's collective means for its chunks.
class PpLayout {
 public:
  // Nothing where the result is not defined or the numbers of chunks are wrong; a fault says why.
  static std::optional<PpLayout> Make(const PpFile& file, std::vector<PlanFault>& faults);

  CollectiveKind kind() const { return kind_; }
  int64_t chunks_per_slot() const { return shard_; }
  // Chunks of the buffers with what is left out in place: input, output, scratch.
  int64_t Chunks(size_t rank, Buffer buffer) const;
  // In place: the chunk of the input that an output chunk is, or -1.
  int64_t Alias(size_t rank, int64_t output_chunk) const;
  int64_t InputPosition(size_t rank, int64_t chunk) const;
  int64_t OutputPosition(size_t rank, int64_t chunk) const;

 private:
  CollectiveKind kind_ = CollectiveKind::kAllReduce;
  bool in_place_ = false;
  int64_t ranks_ = 0, shard_ = 0;  // chunks of a rank's part, or of everything
  std::vector<int64_t> scratch_;
};

class PpMemory {
 public:
  struct Cell {
    PpValue value;
    PpStamp writer;
    std::vector<PpStamp> readers;  // since
  };

  PpMemory(const PpFile& file, const PpLayout& layout, int64_t cells_per_chunk);

  Cell& At(int32_t rank, Buffer buffer, int64_t cell) {
    return cells_[IndexOf(rank, buffer, cell)];
  }
  // nullopt with a text where the two cannot be reduced.
  std::optional<PpValue> Reduce(const PpValue& a, const PpValue& b, std::string& fault);
  // `arrived`: whether a rank surely has seen a write when it is done. One fault a rank.
  void CheckResults(const std::function<bool(size_t rank, const PpStamp&)>& arrived,
                    std::vector<PlanFault>& faults);
  std::string NameOf(const PpValue& value) const;
  int64_t root() const { return root_; }  // that CheckResults found, or -1

 private:
  size_t IndexOf(int32_t rank, Buffer buffer, int64_t cell) const;
  // The contributions that `rank` should end with; -1: it need not end with anything.
  int32_t Wanted(size_t rank, int64_t position);
  std::string WhatLacks(const PpValue& got, int64_t position, int32_t wanted) const;
  int64_t Root();

  const PpFile& file_;
  const PpLayout& layout_;
  int64_t per_chunk_;
  ContributionSets sets_;
  std::vector<std::array<size_t, 3>> first_;
  std::vector<Cell> cells_;
  int64_t root_ = -1;
};

}  // namespace tutti::lower
