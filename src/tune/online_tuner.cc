#include "tutti/tune/online_tuner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::tune {
namespace {

// Stages of a comparison: pairs of turns, and measured calls of a turn.
struct Stage {
  int pairs, calls;
};
constexpr Stage kStages[] = {{1, 2}, {2, 2}, {2, 3}, {4, 4}, {8, 6}, {8, 8}, {8, 8}};
constexpr size_t kNumStages = std::size(kStages);
constexpr Stage kStageOfExactClock = {1, 1};
// Part of the margins, where times are exact.
constexpr double kShareOfMargin = 0.25;
constexpr size_t kFirstStageOfRecheck = 2;
// To win by, and to lose by a little, where the clock is noisy: a turn may be several times too
// long. More against one that was found to be faster, as much is lost by throwing it over.
constexpr size_t kMinPairs = 3, kMinAgainstFound = 9;

// Ranks leave an agreement one after the other, and what sets a communicator up milliseconds apart:
// calls until they are together again, which all are of what serves.
constexpr int kSettlingAfterAgreement = 1, kSettlingAfterSetUp = 8;
// For a challenger that was never tried, may set up as much and is expected to be fast.
constexpr int kSettlingOfPromising = 3;

// Of the time of the one that serves: expected to be at most this is clearly faster.
constexpr double kPromising = 0.95;
constexpr double kFarBehind = 1.25;
// Nothing is known of a challenger that was never tried but that it may be slower than predicted.
constexpr double kExpectedSlowdown = 0.5;
// Measured ratios that the deviation believed before counts as much as.
constexpr double kPriorWeight = 4;
constexpr int64_t kForever = int64_t{1} << 40;

// The lower one of an even number: a time is only ever too long by accident.
double Median(std::vector<double> samples) {
  TUTTI_DCHECK(!samples.empty());
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Mean of calls of one turn without the longest quarter: they met something else on their machine.
double MeanOfUndisturbed(std::span<const double> calls) {
  std::vector<double> sorted(calls.begin(), calls.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 1) sorted.resize(sorted.size() - std::max<size_t>(1, sorted.size() / 4));
  return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

// The mean of the two in the middle, where too small is as likely as too large.
double BalancedMedian(std::vector<double> samples) {
  TUTTI_DCHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  return (samples[(samples.size() - 1) / 2] + samples[samples.size() / 2]) / 2;
}

}  // namespace

TuningPolicy PolicyFor(int ranks, double mean_bytes, double clock_deviation) {
  constexpr double kHopelessByTheClock = 2, kHopeless = 1.5;
  constexpr double kMarginOfTwoRanks = 0.2;
  constexpr double kLongBytes = 16384;
  if (clock_deviation == kExactClock) return {OnlineTuner::kMargin, kHopelessByTheClock};
  if (ranks == 2) return {kMarginOfTwoRanks, 1 - kMarginOfTwoRanks};
  return {OnlineTuner::kMargin, mean_bytes >= kLongBytes ? 1 - OnlineTuner::kMargin : kHopeless};
}

OnlineTuner::OnlineTuner(double native_s, std::span<const Prediction> shortlist,
                         double clock_deviation, double margin)
    : clock_deviation_(clock_deviation), margin_(margin) {
  entries_.push_back({.algorithm = {.method = Method::kMpi}, .measured_ratio = 1});
  Add(native_s, shortlist);
  Plan();
}

OnlineTuner::OnlineTuner(const Algorithm& known, double ratio, bool compares_native,
                         double native_s, std::span<const Prediction> shortlist,
                         double clock_deviation, double margin)
    : clock_deviation_(clock_deviation), margin_(margin) {
  entries_.push_back({.algorithm = {.method = Method::kMpi}, .measured_ratio = 1});
  if (known.method != Method::kMpi) {
    entries_.push_back({.algorithm = known, .predicted_ratio = ratio, .measured_ratio = ratio});
    serving_ = 1;
    compares_native_ = compares_native;
  }
  Add(native_s, shortlist);
  Plan();
}

void OnlineTuner::Add(double native_s, std::span<const Prediction> shortlist) {
  for (const Prediction& each : shortlist) {
    const bool is_there = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.algorithm == each.algorithm;
    });
    if (is_there) continue;
    entries_.push_back({.algorithm = each.algorithm,
                        .predicted_ratio = native_s > 0 ? each.seconds / native_s : 1,
                        .waits = true});
  }
}

