// A weight that stands in a model twice: a head that has the values of the embedding (Press &
// Wolf, EACL 2017). Where cuts lie between the two, both segments keep a copy of it, and both
// copies take the sum of both gradients.
#pragma once

#include <optional>
#include <string>

#include "models/model.h"
#include "tensor/shape.h"

namespace thinwire {

// What the exchange of both gradients is called where cuts are named.
inline constexpr char kTiedCut[] = "tied";

struct TiedWeight {
  std::string name, copy;  // of the parameters, in the first and in the last block
  Shape shape;             // [rows, features], of both
};

// The weight that the model ties; none if it does not.
std::optional<TiedWeight> FindTiedWeight(const Model& model);

}  // namespace thinwire
