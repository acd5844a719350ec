// Switch Transformers as training workloads: encoder-decoder models whose sparse layers hold one
// feed-forward network an expert, the experts spread over the ranks.
//
// Model       Data parallel but for the experts. Tokens are spread evenly over the experts. A
//             sparse layer sends its tokens to their experts by an all-to-all and back by another,
//             in the forward and in the backward pass. The time of a layer is the accelerator's
//             roofline (accelerator.h); the backward pass takes twice the arithmetic and traffic
//             of the forward pass. Embedding and output layer share their
//             weights, whose gradients are complete at the very end.
// Deviation   The paper's layer times are measured on one A100 and not published; this model takes
//             their place. So does the precision: fp32 storage and TF32 products, PyTorch's
//             default.
// Units       Bytes, floating point operations, whole picoseconds.
// Reference   [direct-connect] A.4; dimensions as published with the Switch Transformer models.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/training/accelerator.h"
#include "tutti/training/training.h"

namespace tutti {

struct SwitchTransformer {
  std::string_view name;
  int64_t d_model, d_ff, d_head, heads;
  int64_t layers;         // of the encoder, and as many of the decoder
  int64_t sparse_layers;  // of those, evenly spread, the last layer among them
  int64_t experts;        // in each sparse layer
  int64_t vocabulary;

  int64_t Parameters() const;            // experts included
  int64_t ReplicatedParameters() const;  // on every rank: all but the experts
};

// switch-base-256 (14.7e9 parameters) and switch-c-2048 (1.57e12), smallest first.
std::span<const SwitchTransformer> SwitchTransformers();
// kNotFound lists the names.
Result<SwitchTransformer> FindSwitchTransformer(std::string_view name);

struct TrainingBatch {
  int64_t sequences = 2048;      // all ranks together: 2^20 tokens of the encoder
  int64_t encoder_tokens = 512;  // a sequence
  int64_t decoder_tokens = 114;  // what span corruption makes of 512 tokens
};

// One iteration on `ranks` ranks. kInvalidArgument: fewer sequences than ranks, or a number of them
// or of experts that the ranks do not divide evenly.
Result<std::vector<TrainingStep>> MakeTrainingSteps(const SwitchTransformer& model,
                                                    const TrainingBatch& batch, int64_t ranks,
                                                    const Accelerator& accelerator);

}  // namespace tutti
