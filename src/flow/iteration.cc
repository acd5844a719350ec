#include "iteration.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/flow/length_limit.h"

namespace tutti {
namespace {

// Measured on genkautz(4,50 .. 1000) and punctured tori: gentle at first, when loads are far from
// even, steeper later. Weight steps of 1.8 were unstable; without progress they get smaller.
constexpr double kFirstSteepness = 3, kLastSteepness = 20, kSteepnessGrowth = 1.01;
constexpr double kFirstWeightStep = 1.5, kMinWeightStep = 0.5, kWeightStepDecay = 0.9;
constexpr int32_t kStepPatience = 20;  // passes
// From a start the old lengths limit f about as well as new ones do, and only the flows must be
// mended. Measured on genkautz(4,1000) less a link, to 1 %: 380 visits in 3 passes on average,
// instead of 4900 in 7 without repairs. Aimed at the limit itself they take twice as many; steeper
// or with longer steps of the weights some do not settle.
constexpr double kMinRepairGap = 1e-2;
constexpr double kRepairAim = 0.5, kTooFull = 0.7;  // of the gap below the limit
constexpr double kRepairSteepness = 3.2;            // over the gap
constexpr double kRepairWeightStep = 0.7;
// A source is visited that adds as much to what is too full as this times the mean source does.
constexpr double kFirstRepairShare = 0.5, kRepairShare = 0.6;
// Where so many passes leave more than this of the gap, the old lengths are no good limit any more.
constexpr double kRepairProgress = 0.9;
constexpr int32_t kRepairPatience = 2;  // passes
constexpr int32_t kMaxRepairs = 5;      // passes; of 48 lost links 47 were mended in as many
// After the repairs only little must give way: steep at once, which networks with many equal paths
// (tori) do not always bear. Few sources do most of it, and most passes visit only those that saved
// much when they were last visited.
constexpr double kRestartWeightStep = 1.3;
constexpr int32_t kPassesPerFull = 3;
constexpr double kMuchSaved = 0.3;       // of the mean
constexpr int32_t kRestartPatience = 3;  // passes
constexpr double kRestartRetreat = 0.5;  // of steepness
// Paths of more hops share what their lengths differ by among more links: steeper in proportion.
// torus(32,32) minus 20 links to 0.5 % in 36 passes instead of 78.
constexpr double kShortWay = 5;
// Differences between paths below this part of the gap are left alone.
constexpr double kSlack = 0.2;
// A limit costs a quarter of a pass.
constexpr int32_t kPassesPerLimit = 2, kPassesPerRestartLimit = 3;
// The best flows are copied only when the pass before may have been the last good one: what is
// better by less than this part of the gap is not worth a copy.
constexpr double kWorthKeeping = 0.1;
constexpr int32_t kCancelEvery = 64;  // sources

}  // namespace

FlowIteration::FlowIteration(const FlowNetwork& network, const DemandTable& demand,
                             const NetworkGroup& group, double gap_wanted,
                             std::optional<Restart> start)
    : network_(network),
      demand_(demand),
      alike_(static_cast<int64_t>(group.elements.size())),
      lengths_(network, group),
      shifter_(network),
      is_restart_(start.has_value()),
      weight_step_(start ? kRestartWeightStep : kFirstWeightStep) {
  const double mean = demand.Mean();
  if (start) flows_ = std::move(start->flows);
  for (int32_t source = 0; source < network.num_ranks; ++source) {
    const auto s = static_cast<size_t>(source);
    if (start && flows_[s].order.empty()) flows_[s] = EqualSplit(network, demand, mean, source);
    if (!start && group.representative[s] == source)
      flows_.push_back(EqualSplit(network, demand, mean, source));
  }
  saved_.resize(flows_.size());
  double hops = 0;
  for (const SourceFlow& flow : flows_)
    hops += std::accumulate(flow.flow.begin(), flow.flow.end(), 0.0);
  hops /= static_cast<double>(flows_.size()) * (network.num_ranks - 1);
  scale_ = std::max(1.0, hops / kShortWay);
  steepness_ = (start ? kLastSteepness : kFirstSteepness) * scale_;
  if (start) {
    OfferLengths(WholeLengths(start->lengths));
    lengths_.SetWeights(start->lengths);
  }
  if (upper_value_ <= 0) OfferLengths(InverseBandwidths(network));
  MeasureLoads();
  const double repair_gap = std::max(gap_wanted, kMinRepairGap);
  if (!start || gap() <= repair_gap) {
    MeasureLimit();
    return;
  }
  repair_gap_ = repair_gap;
  good_gap_ = gap();
  steepness_ = kRepairSteepness / repair_gap * scale_;
  start_lengths_ = std::move(start->lengths);
  length_when_full_.resize(network.num_bundles());
}

double FlowIteration::gap() const { return std::max(0.0, 1 - lower() / upper_value_); }

Status FlowIteration::Pass() {
  if (repair_gap_ > 0) return Repair();
  KeepFlows();
  if (passes_ > repairs_) StepWeights();
  lengths_.Update(steepness_, 1 / upper_value_);
  const double slack = kSlack * gap();
  const bool is_full = !is_restart_ || (passes_ - repairs_) % kPassesPerFull == 0;
  for (size_t s = 0; s < flows_.size(); ++s) {
    if (s % kCancelEvery == 0 && CancelRequested()) return tl::unexpected(CancelledError());
    if (is_full || saved_[s] >= much_saved_) saved_[s] = shifter_.Visit(flows_[s], lengths_, slack);
  }
  if (is_full)
    much_saved_ = kMuchSaved * std::accumulate(saved_.begin(), saved_.end(), 0.0) /
                  static_cast<double>(saved_.size());
  ++passes_;
  MeasureLoads();
  MeasureLimit();
  return {};
}

Status FlowIteration::Repair() {
  const double aim = 1 / (upper_value_ * (1 - kRepairAim * repair_gap_));
  const double full = 1 / (upper_value_ * (1 - kTooFull * repair_gap_));
  if (passes_ > 0) lengths_.FollowLengths(kRepairWeightStep);
  lengths_.Update(steepness_, aim);
  const std::vector<double>& length = lengths_.length();
  double total = 0;
  for (size_t e = 0; e < length.size(); ++e) {
    length_when_full_[e] = lengths_.LengthAt(e, full);
    total += lengths_.load(e) * std::max(0.0, length[e] - length_when_full_[e]);
  }
  const double enough = (passes_ == 0 ? kFirstRepairShare : kRepairShare) * total /
                        static_cast<double>(flows_.size());
  const double slack = kSlack * gap();
  for (size_t s = 0; s < flows_.size(); ++s) {
    if (s % kCancelEvery == 0 && CancelRequested()) return tl::unexpected(CancelledError());
    double part = 0;  // of the total, as it is now
    for (size_t k = 0; k < flows_[s].bundles.size(); ++k) {
      const auto e = static_cast<size_t>(flows_[s].bundles[k]);
      part += flows_[s].flow[k] * std::max(0.0, length[e] - length_when_full_[e]);
    }
    if (part > 0 && part >= enough) shifter_.Visit(flows_[s], lengths_, slack);
  }
  ++passes_;
  MeasureLoads();
  if (gap() <= kRepairProgress * good_gap_) {
    good_gap_ = gap();
    last_good_repair_ = passes_;
  }
  if (gap() <= repair_gap_ || passes_ >= kMaxRepairs ||
      passes_ - last_good_repair_ >= kRepairPatience)
    EndRepairs();
  return {};
}

// On with the weights of the start: those of the repairs limit nothing.
void FlowIteration::EndRepairs() {
  lengths_.SetWeights(start_lengths_);
  start_lengths_ = {};
  length_when_full_ = {};
  repair_gap_ = 0;
  repairs_ = last_progress_ = passes_;
  steepness_ = kLastSteepness * scale_;
}

void FlowIteration::StepWeights() {
  if (passes_without_progress() > 0 && passes_without_progress() % kStepPatience == 0)
    weight_step_ = std::max(weight_step_ * kWeightStepDecay, kMinWeightStep);
  if (is_restart_ && passes_without_progress() > 0 &&
      passes_without_progress() % kRestartPatience == 0)
    steepness_ = std::max(steepness_ * kRestartRetreat, kFirstSteepness * scale_);
  lengths_.FollowLengths(weight_step_);
  steepness_ = std::min(steepness_ * kSteepnessGrowth, kLastSteepness * scale_);
}

// Afresh, so that rounding does not add up.
void FlowIteration::MeasureLoads() {
  lengths_.ClearLoad();
  for (const SourceFlow& flow : flows_)
    for (size_t k = 0; k < flow.bundles.size(); ++k)
      lengths_.AddLoad(static_cast<size_t>(flow.bundles[k]), flow.flow[k]);
  const double before = lower();
  now_lower_ = 1 / lengths_.LargestStrain();
  if (lower() > before) last_progress_ = passes_;
}

void FlowIteration::MeasureLimit() {
  if ((passes_ - repairs_) % (is_restart_ ? kPassesPerRestartLimit : kPassesPerLimit) != 0) return;
  lengths_.Update(steepness_, 1 / upper_value_);
  OfferLengths(WholeLengths(lengths_.length()));
}

void FlowIteration::OfferLengths(std::vector<int64_t> lengths) {
  std::optional<Rational> upper = LengthLimit(network_, demand_, flows_, alike_, lengths);
  if (!upper || (upper_value_ > 0 && *upper >= upper_)) return;
  upper_ = *std::move(upper);
  upper_value_ = upper_.ToDouble();
  best_lengths_ = std::move(lengths);
  last_progress_ = passes_;
}

void FlowIteration::KeepFlows() {
  if (now_lower_ <= kept_lower_ + kWorthKeeping * (upper_value_ - kept_lower_)) return;
  kept_flows_ = flows_;
  kept_lower_ = now_lower_;
}

}  // namespace tutti
