// Training on a clock: one iteration of a job that computes, all-reduces gradients in buckets, and
// exchanges what its split layers and its experts need.
//
// Model       Two streams, as in PyTorch's DistributedDataParallel. The compute stream runs the
//             steps in order. Data parallelism: gradients that a step leaves go into a bucket; a
//             bucket that has reached its capacity, and what is left at the end, is all-reduced by
//             the communication stream, which runs one collective at a time, first come first
//             served. Tensor parallelism: the all-reduce of what a step computed, and an
//             all-to-all, run there too, so that they never overlap another collective, and block
//             the compute stream until they end. Of one step the all-reduce of its results comes
//             first, then its gradients enter their bucket, then comes its all-to-all. The
//             iteration ends when both streams are idle.
// Units       Bytes are M (docs/glossary.md): what one rank all-reduces, or sends
//             altogether in an all-to-all. Times are whole picoseconds.
// Invariants  iteration = compute + tensor + all_to_all + exposed_all_reduce.
// Complexity  O(steps).
// Reference   [direct-connect] A.4 "Details of Simulated Distributed Training", figure 16; [tacos]
//             VI.D.
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
  int64_t gradient_bytes = 0;    // ready for their all-reduce when the step is done
  int64_t all_to_all_bytes = 0;  // exchanged before the next step may begin
  int64_t tensor_bytes = 0;      // of results, all-reduced before the next step may begin
  bool backward = false;         // belongs to the backward pass
};

// What a collective of so many bytes takes on the network in question. Those that the steps do not
// ask for may be empty.
struct CollectiveTimes {
  std::function<int64_t(int64_t bytes)> all_reduce_ps;  // of gradients
  std::function<int64_t(int64_t bytes)> all_to_all_ps = {};
  std::function<int64_t(int64_t bytes)> tensor_all_reduce_ps = {};  // of results
};

enum class TrainingActivity : uint8_t { kCompute, kAllToAll, kAllReduce, kTensorAllReduce };

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
  int64_t backward_compute_ps = 0;    // of these, in the backward pass
  int64_t tensor_ps = 0;              // all-reduces of results, waiting for the stream not counted
  int64_t backward_tensor_ps = 0;     // of these, in the backward pass
  int64_t all_to_all_ps = 0;          // busy with them, waiting for the stream not counted
  int64_t all_reduce_ps = 0;          // of gradients: busy with them, hidden or not
  int64_t exposed_all_reduce_ps = 0;  // of the iteration: none of the above
  std::vector<TrainingEvent> events;  // of both streams, in order of their start
};

// A bucket of all gradients: nothing overlaps the backward pass.
inline constexpr int64_t kOneBucket = INT64_MAX;

// bucket_bytes >= 1; a step's gradients are not split over buckets.
TrainingTimeline SimulateTraining(std::span<const TrainingStep> steps, const CollectiveTimes& times,
                                  int64_t bucket_bytes);

// The shortest iteration over these bucket sizes (at least one), the first of equals.
TrainingTimeline SimulateTrainingWithBestBucket(std::span<const TrainingStep> steps,
                                                const CollectiveTimes& times,
                                                std::span<const int64_t> bucket_bytes);

}  // namespace tutti
