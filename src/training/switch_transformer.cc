#include "tutti/training/switch_transformer.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace tutti {
namespace {

constexpr int64_t kBytesPerNumber = 4;  // fp32

// d_model, d_ff, d_head, heads, layers, sparse layers, experts, vocabulary.
constexpr std::array kModels{
    SwitchTransformer{"switch-base-256", 768, 3072, 64, 12, 12, 6, 256, 32128},
    SwitchTransformer{"switch-c-2048", 2080, 6144, 64, 32, 15, 15, 2048, 32128},
};

int64_t AttentionParameters(const SwitchTransformer& model) {
  return 4 * model.d_model * model.d_head * model.heads;
}
int64_t FeedForwardParameters(const SwitchTransformer& model) {
  return 2 * model.d_model * model.d_ff;
}

// The encoder attends once a layer, the decoder to itself and to the encoder.
constexpr int64_t kAttentionsPerLayer = 3;

// Arithmetic and traffic of a forward pass.
struct Work {
  int64_t flops = 0;
  int64_t numbers = 0;  // read and written
  int64_t kernels = 1;
};

class SwitchStepMaker {
 public:
  SwitchStepMaker(const SwitchTransformer& model, const TrainingBatch& batch, int64_t ranks,
                  const Accelerator& accelerator)
      : model_(model), accelerator_(accelerator), sequences_(batch.sequences / ranks) {
    local_experts_ = model.experts / ranks;
    encoder_tokens_ = batch.encoder_tokens;
    decoder_tokens_ = batch.decoder_tokens;
  }

  std::vector<TrainingStep> Make() {
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      Forward("encoder attention", Attention(encoder_tokens_, encoder_tokens_));
      ForwardFeedForward("encoder", layer, encoder_tokens_);
    }
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      Forward("decoder attention", Attention(decoder_tokens_, decoder_tokens_));
      Forward("decoder cross-attention", Attention(decoder_tokens_, encoder_tokens_));
      ForwardFeedForward("decoder", layer, decoder_tokens_);
    }
    Forward("output", Output());
    Backward("output", Output(), 0);
    for (int64_t layer = model_.layers; layer-- > 0;) {
      BackwardFeedForward("decoder", layer, decoder_tokens_);
      Backward("decoder cross-attention", Attention(decoder_tokens_, encoder_tokens_),
               AttentionParameters(model_));
      Backward("decoder attention", Attention(decoder_tokens_, decoder_tokens_),
               AttentionParameters(model_));
    }
    for (int64_t layer = model_.layers; layer-- > 0;) {
      BackwardFeedForward("encoder", layer, encoder_tokens_);
      Backward("encoder attention", Attention(encoder_tokens_, encoder_tokens_),
               AttentionParameters(model_));
    }
    Backward("embedding",
             {.flops = 0, .numbers = sequences_ * encoder_tokens_ * model_.d_model, .kernels = 1},
             model_.vocabulary * model_.d_model);
    return std::move(steps_);
  }

 private:
  bool IsSparse(int64_t layer) const {
    return (layer + 1) * model_.sparse_layers / model_.layers >
           layer * model_.sparse_layers / model_.layers;
  }

  Work Attention(int64_t queries, int64_t keys) const {
    const int64_t inner = model_.d_head * model_.heads;
    const int64_t query_rows = sequences_ * queries, key_rows = sequences_ * keys;
    const int64_t scores = sequences_ * model_.heads * queries * keys;
    return {.flops = 2 * model_.d_model * inner * 2 * (query_rows + key_rows) +
                     4 * sequences_ * queries * keys * inner,
            .numbers = AttentionParameters(model_) + 4 * scores +
                       4 * query_rows * (model_.d_model + inner) + 4 * key_rows * inner,
            .kernels = 8};
  }
  Work FeedForward(int64_t tokens, int64_t copies) const {
    const int64_t rows = sequences_ * tokens;
    return {.flops = 2 * FeedForwardParameters(model_) * rows,
            .numbers = copies * FeedForwardParameters(model_) +
                       rows * (4 * model_.d_model + 4 * model_.d_ff),
            .kernels = 4 * copies};
  }
  Work Router(int64_t tokens) const {
    const int64_t rows = sequences_ * tokens;
    return {.flops = 2 * rows * model_.d_model * model_.experts,
            .numbers = model_.d_model * model_.experts + 4 * rows * model_.experts +
                       4 * rows * model_.d_model,
            .kernels = 6};
  }
  Work Output() const {
    const int64_t rows = sequences_ * decoder_tokens_;
    return {.flops = 2 * rows * model_.d_model * model_.vocabulary,
            .numbers = model_.d_model * model_.vocabulary + 4 * rows * model_.vocabulary,
            .kernels = 4};
  }

  int64_t Picoseconds(const Work& work) const {
    return WorkPs(accelerator_, {work.flops, work.numbers * kBytesPerNumber, work.kernels});
  }

  int64_t TokenBytes(int64_t tokens) const {
    return sequences_ * tokens * model_.d_model * kBytesPerNumber;
  }

  void Forward(std::string name, const Work& work, int64_t all_to_all_bytes = 0) {
    steps_.push_back({std::move(name), Picoseconds(work), 0, all_to_all_bytes});
  }
  void Backward(const std::string& name, const Work& work, int64_t replicated_parameters,
                int64_t all_to_all_bytes = 0) {
    steps_.push_back({name + " backward",
                      Picoseconds({2 * work.flops, 2 * work.numbers, 2 * work.kernels}),
                      replicated_parameters * kBytesPerNumber, all_to_all_bytes});
  }

  void ForwardFeedForward(const std::string& part, int64_t layer, int64_t tokens) {
    if (!IsSparse(layer)) return Forward(part + " feed-forward", FeedForward(tokens, 1));
    Forward(part + " router", Router(tokens), TokenBytes(tokens));
    Forward(part + " experts", FeedForward(tokens, local_experts_), TokenBytes(tokens));
  }
  void BackwardFeedForward(const std::string& part, int64_t layer, int64_t tokens) {
    if (!IsSparse(layer))
      return Backward(part + " feed-forward", FeedForward(tokens, 1),
                      FeedForwardParameters(model_));
    steps_.push_back({part + " combine backward", 0, 0, TokenBytes(tokens)});
    Backward(part + " experts", FeedForward(tokens, local_experts_), 0, TokenBytes(tokens));
    Backward(part + " router", Router(tokens), model_.d_model * model_.experts);
  }

  const SwitchTransformer& model_;
  const Accelerator& accelerator_;
  int64_t sequences_, local_experts_ = 0, encoder_tokens_ = 0, decoder_tokens_ = 0;
  std::vector<TrainingStep> steps_;
};

}  // namespace

