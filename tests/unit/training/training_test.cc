#include "tutti/training/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tutti/base/random.h"
#include "tutti/training/switch_transformer.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// One picosecond a byte, all-to-all three, and a latency of ten.
const CollectiveTimes kTimes{
    .all_reduce_ps = [](int64_t bytes) { return 10 + bytes; },
    .all_to_all_ps = [](int64_t bytes) { return 10 + 3 * bytes; },
    .tensor_all_reduce_ps = [](int64_t bytes) { return 5 + 2 * bytes; },
};

TEST(TrainingTest, AllReducesOfFullBucketsOverlapTheBackwardPass) {
  const std::vector<TrainingStep> steps{
      {"forward", 100, 0, 0}, {"b2", 50, 30, 0}, {"b1", 50, 30, 0}, {"b0", 50, 30, 0}};
  // The bucket of 60 fills at 200 and travels until 270; the last 30 go at 270, not at 250.
  const TrainingTimeline line = SimulateTraining(steps, kTimes, 60);
  EXPECT_EQ(line.iteration_ps, 310);
  EXPECT_EQ(line.compute_ps, 250);
  EXPECT_EQ(line.all_reduce_ps, 110);
  EXPECT_EQ(line.exposed_all_reduce_ps, 60);
  // One bucket for all pays the latency once, but overlaps nothing.
  EXPECT_EQ(SimulateTraining(steps, kTimes, 1000).iteration_ps, 350);
  const std::array<int64_t, 3> buckets{1000, 60, 30};
  const TrainingTimeline best = SimulateTrainingWithBestBucket(steps, kTimes, buckets);
  EXPECT_EQ(best.bucket_bytes, 30);
  EXPECT_EQ(best.iteration_ps, 290);
}

TEST(TrainingTest, AllToAllBlocksComputeAndWaitsForTheAllReduceBeforeIt) {
  const std::vector<TrainingStep> steps{
      {"router", 20, 0, 5}, {"layer", 10, 40, 5}, {"last", 7, 0, 0}};
  // 20, all-to-all to 45, layer to 55, all-reduce to 105, all-to-all to 130, last to 137.
  const TrainingTimeline line = SimulateTraining(steps, kTimes, 1);
  EXPECT_EQ(line.iteration_ps, 137);
  EXPECT_EQ(line.all_to_all_ps, 50);
  EXPECT_EQ(line.exposed_all_reduce_ps, 50);
  ASSERT_EQ(line.events.size(), 6U);
  EXPECT_EQ(line.events[3].activity, TrainingActivity::kAllReduce);
  EXPECT_EQ(line.events[3].end_ps, line.events[4].start_ps);
}

TEST(TrainingTest, AllReducesOfResultsBlockComputeAndComeBeforeTheGradientsOfTheirStep) {
  TrainingStep forward{.name = "forward", .compute_ps = 20};
  forward.tensor_bytes = 5;
  TrainingStep backward{.name = "backward", .compute_ps = 40, .gradient_bytes = 30};
  backward.tensor_bytes = 5;
  backward.backward = true;
  const std::vector<TrainingStep> steps{forward, backward, backward};
  // 20, results to 35, backward to 75, results to 90, gradients to 130 beside backward, which takes
  // until 130 as well; results to 145, gradients to 185.
  const TrainingTimeline line = SimulateTraining(steps, kTimes, 1);
  EXPECT_EQ(line.iteration_ps, 185);
  EXPECT_EQ(line.compute_ps, 100);
  EXPECT_EQ(line.backward_compute_ps, 80);
  EXPECT_EQ(line.tensor_ps, 45);
  EXPECT_EQ(line.backward_tensor_ps, 30);
  EXPECT_EQ(line.all_reduce_ps, 80);
  EXPECT_EQ(line.exposed_all_reduce_ps, 40);
  EXPECT_EQ(SimulateTraining(steps, kTimes, kOneBucket).iteration_ps, 145 + 70);
}

