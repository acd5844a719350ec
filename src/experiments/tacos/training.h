// What figures 20 and 21 of [tacos] share: an iteration of training with its all-reduces made in
// several ways.
//
// Model       sim/training.h, with all gradients in one all-reduce at the end: the paper says that
//             "communication becomes exposed at the end of each training iteration". The workloads
//             are those built in, with their batches; the accelerator is kA100Fp16. The paper
//             prints neither batches nor how fast its NPUs compute, but says what share of the
//             ideal TACOS reaches in communication (c) and end to end (e). If all workloads were
//             alike, communication by TACOS took (1 - e) / (e - c) times as long as computation;
//             each figure has a second table in which the computation is scaled to that.
// Reference   [tacos] VI.D, figures 20 and 21.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiment.h"
#include "tutti/base/result.h"

namespace tutti::tacos {

// The network of the groups of one kind, as each algorithm takes it: of several, which are
// unwindings, the fastest.
struct GroupNetwork {
  const char* basic = nullptr;        // of rings and the ideal; none: there are no such groups
  std::vector<int32_t> lengths = {};  // of its dimensions
  std::vector<const char*> ten = {}, themis = {};  // empty: that of rings
};

struct TrainingCase {
  const char* name;      // the paper's
  const char* workload;  // a built-in one
  int32_t ranks;
  GroupNetwork data;
  GroupNetwork tensor = {};
  std::vector<int32_t> ten_chunks, themis_chunks;
  // With --large also these, the networks for the groups that share gradients.
  std::vector<const char*> more_ten = {}, more_themis = {};
  std::vector<int32_t> more_ten_chunks = {}, more_themis_chunks = {};
};

// As printed, in % and times as fast.
struct TrainingPrinted {
  double communication, end_to_end;
  const char *communication_text, *end_to_end_text;
  const char *over_ring, *over_themis;
};

enum class TrainingUnit : uint8_t {
  kTacos,  // times are divided by that of TACOS, rings go one way only
  kRing,   // by that of the ring that goes both ways
};

Result<ExperimentResult> RunTraining(std::span<const TrainingCase> cases,
                                     const TrainingPrinted& printed, TrainingUnit unit,
                                     const ExperimentOptions& options);

}  // namespace tutti::tacos
