#include "tutti/training/training_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kTwoLayers =
    "# by hand\n"
    "tutti-workload,1\n"
    "name,two\n"
    "source,me, myself\n"
    "sample,a thing\r\n"
    "batch,3\n"
    "tensor,2\n"
    "bytes_per_number,4\n"
    "\n"
    "layer,forward_flops,backward_flops,parameters,activations,tensor,passes,forward_all_reduce,"
    "backward_all_reduce\n"
    "in,1000,1000,11,20,whole,2,0,0\n"
    "out,2000,4000,31,10,split,1,7,9\n";

// One operation or byte a nanosecond or two.
constexpr Accelerator kSlow{1'000'000'000, 500'000'000, 100};

TEST(TrainingWorkloadTest, ReadsHeadAndLayersInAnyOrderOfColumns) {
  const TrainingWorkload two = ParseTrainingWorkload(kTwoLayers).value();
  EXPECT_EQ(two.name, "two");
  EXPECT_EQ(two.source, "me, myself");
  EXPECT_EQ(two.sample, "a thing");
  EXPECT_EQ(two.batch, 3);
  EXPECT_EQ(two.tensor, 2);
  EXPECT_EQ(two.bytes_per_number, 4);
  ASSERT_EQ(two.layers.size(), 2U);
  EXPECT_EQ(two.layers[0].name, "in");
  EXPECT_EQ(two.layers[0].passes, 2);
  EXPECT_FALSE(two.layers[0].split);
  EXPECT_TRUE(two.layers[1].split);
  EXPECT_EQ(two.layers[1].backward_all_reduce, 9);
  EXPECT_EQ(two.Parameters(), 42);
  EXPECT_EQ(two.ForwardFlops(), 3000);
}

TEST(TrainingWorkloadTest, LayersBecomeStepsAsWorkedOutByHand) {
  const TrainingWorkload two = ParseTrainingWorkload(kTwoLayers).value();
  const std::vector<TrainingStep> steps =
      MakeTrainingSteps(two, {.batch = 3, .tensor = 2, .replicas = 4}, kSlow).value();
  ASSERT_EQ(steps.size(), 4U);
  // in: 3000 operations in 3 us; 4 (2 * 11 + 3 * 20) = 328 bytes in 0.656 us; two launches.
  EXPECT_EQ(steps[0].name, "in");
  EXPECT_EQ(steps[0].compute_ps, 3'000'200);
  EXPECT_EQ(steps[0].tensor_bytes, 0);
  EXPECT_FALSE(steps[0].backward);
  // out, half of it: 3 * 1000 operations; results 4 * 3 * 7 bytes.
  EXPECT_EQ(steps[1].compute_ps, 3'000'100);
  EXPECT_EQ(steps[1].tensor_bytes, 84);
  EXPECT_EQ(steps[1].gradient_bytes, 0);
  // Backward, last layer first; 31 parameters on two ranks are 16 on one.
  EXPECT_EQ(steps[2].name, "out backward");
  EXPECT_TRUE(steps[2].backward);
  EXPECT_EQ(steps[2].compute_ps, 6'000'100);
  EXPECT_EQ(steps[2].tensor_bytes, 108);
  EXPECT_EQ(steps[2].gradient_bytes, 64);
  EXPECT_EQ(steps[3].compute_ps, 3'000'200);
  EXPECT_EQ(steps[3].gradient_bytes, 44);
  // Alone, a rank neither shares results nor gradients, and has all of a layer.
  const std::vector<TrainingStep> alone = MakeTrainingSteps(two, {.batch = 1}, kSlow).value();
  for (const TrainingStep& step : alone) {
    EXPECT_EQ(step.tensor_bytes, 0);
    EXPECT_EQ(step.gradient_bytes, 0);
  }
}

TEST(TrainingWorkloadTest, LayersBoundByMemoryTakeTheirTraffic) {
  TrainingWorkload two = ParseTrainingWorkload(kTwoLayers).value();
  for (WorkloadLayer& layer : two.layers) layer.forward_flops = layer.backward_flops = 0;
  const std::vector<TrainingStep> steps = MakeTrainingSteps(two, {.batch = 3}, kSlow).value();
  EXPECT_EQ(steps[0].compute_ps, 656'200);
  EXPECT_EQ(steps[3].compute_ps, 2 * 656'000 + 200);
}

TEST(TrainingWorkloadTest, EveryFaultNamesItsLineAndWhatIsAccepted) {
  const std::string good = kTwoLayers;
  const auto changed = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  };
  const struct {
    std::string text;
    const char* says;
  } faults[] = {
      {"", "the file is empty, wanted 'tutti-workload,1'"},
      {"# nothing\n\n", "the file is empty"},
      {"{\"format\": 1}", "line 1: found '{\"format\": 1}', wanted 'tutti-workload,1'"},
      {changed("workload,1", "workload,2"), "line 2: version '2', this reader knows version 1"},
      {changed("workload,1", "workload"), "line 2: version nothing"},
      {good.substr(0, good.find("layer,")), "the file ends before the line of columns"},
      {good.substr(0, good.find("in,1000")), "no layer follows"},
      {changed("name,two\n", ""), "line 9: no line 'name,...' stands before the layers"},
      {changed("name,two", "name,"), "line 3: name: found nothing, wanted a text"},
      {changed("name,two", "title,two"),
       "line 3: unknown key 'title'; accepted: name, source, sample, batch, tensor, "
       "bytes_per_number, layer"},
      {changed("batch,3", "name,three"), "line 6: the key 'name' stands twice"},
      {changed("batch,3", "batch,0"),
       "line 6: batch: found '0', wanted a whole number within 1 .. "},
      {changed("batch,3", "batch,3.5"), "line 6: batch: found '3.5'"},
      {changed("batch,3", "batch"), "line 6: batch: found nothing"},
      {changed("tensor,2", "tensor,9999999"), "line 7: tensor: found '9999999'"},
      {changed("number,4", "number,17"),
       "bytes_per_number: found '17', wanted a whole number within"},
      {changed("layer,forward_flops", "layer,forward"), "line 10: unknown column 'forward'"},
      {changed("passes", "tensor"), "line 10: the column 'tensor' stands twice"},
      {changed("activations,", ""), "line 10: the column 'activations' is missing"},
      {changed("in,1000", "in,-1"), "line 11: forward_flops: found '-1'"},
      {changed("in,1000", "in,1e3"), "line 11: forward_flops: found '1e3'"},
      {changed("in,1000", "in, 1000"), "line 11: forward_flops: found ' 1000'"},
      {changed("in,1000", "in,99999999999999999999"),
       "forward_flops: found '99999999999999999999'"},
      {changed("in,1000", ",1000"), "line 11: layer: found nothing, wanted a name"},
      {changed("whole", "half"), "line 11: tensor: found 'half', wanted 'split' or 'whole'"},
      {changed("whole,2", "whole,0"), "line 11: passes: found '0', wanted a whole number within 1"},
      {changed("in,1000", "in"), "line 11: 8 fields, wanted 9: one a column"},
      {good + "more\n", "line 13: 1 fields, wanted 9"},
      {changed("out", "o\x01t"), "line 12: character 2 is byte 0x01; accepted are printable ASCII"},
      {changed("source,me", "source,m\xc3\xa9"), "line 4: character 9 is byte 0xc3"},
  };
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.says);
    const Result<TrainingWorkload> workload = ParseTrainingWorkload(fault.text);
    ASSERT_FALSE(workload.has_value());
    EXPECT_THAT(workload.error().message, HasSubstr(fault.says));
  }
  std::string large = good;
  for (int i = 0; i < 500; ++i) large += "l,10000000000000000,0,0,0,whole,1,0,0\n";
  EXPECT_THAT(ParseTrainingWorkload(large).error().message,
              HasSubstr("forward_flops: the layers so far add up to more than"));
}

