// The folder of an adapter that peft or a run of ours has written, which `lora.init` names:
// adapter_config.json, which tells its rank and scale, and adapter_model.safetensors, whose tensors
// tell the layers that have one.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

inline constexpr char kAdapterConfigFile[] = "adapter_config.json";
inline constexpr char kAdapterFile[] = "adapter_model.safetensors";

// Fills in those fields of `lora` that an experiment with `lora.init` leaves absent, from the files
// in that folder; does nothing without `lora.init`. The model must have its name. InvalidArgument
// names the file, its key, the value met and the one wanted for an adapter of another kind (DoRA,
// ranks of single modules, trained biases); and a field that differs from the files, with both
// values.
absl::Status FillFromAdapter(Experiment* experiment);

// Returns a line that says which model the adapter of `lora.init` was trained with, if that is not
// `init` by its name; empty if it is, or if nothing tells. Errors as above.
absl::StatusOr<std::string> OtherBaseOfAdapter(const Experiment& experiment);

}  // namespace thinwire
