#include "tutti/flow/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

Rational ToRational(WideInteger value) {
  constexpr int64_t kBase = int64_t{1} << 62;
  if (-kBase < value && value < kBase) return Rational(static_cast<int64_t>(value));
  return ToRational(value / kBase) * Rational(kBase) +
         Rational(static_cast<int64_t>(value % kBase));
}

std::vector<LinkBundle> BundlesOf(const Topology& topology) {
  std::vector<LinkBundle> bundles;
  for (LinkId link : topology.Links())
    bundles.push_back({topology.tail(link), topology.head(link), topology.bandwidth(link)});
  std::sort(bundles.begin(), bundles.end(), [](const LinkBundle& a, const LinkBundle& b) {
    return std::pair(a.head, a.tail) < std::pair(b.head, b.tail);
  });
  size_t kept = 0;
  for (size_t i = 0; i < bundles.size(); ++i) {
    if (kept > 0 && bundles[kept - 1].tail == bundles[i].tail &&
        bundles[kept - 1].head == bundles[i].head) {
      bundles[kept - 1].bandwidth += bundles[i].bandwidth;
    } else {
      bundles[kept++] = bundles[i];
    }
  }
  bundles.resize(kept);
  return bundles;
}

FlowNetwork::FlowNetwork(const Topology& topology)
    : num_nodes(topology.num_nodes()),
      num_ranks(topology.num_ranks()),
      bundles(BundlesOf(topology)),
      first_in(static_cast<size_t>(num_nodes) + 1, 0),
      first_out(static_cast<size_t>(num_nodes) + 1, 0),
      out_bundles(bundles.size()) {
  smallest_bandwidth = topology.bandwidth(LinkId{0});
  for (LinkId link : topology.Links())
    smallest_bandwidth = std::min(smallest_bandwidth, topology.bandwidth(link));
  for (const LinkBundle& bundle : bundles) {
    tail.push_back(bundle.tail.value);
    head.push_back(bundle.head.value);
    capacity.push_back(static_cast<double>(bundle.bandwidth) /
                       static_cast<double>(smallest_bandwidth));
    ++first_in[bundle.head.index() + 1];
    ++first_out[bundle.tail.index() + 1];
  }
  for (size_t v = 0; v < static_cast<size_t>(num_nodes); ++v) {
    first_in[v + 1] += first_in[v];
    first_out[v + 1] += first_out[v];
  }
  std::vector<int32_t> next(first_out.begin(), first_out.end() - 1);
  for (size_t e = 0; e < bundles.size(); ++e)
    out_bundles[static_cast<size_t>(next[static_cast<size_t>(tail[e])]++)] =
        static_cast<int32_t>(e);
}

int64_t DemandTable::FromRank(int32_t from) const {
  if (matrix_.empty()) return num_ranks_ - 1;
  int64_t sum = 0;
  for (int32_t to = 0; to < num_ranks_; ++to) sum += (*this)(from, to);
  return sum;
}

WideInteger DemandTable::Total() const {
  WideInteger sum = 0;
  for (int32_t from = 0; from < num_ranks_; ++from) sum += FromRank(from);
  return sum;
}

double DemandTable::Mean() const {
  return ToRational(Total()).ToDouble() / (static_cast<double>(num_ranks_) * (num_ranks_ - 1));
}

int64_t DemandTable::LargestFromRank() const {
  int64_t largest = 0;
  for (int32_t from = 0; from < num_ranks_; ++from) largest = std::max(largest, FromRank(from));
  return largest;
}

Status CheckDemand(int32_t num_ranks, const std::vector<int64_t>& matrix) {
  if (matrix.empty()) return {};
  const auto n = static_cast<size_t>(num_ranks);
  if (matrix.size() != n * n)
    return InvalidArgument(fmt::format("the demand matrix of {} ranks must have {} entries, got {}",
                                       num_ranks, n * n, matrix.size()));
  bool any = false;
  for (size_t s = 0; s < n; ++s) {
    WideInteger sum = 0;
    for (size_t d = 0; d < n; ++d) {
      if (matrix[s * n + d] < 0)
        return InvalidArgument(fmt::format("demands must be >= 0, got {} from rank {} to rank {}",
                                           matrix[s * n + d], s, d));
      if (s != d) sum += matrix[s * n + d];
    }
    if (sum >= WideInteger{1} << 62)
      return InvalidArgument(fmt::format(
          "the demands of one rank must add up to less than 2^62, rank {}'s do not", s));
    any = any || sum > 0;
  }
  if (!any) return InvalidArgument("the demand matrix has no demand between different ranks");
  return {};
}

}  // namespace tutti
