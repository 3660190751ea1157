#include "config/devices.h"

#include "absl/strings/str_cat.h"
#include "backend/device_choice.h"
#include "base/annotated.h"
#include "base/status.h"

namespace thinwire {

absl::Status ResolveDevices(Experiment* experiment) {
  if (experiment->device().empty()) experiment->add_device("auto");
  const int devices = experiment->device_size();
  const auto stages = static_cast<int>(experiment->pipeline().stages());
  if (devices != 1 && devices != stages) {
    return absl::InvalidArgumentError(absl::StrCat("device: ", devices,
                                                   " devices, pipeline.stages is ", stages,
                                                   ", want one for all stages or one for each"));
  }
  for (int i = 0; i < devices; ++i) {
    const std::string field = devices == 1 ? "device" : absl::StrCat("device[", i, "]");
    ASSIGN_OR_RETURN(const DeviceChoice choice,
                     Annotated(ParseDeviceChoice(experiment->device(i)), field));
    if (choice.kind == DeviceChoice::Kind::kCpu && experiment->precision() == "tf32") {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": cpu with precision tf32, which only GPUs have, want fp32 or bf16"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DeviceOf(const Experiment& experiment, int stage) {
  const int devices = experiment.device_size();
  if (devices == 0) return std::string("auto");
  if (devices == 1) return experiment.device(0);
  if (stage >= 0 && stage < devices) return experiment.device(stage);
  return absl::InvalidArgumentError(
      absl::StrCat("device: ", devices, " devices, none for stage ", stage));
}

OpsOptions OpsOptionsFrom(const Experiment& experiment) {
  OpsOptions options;
  options.deterministic = !experiment.has_deterministic() || experiment.deterministic();
  options.tf32 = experiment.precision() == "tf32";
  return options;
}

}  // namespace thinwire
