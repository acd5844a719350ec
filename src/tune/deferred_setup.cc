#include "tutti/tune/deferred_setup.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::tune {

DeferredSetup::DeferredSetup(int64_t calls_at_most, double enough_s)
    : calls_at_most_(calls_at_most), enough_s_(enough_s) {
  PlanUpTo(std::isinf(enough_s_) ? calls_at_most_ : kFirstCheck);
}

// Nothing is measured where the last call is among them.
void DeferredSetup::PlanUpTo(int64_t check) {
  check = std::min(check, calls_at_most_);
  planned_ = check - std::exchange(check_, check);
  to_measure_ = check < calls_at_most_ ? kMeasured : 0;
  passing_ = planned_ - to_measure_;
}

void DeferredSetup::Note(double seconds) {
  TUTTI_DCHECK(passing_ == 0 && to_measure_ > 0);
  measured_s_.push_back(seconds);
  if (--to_measure_ > 0) return;
  // Without the longest: it met something else on its machine.
  const double sum = std::accumulate(measured_s_.begin(), measured_s_.end(), 0.0) -
                     *std::max_element(measured_s_.begin(), measured_s_.end());
  spent_s_ += sum / static_cast<double>(measured_s_.size() - 1) * static_cast<double>(planned_);
  measured_s_.clear();
  asks_ = true;
}

void DeferredSetup::Decide(double agreed_s) {
  TUTTI_DCHECK(asks_);
  asks_ = false;
  if (agreed_s >= enough_s_) return;
  const double growth = agreed_s > 0 ? enough_s_ / agreed_s : kMaxGrowth;
  PlanUpTo(static_cast<int64_t>(
      std::ceil(static_cast<double>(check_) * std::clamp<double>(growth, kMinGrowth, kMaxGrowth))));
}

}  // namespace tutti::tune
