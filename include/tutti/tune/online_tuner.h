// OnlineTuner: which algorithm to try next and which to stay with, for calls of one size class on
// one communicator: decides from agreed times only, so that all ranks decide alike.
//
// Model       One algorithm serves, the native one at first. A comparison asks whether a challenger
//             is faster: both serve turns of a few calls, side by side in pairs (who goes first
//             takes turns), and what counts of a pair is the ratio of its two turns, which what
//             else the machine does meets alike. A turn counts as the mean of its calls without the
//             longest quarter, those that met something else. Its first call overlaps the other
//             one's last and is not measured; nor are the first calls of a stage, since ranks leave
//             an agreement one after the other and the setup of a communicator milliseconds apart:
//             that would always meet the one that serves. A comparison runs in stages of more and
//             longer turns; at the end of each all ranks agree on the times, by one all-reduce, and
//             decide by the median of all ratios and by how far they spread:
//               won    median + 2 errors of it are under 1 - margin, of three pairs at least
//               lost   median - 1 error of it is over that (- 3 errors before three pairs), or the
//                      stages are through
//             The winner serves from then on, and the next challenger is compared with it. Once
//             nobody is left to challenge the tuner is settled. Another than the native algorithm
//             is compared with that again kFirstRecheck calls after it won, and at growing
//             distances after that (what was known from the start: from kRecheckOfKnown calls on):
//             it stays only while it is still faster.
//             What trying costs is bounded: a stage begins only while the time lost to slower
//             challengers and to agreements, so far and as expected of the stage, is under kShare
//             of all calls; kFreeCalls more for what is expected to be clearly faster, which is
//             what was predicted, corrected by what others of its method took. In between nothing
//             is measured (paused). A first pair may be far off, it meets the challenger's setup:
//             what was expected to be clearly faster gets its first three without a pause, unless
//             it is slower by kPlainly, and no pause either while the pairs say that it is faster.
//             An exact clock needs one short pair for each of the shortlist, and all of them get it
//             at once: a call that repeats in a simulation repeats to the end.
// Invariants  (numbered in the tests)
//               T1  the same agreed times give the same decisions
//               T2  every stage begins with the one that serves
//               T3  with times that stay, the choice is the native algorithm or a margin faster
//                   than it, and over some hundred calls trying costs at most a few of them in a
//                   hundred
// Units       Seconds.
// Threads     One at a time.
//
//   OnlineTuner tuner(native_s, shortlist, kNoisyClock);
//   run(tuner.Next());
//   if (tuner.paused()) tuner.Skip(1); else tuner.Note(seconds);   // of this rank
//   if (tuner.stage_ended()) tuner.EndStage(tuner.Times() as agreed, true, cost_s);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/tune/cost_model.h"

namespace tutti::tune {

// Standard deviation that the ratio of two turns is believed to have before any was measured. The
// clock of a simulation is exact: there the first pair decides.
inline constexpr double kNoisyClock = 0.3, kExactClock = 0;

// What is worth a trial, and by how much it must be faster than the native algorithm to serve.
struct TuningPolicy {
  double margin;
  double max_predicted_ratio;  // to the native algorithm

  friend bool operator==(const TuningPolicy&, const TuningPolicy&) = default;
};

// Two ranks have one message each way: there is nothing to order, and what differs is the overhead
// of a call, which other runs find otherwise; only what is plainly faster may serve them. Of long
// blocks the wire decides, which the model knows: what it does not see as faster is not tried.
TuningPolicy PolicyFor(int ranks, double mean_bytes, double clock_deviation);

class OnlineTuner {
 public:
  static constexpr double kMargin = 0.04;          // over the native algorithm
  static constexpr double kMarginOfOthers = 0.02;  // over another
  static constexpr double kPlainly = 4;
  static constexpr double kFreeCalls = 4;
  static constexpr double kShare = 0.015;
  static constexpr int64_t kFirstRecheck = 64, kRecheckOfKnown = 512;

  // `shortlist`: best first, with predicted seconds; `native_s`: predicted of the native algorithm.
  // `margin`: over the native algorithm.
  OnlineTuner(double native_s, std::span<const Prediction> shortlist, double clock_deviation,
              double margin = kMargin);

