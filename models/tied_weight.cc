#include "models/tied_weight.h"

namespace thinwire {

std::optional<TiedWeight> FindTiedWeight(const Model& model) {
  for (const ParameterSpec& copy : Parameters(model.blocks.back())) {
    const bool is_of_bottleneck = copy.orthonormal || !copy.is_trained();
    if (!copy.tied_to.empty() && !is_of_bottleneck)
      return TiedWeight{copy.tied_to, copy.name, copy.shape};
  }
  return std::nullopt;
}

}  // namespace thinwire
