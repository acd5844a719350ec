#include "problem.h"

#include <algorithm>

#include "structure.h"
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
  const size_t count = schedule.transfers.size();
  sound_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Transfer& transfer = schedule.transfers[i];
    sound_[i] = IsSound(topology, collective, schedule, transfer) &&
                (!timed() || schedule.start_ps[i] >= 0);
    const bool descends = i > 0 && (timed() ? schedule.start_ps[i] < schedule.start_ps[i - 1]
                                            : transfer.step < schedule.transfers[i - 1].step);
    if (!sound_[i] || descends)
      findings.Add({.kind = ViolationKind::kStructure, .transfer = static_cast<int64_t>(i)});
  }
  GroupByShard();
  if (timed()) ComputeArrivals();
}

void Problem::GroupByShard() {
  const std::vector<Transfer>& transfers = schedule_.transfers;
  first_.assign(static_cast<size_t>(collective_.num_shards()) + 1, 0);
  for (size_t i = 0; i < transfers.size(); ++i)
    if (sound_[i]) ++first_[transfers[i].shard.index() + 1];
  for (size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
  order_.resize(first_.back());
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (size_t i = 0; i < transfers.size(); ++i)
    if (sound_[i]) order_[next[transfers[i].shard.index()]++] = static_cast<uint32_t>(i);
  // Only a schedule that breaks S3 needs sorting; it is reported and run all the same.
  const auto earlier = [this](uint32_t a, uint32_t b) { return Start(a) < Start(b); };
  for (size_t s = 0; s + 1 < first_.size(); ++s) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first_[s]);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(first_[s + 1]);
    if (!std::is_sorted(begin, end, earlier)) std::stable_sort(begin, end, earlier);
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
