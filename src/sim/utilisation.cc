#include <algorithm>
#include <cmath>

#include "tutti/sim/simulator.h"

namespace tutti {
namespace {

// Adds `share` times the part of [begin, end) that lies in each bin, as a fraction of the bin.
void Spread(std::vector<UtilisationBin>& bins, double begin, double end, double share,
            double UtilisationBin::*field) {
  const double width = bins.front().end_s;
  const auto last = static_cast<double>(bins.size() - 1);
  const auto first_bin = static_cast<size_t>(std::clamp(std::floor(begin / width), 0.0, last));
  for (size_t b = first_bin; b < bins.size() && bins[b].begin_s < end; ++b) {
    const double part = std::min(end, bins[b].end_s) - std::max(begin, bins[b].begin_s);
    if (part > 0) bins[b].*field += share * part / width;
  }
}

}  // namespace

std::vector<UtilisationBin> UtilisationOverTime(const SimReport& report, int32_t bins) {
  if (bins < 1 || report.trace.empty() || report.time_s <= 0) return {};
  std::vector<UtilisationBin> curve(static_cast<size_t>(bins));
  for (size_t b = 0; b < curve.size(); ++b) {
    curve[b].begin_s = report.time_s * static_cast<double>(b) / bins;
    curve[b].end_s = report.time_s * static_cast<double>(b + 1) / bins;
  }
  const double share = 1.0 / static_cast<double>(report.link_busy_s.size());
  for (const SimMessage& message : report.trace) {
    Spread(curve, message.start_s, message.free_s, share, &UtilisationBin::links_busy);
    Spread(curve, message.start_s, message.arrive_s, 1, &UtilisationBin::in_flight);
  }
  return curve;
}

}  // namespace tutti
