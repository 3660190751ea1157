// The base of what is trained: weights of frozen linear layers, held in few bits (as in QLoRA;
// Dettmers et al., NeurIPS 2023).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "models/model.h"

namespace thinwire {

// Returns the names in experiment files: "nf4" (base/enum_names.h).
NameTable<WeightFormat> TableOf(WeightFormat);

// Returns the model with the weights of its frozen linear layers in that format, but for those of
// the ends; all others stay fp32. InvalidArgument if there is no such layer, if one is part of a
// whole (models/parts.h), or if one's rows do not fit the format.
absl::StatusOr<Model> WithBase(Model model, WeightFormat format);

// Returns the bytes of a parameter's values in memory.
int64_t ValueBytes(const ParameterSpec& parameter);

}  // namespace thinwire
