// Language models made of transformer blocks: GPT-2, Llama and what is built like it, in any size.
// Blocks: embedding, then h.0, h.1, ... (gpt2) or layers.0, ... (llama), then head. Parameters have
// the names of Hugging Face's GPT2LMHeadModel, LlamaForCausalLM and so on.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// Returns the defaults of gpt2, gpt2-medium, gpt2-large, gpt2-xl, llama, and the models that are
// Llamas but for some options: mistral, qwen2, qwen3, smollm3, phi3.
std::vector<ModelOptions> KnownTransformers();

// Returns the blocks: pre-norm blocks of attention and MLP, and a norm before the head. GPT-2
// (Radford et al., 2019) has learned positions, layer norm, GELU, and biases unless `bias` is false
// (as nanoGPT trains it); files store its weights as [in, out]. Llama (Touvron et al., 2023) has
// rotary embedding, RMS norm, SwiGLU, grouped-query attention and no biases unless told. Its
// queries, keys and values are one weight, which files store as three, and likewise gate and up;
// phi3's files have them as they are here. Qwen3 has norms of heads besides. Weights start as in
// GPT-2: normal with deviation 0.02, at the end of a branch 0.02 / sqrt(2 layers); biases start at
// zero. InvalidArgument names the option, the value met and those wanted.
absl::StatusOr<std::vector<BlockSpec>> TransformerBlocks(const ModelOptions& options);

}  // namespace thinwire
