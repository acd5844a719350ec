// What: which algorithm to try next and which to stay with, for calls of one size class on one
// communicator: decides from agreed times only, so that all ranks decide alike.
//
// Model: calls come in cycles. In a cycle the MPI library's own and every candidate still in
// question serve a few calls each; at its end all ranks agree on the median time of each
// (EndCycle), those that are clearly slower leave, and a new one may enter. Settled once none is in
// question; then the library's own serves unless another was kMargin faster.
// What trying costs is bounded: a candidate enters only while the time lost on slower ones, so far
// and as expected of it, stays under kShare n calls of the library's own after n calls; kFreeCalls
// more for what is expected to be clearly faster. Expected is what was predicted, corrected by what
// others of its method took.
// Invariants (numbered in the tests)
//   T1  the same agreed times give the same decisions
//   T2  every cycle begins with the library's own
//   T3  with times that stay, the choice is the library's own or kMargin faster than it, and over
//       some hundred calls trying costs at most a few of them in a hundred
// Units: seconds. Threads: one at a time.
//
//   Trials trials(shortlist);
//   run(trials.Next()); trials.Note(seconds);         // of this rank
//   if (trials.cycle_ended()) trials.EndCycle(mean over all ranks of trials.Medians(), true);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/alltoallv/cost_model.h"

namespace tutti::alltoallv {

class Trials {
 public:
  static constexpr double kMargin = 0.04;
  static constexpr double kFreeCalls = 3;
  static constexpr double kShare = 0.015;

  // `shortlist`: best first, with predicted seconds; `own_s`: predicted of the library's own.
  Trials(double own_s, std::span<const Prediction> shortlist);

  // Settled from the start, on what was measured before.
  explicit Trials(const Algorithm& known);

  bool settled() const { return settled_; }
  // Nothing is tried until more calls have paid for it: the library's own serves, and calls are
  // told to Skip, not to Note.
  bool idle() const { return idle_calls_ > 0; }
  void Skip(int calls);

  // What serves the next call. The library's own in the call in which times are agreed.
  const Algorithm& Next() const {
    return settled_ ? choice_ : entries_[cycle_ended() ? 0 : turn_].algorithm;
  }

  // The call that Next() served is over.
  void Note(double seconds);

  bool cycle_ended() const { return !settled_ && turn_ == entries_.size(); }
  // Of each algorithm tried in the cycle, its median on this rank; as many on every rank.
  std::vector<double> Medians() const;
  // `medians`: of Medians(), the mean over all ranks. `keep` false: sizes changed meanwhile, so
  // that the cycle says nothing.
  void EndCycle(std::span<const double> medians, bool keep);

  // Settled: what was measured of the choice and of the library's own; 0 where nothing was.
  double choice_s() const { return choice_s_; }
  double own_s() const { return entries_.empty() ? 0 : entries_.front().agreed_s; }

 private:
  enum class Stage { kWaiting, kTried, kDropped };
  struct Entry {
    Algorithm algorithm;
    double predicted_ratio = 1;  // to the library's own
    Stage stage = Stage::kWaiting;
    int calls_a_cycle = 0;             // in this cycle
    int unmeasured = 0;                // the first calls, which grow buffers and open connections
    std::vector<double> samples = {};  // the latest, oldest overwritten first
    std::size_t measured = 0;
    double agreed_s = 0;
    std::size_t agreed_samples = 0;
  };

  std::size_t NextTurn() const;
  double ExpectedRatio(const Entry& entry) const;
  void PlanCycle();
  void Settle();

  std::vector<Entry> entries_;  // the first is the library's own
  std::size_t turn_ = 0;        // index into entries_; its size: the cycle is over
  int left_ = 0;                // calls of this turn
  int idle_calls_ = 0;
  double calls_ = 0, lost_s_ = 0;
  bool settled_ = false;
  Algorithm choice_;
  double choice_s_ = 0;
};

}  // namespace tutti::alltoallv