void OnlineTuner::Pause(int64_t calls) {
  pause_calls_ = std::max<int64_t>(1, calls);
  turns_.clear();
  turn_ = 0;
}

void OnlineTuner::Skip(int64_t calls) {
  TUTTI_DCHECK(paused() && calls <= pause_calls_);
  calls_ += static_cast<double>(calls);
  pause_calls_ -= calls;
  if (!paused()) Plan();
}

void OnlineTuner::Note(double seconds) {
  TUTTI_DCHECK(!paused() && !stage_ended());
  Turn& turn = turns_[turn_];
  if (done_ >= turn.unmeasured) call_s_.push_back(seconds);
  // The first calls of a challenger set it up: paid once, and nothing that more trials would cost.
  const bool sets_up = turn.entry != serving_ && stage_ == 0 && done_ < turn.unmeasured;
  if (turn.entry != serving_ && !sets_up) {
    other_s_ += seconds;
    ++other_calls_;
  }
  calls_ += 1;
  if (++done_ < turn.unmeasured + turn.calls) return;
  done_ = 0;
  ++turn_;
}

std::vector<double> OnlineTuner::Times() const {
  std::vector<double> times = {other_s_};
  times.insert(times.end(), call_s_.begin(), call_s_.end());
  return times;
}

void OnlineTuner::EndStage(std::span<const double> times, bool keep, double agreement_s) {
  TUTTI_CHECK(stage_ended() && times.size() == call_s_.size() + 1);
  if (!keep) return PlanStage();
  std::vector<double> turn_s;
  for (const Turn& turn : turns_) {
    const size_t before = turn_s.size() * static_cast<size_t>(turn.calls);
    turn_s.push_back(MeanOfUndisturbed(times.subspan(1 + before, static_cast<size_t>(turn.calls))));
  }
  std::vector<double> serving_s;
  for (size_t turn = 0; turn + 1 < turns_.size(); turn += 2) {
    double base_s = turn_s[turn], challenger_s = turn_s[turn + 1];
    if (turns_[turn].entry != base_) std::swap(base_s, challenger_s);
    base_s_.push_back(base_s);
    challenger_s_.push_back(challenger_s);
    serving_s.push_back(base_ == serving_ ? base_s : challenger_s);
    constexpr double kMinSeconds = 1e-12;
    ratio_logs_.push_back(
        std::log(std::max(challenger_s, kMinSeconds) / std::max(base_s, kMinSeconds)));
  }
  const double call_s = Median(serving_s);
  if (call_s > 0 && agreement_s > 0) agreement_calls_ = agreement_s / call_s;
  const double ratio = std::exp(Estimated().ratio_log);
  // Time won by a faster challenger pays for more tuner. What interrupts a call is no loss of the
  // algorithm that it meets: once there are some pairs, their median tells what was lost.
  const double other_calls = ratio_logs_.size() >= kMinPairs || call_s == 0
                                 ? other_calls_ * (rechecks_ ? 1 / ratio : ratio)
                                 : times[0] / call_s;
  lost_calls_ += other_calls - other_calls_ + agreement_calls_;
  entries_[base_].seconds = Median(base_s_);
  entries_[challenger_].seconds = Median(challenger_s_);
  entries_[challenger_].measured_ratio = entries_[base_].measured_ratio * ratio;
  Decide();
}

