// The network and the demands as the flow solver sees them: parallel links as one bundle, bundles
// into one node next to each other, bandwidths in units of the smallest link's.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"

namespace tutti {

__extension__ using WideInteger = __int128;
Rational ToRational(WideInteger value);

struct FlowNetwork {
  explicit FlowNetwork(const Topology& topology);

  int32_t num_nodes = 0, num_ranks = 0;
  int64_t smallest_bandwidth = 0;  // of a link, in bytes/s
  std::vector<LinkBundle> bundles;
  std::vector<int32_t> tail, head;  // of a bundle
  std::vector<double> capacity;     // of a bundle, in smallest_bandwidth
  std::vector<int32_t> first_in;    // bundles into v: [first_in[v], first_in[v + 1])
  std::vector<int32_t> first_out;   // out_bundles from v: [first_out[v], first_out[v + 1])
  std::vector<int32_t> out_bundles;

  size_t num_bundles() const { return bundles.size(); }
};

class DemandTable {
 public:
  // `matrix` is empty or valid (CheckDemand).
  DemandTable(int32_t num_ranks, const std::vector<int64_t>& matrix)
      : num_ranks_(num_ranks), matrix_(matrix) {}

  // 0 for switches and on the diagonal.
  int64_t operator()(int32_t from, int32_t to) const {
    if (from == to || to >= num_ranks_) return 0;
    return matrix_.empty() ? 1
                           : matrix_[static_cast<size_t>(from) * Size() + static_cast<size_t>(to)];
  }
  int64_t FromRank(int32_t from) const;  // sum over all others
  WideInteger Total() const;
  double Mean() const;  // over all pairs of different ranks
  int64_t LargestFromRank() const;

 private:
  size_t Size() const { return static_cast<size_t>(num_ranks_); }

  int32_t num_ranks_;
  const std::vector<int64_t>& matrix_;
};

Status CheckDemand(int32_t num_ranks, const std::vector<int64_t>& matrix);

}  // namespace tutti
