// Language models made of transformer blocks: GPT-2 and Llama, in any size. Blocks: embedding, then
// h.0, h.1, ... (gpt2) or layers.0, ... (llama), then head. Parameters have the names of Hugging
// Face's GPT2LMHeadModel and LlamaForCausalLM.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// gpt2, gpt2-medium, gpt2-large, gpt2-xl, llama.
std::vector<ModelOptions> KnownTransformers();

// With the numbers that a 0 in `options`, of a language model, stands for.
ModelOptions Completed(ModelOptions options);

// Pre-norm blocks of attention and MLP, a norm before the head. GPT-2 (Radford et al., 2019):
// learned positions, layer norm, GELU, biases unless `bias` is false (as nanoGPT trains it); its
// weights stand in files as [in, out]. Llama
// (Touvron et al., 2023): rotary embedding, RMS norm, SwiGLU, grouped-query attention, no biases;
// queries, keys and values are one weight, which stands in files as three, and so are gate and up.
// Weights start normal with deviation 0.02, those that end a branch with 0.02 / sqrt(2 layers), as
// GPT-2's; biases at zero. InvalidArgument names the option, the value met and those wanted.
absl::StatusOr<std::vector<BlockSpec>> TransformerBlocks(const ModelOptions& options);

}  // namespace thinwire