TEST(TrainingWorkloadTest, RefusesWhatCannotBeTrained) {
  const TrainingWorkload two = ParseTrainingWorkload(kTwoLayers).value();
  EXPECT_THAT(MakeTrainingSteps(two, {.batch = 0}, kSlow).error().message, HasSubstr("0 samples"));
  TrainingWorkload whole = two;
  whole.layers[1].split = false;
  EXPECT_THAT(MakeTrainingSteps(whole, {.tensor = 4}, kSlow).error().message,
              HasSubstr("'two' has no layer that could be split over the 4 ranks"));
  TrainingWorkload large = two;
  large.layers[0].forward_flops = int64_t{1} << 50;
  EXPECT_THAT(MakeTrainingSteps(large, {.batch = 1'000'000}, kSlow).error().message,
              HasSubstr("more than 2^61"));
}

TEST(TrainingWorkloadTest, LoadsByNameAndByPathAndNamesWhatThereIs) {
  EXPECT_THAT(BuiltInWorkloads(),
              testing::ElementsAre("gnmt", "msft-1t", "resnet-50", "turing-nlg"));
  for (std::string_view name : BuiltInWorkloads()) {
    const TrainingWorkload built_in = LoadTrainingWorkload(std::string(name)).value();
    EXPECT_EQ(built_in.name, name);
    const std::string path = "data/workloads/" + std::string(name) + ".csv";
    EXPECT_EQ(LoadTrainingWorkload(path).value().layers.size(), built_in.layers.size());
  }
  const Error unknown = LoadTrainingWorkload("resnet50").error();
  EXPECT_EQ(unknown.code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.message, HasSubstr("unknown workload 'resnet50'; nearest: resnet-50"));
  EXPECT_THAT(unknown.message, HasSubstr("turing-nlg, or a file that ends in .csv"));
  EXPECT_EQ(LoadTrainingWorkload("none.csv").error().code, ErrorCode::kIo);
}