int64_t SwitchTransformer::ReplicatedParameters() const {
  return layers * kAttentionsPerLayer * AttentionParameters(*this) +
         2 * (layers - sparse_layers) * FeedForwardParameters(*this) +
         2 * sparse_layers * d_model * experts + vocabulary * d_model;
}

int64_t SwitchTransformer::Parameters() const {
  return ReplicatedParameters() + 2 * sparse_layers * experts * FeedForwardParameters(*this);
}

std::span<const SwitchTransformer> SwitchTransformers() { return kModels; }

Result<SwitchTransformer> FindSwitchTransformer(std::string_view name) {
  std::string accepted;
  for (const SwitchTransformer& model : kModels) {
    if (model.name == name) return model;
    accepted += accepted.empty() ? "" : ", ";
    accepted += model.name;
  }
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("unknown model '{}'; accepted are {}", name, accepted));
}

Result<std::vector<TrainingStep>> MakeTrainingSteps(const SwitchTransformer& model,
                                                    const TrainingBatch& batch, int64_t ranks,
                                                    const Accelerator& accelerator) {
  const auto check = [&](int64_t amount, const char* what) -> Status {
    if (ranks >= 1 && amount >= ranks && amount % ranks == 0) return {};
    return InvalidArgument(fmt::format("{}: {} {} cannot be spread evenly over {} ranks",
                                       model.name, amount, what, ranks));
  };
  if (Status sequences = check(batch.sequences, "sequences"); !sequences)
    return tl::unexpected(sequences.error());
  if (Status experts = check(model.experts, "experts"); !experts)
    return tl::unexpected(experts.error());
  return SwitchStepMaker(model, batch, ranks, accelerator).Make();
}

}  // namespace tutti