  // `known` serves from the start: it was measured before, `ratio` of the native algorithm. What is
  // in the shortlist challenges it; the native algorithm does so first if `compares_native`, and in
  // any case by and by.
  OnlineTuner(const Algorithm& known, double ratio, bool compares_native, double native_s,
              std::span<const Prediction> shortlist, double clock_deviation,
              double margin = kMargin);

  // Nobody is left to challenge.
  bool settled() const { return settled_; }
  // Nothing is measured for so many calls: they are told to Skip, not to Note.
  bool paused() const { return pause_calls_ > 0; }
  int64_t pause_calls() const { return pause_calls_; }
  void Skip(int64_t calls);

  // What serves the next call.
  const Algorithm& Next() const {
    return paused() || stage_ended() ? serving() : entries_[turns_[turn_].entry].algorithm;
  }

  // The call that Next() served is over.
  void Note(double seconds);

  bool stage_ended() const { return !paused() && turn_ == turns_.size(); }
  // What this rank measured in the stage; as many numbers on every rank.
  std::vector<double> Times() const;
  // `times`: of Times(), the mean over all ranks, or the largest. `keep` false: sizes changed
  // meanwhile, so that the stage says nothing. `agreement_s`: what the latest agreement took, the
  // same on all ranks; 0: not known.
  void EndStage(std::span<const double> times, bool keep, double agreement_s);

  // What serves beside comparisons.
  const Algorithm& serving() const { return entries_[serving_].algorithm; }
  // A call of it and of the native algorithm, as measured last; 0 where nothing was.
  double serving_s() const { return entries_[serving_].seconds; }
  double native_s() const { return entries_.front().seconds; }

 private:
  struct Entry {
    Algorithm algorithm;
    double predicted_ratio = 1;  // to the native algorithm
    double measured_ratio = 0;   // the same; 0: not measured
    double seconds = 0;
    bool waits = false;
  };
  struct Turn {
    size_t entry;
    int unmeasured, calls;
  };
  struct Estimate {
    double ratio_log, error;
  };

  bool exact() const { return clock_deviation_ == 0; }
  void Add(double native_s, std::span<const Prediction> shortlist);
  bool IsFarBehind(const Entry& entry) const;
  double ExpectedRatio(const Entry& entry) const;
  // Loss expected of a stage of the comparison with `challenger`, in calls of what serves.
  double ExpectedLoss(size_t challenger) const;
  bool Promises(const Entry& entry) const;
  bool IsPatient() const;
  bool SeemsFaster() const;
  void Plan();
  void BeginComparison(size_t base, size_t challenger);
  void PlanStage();
  void Pause(int64_t calls);
  Estimate Estimated() const;
  double Wanted() const;
  void Decide();
  void EndComparison(bool won);

  double clock_deviation_;
  double margin_;
  std::vector<Entry> entries_;  // the first is the native algorithm
  size_t serving_ = 0;
  bool settled_ = false;
  bool compares_native_ = false;  // the first comparison is with it

  // The comparison that goes on; none where challenger_ is 0. In a recheck it is the challenger
  // that serves, else the base.
  size_t base_ = 0, challenger_ = 0;
  bool rechecks_ = false;
  bool promises_ = false;
  size_t stage_ = 0;
  std::vector<double> ratio_logs_;
  std::vector<double> base_s_, challenger_s_;
  std::vector<Turn> turns_;
  size_t turn_ = 0;             // its size: the stage is over
  int done_ = 0;                // calls of this turn
  std::vector<double> call_s_;  // of the measured calls of this stage
  double other_s_ = 0;  // of this stage's calls that another served than without comparisons
  int other_calls_ = 0;

  int64_t pause_calls_ = 0;
  int64_t recheck_gap_ = kRecheckOfKnown;
  double next_recheck_ = kRecheckOfKnown;  // of calls_
  double calls_ = 0, lost_calls_ = 0, agreement_calls_ = 1;
};

}  // namespace tutti::tune
