#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status.h"
#include "models/transformer_layers.h"

namespace thinwire {
namespace {

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

ModelOptions Llama(const char* name) {
  ModelOptions options = Gpt2(name, 8, 8, 512);
  options.family = ModelFamily::kLlama;
  options.tied = false;
  return options;
}

constexpr Named<AttentionBias> kBiasNames[] = {
    {AttentionBias::kNone, "none"}, {AttentionBias::kQkv, "qkv"}, {AttentionBias::kAll, "all"}};

// Layers that can have a window.
enum class WindowedLayers : uint8_t { kNone, kAll, kAny };

// Deviations from Llama that transformers' class for a name of the family has, so that a model's
// files open there.
struct Variant {
  const char* name;
  WindowedLayers windows;
  std::vector<AttentionBias> biases;  // the first is the default
  bool has_mlp_bias = false, has_layers_without_rope = false;
  bool has_head_norms = false, has_fused_files = false;
};

const std::vector<Variant>& Variants() {
  using Bias = AttentionBias;
  using Windows = WindowedLayers;
  static const auto* const variants = new std::vector<Variant>{
      {"llama", Windows::kNone, {Bias::kNone, Bias::kAll}, true},
      {"mistral", Windows::kAll, {Bias::kNone}},
      {"qwen2", Windows::kAny, {Bias::kQkv}},
      {"qwen3", Windows::kAny, {Bias::kNone, Bias::kAll}, false, false, true},
      {"smollm3", Windows::kAny, {Bias::kNone, Bias::kAll}, true, true},
      {"phi3", Windows::kAll, {Bias::kNone}, false, false, false, true},
  };
  return *variants;
}

ModelOptions OptionsOfVariant(const Variant& variant) {
  ModelOptions options = Llama(variant.name);
  options.attention_bias = variant.biases.front();
  options.head_norms = variant.has_head_norms;
  options.fused_files = variant.has_fused_files;
  if (variant.has_head_norms) options.head_size = 128;
  if (variant.has_layers_without_rope) {
    options.tied = true;
    options.no_rope_every = 4;
  }
  return options;
}

// Checks which layers have a window.
absl::Status CheckWindow(const ModelOptions& options, WindowedLayers may) {
  const std::vector<int64_t>& layers = options.window_layers;
  const auto refused = [&](const std::string& want) {
    return absl::InvalidArgumentError(absl::StrCat(options.name, ": window_layers is [",
                                                   absl::StrJoin(layers, ", "), "], want ", want));
  };
  if (options.window > 0 && may == WindowedLayers::kNone) {
    return CheckOption(options, "window", options.window, false, "0: it has none");
  }
  if (layers.empty()) return absl::OkStatus();
  if (options.window == 0) return refused("none without a window");
  if (may == WindowedLayers::kAll) return refused("none: all of its layers have the window");
  const bool ascends =
      std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) == layers.end();
  if (ascends && layers.front() >= 0 && layers.back() < options.layers) return absl::OkStatus();
  return refused(absl::StrCat("some of its layers 0 to ", options.layers - 1, ", ascending"));
}

// Checks what differs among the models of the family.
absl::Status CheckVariant(const ModelOptions& options) {
  const auto is_of_name = [&](const Variant& variant) { return options.name == variant.name; };
  const auto variant = std::find_if(Variants().begin(), Variants().end(), is_of_name);
  if (variant == Variants().end()) return absl::OkStatus();
  const std::vector<AttentionBias>& biases = variant->biases;
  if (std::find(biases.begin(), biases.end(), options.attention_bias) == biases.end()) {
    return absl::InvalidArgumentError(absl::StrCat(options.name, ": attention_bias is ",
                                                   Name(options.attention_bias), ", want ",
                                                   absl::StrJoin(NamesOf(biases), " or ")));
  }
  if (options.mlp_bias && !variant->has_mlp_bias) {
    return absl::InvalidArgumentError(absl::StrCat(options.name, ": mlp_bias is true, want false"));
  }
  if (options.no_rope_every > 0 && !variant->has_layers_without_rope) {
    return CheckOption(options, "no_rope_every", options.no_rope_every, false, "0");
  }
  RETURN_IF_ERROR(CheckWindow(options, variant->windows));
  return Annotated(CheckScaling(options.rope_scaling), options.name);
}

// Makes the layers of one model, from completed options.
class Transformer : private TransformerLayers {
 public:
  explicit Transformer(const ModelOptions& options)
      : TransformerLayers(options),
        options_(options),
        is_llama_(options.family == ModelFamily::kLlama) {}

  std::vector<BlockSpec> Blocks() const {
    std::vector<BlockSpec> blocks = {Embedding()};
    for (int64_t i = 0; i < options_.layers; ++i) {
      const std::string name = absl::StrCat(is_llama_ ? "layers." : "h.", i);
      blocks.push_back(is_llama_ ? LlamaBlock(name, i) : Gpt2Block(name));
    }
    blocks.push_back(Head());
    return blocks;
  }