// Spread of the median of the ratios; their deviation from its own median, so that tails count little.
OnlineTuner::Estimate OnlineTuner::Estimated() const {
  const double median = BalancedMedian(ratio_logs_);
  std::vector<double> deviations;
  for (const double each : ratio_logs_) deviations.push_back(std::abs(each - median));
  constexpr double kOfNormal = 1.4826, kMedianOverMean = 1.2533;
  const double measured = kOfNormal * BalancedMedian(deviations);
  const auto count = static_cast<double>(ratio_logs_.size());
  const double variance =
      (kPriorWeight * clock_deviation_ * clock_deviation_ + count * measured * measured) /
      (kPriorWeight + count);
  return {median, kMedianOverMean * std::sqrt(variance / count)};
}

// Spread of the logarithm of the ratio.
double OnlineTuner::Wanted() const {
  const double margin = base_ == 0 ? margin_ : kMarginOfOthers;
  return std::log(1 - (exact() ? kShareOfMargin * margin : margin));
}

void OnlineTuner::Decide() {
  const Estimate estimate = Estimated();
  const double wanted = Wanted();
  const bool through = stage_ + 1 == kNumStages;
  const bool enough_pairs =
      exact() || ratio_logs_.size() >= (base_ == 0 ? kMinPairs : kMinAgainstFound);
  if (rechecks_) {
    // It serves: less than kMargin faster will do, and it takes as much to throw it over as to put
    // it there.
    const double enough = wanted / 2;
    if (estimate.ratio_log + estimate.error <= enough) return EndComparison(true);
    if (through || (enough_pairs && estimate.ratio_log - 2 * estimate.error > enough)) {
      return EndComparison(estimate.ratio_log <= enough);
    }
  } else {
    if (enough_pairs && estimate.ratio_log + 2 * estimate.error <= wanted)
      return EndComparison(true);
    const double errors = !enough_pairs ? 3 : (promises_ ? 2 : 1);
    const bool lost = !IsPatient() && estimate.ratio_log - errors * estimate.error > wanted;
    if (through || lost) return EndComparison(false);
  }
  ++stage_;
  Plan();
}

void OnlineTuner::EndComparison(bool won) {
  if (won && !rechecks_) recheck_gap_ = exact() ? kRecheckOfKnown : kFirstRecheck;
  serving_ = won ? challenger_ : base_;
  challenger_ = 0;
  next_recheck_ = calls_ + static_cast<double>(recheck_gap_);
  recheck_gap_ = std::min((recheck_gap_ < kRecheckOfKnown ? 4 : 2) * recheck_gap_, kForever);
  Plan();
}

// What is known of its method by now corrects what was predicted.
double OnlineTuner::ExpectedRatio(const Entry& entry) const {
  if (entry.measured_ratio > 0) return entry.measured_ratio;
  double ratio = entry.predicted_ratio;
  for (const Entry& other : entries_) {
    if (other.measured_ratio == 0 || other.algorithm.method != entry.algorithm.method) continue;
    ratio = std::max(ratio, entry.predicted_ratio * other.measured_ratio / other.predicted_ratio);
  }
  return ratio;
}

// As measured and as predicted: where a model is wrong it often is for both alike.
bool OnlineTuner::IsFarBehind(const Entry& entry) const {
  const Entry& other = entries_[serving_];
  return std::min(ExpectedRatio(entry) / std::max(other.measured_ratio, 1e-6),
                  entry.predicted_ratio / std::max(other.predicted_ratio, 1e-6)) > kFarBehind;
}

double OnlineTuner::ExpectedLoss(size_t challenger) const {
  const Entry& entry = entries_[challenger];
  const Stage& stage = kStages[challenger == challenger_ ? stage_ : 0];
  const bool measured = entry.measured_ratio > 0;
  const double ratio = ExpectedRatio(entry) / std::max(entries_[serving_].measured_ratio, 1e-6);
  const double slowdown = std::max(measured ? 0.0 : kExpectedSlowdown, ratio - 1);
  return slowdown * stage.pairs * (stage.calls + 1) + agreement_calls_;
}

