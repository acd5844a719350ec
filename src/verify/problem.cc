#include "problem.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "structure.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"

namespace tutti::verify {
namespace {

constexpr int64_t kTransferGrain = 1 << 14;

int64_t AddSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kFarFuture : std::min(sum, kFarFuture);
}

}  // namespace

Problem::Problem(const Topology& topology, const Collective& collective, const Schedule& schedule,
                 Findings& findings)
    : topology_(topology), collective_(collective), schedule_(schedule) {
  const auto count = static_cast<int64_t>(schedule.transfers.size());
  sound_.resize(static_cast<size_t>(count));
  // Blocks of whole words of sound_.
  constexpr int64_t kWord = 64;
  FindInBlocks(findings, (count + kWord - 1) / kWord, kTransferGrain / kWord,
               [&](int64_t first, int64_t last, Findings& found) {
                 for (int64_t i = first * kWord; i < std::min(last * kWord, count); ++i)
                   CheckTransfer(static_cast<size_t>(i), found);
               });
  GroupByShard();
  if (timed()) ComputeArrivals();
}

void Problem::CheckTransfer(size_t index, Findings& findings) {
  const Transfer& transfer = schedule_.transfers[index];
  sound_[index] = IsSound(topology_, collective_, schedule_, transfer) &&
                  (!timed() || schedule_.start_ps[index] >= 0);
  const bool descends =
      index > 0 && (timed() ? schedule_.start_ps[index] < schedule_.start_ps[index - 1]
                            : transfer.step < schedule_.transfers[index - 1].step);
  if (descends) descends_ = true;
  if (!sound_[index] || descends)
    findings.Add({.kind = ViolationKind::kStructure, .transfer = static_cast<int64_t>(index)});
}

// By counting, block by block: what comes first in the schedule stays first in its shard, however many threads there are.
void Problem::GroupByShard() {
  const std::vector<Transfer>& transfers = schedule_.transfers;
  const size_t shards = static_cast<size_t>(collective_.num_shards());
  // A table of counts a block, worth it where a shard has several transfers in each.
  const size_t blocks = std::clamp<size_t>(
      transfers.size() / std::max<size_t>(static_cast<size_t>(kTransferGrain), 4 * shards), 1,
      static_cast<size_t>(NumThreads()));
  const auto for_blocks = [&](const std::function<void(size_t, size_t, size_t)>& body) {
    ParallelFor(static_cast<int64_t>(blocks), 1, [&](int64_t from, int64_t to) {
      for (auto block = static_cast<size_t>(from); block < static_cast<size_t>(to); ++block)
        body(block, transfers.size() * block / blocks, transfers.size() * (block + 1) / blocks);
    });
  };
  std::vector<std::vector<size_t>> next(blocks);  // [block][shard]: how many, then where to
  for_blocks([&](size_t block, size_t begin, size_t end) {
    next[block].assign(shards, 0);
    for (size_t i = begin; i < end; ++i)
      if (sound_[i]) ++next[block][transfers[i].shard.index()];
  });
  first_.assign(shards + 1, 0);
  for (size_t s = 0, at = 0; s < shards; ++s) {
    for (std::vector<size_t>& of_block : next) at += std::exchange(of_block[s], at);
    first_[s + 1] = at;
  }
  ReserveLarge(order_, first_.back());
  order_.resize(first_.back());
  for_blocks([&](size_t block, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (sound_[i]) order_[next[block][transfers[i].shard.index()]++] = static_cast<uint32_t>(i);
  });
  // Only a schedule that breaks S3 needs sorting; it is reported and run all the same.
  if (!descends_) return;
  const auto earlier = [this](uint32_t a, uint32_t b) { return Start(a) < Start(b); };
  for (size_t s = 0; s < shards; ++s) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first_[s]);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(first_[s + 1]);
    std::stable_sort(begin, end, earlier);
  }
}

void Problem::ComputeArrivals() {
  arrival_ps_.assign(schedule_.transfers.size(), 0);
  ParallelFor(num_sound(), kTransferGrain, [this](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t index = order_[static_cast<size_t>(i)];
      const Transfer& sent = transfer(index);
      arrival_ps_[index] =
          AddSaturating(schedule_.start_ps[index],
                        AddSaturating(topology_.alpha_ps(sent.link),
                                      TransferPs(schedule_, sent, topology_.bandwidth(sent.link))));
    }
  });
}

}  // namespace tutti::verify
