// The passes of the flow solver: a flow of every source and the lengths of the bundles, improved in
// turn, with the best limits met so far.
//
// Method      Lengths follow loads (link_lengths.h). In each pass the sources are visited one after
//             the other, each seeing what those before it did; then the weights take a step.
//             From a start it begins with repairs: lengths so steep that little else than the load
//             counts, aimed at half the gap allowed, and visits only to sources of which much flows
//             where it is too full. The passes after those visit mostly sources that have much to
//             save.
// Reference   [Bertsekas 1982] for the augmented Lagrangian and its multiplier steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "link_lengths.h"
#include "restart.h"
#include "shifter.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"

namespace tutti {

class FlowIteration {
 public:
  // `group` acts freely on the ranks and keeps demands; a flow for each of its representatives.
  // With a start it is the identity; repairs end at `gap_wanted` or earlier.
  FlowIteration(const FlowNetwork& network, const DemandTable& demand, const NetworkGroup& group,
                double gap_wanted, std::optional<Restart> start = {});

  // kCancelled.
  Status Pass();
  int32_t passes() const { return passes_; }

  // f in units of mean demand and smallest link. The lower limit is that of BestFlows(), up to
  // rounding; the upper one is proven by lengths().
  double lower() const { return kept_lower_ > now_lower_ ? kept_lower_ : now_lower_; }
  const Rational& upper() const { return upper_; }
  double gap() const;
  int32_t passes_without_progress() const { return passes_ - last_progress_; }

  const std::vector<SourceFlow>& BestFlows() const {
    return kept_lower_ > now_lower_ ? kept_flows_ : flows_;
  }
  const std::vector<int64_t>& lengths() const { return best_lengths_; }

 private:
  Status Repair();
  void EndRepairs();
  void MeasureLoads();
  void MeasureLimit();
  void OfferLengths(std::vector<int64_t> lengths);
  void KeepFlows();
  void StepWeights();

  const FlowNetwork& network_;
  const DemandTable& demand_;
  int64_t alike_;  // ranks that each representative stands for
  std::vector<SourceFlow> flows_, kept_flows_;
  std::vector<double> saved_;  // of a source, in its last visit
  double much_saved_ = 0;
  LinkLengths lengths_;
  Shifter shifter_;
  std::vector<int64_t> best_lengths_;
  Rational upper_;
  double now_lower_ = 0, kept_lower_ = 0, upper_value_ = 0;
  bool is_restart_;
  std::vector<double> start_lengths_;     // while repairs go on
  std::vector<double> length_when_full_;  // of a bundle
  double repair_gap_ = 0;                 // 0: no repairs, or no more
  double good_gap_ = 0;                   // after the last repair that did much
  int32_t repairs_ = 0, last_good_repair_ = 0;
  double scale_ = 1;  // of steepness
  double steepness_ = 0, weight_step_;
  int32_t passes_ = 0, last_progress_ = 0;
};

}  // namespace tutti
