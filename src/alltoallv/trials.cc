#include "tutti/alltoallv/trials.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::alltoallv {
namespace {

// Stages of a duel: pairs of turns, and measured calls of a turn.
struct Stage {
  int pairs, calls;
};
constexpr Stage kStages[] = {{1, 2}, {2, 2}, {2, 3}, {4, 4}, {8, 6}, {8, 8}, {8, 8}};
constexpr std::size_t kNumStages = std::size(kStages);
constexpr Stage kStageOfExactClock = {1, 1};
// Of the margins, where times are exact.
constexpr double kShareOfMargin = 0.25;
constexpr std::size_t kFirstStageOfRecheck = 2;
// To win by, and to lose by a little, where the clock is noisy: a turn may be several times too
// long. More against one that was found to be faster, as much is lost by throwing it over.
constexpr std::size_t kFewestPairs = 3, kFewestAgainstFound = 9;

// Ranks leave an agreement one after the other, and what sets a communicator up milliseconds apart:
// calls until they are together again, which all are of what serves.
constexpr int kSettlingAfterAgreement = 1, kSettlingAfterSetUp = 8;
// Of a challenger that was never tried, may set up as much and is expected to be fast.
constexpr int kSettlingOfPromising = 3;

// Of the one that serves: expected to be at most this is clearly faster.
constexpr double kPromising = 0.95;
constexpr double kFarBehind = 1.25;
// Nothing is known of a challenger that was never tried but that it may be slower than predicted.
constexpr double kExpectedSlowdown = 0.5;
// Measured ratios that the deviation believed before counts as much as.
constexpr double kPriorWeight = 4;
constexpr std::int64_t kForever = std::int64_t{1} << 40;

// The lower one of an even number: a time is only ever too long by accident.
double Median(std::vector<double> samples) {
  TUTTI_DCHECK(!samples.empty());
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Of calls of one turn without the longest quarter: they met something else on their machine.
double MeanOfUndisturbed(std::span<const double> calls) {
  std::vector<double> sorted(calls.begin(), calls.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 1) sorted.resize(sorted.size() - std::max<std::size_t>(1, sorted.size() / 4));
  return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

// The mean of the two in the middle, where too small is as likely as too large.
double BalancedMedian(std::vector<double> samples) {
  TUTTI_DCHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  return (samples[(samples.size() - 1) / 2] + samples[samples.size() / 2]) / 2;
}

}  // namespace

Trials::Trials(double own_s, std::span<const Prediction> shortlist, double clock_deviation)
    : clock_deviation_(clock_deviation) {
  entries_.push_back({.algorithm = {.method = Method::kMpi}, .measured_ratio = 1});
  Add(own_s, shortlist);
  Plan();
}

Trials::Trials(const Algorithm& known, double ratio, bool asks_own, double own_s,
               std::span<const Prediction> shortlist, double clock_deviation)
    : clock_deviation_(clock_deviation) {
  entries_.push_back({.algorithm = {.method = Method::kMpi}, .measured_ratio = 1});
  if (known.method != Method::kMpi) {
    entries_.push_back({.algorithm = known, .predicted_ratio = ratio, .measured_ratio = ratio});
    serving_ = 1;
    asks_own_ = asks_own;
  }
  Add(own_s, shortlist);
  Plan();
}

void Trials::Add(double own_s, std::span<const Prediction> shortlist) {
  for (const Prediction& each : shortlist) {
    const bool is_there = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.algorithm == each.algorithm;
    });
    if (is_there) continue;
    entries_.push_back({.algorithm = each.algorithm,
                        .predicted_ratio = own_s > 0 ? each.seconds / own_s : 1,
                        .waits = true});
  }
}

void Trials::Rest(std::int64_t calls) {
  rest_calls_ = std::max<std::int64_t>(1, calls);
  turns_.clear();
  turn_ = 0;
}

void Trials::Skip(std::int64_t calls) {
  TUTTI_DCHECK(rests() && calls <= rest_calls_);
  calls_ += static_cast<double>(calls);
  rest_calls_ -= calls;
  if (!rests()) Plan();
}

