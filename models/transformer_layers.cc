#include "models/transformer_layers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns a width with which three matrices have about as many parameters as two with 4 x width.
int64_t LlamaHidden(int64_t width) {
  constexpr int64_t kMultiple = 256;
  return (8 * width / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

}  // namespace

absl::Status CheckOption(const ModelOptions& options, const char* field, int64_t value, bool good,
                         const std::string& want) {
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.name, ": ", field, " is ", value, ", want ", want));
}

absl::Status CheckSize(const ModelOptions& options) {
  constexpr int64_t kMaxLayers = 1 << 12, kMaxWidth = 1 << 16;
  const auto within = [&](const char* field, int64_t value, int64_t low, int64_t high) {
    return CheckOption(options, field, value, low <= value && value <= high,
                       absl::StrCat(low, " to ", high));
  };
  RETURN_IF_ERROR(within("layers", options.layers, 1, kMaxLayers));
  RETURN_IF_ERROR(within("width", options.width, 1, kMaxWidth));
  RETURN_IF_ERROR(within("heads", options.heads, 1, options.width));
  RETURN_IF_ERROR(within("kv_heads", options.kv_heads, 0, options.heads));
  RETURN_IF_ERROR(within("hidden", options.hidden, 0, 16 * kMaxWidth));
  RETURN_IF_ERROR(within("head_size", options.head_size, 0, kMaxWidth));
  const bool divides = options.head_size > 0 || options.width % options.heads == 0;
  RETURN_IF_ERROR(CheckOption(options, "heads", options.heads, divides,
                              absl::StrCat("a divisor of the width ", options.width)));
  const bool shares_evenly = options.kv_heads == 0 || options.heads % options.kv_heads == 0;
  return CheckOption(options, "kv_heads", options.kv_heads, shares_evenly,
                     absl::StrCat("a divisor of the ", options.heads, " heads"));
}

ModelOptions Completed(ModelOptions options) {
  const bool is_llama = options.family == ModelFamily::kLlama;
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  if (options.head_size == 0 && options.heads > 0) {
    options.head_size = options.width / options.heads;
  }
  if (options.hidden == 0) {
    options.hidden = is_llama ? LlamaHidden(options.width) : 4 * options.width;
  }
  if (options.context == 0 && options.input.rank() == 2) options.context = options.input[1];
  if (options.vocabulary == 0 && options.head == BertHead::kMasked) {
    options.vocabulary = options.classes;
  }
  return options;
}

LayerSpec TransformerLayers::Residual(std::vector<LayerSpec> body) {
  LayerSpec residual = NewLayer(LayerKind::kResidual);
  residual.body = std::move(body);
  return residual;
}

LayerSpec TransformerLayers::Norm(std::string name) const {
  LayerSpec norm =
      NewLayer(is_llama_ ? LayerKind::kRmsNorm : LayerKind::kLayerNorm, std::move(name));
  norm.epsilon = options_.epsilon;
  norm.bias = !is_llama_ && options_.bias;
  return norm;
}

LayerSpec TransformerLayers::Linear(std::string name, int64_t out_features) const {
  LayerSpec linear = NewLayer(LayerKind::kLinear, std::move(name));
  linear.out_features = out_features;
  linear.bias = !is_llama_ && options_.bias;
  linear.transposed = is_gpt2_;
  linear.deviation = kTransformerDeviation;
  return linear;
}

LayerSpec TransformerLayers::Fused(std::string name, std::vector<FilePart> parts) const {
  int64_t out_features = 0;
  for (const FilePart& part : parts) out_features += part.rows;
  LayerSpec linear = Linear(std::move(name), out_features);
  if (!options_.fused_files) linear.parts = std::move(parts);
  return linear;
}

LayerSpec TransformerLayers::Attention(std::string name) const {
  LayerSpec attention = NewLayer(LayerKind::kAttention, std::move(name));
  attention.heads = options_.heads;
  attention.kv_heads = options_.kv_heads;
  attention.rope_theta = is_llama_ ? options_.rope_theta : 0;
  attention.rope_scaling = options_.rope_scaling;
  attention.causal = !is_encoder_;
  attention.pad = options_.pad;
  attention.dropout = options_.dropout;
  return attention;
}

LayerSpec TransformerLayers::HeadNorm(const std::string& attention) const {
  LayerSpec norm = NewLayer(LayerKind::kHeadNorm, attention + ".qk_norm");
  norm.heads = options_.heads;
  norm.kv_heads = options_.kv_heads;
  norm.epsilon = options_.epsilon;
  norm.parts = {{attention + ".q_norm", options_.head_size},
                {attention + ".k_norm", options_.head_size}};
  return norm;
}

LayerSpec TransformerLayers::Gelu() const {
  LayerSpec gelu = NewLayer(LayerKind::kGelu);
  gelu.gelu = is_encoder_ ? GeluForm::kExact : options_.gelu;
  return gelu;
}

LayerSpec TransformerLayers::TokenEmbedding(std::string name) const {
  LayerSpec tokens = NewLayer(LayerKind::kEmbedding, std::move(name));
  tokens.vocabulary = options_.vocabulary;
  tokens.out_features = options_.width;
  tokens.deviation = kTransformerDeviation;
  return tokens;
}

LayerSpec TransformerLayers::PositionEmbedding(std::string name, int64_t context) const {
  LayerSpec positions = NewLayer(LayerKind::kPositionEmbedding, std::move(name));
  positions.context = context;
  positions.deviation = kTransformerDeviation;
  return positions;
}

void TransformerLayers::AddDropout(std::string name, std::vector<LayerSpec>* layers) const {
  if (options_.dropout == 0) return;
  layers->push_back(NewLayer(LayerKind::kDropout, std::move(name)));
  layers->back().dropout = options_.dropout;
}

}  // namespace thinwire
