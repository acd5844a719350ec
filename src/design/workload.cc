#include "tutti/design/workload.h"

#include <fmt/format.h>

#include "tutti/base/check.h"
#include "tutti/base/rational.h"
#include "tutti/base/units.h"

namespace tutti {

Result<std::vector<Workload::Size>> ParseSizeDistribution(const std::string& text) {
  std::vector<Workload::Size> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = std::min(part.find(':'), part.size());
    const Result<int64_t> bytes = ParseSizeBytes(part.substr(0, colon));
    if (!bytes) return tl::unexpected(bytes.error());
    if (*bytes < 1) return InvalidArgument(fmt::format("size '{}': at least 1 byte", part));
    Workload::Size size{*bytes, 1};
    if (colon < part.size()) {
      const std::optional<Rational> weight = Rational::Parse(part.substr(colon + 1));
      if (!weight || *weight <= Rational(0))
        return InvalidArgument(
            fmt::format("'{}': wanted SIZE or SIZE:WEIGHT with a weight above 0", part));
      size.weight = weight->ToDouble();
    }
    sizes.push_back(size);
    begin = end + 1;
  }
  return sizes;
}

Result<double> ExpectedSeconds(const Design& design, const Workload& workload,
                               std::optional<double> flow) {
  TUTTI_CHECK(!workload.sizes.empty());
  double weight = 0, seconds = 0;
  for (const Workload::Size& size : workload.sizes) {
    const auto bytes = static_cast<double>(size.bytes);
    double time = design.tl * workload.alpha_s + design.tb.ToDouble() * bytes / workload.bandwidth;
    switch (workload.collective) {
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
        break;
      case CollectiveKind::kAllReduce:
        time *= 2;
        break;
      case CollectiveKind::kAllToAll:
        if (!flow) return InvalidArgument("the time of an all-to-all needs the flow value");
        time = bytes / design.ranks / (*flow * workload.bandwidth / design.degree);
        break;
      default:
        return InvalidArgument(
            fmt::format("designs are compared by all-gather, reduce-scatter, all-reduce and "
                        "all-to-all, not by {}",
                        Name(workload.collective)));
    }
    seconds += size.weight * time;
    weight += size.weight;
  }
  return seconds / weight;
}

}  // namespace tutti
