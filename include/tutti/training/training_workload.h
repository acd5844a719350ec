// Models as training workloads: data that says, layer by layer, what is computed and what is
// communicated when.
//
// Model       Ranks form replicas of `tensor` ranks. A replica trains on `batch` samples an
//             iteration; its layers that are split over its ranks take 1 / tensor of their
//             arithmetic, traffic and parameters on each of them, rounded up (layers that are not
//             are computed by each rank alike), and the all-reduces that a layer names run among
//             them, exposed. Gradients of the parameters are all-reduced among the ranks that hold
//             the same part, one of every replica. Each layer computes for as long as the
//             accelerator's roofline says: forward_flops and the traffic of parameters and
//             activations in the forward pass, backward_flops and twice that traffic in the
//             backward pass, which goes through the layers from the last to the first. A layer of
//             several passes (a recurrent one) reads its parameters and launches a kernel each
//             time. Optimiser, input and recomputation of activations are left out.
// Units       Layers count operations and numbers of one sample; a number has bytes_per_number.
// Errors      kCorrupt and kInvalidArgument name line and column of the file and what is accepted;
//             kIo with the path; kNotFound lists the names of those that are built in.
// Reference   docs/formats/workload.md; [tacos] VI.D.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/training/accelerator.h"
#include "tutti/training/training.h"

namespace tutti {

struct WorkloadLayer {
  std::string name;
  int64_t passes = 1;
  int64_t forward_flops = 0, backward_flops = 0;
  int64_t parameters = 0;
  int64_t activations = 0;  // numbers that the forward pass reads and writes
  bool split = false;       // over the ranks of a replica
  // Numbers that a replica's ranks all-reduce when the layer's pass is done.
  int64_t forward_all_reduce = 0, backward_all_reduce = 0;
};

struct TrainingWorkload {
  std::string name, source, sample;
  int64_t batch = 1;
  int64_t tensor = 1;
  int64_t bytes_per_number = 2;
  std::vector<WorkloadLayer> layers;  // at least one; their sums are below 2^62

  int64_t Parameters() const;
  int64_t ForwardFlops() const;
};

Result<TrainingWorkload> ParseTrainingWorkload(std::string_view text);
// A path that ends in .csv, or the name of one that is built in.
Result<TrainingWorkload> LoadTrainingWorkload(const std::string& name_or_path);
std::vector<std::string_view> BuiltInWorkloads();

struct TrainingSplit {
  int64_t batch = 1;     // samples a replica
  int64_t tensor = 1;    // ranks a replica
  int64_t replicas = 1;  // 1: no gradients to all-reduce
};

// One iteration. kInvalidArgument: a number below 1, no layer to split, or so much work that 2^61
// picoseconds or bytes do not hold it.
Result<std::vector<TrainingStep>> MakeTrainingSteps(const TrainingWorkload& workload,
                                                    const TrainingSplit& split,
                                                    const Accelerator& accelerator);

}  // namespace tutti
