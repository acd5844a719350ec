#include "tutti/training/training.h"

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

class Iteration {
 public:
  Iteration(const CollectiveTimes& times, int64_t bucket_bytes) : times_(times) {
    timeline_.bucket_bytes = bucket_bytes;
  }

  void Run(const TrainingStep& step) {
    if (step.compute_ps > 0) {
      Record(TrainingActivity::kCompute, step.name, compute_free_ps_, step.compute_ps);
      compute_free_ps_ += step.compute_ps;
      timeline_.compute_ps += step.compute_ps;
      if (step.backward) timeline_.backward_compute_ps += step.compute_ps;
    }
    if (step.tensor_bytes > 0) {
      const int64_t took_ps = times_.tensor_all_reduce_ps(step.tensor_bytes);
      compute_free_ps_ = Communicate(TrainingActivity::kTensorAllReduce, step.name, took_ps);
      timeline_.tensor_ps += took_ps;
      if (step.backward) timeline_.backward_tensor_ps += took_ps;
    }
    bucket_ += step.gradient_bytes;
    if (bucket_ >= timeline_.bucket_bytes) FlushBucket();
    if (step.all_to_all_bytes > 0) {
      const int64_t took_ps = times_.all_to_all_ps(step.all_to_all_bytes);
      compute_free_ps_ = Communicate(TrainingActivity::kAllToAll, step.name, took_ps);
      timeline_.all_to_all_ps += took_ps;
    }
  }

  TrainingTimeline Finish() && {
    if (bucket_ > 0) FlushBucket();
    timeline_.iteration_ps = std::max(compute_free_ps_, network_free_ps_);
    timeline_.exposed_all_reduce_ps = timeline_.iteration_ps - timeline_.compute_ps -
                                      timeline_.tensor_ps - timeline_.all_to_all_ps;
    std::stable_sort(
        timeline_.events.begin(), timeline_.events.end(),
        [](const TrainingEvent& a, const TrainingEvent& b) { return a.start_ps < b.start_ps; });
    return std::move(timeline_);
  }

 private:
  void FlushBucket() {
    const int64_t took_ps = times_.all_reduce_ps(std::exchange(bucket_, 0));
    Communicate(TrainingActivity::kAllReduce, "gradients", took_ps);
    timeline_.all_reduce_ps += took_ps;
  }

  // Not before the compute stream got here, nor before the network is free. When it ends.
  int64_t Communicate(TrainingActivity activity, const std::string& name, int64_t took_ps) {
    const int64_t start_ps = std::max(compute_free_ps_, network_free_ps_);
    Record(activity, name, start_ps, took_ps);
    network_free_ps_ = start_ps + took_ps;
    return network_free_ps_;
  }

  void Record(TrainingActivity activity, const std::string& name, int64_t start_ps,
              int64_t took_ps) {
    timeline_.events.push_back({activity, name, start_ps, start_ps + took_ps});
  }

  const CollectiveTimes& times_;
  TrainingTimeline timeline_;
  int64_t bucket_ = 0;
  int64_t compute_free_ps_ = 0;
  int64_t network_free_ps_ = 0;
};

}  // namespace

TrainingTimeline SimulateTraining(std::span<const TrainingStep> steps, const CollectiveTimes& times,
                                  int64_t bucket_bytes) {
  TUTTI_CHECK(bucket_bytes >= 1);
  Iteration iteration(times, bucket_bytes);
  for (const TrainingStep& step : steps) iteration.Run(step);
  return std::move(iteration).Finish();
}

TrainingTimeline SimulateTrainingWithBestBucket(std::span<const TrainingStep> steps,
                                                const CollectiveTimes& times,
                                                std::span<const int64_t> bucket_bytes) {
  TUTTI_CHECK(!bucket_bytes.empty());
  TrainingTimeline best = SimulateTraining(steps, times, bucket_bytes.front());
  for (int64_t bytes : bucket_bytes.subspan(1)) {
    TrainingTimeline next = SimulateTraining(steps, times, bytes);
    if (next.iteration_ps < best.iteration_ps) best = std::move(next);
  }
  return best;
}

}  // namespace tutti
