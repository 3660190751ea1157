#include "models/transformer.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

ModelOptions Llama(const char* name, int64_t layers, int64_t heads, int64_t width) {
  ModelOptions options = Gpt2(name, layers, heads, width);
  options.family = ModelFamily::kLlama;
  options.tied = false;
  return options;
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
    logits.deviation = kTransformerDeviation;
    if (options_.tied) logits.tied_to = embedding_name();
    return {
        "head", {Norm(is_llama_ ? "model.norm" : "transformer.ln_f"), std::move(logits)}, {}, {}};
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

std::vector<ModelOptions> KnownTransformers() {
  return {Gpt2("gpt2", 12, 12, 768), Gpt2("gpt2-medium", 24, 16, 1024),
          Gpt2("gpt2-large", 36, 20, 1280), Gpt2("gpt2-xl", 48, 25, 1600),
          Llama("llama", 8, 8, 512)};
}

absl::StatusOr<std::vector<BlockSpec>> TransformerBlocks(const ModelOptions& options) {
  RETURN_IF_ERROR(CheckSize(options));
  const ModelOptions completed = Completed(options);
  return Transformer(completed).Blocks();
}

}  // namespace thinwire