 private:
  const char* embedding_name() const {
    return is_llama_ ? "model.embed_tokens" : "transformer.wte";
  }

  BlockSpec Embedding() const {
    BlockSpec block{"embedding", {TokenEmbedding(embedding_name())}, {}, {}};
    if (!is_llama_) {
      block.layers.push_back(PositionEmbedding("transformer.wpe", options_.context));
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
    std::vector<LayerSpec> mlp = {Norm(at + ".ln_2"), Linear(at + ".mlp.c_fc", options_.hidden),
                                  Gelu(), EndOfBranch(at + ".mlp.c_proj")};
    AddDropout(at + ".mlp.dropout", &mlp);
    return {name, {Residual(std::move(attention)), Residual(std::move(mlp))}, {}, {}};
  }

  bool HasRope(int64_t layer) const {
    return options_.no_rope_every == 0 || (layer + 1) % options_.no_rope_every != 0;
  }

  bool HasWindow(int64_t layer) const {
    const std::vector<int64_t>& with = options_.window_layers;
    return with.empty() || std::find(with.begin(), with.end(), layer) != with.end();
  }

  BlockSpec LlamaBlock(const std::string& name, int64_t layer) const {
    const std::string at = "model." + name, of_attention = at + ".self_attn";
    const int64_t queries = options_.heads * options_.head_size;
    const int64_t keys = options_.kv_heads * options_.head_size;
    const AttentionBias bias = options_.attention_bias;
    std::vector<LayerSpec> attention = {
        Norm(at + ".input_layernorm"),
        WithBias(bias != AttentionBias::kNone,
                 Fused(of_attention + ".qkv_proj", {{of_attention + ".q_proj", queries},
                                                    {of_attention + ".k_proj", keys},
                                                    {of_attention + ".v_proj", keys}})),
    };
    if (options_.head_norms) attention.push_back(HeadNorm(of_attention));
    attention.push_back(Attention(of_attention));
    if (!HasRope(layer)) attention.back().rope_theta = 0;
    if (HasWindow(layer)) attention.back().window = options_.window;
    attention.push_back(
        WithBias(bias == AttentionBias::kAll, EndOfBranch(of_attention + ".o_proj")));
    AddDropout(of_attention + ".dropout", &attention);
    std::vector<LayerSpec> mlp = {
        Norm(at + ".post_attention_layernorm"),
        WithBias(options_.mlp_bias,
                 Fused(at + ".mlp.gate_up_proj", {{at + ".mlp.gate_proj", options_.hidden},
                                                  {at + ".mlp.up_proj", options_.hidden}})),
        NewLayer(LayerKind::kSwiglu),
        WithBias(options_.mlp_bias, EndOfBranch(at + ".mlp.down_proj"))};
    AddDropout(at + ".mlp.dropout", &mlp);
    return {name, {Residual(std::move(attention)), Residual(std::move(mlp))}, {}, {}};
  }

  BlockSpec Head() const {
    LayerSpec logits = NewLayer(LayerKind::kLinear, "lm_head");
    logits.out_features = options_.classes;
    logits.deviation = kTransformerDeviation;
    if (options_.tied) logits.tied_to = embedding_name();
    return {
        "head", {Norm(is_llama_ ? "model.norm" : "transformer.ln_f"), std::move(logits)}, {}, {}};
  }

  static LayerSpec WithBias(bool bias, LayerSpec linear) {
    linear.bias = bias;
    return linear;
  }

  LayerSpec EndOfBranch(std::string name) const {
    LayerSpec linear = Linear(std::move(name), options_.width);
    linear.deviation =
        kTransformerDeviation / std::sqrt(2.0 * static_cast<double>(options_.layers));
    return linear;
  }

  const ModelOptions& options_;
  const bool is_llama_;
};

}  // namespace

NameTable<AttentionBias> TableOf(AttentionBias) { return {"attention_bias", kBiasNames}; }

std::vector<ModelOptions> KnownTransformers() {
  std::vector<ModelOptions> known = {Gpt2("gpt2", 12, 12, 768), Gpt2("gpt2-medium", 24, 16, 1024),
                                     Gpt2("gpt2-large", 36, 20, 1280),
                                     Gpt2("gpt2-xl", 48, 25, 1600)};
  for (const Variant& variant : Variants()) known.push_back(OptionsOfVariant(variant));
  return known;
}

absl::StatusOr<std::vector<BlockSpec>> TransformerBlocks(const ModelOptions& options) {
  RETURN_IF_ERROR(CheckSize(options));
  RETURN_IF_ERROR(CheckVariant(options));
  const ModelOptions completed = Completed(options);
  return Transformer(completed).Blocks();
}

}  // namespace thinwire
