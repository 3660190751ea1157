#include "config/checkpoint_families.h"

#include <iterator>
#include <utility>

namespace thinwire {
namespace {

using Keys = std::vector<CheckpointKey>;
using Json = nlohmann::ordered_json;

CheckpointFamily Gpt2Family() {
  return {ModelFamily::kGpt2,
          "gpt2",
          "GPT2LMHeadModel",
          {{"vocab_size", "classes", 50257},
           {"n_positions", "context", 1024},
           {"n_embd", "width", 768},
           {"n_layer", "layers", 12},
           {"n_head", "heads", 12},
           {"n_inner", "hidden", nullptr},
           {"activation_function", "gelu", "gelu_new"},
           {"layer_norm_epsilon", "epsilon", 1e-5},
           {"tie_word_embeddings", "tied", true},
           {"bias", "bias", nullptr},
           {"scale_attn_weights", nullptr, true},
           {"scale_attn_by_inverse_layer_idx", nullptr, false},
           {"add_cross_attention", nullptr, false}}};
}

// Values that transformers assumes where a type's config.json is silent.
struct LlamaDefaults {
  int vocabulary = 32000, width = 4096, hidden = 11008, layers = 32, heads = 32;
  Json kv_heads = nullptr, head_size = nullptr;
  double epsilon = 1e-6, rope_theta = 10000;
  bool tied = false;
};

// Returns the type with the keys that all Llamas have, and with `more`.
CheckpointFamily LlamaFamily(const char* type, const char* architecture,
                             const LlamaDefaults& absent, const Keys& more) {
  Keys keys = {{"vocab_size", "classes", absent.vocabulary},
               {"hidden_size", "width", absent.width},
               {"intermediate_size", "hidden", absent.hidden},
               {"num_hidden_layers", "layers", absent.layers},
               {"num_attention_heads", "heads", absent.heads},
               {"num_key_value_heads", "kv_heads", absent.kv_heads},
               {"head_dim", "head_size", absent.head_size},
               {"rms_norm_eps", "epsilon", absent.epsilon},
               {"rope_theta", "rope_theta", absent.rope_theta},
               {"tie_word_embeddings", "tied", absent.tied},
               {"hidden_act", nullptr, "silu"},
               {"rope_scaling", "rope_scaling", nullptr}};
  keys.insert(keys.end(), more.begin(), more.end());
  for (const char* others : {"num_experts", "num_local_experts", "attn_logit_softcapping",
                             "final_logit_softcapping", "quantization_config"}) {
    keys.push_back({others, nullptr, nullptr, false});
  }
  keys.push_back({"rope_interleaved", nullptr, false, false});
  keys.push_back({"partial_rotary_factor", nullptr, 1.0, false});
  return {ModelFamily::kLlama, type, architecture, std::move(keys)};
}

std::vector<CheckpointFamily> LlamaFamilies() {
  const CheckpointKey attention_bias = {"attention_bias", "attention_bias", false};
  const CheckpointKey mlp_bias = {"mlp_bias", "mlp_bias", false};
  LlamaDefaults mistral;
  mistral.hidden = 14336;
  mistral.kv_heads = 8;
  LlamaDefaults qwen2;
  qwen2.vocabulary = 151936;
  qwen2.hidden = 22016;
  qwen2.kv_heads = 32;
  LlamaDefaults qwen3 = qwen2;
  qwen3.head_size = 128;
  LlamaDefaults smollm3;
  smollm3.vocabulary = 128256;
  smollm3.width = 2048;
  smollm3.layers = 36;
  smollm3.heads = 16;
  smollm3.kv_heads = 4;
  smollm3.rope_theta = 2e6;
  smollm3.tied = true;
  LlamaDefaults phi3;
  phi3.vocabulary = 32064;
  phi3.width = 3072;
  phi3.hidden = 8192;
  phi3.epsilon = 1e-5;
  return {LlamaFamily("llama", "LlamaForCausalLM", {}, {attention_bias, mlp_bias}),
          LlamaFamily("mistral", "MistralForCausalLM", mistral, {}),
          LlamaFamily("qwen2", "Qwen2ForCausalLM", qwen2, {}),
          LlamaFamily("qwen3", "Qwen3ForCausalLM", qwen3, {attention_bias}),
          LlamaFamily("smollm3", "SmolLM3ForCausalLM", smollm3,
                      {attention_bias, mlp_bias, {"no_rope_layer_interval", "no_rope_every", 4}}),
          LlamaFamily("phi3", "Phi3ForCausalLM", phi3, {})};
}

CheckpointFamily BertFamily() {
  return {ModelFamily::kBert,
          "bert",
          "BertForMaskedLM",
          {{"vocab_size", "vocabulary", 30522},
           {"max_position_embeddings", "context", 512},
           {"type_vocab_size", "types", 2},
           {"hidden_size", "width", 768},
           {"intermediate_size", "hidden", 3072},
           {"num_hidden_layers", "layers", 12},
           {"num_attention_heads", "heads", 12},
           {"layer_norm_eps", "epsilon", 1e-12},
           {"pad_token_id", "pad", 0},
           {"tie_word_embeddings", "tied", true},
           {"hidden_act", nullptr, "gelu"},
           {"position_embedding_type", nullptr, "absolute"},
           {"is_decoder", nullptr, false}}};
}

CheckpointFamily VitFamily() {
  return {ModelFamily::kVit,
          "vit",
          "ViTForImageClassification",
          {{"hidden_size", "width", 768},
           {"intermediate_size", "hidden", 3072},
           {"num_hidden_layers", "layers", 12},
           {"num_attention_heads", "heads", 12},
           {"layer_norm_eps", "epsilon", 1e-12},
           {"patch_size", "patch", 16},
           {"image_size", nullptr, 224},
           {"num_channels", nullptr, 3},
           {"qkv_bias", nullptr, true},
           {"hidden_act", nullptr, "gelu"}}};
}

std::vector<CheckpointFamily> AllFamilies() {
  std::vector<CheckpointFamily> all = {Gpt2Family()};
  std::vector<CheckpointFamily> llamas = LlamaFamilies();
  std::move(llamas.begin(), llamas.end(), std::back_inserter(all));
  all.push_back(BertFamily());
  all.push_back(VitFamily());
  return all;
}

}  // namespace

const std::vector<CheckpointFamily>& CheckpointFamilies() {
  static const auto* const families = new std::vector<CheckpointFamily>(AllFamilies());
  return *families;
}

const CheckpointFamily* CheckpointFamilyOf(const ModelOptions& options) {
  const CheckpointFamily* of_any_size = nullptr;
  for (const CheckpointFamily& family : CheckpointFamilies()) {
    if (options.name == family.type) return &family;
    if (options.family == family.family) of_any_size = &family;
  }
  return of_any_size;
}

}  // namespace thinwire
