// DeferredSetup: how long a communicator's calls are simply the native algorithm, before anything
// is set up for it: until they have taken so long together that set-up is little beside them.
//
// Model       Most calls pass. The last kMeasured of the first kFirstCheck calls are measured, and
//             stand for all of them; then all ranks agree, by one all-reduce, on the mean of what
//             the calls took so far. The phase is over once that is enough, or after
//             `calls_at_most`; else the next check comes when it will be enough if calls go on so,
//             but at twice to eight times as many calls.
// Example     32 calls wanted by the clock, 16 made: calls 29 to 32 are measured.
// Units       Seconds.
// Complexity  A call that passes is a decrement.
// Threads     One at a time.
// Invariants  (numbered in the tests)
//               Q1  the same agreed seconds give the same end
//               Q2  it is over after calls_at_most calls at the latest
//               Q3  one call that takes long by accident ends nothing
//
//   DeferredSetup deferred(calls_at_most, enough_s);
//   if (deferred.Passes()) -> the native algorithm
//   else if (!deferred.over()) -> the native algorithm, Note(seconds);
//   if (deferred.asks()) Decide(agreed)
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::tune {

class DeferredSetup {
 public:
  static constexpr int64_t kFirstCheck = 16, kMinGrowth = 2, kMaxGrowth = 8;
  static constexpr int64_t kMeasured = 4;

  DeferredSetup() = default;  // over
  // `enough_s` infinite: nothing is measured.
  DeferredSetup(int64_t calls_at_most, double enough_s);

  // Whether the next call is none to measure; it counts as made.
  bool Passes() {
    if (passing_ == 0) return false;
    --passing_;
    return true;
  }
  bool over() const { return passing_ == 0 && to_measure_ == 0; }
  // A call that does not pass took so long, here.
  void Note(double seconds);
  // Seconds of all calls so far are to be agreed on.
  bool asks() const { return asks_; }
  double spent_s() const { return spent_s_; }
  // `agreed_s`: of spent_s(), the mean over all ranks.
  void Decide(double agreed_s);

 private:
  void PlanUpTo(int64_t check);

  int64_t calls_at_most_ = 0;
  double enough_s_ = 0;
  int64_t check_ = 0;    // the calls that are planned, from the first one on
  int64_t planned_ = 0;  // of them those since the check before
  int64_t passing_ = 0, to_measure_ = 0;
  std::vector<double> measured_s_;
  bool asks_ = false;
  double spent_s_ = 0;
};

}  // namespace tutti::tune
