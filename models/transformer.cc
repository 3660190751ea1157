#include "models/transformer.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr double kDeviation = 0.02;

ModelOptions Gpt2(const char* name, int64_t layers, int64_t heads, int64_t width) {
  ModelOptions options;
  options.family = ModelFamily::kGpt2;
  options.name = name;
  options.layers = layers;
  options.heads = heads;
  options.width = width;
  options.tied = true;
  return options;
}

ModelOptions Llama(const char* name, int64_t layers, int64_t heads, int64_t width) {
  ModelOptions options = Gpt2(name, layers, heads, width);
  options.family = ModelFamily::kLlama;
  options.tied = false;
  return options;
}

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
  RETURN_IF_ERROR(CheckOption(options, "heads", options.heads, options.width % options.heads == 0,
                              absl::StrCat("a divisor of the width ", options.width)));
  const bool shares_evenly = options.kv_heads == 0 || options.heads % options.kv_heads == 0;
  return CheckOption(options, "kv_heads", options.kv_heads, shares_evenly,
                     absl::StrCat("a divisor of the ", options.heads, " heads"));
}

// Returns a width with which three matrices have about as many parameters as two with 4 x width.
int64_t LlamaHidden(int64_t width) {
  constexpr int64_t kMultiple = 256;
  return (8 * width / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

// Makes the layers of one model, from completed options.
class Transformer {
 public:
  explicit Transformer(const ModelOptions& options)
      : options_(options),
        is_llama_(options.family == ModelFamily::kLlama),
        has_bias_(!is_llama_ && options.bias) {}

  std::vector<BlockSpec> Blocks() const {
    std::vector<BlockSpec> blocks = {Embedding()};
    for (int64_t i = 0; i < options_.layers; ++i) {
      const std::string name = absl::StrCat(is_llama_ ? "layers." : "h.", i);
      blocks.push_back(is_llama_ ? LlamaBlock(name) : Gpt2Block(name));
    }
    blocks.push_back(Head());
    return blocks;
  }

 private:
  const char* embedding_name() const {
    return is_llama_ ? "model.embed_tokens" : "transformer.wte";
  }

  BlockSpec Embedding() const {
    LayerSpec tokens = NewLayer(LayerKind::kEmbedding, embedding_name());
    tokens.out_features = options_.width;
    tokens.deviation = kDeviation;
    BlockSpec block{"embedding", {std::move(tokens)}, {}, {}};
    if (!is_llama_) {
      LayerSpec positions = NewLayer(LayerKind::kPositionEmbedding, "transformer.wpe");
      positions.context = options_.context;
      positions.deviation = kDeviation;
      block.layers.push_back(std::move(positions));
    }
    AddDropout(is_llama_ ? "model.dropout" : "transformer.drop", &block.layers);
    return block;
  }

  BlockSpec Gpt2Block(const std::string& name) const {
    const std::string at = "transformer." + name;
    std::vector<LayerSpec> attention = {Norm(at + ".ln_1"),
                                        Linear(at + ".attn.c_attn", 3 * options_.width),
                                        Attention(at + ".attn"), EndOfBranch(at + ".attn.c_proj")};
    AddDropout(at + ".attn.resid_dropout", &attention);
    LayerSpec gelu = NewLayer(LayerKind::kGelu);
    gelu.gelu = options_.gelu;
    std::vector<LayerSpec> mlp = {Norm(at + ".ln_2"), Linear(at + ".mlp.c_fc", options_.hidden),
                                  gelu, EndOfBranch(at + ".mlp.c_proj")};
    AddDropout(at + ".mlp.dropout", &mlp);
    return {name, {Residual(std::move(attention)), Residual(std::move(mlp))}, {}, {}};
  }

  BlockSpec LlamaBlock(const std::string& name) const {
    const std::string at = "model." + name;
    const int64_t head_size = options_.width / options_.heads;
    std::vector<LayerSpec> attention = {
        Norm(at + ".input_layernorm"),
        Fused(at + ".self_attn.qkv_proj",
              {{at + ".self_attn.q_proj", options_.width},
               {at + ".self_attn.k_proj", options_.kv_heads * head_size},
               {at + ".self_attn.v_proj", options_.kv_heads * head_size}}),
        Attention(at + ".self_attn"), EndOfBranch(at + ".self_attn.o_proj")};
    AddDropout(at + ".self_attn.dropout", &attention);
    std::vector<LayerSpec> mlp = {
        Norm(at + ".post_attention_layernorm"),
        Fused(at + ".mlp.gate_up_proj",
              {{at + ".mlp.gate_proj", options_.hidden}, {at + ".mlp.up_proj", options_.hidden}}),
        NewLayer(LayerKind::kSwiglu), EndOfBranch(at + ".mlp.down_proj")};
    AddDropout(at + ".mlp.dropout", &mlp);
    return {name, {Residual(std::move(attention)), Residual(std::move(mlp))}, {}, {}};
  }

  BlockSpec Head() const {
    LayerSpec logits = NewLayer(LayerKind::kLinear, "lm_head");
    logits.out_features = options_.classes;
    logits.deviation = kDeviation;
    if (options_.tied) logits.tied_to = embedding_name();
    return {
        "head", {Norm(is_llama_ ? "model.norm" : "transformer.ln_f"), std::move(logits)}, {}, {}};
  }

  static LayerSpec Residual(std::vector<LayerSpec> body) {
    LayerSpec residual = NewLayer(LayerKind::kResidual);
    residual.body = std::move(body);
    return residual;
  }

  LayerSpec Norm(std::string name) const {
    LayerSpec norm =
        NewLayer(is_llama_ ? LayerKind::kRmsNorm : LayerKind::kLayerNorm, std::move(name));
    norm.epsilon = options_.epsilon;
    norm.bias = has_bias_;
    return norm;
  }

  LayerSpec Linear(std::string name, int64_t out_features) const {
    LayerSpec linear = NewLayer(LayerKind::kLinear, std::move(name));
    linear.out_features = out_features;
    linear.bias = has_bias_;
    linear.transposed = !is_llama_;
    linear.deviation = kDeviation;
    return linear;
  }

  LayerSpec EndOfBranch(std::string name) const {
    LayerSpec linear = Linear(std::move(name), options_.width);
    linear.deviation = kDeviation / std::sqrt(2.0 * static_cast<double>(options_.layers));
    return linear;
  }

  LayerSpec Fused(std::string name, std::vector<FilePart> parts) const {
    int64_t out_features = 0;
    for (const FilePart& part : parts) out_features += part.rows;
    LayerSpec linear = Linear(std::move(name), out_features);
    linear.parts = std::move(parts);
    return linear;
  }

  LayerSpec Attention(std::string name) const {
    LayerSpec attention = NewLayer(LayerKind::kAttention, std::move(name));
    attention.heads = options_.heads;
    attention.kv_heads = options_.kv_heads;
    attention.rope_theta = is_llama_ ? options_.rope_theta : 0;
    attention.dropout = options_.dropout;
    return attention;
  }

  void AddDropout(std::string name, std::vector<LayerSpec>* layers) const {
    if (options_.dropout == 0) return;
    layers->push_back(NewLayer(LayerKind::kDropout, std::move(name)));
    layers->back().dropout = options_.dropout;
  }

  const ModelOptions& options_;
  const bool is_llama_, has_bias_;
};

}  // namespace

std::vector<ModelOptions> KnownTransformers() {
  return {Gpt2("gpt2", 12, 12, 768), Gpt2("gpt2-medium", 24, 16, 1024),
          Gpt2("gpt2-large", 36, 20, 1280), Gpt2("gpt2-xl", 48, 25, 1600),
          Llama("llama", 8, 8, 512)};
}

ModelOptions Completed(ModelOptions options) {
  const bool is_llama = options.family == ModelFamily::kLlama;
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  if (options.hidden == 0) {
    options.hidden = is_llama ? LlamaHidden(options.width) : 4 * options.width;
  }
  if (options.context == 0 && options.input.rank() == 2) options.context = options.input[1];
  return options;
}

absl::StatusOr<std::vector<BlockSpec>> TransformerBlocks(const ModelOptions& options) {
  RETURN_IF_ERROR(CheckSize(options));
  const ModelOptions completed = Completed(options);
  return Transformer(completed).Blocks();
}

}  // namespace thinwire
