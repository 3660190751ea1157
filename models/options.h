// Options of a named model: its size and its deviations from the usual form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/parameters.h"
#include "models/model.h"
#include "models/rotary.h"
#include "tensor/shape.h"

namespace thinwire {

enum class ModelFamily { kResNet, kGpt2, kLlama, kBert, kVit };

// Head of a BERT: logits of the tokens at masked positions, or of the classes of a whole sample.
enum class BertHead { kMasked, kClasses };

// Returns the names "masked" and "classes".
NameTable<BertHead> TableOf(BertHead);

// Linear layers of an attention that have biases: none, those of queries, keys and values, or all.
enum class AttentionBias { kNone, kQkv, kAll };

// Returns the names "none", "qkv" and "all".
NameTable<AttentionBias> TableOf(AttentionBias);

// Options of one model. OptionsOf (models/zoo.h) makes them, with the defaults of a name.
struct ModelOptions {
  ModelFamily family = ModelFamily::kResNet;
  std::string name;
  Shape input;           // one sample with batch extent 1: [1, 32, 32, 3], or [1, positions] ids
  int64_t classes = 10;  // of a language model: size of its vocabulary
  // ResNets: channels of the first group of blocks. Others: features of each position.
  int64_t width = 0;

  // The rest is for transformers.
  int64_t layers = 0, heads = 0;
  int64_t kv_heads = 0;   // kLlama: heads of keys and values, a divisor of `heads`; 0: `heads`
  int64_t head_size = 0;  // kLlama: features of a head; 0: width / heads
  // Features inside the MLP. 0: 4 width; kLlama: 8/3 width, rounded up to a multiple of 256.
  int64_t hidden = 0;
  int64_t context = 0;  // kGpt2, kBert: number of learned positions; 0: those of a sample
  // After the embedding, of the attention's weights, and at the end of every branch.
  double dropout = 0;
  bool tied = false;                // True if the head's weight is the token embedding's.
  double epsilon = 1e-5;            // of the norms
  double rope_theta = 10000;        // kLlama: base of the rotary embedding
  RopeScaling rope_scaling;         // kLlama
  GeluForm gelu = GeluForm::kTanh;  // kGpt2
  bool bias = true;                 // kGpt2: whether linear layers and layer norms have biases
  int64_t patch = 16;               // kVit: side of a patch, pixels

  // kLlama. Every `no_rope_every`-th layer has no rotary embedding; 0: all have it.
  int64_t no_rope_every = 0;
  // Number of positions that a position sees at most in some layers, itself included; 0: any. And
  // these layers, ascending; empty: all.
  int64_t window = 0;
  std::vector<int64_t> window_layers;
  AttentionBias attention_bias = AttentionBias::kNone;
  bool mlp_bias = false;
  // The last two follow from the name: whether each head of queries and keys has a norm, and
  // whether files have fused weights rather than parts.
  bool head_norms = false, fused_files = false;

  // kBert. `vocabulary` is the number of token ids; 0, not with head kClasses: the classes.
  BertHead head = BertHead::kMasked;
  int64_t vocabulary = 0;
  int64_t types = 2;  // number of token types
  // Ids of the token that fills up samples, and of the one that ends a text; kNoId: none.
  int64_t pad = kNoId, separator = kNoId;
};

// Calls visit(name, field, presence) for each parameter of the family (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, ModelOptions> = 0>
void VisitParameters(Spec& options, Visit&& visit) {
  visit("width", options.width, Presence::kWritten);
  if (options.family == ModelFamily::kResNet) return;
  visit("layers", options.layers, Presence::kWritten);
  visit("heads", options.heads, Presence::kWritten);
  switch (options.family) {
    case ModelFamily::kResNet:
      break;
    case ModelFamily::kGpt2:
      visit("context", options.context, Presence::kOptional);
      visit("gelu", options.gelu, Presence::kWritten);
      visit("bias", options.bias, Presence::kWritten);
      break;
    case ModelFamily::kLlama:
      visit("kv_heads", options.kv_heads, Presence::kOptional);
      visit("head_size", options.head_size, Presence::kOptional);
      visit("attention_bias", options.attention_bias, Presence::kWritten);
      visit("mlp_bias", options.mlp_bias, Presence::kWritten);
      visit("rope_theta", options.rope_theta, Presence::kWritten);
      visit("rope_scaling", options.rope_scaling, Presence::kOptional);
      visit("no_rope_every", options.no_rope_every, Presence::kOptional);
      visit("window", options.window, Presence::kOptional);
      visit("window_layers", options.window_layers, Presence::kOptional);
      break;
    case ModelFamily::kBert:
      visit("head", options.head, Presence::kWritten);
      visit("context", options.context, Presence::kOptional);
      visit("vocabulary", options.vocabulary, Presence::kOptional);
      visit("types", options.types, Presence::kWritten);
      visit("pad", options.pad, Presence::kOptional);
      visit("separator", options.separator, Presence::kOptional);
      break;
    case ModelFamily::kVit:
      visit("patch", options.patch, Presence::kWritten);
      break;
  }
  visit("hidden", options.hidden, Presence::kOptional);
  visit("dropout", options.dropout, Presence::kWritten);
  if (options.family != ModelFamily::kVit) visit("tied", options.tied, Presence::kWritten);
  visit("epsilon", options.epsilon, Presence::kWritten);
}

}  // namespace thinwire
