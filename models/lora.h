// Low-rank adapters (LoRA; Hu et al., ICLR 2022), as peft has them: beside a linear layer y = W x +
// b that is frozen, y += s B A drop(x) is trained. Files have an adapter for each linear layer as
// they know it, so that a fused layer here has several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "models/model.h"

namespace thinwire {

// Scale s of an adapter: alpha / rank, or alpha / sqrt(rank) (Kalajdzievski, 2023).
enum class AdapterScaling { kStandard, kRankStabilized };
NameTable<AdapterScaling> TableOf(AdapterScaling);

struct LoraSpec {
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;                // of x, in [0, 1)
  std::vector<std::string> modules;  // last parts of names in files: "q_proj"; or kAllLinear
  std::vector<int64_t> layers;       // numbers of blocks, ascending; empty: all
  AdapterScaling scaling = AdapterScaling::kStandard;
};

// Name that stands for all linear layers but the head.
inline constexpr char kAllLinear[] = "linear";

// Returns whether a parameter of that name is of an adapter.
bool IsOfAdapter(const std::string& parameter);

// Returns the modules that have adapters where none are named, as peft has it: queries and values,
// or where these are parts of one layer in files, that layer. Empty if the model has neither.
std::vector<std::string> UsualModules(const Model& model);

// Returns the model with adapters and everything else frozen. InvalidArgument names what is wrong:
// a module that no layer has, or the head or embedding; a layer that there is not; a rank below 1;
// no adapter at all.
absl::StatusOr<Model> WithAdapters(Model model, const LoraSpec& spec);

}  // namespace thinwire
