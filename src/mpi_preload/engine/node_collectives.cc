#include "engine/node_collectives.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "tutti/base/copy.h"

namespace tutti::mpi::preload {
namespace {

void CopyBytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to != from) CopyMemory(to, from, static_cast<size_t>(bytes));
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Part `index` of [0, count) in as many parts: where it begins.
int64_t ShareBegin(int64_t count, int index, int parts) { return count * index / parts; }

}  // namespace

int NodeCollectives::Make(MPI_Comm communicator, int rank, int size,
                          std::unique_ptr<NodeCollectives>* made) {
  if (size > kMaxRanks) return MPI_SUCCESS;
  std::unique_ptr<NodeCollectives> collectives(new NodeCollectives(rank, size));
  std::vector<int> members(static_cast<size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  const int error =
      NodeMemory::Make(communicator, members, rank, sizeof(Window), &collectives->memory_);
  if (error == MPI_SUCCESS && collectives->memory_ != nullptr) *made = std::move(collectives);
  return error;
}

void NodeCollectives::WaitForRow(uint64_t step) {
  if (step <= all_done_ + kRows) return;
  const uint64_t needed = step - kRows;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const std::atomic<uint64_t>& done = window(rank).done;
    WaitFor(done, needed);
    least = std::min(least, done.load(std::memory_order_acquire));
  }
  all_done_ = least;
}

int64_t NodeCollectives::ChunkBytes(int64_t unit, bool reduces) const {
  // Ranks that take turns on a core should do much in a turn; others overlap parts of a chunk, and rows of a reduction are
  // to stay in the caches beside its results.
  const int64_t wished = memory_->crowded() ? kRoom : (reduces ? 64 << 10 : 128 << 10);
  return std::max(std::min(wished, kRoom) / unit, int64_t{1}) * unit;
}

void NodeCollectives::Barrier() {
  const uint64_t step = ++step_;
  WaitForRow(step);
  Post(step);
  for (int rank = 0; rank < size_; ++rank) Posted(step, rank);
  // Who has posted a step has ended the calls before.
  all_done_ = std::max(all_done_, step - 1);
  End(step);
}

void NodeCollectives::Broadcast(std::byte* data, int64_t bytes, int root) {
  const int64_t chunk = ChunkBytes(1, false);
  for (int64_t at = 0; at < bytes; at += chunk) {
    const int64_t here = std::min(chunk, bytes - at);
    const uint64_t step = ++step_;
    if (rank_ == root) {
      WaitForRow(step);
      CopyBytes(row(step, rank_).data, data + at, here);
      Post(step);
    } else {
      CopyBytes(data + at, Posted(step, root), here);
    }
    End(step);
  }
}

void NodeCollectives::AllGather(const std::byte* own, std::span<const Block> blocks) {
  const Block& mine = blocks[static_cast<size_t>(rank_)];
  int64_t longest = 0;
  for (const Block& block : blocks) longest = std::max(longest, block.bytes);
  const int64_t chunk = ChunkBytes(1, false);
  const int64_t steps = CeilDiv(longest, chunk);
  const uint64_t base = step_;
  step_ += static_cast<uint64_t>(steps);
  const std::byte* const from = own != nullptr ? own : mine.at;
  const auto bytes_in = [&](const Block& block, int64_t piece) {
    return std::clamp<int64_t>(block.bytes - piece * chunk, 0, chunk);
  };
  for (int64_t turn = 0; turn <= steps; ++turn) {
    if (turn < steps) {
      const uint64_t step = base + 1 + static_cast<uint64_t>(turn);
      WaitForRow(step);
      if (bytes_in(mine, turn) > 0) {
        CopyBytes(row(step, rank_).data, from + turn * chunk, bytes_in(mine, turn));
      }
      Post(step);
    }
    if (turn == 0) continue;
    const int64_t piece = turn - 1;
    const uint64_t step = base + static_cast<uint64_t>(turn);
    for (int distance = 1; distance < size_; ++distance) {
      const int rank = (rank_ + distance) % size_;
      const std::byte* const posted = Posted(step, rank);
      const Block& block = blocks[static_cast<size_t>(rank)];
      if (const int64_t bytes = bytes_in(block, piece); bytes > 0) {
        CopyBytes(block.at + piece * chunk, posted, bytes);
      }
    }
    if (steps == 1) all_done_ = std::max(all_done_, step - 1);
    End(step);
  }
  CopyBytes(mine.at, from, mine.bytes);
}

