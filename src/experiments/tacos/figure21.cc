// [tacos] figure 21: training on a 3-D torus of 1024 ranks.
#include <vector>

#include "registry.h"
#include "training.h"

namespace tutti {
namespace tacos_figure21 {
namespace {

using namespace tacos;

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const std::vector<TrainingCase> cases = {
      {.name = "ResNet-50, 1024 ranks",
       .workload = "resnet-50",
       .ranks = 1024,
       .data = {.basic = "torus(8,8,16)", .lengths = {8, 8, 16}},
       .ten_chunks = {1},
       .themis_chunks = {2},
       .more_ten_chunks = {2},
       .more_themis_chunks = {4}},
      {.name = "MSFT-1T, 1024 ranks",
       .workload = "msft-1t",
       .ranks = 1024,
       .data = {.basic = "torus(8)", .lengths = {8}},
       .tensor = {.basic = "torus(8,16)", .lengths = {8, 16}},
       .ten_chunks = {1, 2, 4},
       .themis_chunks = {4, 64}},
  };
  Result<ExperimentResult> result = RunTraining(
      cases, {93.17, 97.32, "93.17", "97.32", "1.58", "1.21"}, TrainingUnit::kRing, options);
  if (!result) return result;
  result->notes = {
      "The torus is 8 x 8 x 16, links 50 GB/s, alpha 0.5 us. ResNet-50: data parallel, 32 images a "
      "rank. MSFT-1T: 128 layers of 25600, each replica split over 128 ranks, which are a torus of "
      "8 x 16, and trained on 16 sequences of 2048 tokens; the 8 replicas all-reduce their "
      "gradients over rings of 8. Ranks compute at 234e12 operations a second or at 2039 GB/s, "
      "whichever takes longer. The paper prints no lengths of the torus, no split, no batch and no "
      "rate; the split is that of the same authors' LIBRA.",
      "With links pipelined and small sizes a schedule beats the ideal, whose diameter counts in "
      "full: only the bound is proven.",
      "Themis on 1024 ranks takes 2 chunks, with --large also 4; the paper's 64 would be some 270 "
      "million transfers. TACOS takes 1, with --large also 2.",
      "1.58 and 1.21 are the paper's averages over the workloads of figures 20 and 21 together. "
      "The paper's share of communication is what its two efficiencies imply if all workloads are "
      "alike."};
  return result;
}

}  // namespace
}  // namespace tacos_figure21

Experiment TacosFigure21() {
  return {"tacos-fig21", "[tacos] figure 21",
          "training of ResNet-50 and MSFT-1T on a torus of 1024 ranks: what computes, what shows",
          tacos_figure21::Run};
}

}  // namespace tutti