struct Totals {
  int64_t layers = 0, parameters = 0, forward_flops = 0, backward_flops = 0;
};
Totals TotalsOf(const TrainingWorkload& workload) {
  Totals totals{static_cast<int64_t>(workload.layers.size()), workload.Parameters(),
                workload.ForwardFlops(), 0};
  for (const WorkloadLayer& layer : workload.layers) totals.backward_flops += layer.backward_flops;
  return totals;
}

// Publications count a multiplication and its addition as one.
TEST(PublishedWorkloadTest, ResNet50HasThePublishedParametersAndOperations) {
  const Totals totals = TotalsOf(LoadTrainingWorkload("resnet-50").value());
  EXPECT_EQ(totals.layers, 1 + 4 + 3 * (3 + 4 + 6 + 3) + 1);
  EXPECT_EQ(totals.parameters, 25'557'032);            // torchvision
  EXPECT_EQ(totals.forward_flops / 2, 4'089'184'256);  // torchvision prints 4.09e9
  // Twice the forward pass, but for the gradient of the images.
  EXPECT_EQ(2 * totals.forward_flops - totals.backward_flops, 2LL * 112 * 112 * 64 * 3 * 49);
}

TEST(PublishedWorkloadTest, GnmtIsWithinTwoPercentOfWhatOthersCount) {
  const TrainingWorkload gnmt = LoadTrainingWorkload("gnmt").value();
  const Totals totals = TotalsOf(gnmt);
  const auto lstms = std::count_if(gnmt.layers.begin(), gnmt.layers.end(), [](const auto& layer) {
    return layer.name.rfind("encoder ", 0) == 0 || layer.name.rfind("decoder ", 0) == 0;
  });
  EXPECT_EQ(lstms, 9 + 8);  // the first of the encoder runs both ways
  EXPECT_NEAR(static_cast<double>(totals.parameters), 278e6, 0.02 * 278e6);
  EXPECT_NEAR(static_cast<double>(totals.forward_flops) / 2 / 50, 214e6, 0.02 * 214e6);
}

TEST(PublishedWorkloadTest, TransformersHaveThePublishedParameters) {
  const Totals turing = TotalsOf(LoadTrainingWorkload("turing-nlg").value());
  EXPECT_NEAR(static_cast<double>(turing.parameters), 17.2e9, 0.05e9);
  EXPECT_EQ(turing.layers, 2 * 78 + 2);
  const Totals trillion = TotalsOf(LoadTrainingWorkload("msft-1t").value());
  EXPECT_NEAR(static_cast<double>(trillion.parameters), 1008.0e9, 0.05e9);
  EXPECT_EQ(trillion.layers, 2 * 128 + 2);
  // Narayanan et al. 2021: 24 s l h^2 (1 + s / 6h + V / 16lh) a sequence, forward pass only.
  const double s = 2048, l = 128, h = 25600, v = 51200;
  EXPECT_NEAR(static_cast<double>(trillion.forward_flops),
              24 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)), 1e9);
}

TEST(PublishedWorkloadTest, TransformersShareResultsTwiceALayerAndPass) {
  const TrainingWorkload trillion = LoadTrainingWorkload("msft-1t").value();
  const std::vector<TrainingStep> steps =
      MakeTrainingSteps(trillion, {.batch = 16, .tensor = 128, .replicas = 8}, kA100Fp16).value();
  int64_t forward = 0, backward = 0, gradients = 0;
  for (const TrainingStep& step : steps) {
    EXPECT_TRUE(step.tensor_bytes == 0 || step.tensor_bytes == 16LL * 2048 * 25600 * 2);
    (step.backward ? backward : forward) += step.tensor_bytes > 0 ? 1 : 0;
    gradients += step.gradient_bytes;
  }
  EXPECT_EQ(forward, 2 * 128 + 1);   // and the embedding
  EXPECT_EQ(backward, 2 * 128 + 1);  // and the output layer
  EXPECT_NEAR(static_cast<double>(gradients), 1008.0e9 / 128 * 2, 1e8);
}

}  // namespace
}  // namespace tutti