void NodeCollectives::Gather(const std::byte* own, std::byte* all, int64_t block_bytes, int root) {
  const int64_t chunk = ChunkBytes(1, false);
  for (int64_t at = 0; at < block_bytes; at += chunk) {
    const int64_t here = std::min(chunk, block_bytes - at);
    const uint64_t step = ++step_;
    if (rank_ != root) {
      WaitForRow(step);
      CopyBytes(row(step, rank_).data, own + at, here);
      Post(step);
    } else {
      for (int distance = 1; distance < size_; ++distance) {
        const int rank = (rank_ + distance) % size_;
        CopyBytes(all + rank * block_bytes + at, Posted(step, rank), here);
      }
    }
    End(step);
  }
  if (rank_ == root && own != nullptr) CopyBytes(all + rank_ * block_bytes, own, block_bytes);
}

void NodeCollectives::Scatter(const std::byte* all, std::byte* own, int64_t block_bytes, int root) {
  const int64_t chunk = std::max(ChunkBytes(1, false) / size_, int64_t{64});
  for (int64_t at = 0; at < block_bytes; at += chunk) {
    const int64_t here = std::min(chunk, block_bytes - at);
    const uint64_t step = ++step_;
    if (rank_ == root) {
      WaitForRow(step);
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        CopyBytes(row(step, rank_).data + rank * here, all + rank * block_bytes + at, here);
      }
      Post(step);
    } else {
      CopyBytes(own + at, Posted(step, root) + rank_ * here, here);
    }
    End(step);
  }
  if (rank_ == root && own != nullptr) CopyBytes(own, all + rank_ * block_bytes, block_bytes);
}

int NodeCollectives::Fold(uint64_t step, int64_t offset, const std::byte* own, int count,
                          const Elements& elements, std::byte* into) const {
  for (int rank = 0; rank < size_; ++rank) {
    const std::byte* const from = rank == rank_ ? own : Posted(step, rank) + offset;
    if (rank == 0) {
      CopyBytes(into, from, count * elements.size);
    } else if (count > 0) {
      const int error =
          PMPI_Reduce_local(const_cast<std::byte*>(from), into, count, elements.type, elements.op);
      if (error != MPI_SUCCESS) return error;
    }
  }
  return MPI_SUCCESS;
}

int NodeCollectives::ReduceFlat(const std::byte* in, std::byte* out, int64_t bytes, int count,
                                const Elements& elements, int root) {
  const uint64_t step = ++step_;
  WaitForRow(step);
  std::byte* const mine = row(step, rank_).data;
  const bool reads = root == kAllRanks || root == rank_;
  if (!reads || in == out || root == kAllRanks) CopyBytes(mine, in, bytes);
  Post(step);
  int error = MPI_SUCCESS;
  if (reads) {
    error = Fold(step, 0, in == out ? mine : in, count, elements, out);
    all_done_ = std::max(all_done_, step - 1);
  }
  End(step);
  return error;
}

