// Carries the input's shape through a model, layer by layer.
#pragma once

#include "absl/status/status.h"
#include "models/model.h"

namespace thinwire {

// From model->input: fills `in` and `out` of every layer and block, and in_features where they
// are 0. InvalidArgument names the block, the layer, the shape met and what the layer wants; the
// model is then half filled. Extents are limited (images to 2^12 pixels a side, sequences to 2^12
// positions, features to 2^24, kernels to 64), so that no product of them overflows.
absl::Status FillShapes(Model* model);

}  // namespace thinwire
