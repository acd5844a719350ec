// Training on a clock: one iteration of a job whose gradients are all-reduced in buckets and whose
// expert layers exchange tokens by all-to-all.
//
// Model       Two streams, as in PyTorch's DistributedDataParallel. The compute stream runs the
//             steps in order. Gradients that a step leaves go into a bucket; a bucket that has
//             reached its capacity, and what is left at the end, is all-reduced by the
//             communication stream, which runs one collective at a time, first come first served.
//             An all-to-all runs there too, so it never overlaps an all-reduce, and blocks the
//             compute stream until it ends. The iteration ends when both streams are idle.
// Units       Bytes are [M] of design.md's vocabulary: what one rank all-reduces, or sends
//             altogether in an all-to-all. Times are whole picoseconds.
// Invariants  iteration = compute + all_to_all + exposed_all_reduce.
// Complexity  O(steps).
// Reference   [direct-connect] A.4 "Details of Simulated Distributed Training", figure 16.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tutti {

struct TrainingStep {
  std::string name;
  int64_t compute_ps = 0;
  int64_t gradient_bytes = 0;    // ready for their all-reduce when the computation ends
  int64_t all_to_all_bytes = 0;  // exchanged before the next step may begin
};

// What a collective of so many bytes takes on the network in question.
struct CollectiveTimes {
  std::function<int64_t(int64_t bytes)> all_reduce_ps;
  std::function<int64_t(int64_t bytes)> all_to_all_ps;
};

enum class TrainingActivity : uint8_t { kCompute, kAllToAll, kAllReduce };

struct TrainingEvent {
  TrainingActivity activity = TrainingActivity::kCompute;
  std::string name;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

struct TrainingTimeline {
  int64_t bucket_bytes = 0;
  int64_t iteration_ps = 0;
  int64_t compute_ps = 0;
  int64_t all_to_all_ps = 0;          // busy with them, waiting for the stream not counted
  int64_t all_reduce_ps = 0;          // busy with them, hidden or not
  int64_t exposed_all_reduce_ps = 0;  // of the iteration: neither compute nor all-to-all
  std::vector<TrainingEvent> events;  // of both streams, in order of their start
};

// bucket_bytes >= 1; a step's gradients are not split over buckets.
TrainingTimeline SimulateTraining(std::span<const TrainingStep> steps, const CollectiveTimes& times,
                                  int64_t bucket_bytes);

// The shortest iteration over these bucket sizes (at least one), the first of equals.
TrainingTimeline SimulateTrainingWithBestBucket(std::span<const TrainingStep> steps,
                                                const CollectiveTimes& times,
                                                std::span<const int64_t> bucket_bytes);

}  // namespace tutti
