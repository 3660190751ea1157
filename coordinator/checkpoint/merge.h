// Adapters (models/lora.h) merged into the weights that they stand beside: W + s B A.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "coordinator/checkpoint/originals.h"

namespace thinwire {

// How an adapter is merged into the weight of its linear layer.
struct Merging {
  double scale = 1;         // s
  bool transposed = false;  // whether files have the weight as [in, out]
};
using Mergings = std::map<std::string, Merging>;  // by the layer's name in files

// Writes the tensors of the file `from` to the file `to`, with weights merged and without adapters.
// Weights that are among the `originals`, which may be null, are taken from there, those without an
// adapter too.
// An adapter and its weight are in one file, as one stage has them; a weight and its adapter at a
// time are in memory. DataLoss names an adapter that is incomplete, not F32 or of another shape
// than its weight. `check` is called between tensors, and its error is returned.
absl::Status MergeFile(const std::string& from, const std::string& to, const Mergings& mergings,
                       const Originals* originals, const std::function<absl::Status()>& check);

}  // namespace thinwire
