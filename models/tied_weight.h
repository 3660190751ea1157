// A weight that occurs twice in a model: the head has the values of the embedding (Press & Wolf,
// EACL 2017). If cuts lie between them, both segments keep a copy, and both copies take the sum of
// both gradients.
#pragma once

#include <optional>
#include <string>

#include "models/model.h"
#include "tensor/shape.h"

namespace thinwire {

// Name of the exchange of both gradients, where cuts have names.
inline constexpr char kTiedCut[] = "tied";

// The two copies of a tied weight.
struct TiedWeight {
  std::string name, copy;  // names of the parameters in the first and in the last block
  Shape shape;             // [rows, features] of both
};

// Returns the weight that the model ties; nothing if it ties none, or does not train it.
std::optional<TiedWeight> FindTiedWeight(const Model& model);

}  // namespace thinwire