bool OnlineTuner::Promises(const Entry& entry) const {
  return ExpectedRatio(entry) < kPromising * entries_[serving_].measured_ratio;
}

bool OnlineTuner::IsPatient() const {
  return promises_ && ratio_logs_.size() < kMinPairs &&
         BalancedMedian(ratio_logs_) < std::log(kPlainly);
}

bool OnlineTuner::SeemsFaster() const {
  if (ratio_logs_.size() < kMinPairs) return false;
  const Estimate estimate = Estimated();
  return estimate.ratio_log + estimate.error <= Wanted();
}

void OnlineTuner::Plan() {
  const double earned = kShare * calls_ - lost_calls_;
  if (challenger_ != 0) {
    // Rechecks come at distances that pay for them.
    const double missing = ExpectedLoss(challenger_) - earned - kFreeCalls;
    if (rechecks_ || exact() || IsPatient() || SeemsFaster() || missing <= 0) return PlanStage();
    return Pause(static_cast<int64_t>(std::ceil(missing / kShare)));
  }
  if (std::exchange(compares_native_, false)) return BeginComparison(0, serving_);
  const int64_t until_recheck =
      serving_ == 0 ? kForever : static_cast<int64_t>(next_recheck_ - calls_);
  if (until_recheck <= 0) return BeginComparison(0, serving_);
  double min_missing = -1;
  for (size_t i = 1; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (!entry.waits) continue;
    const bool promises = Promises(entry);
    // What is far behind the one that was found to be faster is not worth a trial.
    if (serving_ != 0 && !exact() && IsFarBehind(entry)) {
      entry.waits = false;
      continue;
    }
    const double missing = ExpectedLoss(i) - earned - (promises ? kFreeCalls : 0);
    if (exact() || missing <= 0) {
      entry.waits = false;
      return BeginComparison(serving_, i);
    }
    min_missing = min_missing < 0 ? missing : std::min(min_missing, missing);
  }
  if (min_missing > 0) {
    return Pause(std::min(until_recheck, static_cast<int64_t>(std::ceil(min_missing / kShare))));
  }
  settled_ = true;
  Pause(until_recheck);
}

// `challenger` serves already where it is rechecked.
void OnlineTuner::BeginComparison(size_t base, size_t challenger) {
  base_ = base;
  challenger_ = challenger;
  rechecks_ = challenger == serving_;
  promises_ = !rechecks_ && !exact() && Promises(entries_[challenger]);
  stage_ = rechecks_ ? kFirstStageOfRecheck : 0;
  ratio_logs_.clear();
  base_s_.clear();
  challenger_s_.clear();
  PlanStage();
}

void OnlineTuner::PlanStage() {
  pause_calls_ = 0;
  turns_.clear();
  turn_ = 0;
  done_ = 0;
  call_s_.clear();
  other_s_ = 0;
  other_calls_ = 0;
  const size_t other = serving_ == base_ ? challenger_ : base_;
  const Stage& stage = exact() ? kStageOfExactClock : kStages[stage_];
  size_t before = serving_;
  int settling = exact() ? 0 : (calls_ == 0 ? kSettlingAfterSetUp : kSettlingAfterAgreement);
  // The first call of what is known sets it up, as that of a challenger does.
  if (calls_ == 0 && serving_ != 0) settling = std::max(settling, 1);
  const int of_other = stage_ == 0 && promises_ ? kSettlingOfPromising : 1;
  for (int pair = 0; pair < stage.pairs; ++pair) {
    const bool serving_is_first = pair % 2 == 0;
    for (const bool first : {true, false}) {
      const size_t entry = first == serving_is_first ? serving_ : other;
      const int overlapping = entry == before ? 0 : (entry == serving_ ? 1 : of_other);
      turns_.push_back({.entry = entry,
                        .unmeasured = std::exchange(settling, 0) + overlapping,
                        .calls = stage.calls});
      before = entry;
    }
  }
}

}  // namespace tutti::tune
