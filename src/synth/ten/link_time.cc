#include "ten/link_time.h"

#include <algorithm>

namespace tutti::ten {

LinkTime LinkTimeOf(const Schedule& schedule, const Topology& topology, const Transfer& transfer) {
  const int64_t bytes_ps =
      std::min(kLongestPs, TransferPs(schedule, transfer, topology.bandwidth(transfer.link)));
  const int64_t travel_ps = std::min(kLongestPs, bytes_ps + topology.alpha_ps(transfer.link));
  return {std::max<int64_t>(1, schedule.link_model == LinkModel::kHeld ? travel_ps : bytes_ps),
          std::max<int64_t>(1, travel_ps)};
}

}  // namespace tutti::ten
