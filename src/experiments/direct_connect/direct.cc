#include "direct.h"

#include <fmt/format.h>

#include "tutti/base/cancel.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/verify/verifier.h"

namespace tutti::direct {

Rational AlphaUs() { return 10; }
Rational MiBOverBandwidthUs() {
  constexpr int64_t kBits = int64_t{8} << 20, kBitsPerMicrosecond = 100'000;
  return Rational(kBits, kBitsPerMicrosecond);
}

Rational AllReduceUs(int32_t tl, const Rational& tb, int32_t mebibytes) {
  return Rational(2) * (Rational(tl) * AlphaUs() + tb * Rational(mebibytes) * MiBOverBandwidthUs());
}

Rational AllReduceUs(const Design& design, int32_t mebibytes) {
  const DesignCost cost = design.CostOf(CollectiveKind::kAllReduce);
  return Rational(cost.tl) * AlphaUs() + cost.tb * Rational(mebibytes) * MiBOverBandwidthUs();
}

Rational AllToAllUs(int32_t ranks, int32_t degree, const Rational& flow) {
  return MiBOverBandwidthUs() * Rational(degree, ranks) / flow;
}

Result<StepCost> MeasureSchedule(const Topology& topology, CollectiveKind kind,
                                 std::string_view algorithm) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective = Collective::Make(kind, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, topology, *collective, {});
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(topology, *collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' on {} is not correct: {}", algorithm,
                                 topology.name(), report.violations.front().message));
  return AnalyticCost(topology, *schedule);
}

}  // namespace tutti::direct
