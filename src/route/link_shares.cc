#include "link_shares.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "common.h"
#include "tutti/base/check.h"

namespace tutti {
namespace {

constexpr WideInteger kMaxShareUnits = std::numeric_limits<int64_t>::max();
// Larger factors are not worth it: shares are then rounded by less than a unit.
constexpr int64_t kMaxFactor = 1 << 16;

// The factor by which `load` must grow so that every link's share of it is whole.
int64_t FactorOf(int64_t load, int64_t link_bandwidth, int64_t bandwidth) {
  const auto rest = static_cast<int64_t>(WideInteger{load} * link_bandwidth % bandwidth);
  return bandwidth / std::gcd(rest, bandwidth);
}

}  // namespace

Result<LinkShares> LinkShares::Make(const Topology& topology, std::span<const LinkBundle> bundles,
                                    const std::vector<WideInteger>& load) {
  LinkShares shares;
  std::vector<std::vector<LinkId>> links(bundles.size());
  for (const LinkId link : topology.Links())
    links[BundleOf(bundles, topology, link)].push_back(link);
  WideInteger most = 0;
  for (size_t b = 0; b < bundles.size(); ++b) {
    most = std::max(most, load[b]);
    if (load[b] > kMaxShareUnits) continue;
    for (const LinkId link : links[b]) {
      const int64_t factor =
          FactorOf(static_cast<int64_t>(load[b]), topology.bandwidth(link), bundles[b].bandwidth);
      if (shares.factor_ > kMaxFactor || factor > kMaxFactor)
        shares.factor_ = kMaxFactor + 1;
      else
        shares.factor_ = std::lcm(shares.factor_, factor);
    }
  }
  if (most > kMaxShareUnits)
    return MakeError(ErrorCode::kResourceExhausted,
                     "the units that cross a link do not fit in 63 bits");
  if (shares.factor_ > kMaxFactor || most > kMaxShareUnits / shares.factor_) shares.factor_ = 1;

  for (size_t b = 0; b < bundles.size(); ++b) {
    shares.first_.push_back(static_cast<int32_t>(shares.links_.size()));
    const WideInteger whole = load[b] * shares.factor_;
    WideInteger left = whole;
    for (const LinkId link : links[b]) {
      shares.links_.push_back(link);
      shares.left_.push_back(
          static_cast<int64_t>(whole * topology.bandwidth(link) / bundles[b].bandwidth));
      left -= shares.left_.back();
    }
    // Fewer units than links are left over.
    for (size_t i = 0; left > 0; ++i, --left)
      ++shares.left_[static_cast<size_t>(shares.first_.back()) + i];
  }
  shares.first_.push_back(static_cast<int32_t>(shares.links_.size()));
  shares.filling_.assign(shares.first_.begin(), shares.first_.end() - 1);
  return shares;
}

void LinkShares::AddPath(std::span<const int32_t> bundles, int64_t weight,
                         RoutingBuilder& builder) {
  int64_t left = weight * factor_;
  while (left > 0) {
    int64_t part = left;
    hops_.clear();
    for (const int32_t bundle : bundles) {
      int32_t& filling = filling_[static_cast<size_t>(bundle)];
      while (left_[static_cast<size_t>(filling)] == 0) {
        ++filling;
        TUTTI_CHECK(filling < first_[static_cast<size_t>(bundle) + 1]);
      }
      hops_.push_back(links_[static_cast<size_t>(filling)]);
      part = std::min(part, left_[static_cast<size_t>(filling)]);
    }
    for (const int32_t bundle : bundles)
      left_[static_cast<size_t>(filling_[static_cast<size_t>(bundle)])] -= part;
    builder.AddPath(hops_, part);
    left -= part;
  }
}

}  // namespace tutti
