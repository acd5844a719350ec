#include "link_overlap.h"

#include <algorithm>
#include <vector>

namespace tutti::verify {
namespace {

constexpr int64_t kLinkGrain = 64;

void CheckLink(const Problem& problem, std::span<const uint32_t> transfers, Findings& findings) {
  int64_t free_at = 0, holder = -1;
  for (uint32_t index : transfers) {
    const Transfer& transfer = problem.transfer(index);
    if (holder >= 0 && problem.Start(index) < free_at)
      findings.Add({.kind = ViolationKind::kLinkOverlap,
                    .time = problem.Start(index),
                    .transfer = index,
                    .shard = transfer.shard,
                    .node = problem.topology().tail(transfer.link),
                    .begin = transfer.begin,
                    .end = transfer.end,
                    .other = holder});
    const int64_t free_after = LinkFreeAt(problem, index);
    if (holder >= 0 && free_after <= free_at) continue;
    free_at = free_after;
    holder = index;
  }
}

}  // namespace

int64_t LinkFreeAt(const Problem& problem, uint32_t index) {
  const int64_t arrival = problem.Arrival(index);
  if (problem.schedule().link_model == LinkModel::kHeld || arrival == kFarFuture) return arrival;
  return arrival - problem.topology().alpha_ps(problem.transfer(index).link);
}

void CheckLinkOverlaps(const Problem& problem, Findings& findings) {
  const std::vector<Transfer>& transfers = problem.schedule().transfers;
  std::vector<size_t> first(static_cast<size_t>(problem.topology().num_links()) + 1, 0);
  for (uint32_t i = 0; i < transfers.size(); ++i)
    if (problem.sound(i)) ++first[transfers[i].link.index() + 1];
  for (size_t l = 1; l < first.size(); ++l) first[l] += first[l - 1];
  std::vector<uint32_t> order(first.back());
  std::vector<size_t> next(first.begin(), first.end() - 1);
  for (uint32_t i = 0; i < transfers.size(); ++i)
    if (problem.sound(i)) order[next[transfers[i].link.index()]++] = i;

  FindInBlocks(
      findings, problem.topology().num_links(), kLinkGrain,
      [&](int64_t begin, int64_t end, Findings& found) {
        for (int64_t l = begin; l < end; ++l) {
          const std::span<uint32_t> of_link(order.data() + first[static_cast<size_t>(l)],
                                            order.data() + first[static_cast<size_t>(l) + 1]);
          std::stable_sort(of_link.begin(), of_link.end(), [&problem](uint32_t a, uint32_t b) {
            return problem.Start(a) < problem.Start(b);
          });
          CheckLink(problem, of_link, found);
        }
      });
}

}  // namespace tutti::verify