int NodeCollectives::ReduceTo(const std::byte* in, std::byte* out, int64_t count,
                              const Elements& elements, int root) {
  const int64_t size = elements.size, all_bytes = count * size;
  if (all_bytes <= kFlatBytes && all_bytes * size_ <= kMaxFlatWork) {
    return ReduceFlat(in, out, all_bytes, static_cast<int>(count), elements, root);
  }
  const int64_t chunk = ChunkBytes(size, true) / size;  // elements
  const int64_t steps = CeilDiv(count, chunk);
  const uint64_t base = step_;
  step_ += static_cast<uint64_t>(steps);
  const bool takes = root == kAllRanks || root == rank_;
  int first_error = MPI_SUCCESS;
  // Elements of a piece, and where in it the share of a rank begins.
  const auto elements_in = [&](int64_t piece) { return std::min(chunk, count - piece * chunk); };
  const auto begin_of = [&](int64_t piece, int rank) {
    return ShareBegin(elements_in(piece), rank, size_);
  };
  for (int64_t turn = 0; turn < steps + 2; ++turn) {
    if (turn < steps) {  // give all but the own share
      const uint64_t step = base + 1 + static_cast<uint64_t>(turn);
      WaitForRow(step);
      const int64_t begin = begin_of(turn, rank_) * size, end = begin_of(turn, rank_ + 1) * size;
      const std::byte* const from = in + turn * chunk * size;
      CopyBytes(row(step, rank_).data, from, begin);
      CopyBytes(row(step, rank_).data + end, from + end, elements_in(turn) * size - end);
      Post(step);
    }
    if (turn >= 1 && turn <= steps) {  // reduce the own share
      const int64_t piece = turn - 1;
      const uint64_t step = base + static_cast<uint64_t>(turn);
      const int64_t begin = begin_of(piece, rank_);
      const int64_t share = begin_of(piece, rank_ + 1) - begin;
      const int64_t at = (piece * chunk + begin) * size;
      Row& result = reduced(step, rank_);
      const int error =
          Fold(step, begin * size, in + at, static_cast<int>(share), elements, result.data);
      if (first_error == MPI_SUCCESS) first_error = error;
      result.posted.store(step, std::memory_order_release);
      if (takes) CopyBytes(out + at, result.data, share * size);
    }
    if (turn >= 2) {  // take the shares of the others
      const int64_t piece = turn - 2;
      const uint64_t step = base + static_cast<uint64_t>(turn) - 1;
      for (int distance = 1; takes && distance < size_; ++distance) {
        const int rank = (rank_ + distance) % size_;
        const int64_t begin = begin_of(piece, rank);
        const int64_t share = begin_of(piece, rank + 1) - begin;
        const Row& result = reduced(step, rank);
        WaitFor(result.posted, step);
        CopyBytes(out + (piece * chunk + begin) * size, result.data, share * size);
      }
      End(step);
    }
  }
  return first_error;
}

int NodeCollectives::ReduceScatter(const std::byte* in, std::byte* out, std::span<const int> counts,
                                   const Elements& elements) {
  const int64_t size = elements.size;
  std::vector<int64_t> begins(static_cast<size_t>(size_) + 1);  // of blocks, elements
  int64_t longest = 0;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    begins[rank + 1] = begins[rank] + counts[rank];
    longest = std::max<int64_t>(longest, counts[rank]);
  }
  const int64_t room = ChunkBytes(size, true) / size / size_;
  const int64_t piece_elements = std::max<int64_t>(room, 1);
  const int64_t steps = CeilDiv(longest, piece_elements);
  const uint64_t base = step_;
  step_ += static_cast<uint64_t>(steps);
  // In place `out` is where elements of `in` lie that are still to be read.
  const std::less_equal<const std::byte*> is_before;
  const bool is_apart = is_before(in + begins.back() * size, out) ||
                        is_before(out + counts[static_cast<size_t>(rank_)] * size, in);
  int first_error = MPI_SUCCESS;
  const auto elements_in = [&](int rank, int64_t piece) {
    return std::clamp<int64_t>(counts[static_cast<size_t>(rank)] - piece * piece_elements, 0,
                               piece_elements);
  };
  const auto at = [&](int rank, int64_t piece) {
    return (begins[static_cast<size_t>(rank)] + piece * piece_elements) * size;
  };
  // Blocks of a row lie as far apart as its longest needs.
  const auto stride = [&](int64_t piece) {
    return std::min(piece_elements, longest - piece * piece_elements) * size;
  };
  for (int64_t turn = 0; turn <= steps; ++turn) {
    if (turn < steps) {
      const uint64_t step = base + 1 + static_cast<uint64_t>(turn);
      WaitForRow(step);
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        CopyBytes(row(step, rank_).data + rank * stride(turn), in + at(rank, turn),
                  elements_in(rank, turn) * size);
      }
      Post(step);
    }
    if (turn == 0) continue;
    const int64_t piece = turn - 1;
    const uint64_t step = base + static_cast<uint64_t>(turn);
    std::byte* const result = out + piece * piece_elements * size;
    std::byte* const into = is_apart ? result : reduced(step, rank_).data;
    const int64_t mine = elements_in(rank_, piece);
    const int error = Fold(step, rank_ * stride(piece), in + at(rank_, piece),
                           static_cast<int>(mine), elements, into);
    if (first_error == MPI_SUCCESS) first_error = error;
    CopyBytes(result, into, mine * size);
    if (steps == 1) all_done_ = std::max(all_done_, step - 1);
    End(step);
  }
  return first_error;
}

}  // namespace tutti::mpi::preload
