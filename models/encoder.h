// Encoders made of transformer blocks: BERT for texts and ViT for images, in any size. Blocks:
// embedding, then layer.0, layer.1, ..., then head. Parameters have the names of Hugging Face's
// BertForMaskedLM, BertForSequenceClassification and ViTForImageClassification.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// Returns the defaults of bert and vit, which are those of their base sizes.
std::vector<ModelOptions> KnownEncoders();

// Returns the blocks. Attention sees the whole sample; queries, keys and values are one weight,
// which files store as three; GELU is exact. Weights start normal with deviation 0.02, biases at
// zero.
//
// BERT (Devlin et al., NAACL 2019) has a layer norm behind the sum of its three embeddings and
// behind each residual addition. Its head is BertHead's. With kMasked it is a layer and the
// decoder, which may be tied to the token embedding. With kClasses it is the pooler, a layer with
// tanh on the first position, and the classifier. ViT (Dosovitskiy et al., ICLR 2021) embeds square
// patches, puts a class token before them, and has the norms at the begin of its branches. Its head
// reads the class token behind a last norm.
//
// InvalidArgument names the option, the value met and those wanted.
absl::StatusOr<std::vector<BlockSpec>> EncoderBlocks(const ModelOptions& options);

// Returns the part of an encoder's head to which a tensor of a file belongs: "pooler",
// "classifier", "cls.predictions" or "cls.seq_relationship". Empty for all other tensors, and for a
// model of another name.
std::string HeadOf(const Model& model, const std::string& tensor);

}  // namespace thinwire