void Trials::Note(double seconds) {
  TUTTI_DCHECK(!rests() && !stage_ended());
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

std::vector<double> Trials::Times() const {
  std::vector<double> times = {other_s_};
  times.insert(times.end(), call_s_.begin(), call_s_.end());
  return times;
}

void Trials::EndStage(std::span<const double> times, bool keep, double agreement_s) {
  TUTTI_CHECK(stage_ended() && times.size() == call_s_.size() + 1);
  if (!keep) return PlanStage();
  std::vector<double> turn_s;
  for (const Turn& turn : turns_) {
    const std::size_t before = turn_s.size() * static_cast<std::size_t>(turn.calls);
    turn_s.push_back(
        MeanOfUndisturbed(times.subspan(1 + before, static_cast<std::size_t>(turn.calls))));
  }
  std::vector<double> serving_s;
  for (std::size_t turn = 0; turn + 1 < turns_.size(); turn += 2) {
    double base_s = turn_s[turn], challenger_s = turn_s[turn + 1];
    if (turns_[turn].entry != base_) std::swap(base_s, challenger_s);
    base_s_.push_back(base_s);
    challenger_s_.push_back(challenger_s);
    serving_s.push_back(base_ == serving_ ? base_s : challenger_s);
    constexpr double kLeastSeconds = 1e-12;
    ratio_logs_.push_back(
        std::log(std::max(challenger_s, kLeastSeconds) / std::max(base_s, kLeastSeconds)));
  }
  const double call_s = Median(serving_s);
  if (call_s > 0 && agreement_s > 0) agreement_calls_ = agreement_s / call_s;
  const double ratio = std::exp(Estimated().ratio_log);
  // Time won by a faster challenger pays for more trials. What interrupts a call is no loss of the
  // algorithm that it meets: once there are some pairs, their median tells what was lost.
  const double other_calls = ratio_logs_.size() >= kFewestPairs || call_s == 0
                                 ? other_calls_ * (rechecks_ ? 1 / ratio : ratio)
                                 : times[0] / call_s;
  lost_calls_ += other_calls - other_calls_ + agreement_calls_;
  entries_[base_].seconds = Median(base_s_);
  entries_[challenger_].seconds = Median(challenger_s_);
  entries_[challenger_].measured_ratio = entries_[base_].measured_ratio * ratio;
  Decide();
}

// Of the median of the ratios; their deviation from its own median, so that tails count little.
Trials::Estimate Trials::Estimated() const {
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

// Of the logarithm of the ratio.
double Trials::Wanted() const {
  const double margin = base_ == 0 ? kMargin : kMarginOfOthers;
  return std::log(1 - (exact() ? kShareOfMargin * margin : margin));
}

void Trials::Decide() {
  const Estimate estimate = Estimated();
  const double wanted = Wanted();
  const bool through = stage_ + 1 == kNumStages;
  const bool enough_pairs =
      exact() || ratio_logs_.size() >= (base_ == 0 ? kFewestPairs : kFewestAgainstFound);
  if (rechecks_) {
    // It serves: less than kMargin faster will do, and it takes as much to throw it over as to put
    // it there.
    const double enough = wanted / 2;
    if (estimate.ratio_log + estimate.error <= enough) return EndDuel(true);
    if (through || (enough_pairs && estimate.ratio_log - 2 * estimate.error > enough)) {
      return EndDuel(estimate.ratio_log <= enough);
    }
  } else {
    if (enough_pairs && estimate.ratio_log + 2 * estimate.error <= wanted) return EndDuel(true);
    const double errors = !enough_pairs ? 3 : (promises_ ? 2 : 1);
    const bool lost = !IsPatient() && estimate.ratio_log - errors * estimate.error > wanted;
    if (through || lost) return EndDuel(false);
  }
  ++stage_;
  Plan();
}

void Trials::EndDuel(bool won) {
  if (won && !rechecks_) recheck_gap_ = exact() ? kRecheckOfKnown : kFirstRecheck;
  serving_ = won ? challenger_ : base_;
  challenger_ = 0;
  next_recheck_ = calls_ + static_cast<double>(recheck_gap_);
  recheck_gap_ = std::min((recheck_gap_ < kRecheckOfKnown ? 4 : 2) * recheck_gap_, kForever);
  Plan();
}

// What is known of its method by now corrects what was predicted.
double Trials::ExpectedRatio(const Entry& entry) const {
  if (entry.measured_ratio > 0) return entry.measured_ratio;
  double ratio = entry.predicted_ratio;
  for (const Entry& other : entries_) {
    if (other.measured_ratio == 0 || other.algorithm.method != entry.algorithm.method) continue;
    ratio = std::max(ratio, entry.predicted_ratio * other.measured_ratio / other.predicted_ratio);
  }
  return ratio;
}

// As measured and as predicted: where a model is wrong it often is for both alike.
bool Trials::IsFarBehind(const Entry& entry) const {
  const Entry& other = entries_[serving_];
  return std::min(ExpectedRatio(entry) / std::max(other.measured_ratio, 1e-6),
                  entry.predicted_ratio / std::max(other.predicted_ratio, 1e-6)) > kFarBehind;
}

double Trials::ExpectedLoss(std::size_t challenger) const {
  const Entry& entry = entries_[challenger];
  const Stage& stage = kStages[challenger == challenger_ ? stage_ : 0];
  const bool measured = entry.measured_ratio > 0;
  const double ratio = ExpectedRatio(entry) / std::max(entries_[serving_].measured_ratio, 1e-6);
  const double slowdown = std::max(measured ? 0.0 : kExpectedSlowdown, ratio - 1);
  return slowdown * stage.pairs * (stage.calls + 1) + agreement_calls_;
}

bool Trials::Promises(const Entry& entry) const {
  return ExpectedRatio(entry) < kPromising * entries_[serving_].measured_ratio;
}

bool Trials::IsPatient() const {
  return promises_ && ratio_logs_.size() < kFewestPairs &&
         BalancedMedian(ratio_logs_) < std::log(kPlainly);
}

bool Trials::SeemsFaster() const {
  if (ratio_logs_.size() < kFewestPairs) return false;
  const Estimate estimate = Estimated();
  return estimate.ratio_log + estimate.error <= Wanted();
}

void Trials::Plan() {
  const double earned = kShare * calls_ - lost_calls_;
  if (challenger_ != 0) {
    // Rechecks come at distances that pay for them.
    const double missing = ExpectedLoss(challenger_) - earned - kFreeCalls;
    if (rechecks_ || exact() || IsPatient() || SeemsFaster() || missing <= 0) return PlanStage();
    return Rest(static_cast<std::int64_t>(std::ceil(missing / kShare)));
  }
  if (std::exchange(asks_own_, false)) return BeginDuel(0, serving_);
  const std::int64_t until_recheck =
      serving_ == 0 ? kForever : static_cast<std::int64_t>(next_recheck_ - calls_);
  if (until_recheck <= 0) return BeginDuel(0, serving_);
  double least_missing = -1;
  for (std::size_t i = 1; i < entries_.size(); ++i) {
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
      return BeginDuel(serving_, i);
    }
    least_missing = least_missing < 0 ? missing : std::min(least_missing, missing);
  }
  if (least_missing > 0) {
    return Rest(
        std::min(until_recheck, static_cast<std::int64_t>(std::ceil(least_missing / kShare))));
  }
  settled_ = true;
  Rest(until_recheck);
}

// `challenger` serves already where it is rechecked.
void Trials::BeginDuel(std::size_t base, std::size_t challenger) {
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

void Trials::PlanStage() {
  rest_calls_ = 0;
  turns_.clear();
  turn_ = 0;
  done_ = 0;
  call_s_.clear();
  other_s_ = 0;
  other_calls_ = 0;
  const std::size_t other = serving_ == base_ ? challenger_ : base_;
  const Stage& stage = exact() ? kStageOfExactClock : kStages[stage_];
  std::size_t before = serving_;
  int settling = exact() ? 0 : (calls_ == 0 ? kSettlingAfterSetUp : kSettlingAfterAgreement);
  // The first call of what is known sets it up, as that of a challenger does.
  if (calls_ == 0 && serving_ != 0) settling = std::max(settling, 1);
  const int of_other = stage_ == 0 && promises_ ? kSettlingOfPromising : 1;
  for (int pair = 0; pair < stage.pairs; ++pair) {
    const bool serving_is_first = pair % 2 == 0;
    for (const bool first : {true, false}) {
      const std::size_t entry = first == serving_is_first ? serving_ : other;
      const int overlapping = entry == before ? 0 : (entry == serving_ ? 1 : of_other);
      turns_.push_back({.entry = entry,
                        .unmeasured = std::exchange(settling, 0) + overlapping,
                        .calls = stage.calls});
      before = entry;
    }
  }
}

}  // namespace tutti::alltoallv
