#include "tutti/alltoallv/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::alltoallv {
namespace {

constexpr std::size_t kEnoughSamples = 24;
constexpr std::size_t kMostSamples = 64;
constexpr int kFirstCalls = 3;  // one of them unmeasured
constexpr int kMostCalls = 16;
// Of the library's own: expected to be at most this is clearly faster.
constexpr double kPromising = 0.95;
constexpr int kMostIdleCalls = 1 << 20;

// How much slower than the best one may look and stay in question: few samples say little.
double Tolerance(std::size_t samples) {
  if (samples <= 2) return 0.3;
  if (samples <= 6) return 0.12;
  return samples <= 14 ? 0.06 : 0.03;
}

// The lower one of an even number: a time is only ever too long by accident.
double Median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

Trials::Trials(double own_s, std::span<const Prediction> shortlist) {
  entries_.push_back({.algorithm = {.method = Method::kMpi}, .stage = Stage::kTried});
  for (const Prediction& each : shortlist) {
    entries_.push_back(
        {.algorithm = each.algorithm, .predicted_ratio = own_s > 0 ? each.seconds / own_s : 1});
  }
  PlanCycle();
}

Trials::Trials(const Algorithm& known) : settled_(true), choice_(known) {}

std::size_t Trials::NextTurn() const {
  std::size_t turn = turn_ + 1;
  while (turn < entries_.size() && entries_[turn].calls_a_cycle == 0) ++turn;
  return turn;
}

void Trials::Note(double seconds) {
  TUTTI_DCHECK(!settled_ && !idle() && !cycle_ended());
  Entry& entry = entries_[turn_];
  if (entry.unmeasured > 0) {
    --entry.unmeasured;
  } else {
    // The latest ones: what is compared was measured at about the same time.
    if (entry.samples.size() < kMostSamples) entry.samples.push_back(0);
    entry.samples[entry.measured++ % kMostSamples] = seconds;
  }
  calls_ += 1;
  if (--left_ > 0) return;
  turn_ = NextTurn();
  if (turn_ < entries_.size()) left_ = entries_[turn_].calls_a_cycle;
}

std::vector<double> Trials::Medians() const {
  std::vector<double> medians;
  for (const Entry& entry : entries_) {
    if (entry.calls_a_cycle > 0) medians.push_back(Median(entry.samples));
  }
  return medians;
}

void Trials::EndCycle(std::span<const double> medians, bool keep) {
  TUTTI_CHECK(cycle_ended());
  std::size_t next = 0;
  for (Entry& entry : entries_) {
    if (entry.calls_a_cycle == 0) continue;
    TUTTI_CHECK(next < medians.size());
    const double median = medians[next++];
    if (!keep) {
      entry.samples.clear();
      entry.measured = 0;
      continue;
    }
    entry.agreed_s = median;
    entry.agreed_samples = std::max(entry.agreed_samples, entry.samples.size());
    lost_s_ += std::max(0.0, median - entries_.front().agreed_s) * entry.calls_a_cycle;
  }
  double best = entries_.front().agreed_s;
  for (const Entry& entry : entries_) {
    if (entry.stage == Stage::kTried && entry.agreed_samples > 0) {
      best = std::min(best, entry.agreed_s);
    }
  }
  for (Entry& entry : entries_) {
    const bool own = &entry == &entries_.front();
    if (own || entry.stage != Stage::kTried || entry.agreed_samples == 0) continue;
    if (entry.agreed_s > best * (1 + Tolerance(entry.agreed_samples))) {
      entry.stage = Stage::kDropped;
    }
  }
  PlanCycle();
}

// What is known of its method by now corrects what was predicted.
double Trials::ExpectedRatio(const Entry& entry) const {
  double ratio = entry.predicted_ratio;
  const double own_s = entries_.front().agreed_s;
  for (const Entry& other : entries_) {
    if (&other == &entries_.front() || other.agreed_samples == 0 ||
        other.algorithm.method != entry.algorithm.method) {
      continue;
    }
    ratio = std::max(ratio, entry.predicted_ratio * other.agreed_s / own_s / other.predicted_ratio);
  }
  return ratio;
}

void Trials::PlanCycle() {
  Entry& own = entries_.front();
  const double own_s = own.agreed_s;
  // In calls of the library's own, so that nothing need be known of its time at first.
  double budget = kFreeCalls + kShare * calls_ - (own_s > 0 ? lost_s_ / own_s : 0);
  double cheapest = -1;  // what is missing for one of those that wait
  int most_calls = 0;
  bool one_is_new = false;
  for (Entry& entry : entries_) {
    entry.calls_a_cycle = 0;
    if (&entry == &own || entry.stage == Stage::kDropped) continue;
    if (entry.stage == Stage::kTried) {
      if (entry.agreed_samples >= kEnoughSamples) continue;
      const int calls =
          std::clamp(static_cast<int>(entry.agreed_samples), kFirstCalls + 1, kMostCalls);
      const double ratio = own_s > 0 ? entry.agreed_s / own_s : 1;
      budget -= std::max(0.0, ratio - 1) * calls;
      entry.calls_a_cycle = calls;
      most_calls = std::max(most_calls, calls);
      continue;
    }
    // One new one a cycle, and not while its predecessors have spent what may be lost. Only what
    // is expected to be clearly faster may spend what was not yet earned by calls.
    const double expected = std::max(0.5, ExpectedRatio(entry) - 1) * kFirstCalls;
    const double may_spend = ExpectedRatio(entry) < kPromising ? budget : budget - kFreeCalls;
    if (one_is_new || expected > may_spend) {
      const double missing = expected - may_spend;
      cheapest = cheapest < 0 ? missing : std::min(cheapest, missing);
      continue;
    }
    one_is_new = true;
    budget -= expected;
    entry.stage = Stage::kTried;
    entry.calls_a_cycle = kFirstCalls;
    entry.unmeasured = 1;
    most_calls = std::max(most_calls, kFirstCalls + 1);
  }
  if (most_calls == 0) {
    if (cheapest < 0) return Settle();
    const double calls = std::ceil(std::max(0.0, cheapest) / kShare) + 1;
    idle_calls_ = static_cast<int>(std::min<double>(calls, kMostIdleCalls));
    most_calls = 1;
  }
  own.calls_a_cycle = most_calls;
  if (own.agreed_samples == 0) own.unmeasured = 1;
  turn_ = 0;
  left_ = own.calls_a_cycle;
}

void Trials::Skip(int calls) {
  TUTTI_DCHECK(idle());
  calls_ += calls;
  idle_calls_ = std::max(0, idle_calls_ - calls);
  if (!idle()) PlanCycle();
}

void Trials::Settle() {
  settled_ = true;
  choice_ = entries_.front().algorithm;
  choice_s_ = entries_.front().agreed_s;
  double best = choice_s_ * (1 - kMargin);
  for (const Entry& entry : entries_) {
    if (entry.stage != Stage::kTried || entry.agreed_samples == 0 || entry.agreed_s >= best) {
      continue;
    }
    best = entry.agreed_s;
    choice_ = entry.algorithm;
    choice_s_ = entry.agreed_s;
  }
}

}  // namespace tutti::alltoallv
