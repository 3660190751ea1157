// A learned bottleneck at a cut: layers that make what crosses it narrower. The encoder ends the
// block before the cut, the decoder begins the one behind it; both are trained with the rest, and
// whatever codec the cut has works on the code between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// N is a layer norm, E and D are linear maps of each pixel or position without bias.
enum class BottleneckKind {
  kNone,
  kLinear,     // E | D: the AE of Bian et al. (MLSys 2024)
  kLayerNorm,  // N E N | D: "bottleneck" of SWARM (Ryabinin et al., ICML 2023)
  kMaxout,     // N maxout N | D: "maxout" there
};

// As experiment files spell them: "layer_norm". InvalidArgument names the nearest.
const char* Name(BottleneckKind kind);
absl::StatusOr<BottleneckKind> BottleneckKindFromName(const std::string& name);

struct BottleneckSpec {
  BottleneckKind kind = BottleneckKind::kNone;
  int64_t width = 0;  // kLinear, kLayerNorm: channels of the code, 1 to the cut's
  int64_t group = 0;  // kMaxout: neighbouring channels, whose greatest is kept; divides the cut's
};

// `model` with the layers of specs[i] around cuts[i]; the cuts stay where they are, and the blocks
// before them give the code. On images E and D are 1x1 convolutions, elsewhere linear layers; they
// start Xavier-uniform. Parameters are called bottleneck.CUT.norm, .encode, .code_norm and .decode.
// InvalidArgument names the cut, the value met and those wanted.
absl::StatusOr<Model> WithBottlenecks(Model model, const std::vector<Cut>& cuts,
                                      const std::vector<BottleneckSpec>& specs);

}  // namespace thinwire
