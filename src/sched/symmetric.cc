#include "tutti/sched/symmetric.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {

bool HasSymmetricForm(const Collective& collective) { return collective.treats_ranks_alike(); }

int64_t CountTransfers(const SymmetricSchedule& schedule) {
  return schedule.root.collective.num_ranks() *
         static_cast<int64_t>(schedule.root.transfers.size());
}

Schedule FoldOntoRank0(const Translations& translations, const SymmetricSchedule& schedule) {
  Schedule folded = schedule.root;
  // Rank 0's links are the first ones, in the order of their classes (T2, R4).
  for (Transfer& transfer : folded.transfers)
    transfer.link = LinkId{translations.LinkClass(transfer.link)};
  return folded;
}

Result<Schedule> Expand(const Translations& translations, const Topology& topology,
                        const SymmetricSchedule& schedule, int64_t transfers_limit) {
  const int64_t total = CountTransfers(schedule);
  if (total > transfers_limit)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("a symmetric schedule of {} transfers in all; at most {} are "
                                 "written out one by one",
                                 total, transfers_limit));
  const std::vector<Transfer>& root = schedule.root.transfers;
  const auto num_ranks = static_cast<size_t>(topology.num_ranks());
  Schedule whole = schedule.root;
  whole.transfers.resize(static_cast<size_t>(total));
  // Receiver by receiver: one table says where all translations take it.
  std::vector<uint32_t> order(root.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return topology.head(root[a].link) < topology.head(root[b].link);
  });
  NodePermutation images;
  NodeId loaded{-1};
  for (uint32_t index : order) {
    const Transfer& transfer = root[index];
    const NodeId head = topology.head(transfer.link);
    if (head != loaded) images = translations.ImagesOf(head);
    loaded = head;
    const int32_t link_class = translations.LinkClass(transfer.link);
    for (size_t u = 0; u < num_ranks; ++u) {
      Transfer& out = whole.transfers[index * num_ranks + u];
      out = transfer;
      out.shard = ShardId{static_cast<int32_t>(u)};
      out.link = translations.InLink(images[u], link_class);
    }
  }
  return whole;
}

}  // namespace tutti
