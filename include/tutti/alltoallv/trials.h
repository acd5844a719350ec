// What: which algorithm to try next and which to stay with, for calls of one size class on one
// communicator: decides from agreed times only, so that all ranks decide alike.
//
// Model: one algorithm serves, the MPI library's own at first. A duel asks whether a challenger is
// faster: both serve turns of a few calls, side by side in pairs (who goes first takes turns), and
// what counts of a pair is the ratio of its two turns, which what else the machine does meets
// alike. A turn counts as the mean of its calls without the longest quarter, those that met
// something else. Its first call overlaps the other one's last and is not measured; nor are the
// first calls of a stage, since ranks leave an agreement one after the other and the set-up of a
// communicator milliseconds apart: that would always meet the one that serves. A duel runs in
// stages of more and longer turns; at the end of each all ranks agree on the times, by one
// all-reduce, and decide by the median of all ratios and by how far they spread:
//   won    median + 2 errors of it are under 1 - margin, of three pairs at least
//   lost   median - 1 error of it is over that (- 3 errors before three pairs), or the stages are
//          through
// The winner serves from then on, and the next challenger duels with it. Once nobody is left to
// challenge the trials are settled. Another than the library's own duels with that again
// kFirstRecheck calls after it won, and at growing distances after that (what was known from the
// start: from kRecheckOfKnown calls on): it stays only while it is still faster. What trying costs
// is bounded: a stage begins only while the time lost to slower challengers and to agreements, so
// far and as expected of the stage, is under kShare of all calls; kFreeCalls more for what is
// expected to be clearly faster, which is what was predicted, corrected by what others of its
// method took. In between nothing is measured (rests). A first pair may be far off, it meets the
// challenger's set-up: what was expected to be clearly faster gets its first three without a rest,
// unless it is slower by kPlainly, and no rest either while the pairs say that it is faster. An
// exact clock needs one short pair for each of the shortlist, and all of them get it at once: a
// call that repeats in a simulation repeats to the end. Invariants (numbered in the tests)
//   T1  the same agreed times give the same decisions
//   T2  every stage begins with the one that serves
//   T3  with times that stay, the choice is the library's own or kMargin faster than it, and over
//       some hundred calls trying costs at most a few of them in a hundred
// Units: seconds. Threads: one at a time.
//
//   Trials trials(own_s, shortlist, kNoisyClock);
//   run(trials.Next());
//   if (trials.rests()) trials.Skip(1); else trials.Note(seconds);   // of this rank
//   if (trials.stage_ended()) trials.EndStage(trials.Times() as agreed, true, cost_s);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/alltoallv/cost_model.h"

namespace tutti::alltoallv {

// Standard deviation that the ratio of two turns is believed to have before any was measured. The
// clock of a simulation is exact: there the first pair decides.
inline constexpr double kNoisyClock = 0.3, kExactClock = 0;

class Trials {
 public:
  static constexpr double kMargin = 0.04;          // over the MPI library's own
  static constexpr double kMarginOfOthers = 0.02;  // over another
  static constexpr double kPlainly = 4;
  static constexpr double kFreeCalls = 4;
  static constexpr double kShare = 0.015;
  static constexpr std::int64_t kFirstRecheck = 64, kRecheckOfKnown = 512;

  // `shortlist`: best first, with predicted seconds; `own_s`: predicted of the library's own.
  Trials(double own_s, std::span<const Prediction> shortlist, double clock_deviation);

  // `known` serves from the start: it was measured before, `ratio` of the library's own. What is
  // in the shortlist challenges it; the library's own does so first if `asks_own`, and in any case
  // by and by.
  Trials(const Algorithm& known, double ratio, bool asks_own, double own_s,
         std::span<const Prediction> shortlist, double clock_deviation);

  // Nobody is left to challenge.
  bool settled() const { return settled_; }
  // Nothing is measured for so many calls: they are told to Skip, not to Note.
  bool rests() const { return rest_calls_ > 0; }
  std::int64_t rest_calls() const { return rest_calls_; }
  void Skip(std::int64_t calls);

  // What serves the next call.
  const Algorithm& Next() const {
    return rests() || stage_ended() ? serving() : entries_[turns_[turn_].entry].algorithm;
  }

  // The call that Next() served is over.
  void Note(double seconds);

  bool stage_ended() const { return !rests() && turn_ == turns_.size(); }
  // What this rank measured in the stage; as many numbers on every rank.
  std::vector<double> Times() const;
  // `times`: of Times(), the mean over all ranks, or the largest. `keep` false: sizes changed
  // meanwhile, so that the stage says nothing. `agreement_s`: what the latest agreement took, the
  // same on all ranks; 0: not known.
  void EndStage(std::span<const double> times, bool keep, double agreement_s);

  // What serves beside trials.
  const Algorithm& serving() const { return entries_[serving_].algorithm; }
  // A call of it and of the library's own, as measured last; 0 where nothing was.
  double serving_s() const { return entries_[serving_].seconds; }
  double own_s() const { return entries_.front().seconds; }

 private:
  struct Entry {
    Algorithm algorithm;
    double predicted_ratio = 1;  // to the library's own
    double measured_ratio = 0;   // the same; 0: not measured
    double seconds = 0;
    bool waits = false;
  };
  struct Turn {
    std::size_t entry;
    int unmeasured, calls;
  };
  struct Estimate {
    double ratio_log, error;
  };

  bool exact() const { return clock_deviation_ == 0; }
  void Add(double own_s, std::span<const Prediction> shortlist);
  bool IsFarBehind(const Entry& entry) const;
  double ExpectedRatio(const Entry& entry) const;
  // Of a stage of the duel with `challenger`, in calls of what serves.
  double ExpectedLoss(std::size_t challenger) const;
  bool Promises(const Entry& entry) const;
  bool IsPatient() const;
  bool SeemsFaster() const;
  void Plan();
  void BeginDuel(std::size_t base, std::size_t challenger);
  void PlanStage();
  void Rest(std::int64_t calls);
  Estimate Estimated() const;
  double Wanted() const;
  void Decide();
  void EndDuel(bool won);

  double clock_deviation_;
  std::vector<Entry> entries_;  // the first is the library's own
  std::size_t serving_ = 0;
  bool settled_ = false;
  bool asks_own_ = false;  // the first duel is with it

  // The duel that goes on; none where challenger_ is 0. In a recheck it is the challenger that
  // serves, else the base.
  std::size_t base_ = 0, challenger_ = 0;
  bool rechecks_ = false;
  bool promises_ = false;
  std::size_t stage_ = 0;
  std::vector<double> ratio_logs_;
  std::vector<double> base_s_, challenger_s_;
  std::vector<Turn> turns_;
  std::size_t turn_ = 0;        // its size: the stage is over
  int done_ = 0;                // calls of this turn
  std::vector<double> call_s_;  // of the measured calls of this stage
  double other_s_ = 0;          // of this stage's calls that another served than without trials
  int other_calls_ = 0;

  std::int64_t rest_calls_ = 0;
  std::int64_t recheck_gap_ = kRecheckOfKnown;
  double next_recheck_ = kRecheckOfKnown;  // of calls_
  double calls_ = 0, lost_calls_ = 0, agreement_calls_ = 1;
};

}  // namespace tutti::alltoallv
