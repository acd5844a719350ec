#include <fmt/format.h>

#include <utility>

#include "tutti/training/training_workload.h"

namespace tutti {
namespace {

constexpr int64_t kMost = int64_t{1} << 61;

// Whole numbers that must stay within kMost: remembers whether one did not.
class Bounded {
 public:
  int64_t Product(int64_t a, int64_t b) { return Fit(static_cast<__int128>(a) * b); }
  int64_t Sum(int64_t a, int64_t b) { return Fit(static_cast<__int128>(a) + b); }
  bool fits() const { return fits_; }

 private:
  int64_t Fit(__int128 value) {
    if (value <= kMost) return static_cast<int64_t>(value);
    fits_ = false;
    return kMost;
  }
  bool fits_ = true;
};

class StepMaker {
 public:
  StepMaker(const TrainingWorkload& workload, const TrainingSplit& split,
            const Accelerator& accelerator)
      : workload_(workload), split_(split), accelerator_(accelerator) {}

  Result<std::vector<TrainingStep>> Make() && {
    for (const WorkloadLayer& layer : workload_.layers) {
      const int64_t bytes = TrafficBytes(layer);
      TrainingStep step{.name = layer.name};
      step.compute_ps = ComputePs(layer, layer.forward_flops, bytes);
      step.tensor_bytes = SharedBytes(layer.forward_all_reduce);
      Add(std::move(step));
    }
    for (auto layer = workload_.layers.rbegin(); layer != workload_.layers.rend(); ++layer) {
      TrainingStep step{.name = layer->name + " backward"};
      step.backward = true;
      step.compute_ps =
          ComputePs(*layer, layer->backward_flops, bounded_.Product(2, TrafficBytes(*layer)));
      step.tensor_bytes = SharedBytes(layer->backward_all_reduce);
      if (split_.replicas > 1)
        step.gradient_bytes =
            bounded_.Product(Part(*layer, layer->parameters), workload_.bytes_per_number);
      Add(std::move(step));
    }
    if (!bounded_.fits())
      return InvalidArgument(fmt::format(
          "an iteration of '{}' with {} samples a replica takes more than 2^61 picoseconds, "
          "operations or bytes",
          workload_.name, split_.batch));
    return std::move(steps_);
  }

 private:
  // What each rank of the replica has of an amount of the layer.
  int64_t Part(const WorkloadLayer& layer, int64_t amount) const {
    return layer.split ? (amount + split_.tensor - 1) / split_.tensor : amount;
  }

  int64_t TrafficBytes(const WorkloadLayer& layer) {
    const int64_t numbers =
        bounded_.Sum(bounded_.Product(layer.passes, Part(layer, layer.parameters)),
                     bounded_.Product(split_.batch, Part(layer, layer.activations)));
    return bounded_.Product(numbers, workload_.bytes_per_number);
  }

  int64_t ComputePs(const WorkloadLayer& layer, int64_t flops, int64_t bytes) {
    const KernelWork work{.flops = bounded_.Product(split_.batch, Part(layer, flops)),
                          .bytes = bytes,
                          .kernels = layer.passes};
    return WorkPs(accelerator_, work);
  }

  int64_t SharedBytes(int64_t numbers) {
    if (split_.tensor == 1) return 0;
    return bounded_.Product(bounded_.Product(split_.batch, numbers), workload_.bytes_per_number);
  }

  void Add(TrainingStep step) {
    total_ps_ = bounded_.Sum(total_ps_, step.compute_ps);
    gradient_bytes_ = bounded_.Sum(gradient_bytes_, step.gradient_bytes);
    steps_.push_back(std::move(step));
  }

  const TrainingWorkload& workload_;
  const TrainingSplit& split_;
  const Accelerator& accelerator_;
  Bounded bounded_;
  int64_t total_ps_ = 0, gradient_bytes_ = 0;
  std::vector<TrainingStep> steps_;
};

}  // namespace

int64_t TrainingWorkload::Parameters() const {
  int64_t sum = 0;
  for (const WorkloadLayer& layer : layers) sum += layer.parameters;
  return sum;
}

int64_t TrainingWorkload::ForwardFlops() const {
  int64_t sum = 0;
  for (const WorkloadLayer& layer : layers) sum += layer.forward_flops;
  return sum;
}

Result<std::vector<TrainingStep>> MakeTrainingSteps(const TrainingWorkload& workload,
                                                    const TrainingSplit& split,
                                                    const Accelerator& accelerator) {
  if (split.batch < 1 || split.tensor < 1 || split.replicas < 1)
    return InvalidArgument(
        fmt::format("{} samples, {} ranks a replica, {} replicas; accepted are 1 and more",
                    split.batch, split.tensor, split.replicas));
  bool splits = split.tensor == 1;
  for (const WorkloadLayer& layer : workload.layers) splits = splits || layer.split;
  if (!splits)
    return InvalidArgument(
        fmt::format("'{}' has no layer that could be split over the {} ranks of a replica",
                    workload.name, split.tensor));
  return StepMaker(workload, split, accelerator).Make();
}

}  // namespace tutti
