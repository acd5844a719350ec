// The buffers of all ranks for a block program: where each cell lies, what inputs hold and what
// outputs must hold.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "pattern.h"
#include "shared_memory.h"
#include "tutti/runtime/block_runner.h"

namespace tutti {

class BlockMemory {
 public:
  // `program` must outlive it.
  static Result<BlockMemory> Make(const BlockProgram& program, const RunOptions& options);

  int64_t size_bytes() const { return size_bytes_; }
  int64_t element_bytes() const { return element_bytes_; }
  int64_t cell_elements() const { return cell_elements_; }
  // Takes the memory: pages exist once they are touched.
  Status Allocate();

  std::byte* At(const BlockRange& range) const {
    return memory_.data() +
           bases_[static_cast<size_t>(range.rank)][static_cast<size_t>(range.buffer)] +
           range.first * cell_elements_ * element_bytes_;
  }
  // Writes what a rank contributes, and into its output what it must not end with.
  void Fill(int32_t rank) const;
  // The results of kAvg, which are sums so far.
  void Divide(int32_t rank) const;
  int64_t CountWrong(int32_t rank) const;

 private:
  BlockMemory(const BlockProgram& program, const RunOptions& options);
  Status Arrange();
  // The input slot that an output slot is, in place, or -1.
  int32_t AliasOf(int32_t rank, int32_t slot) const;
  const std::byte* ExpectedOf(int32_t rank, int32_t slot) const;
  int64_t SlotElements() const { return program_->cells_per_slot * cell_elements_; }
  std::byte* Slot(int32_t rank, Buffer buffer, int32_t slot) const {
    return At({rank, buffer, slot * program_->cells_per_slot});
  }

  const BlockProgram* program_;
  RunOptions options_;
  int64_t element_bytes_ = 1, cell_elements_ = 1, size_bytes_ = 0, total_bytes_ = 0;
  std::vector<std::array<int64_t, 3>> bases_;  // bytes, of input, output and scratch
  std::unique_ptr<Pattern> pattern_;
  SharedMemory memory_;
};

}  // namespace tutti