TEST(TrainingProperty, StreamsRunOneThingAtATimeAndTheTimesAddUp) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<TrainingStep> steps(1 + random.Below(12));
    for (TrainingStep& step : steps) {
      step = {"s", static_cast<int64_t>(random.Below(40)), static_cast<int64_t>(random.Below(30)),
              random.Below(3) == 0 ? static_cast<int64_t>(random.Below(20)) : 0};
      if (random.Below(3) == 0) step.tensor_bytes = static_cast<int64_t>(random.Below(20));
      step.backward = random.Below(2) == 0;
    }
    const auto bucket = static_cast<int64_t>(1 + random.Below(100));
    const TrainingTimeline line = SimulateTraining(steps, kTimes, bucket);
    int64_t computed = 0, communicated = 0, compute_free = 0, network_free = 0;
    for (const TrainingEvent& event : line.events) {
      const bool computes = event.activity == TrainingActivity::kCompute;
      int64_t& free = computes ? compute_free : network_free;
      EXPECT_GE(event.start_ps, free);
      free = event.end_ps;
      (computes ? computed : communicated) += event.end_ps - event.start_ps;
    }
    EXPECT_EQ(computed, line.compute_ps);
    EXPECT_EQ(communicated, line.all_to_all_ps + line.all_reduce_ps + line.tensor_ps);
    EXPECT_EQ(line.iteration_ps,
              line.compute_ps + line.tensor_ps + line.all_to_all_ps + line.exposed_all_reduce_ps);
    EXPECT_LE(line.backward_compute_ps, line.compute_ps);
    EXPECT_LE(line.backward_tensor_ps, line.tensor_ps);
    EXPECT_EQ(line.iteration_ps, std::max(compute_free, network_free));
    EXPECT_GE(line.exposed_all_reduce_ps, 0);
    EXPECT_LE(line.exposed_all_reduce_ps, line.all_reduce_ps);
  }
}

// The sizes that the models are known by.
TEST(SwitchTransformerTest, HasThePublishedNumberOfParameters) {
  const SwitchTransformer base = FindSwitchTransformer("switch-base-256").value();
  EXPECT_NEAR(static_cast<double>(base.Parameters()), 14.7e9, 0.05e9);
  const SwitchTransformer large = FindSwitchTransformer("switch-c-2048").value();
  EXPECT_NEAR(static_cast<double>(large.Parameters()), 1571e9, 1e9);
}

TEST(SwitchTransformerTest, StepsCarryEveryReplicatedGradientAndFourExchangesASparseLayer) {
  for (const SwitchTransformer& model : SwitchTransformers())
    for (int64_t ranks : {64, 128, 256}) {
      SCOPED_TRACE(model.name);
      const TrainingBatch batch;
      const std::vector<TrainingStep> steps =
          MakeTrainingSteps(model, batch, ranks, kA100Tf32).value();
      int64_t gradients = 0, exchanges = 0, exchanged = 0;
      for (const TrainingStep& step : steps) {
        gradients += step.gradient_bytes;
        exchanges += step.all_to_all_bytes > 0 ? 1 : 0;
        exchanged += step.all_to_all_bytes;
      }
      EXPECT_EQ(gradients, 4 * model.ReplicatedParameters());
      EXPECT_EQ(exchanges, 4 * 2 * model.sparse_layers);
      const int64_t tokens =
          batch.sequences / ranks * (batch.encoder_tokens + batch.decoder_tokens);
      EXPECT_EQ(exchanged, 4 * model.sparse_layers * tokens * model.d_model * 4);
    }
}

TEST(SwitchTransformerTest, RefusesWhatCannotBeSpreadEvenlyAndUnknownNames) {
  const SwitchTransformer model = SwitchTransformers().front();
  EXPECT_THAT(MakeTrainingSteps(model, {}, 512, kA100Tf32).error().message,
              HasSubstr("256 experts cannot be spread evenly over 512 ranks"));
  EXPECT_THAT(MakeTrainingSteps(model, {.sequences = 100}, 64, kA100Tf32).error().message,
              HasSubstr("100 sequences"));
  EXPECT_THAT(FindSwitchTransformer("gpt").error().message, HasSubstr("switch-base-256"));
}

}  // namespace
}  // namespace tutti
