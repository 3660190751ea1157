// Computation of all shapes of a model, from the input's, layer by layer.
#pragma once

#include "absl/status/status.h"
#include "models/model.h"

namespace thinwire {

// Fills `in` and `out` of every layer and block, starting with model->input. Also fills
// in_features, vocabulary and context where they are 0, and model->tokens and positions: a model
// that begins with an embedding takes token ids. InvalidArgument names the block, the layer, the
// shape met and what the layer wants; the model is then half filled. Extents are limited so that no
// product of them overflows: images to 2^12 pixels a side, sequences to 2^17 positions, features to
// 2^24, kernels to 64.
absl::Status FillShapes(Model* model);

}  // namespace thinwire
