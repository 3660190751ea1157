// Decides which device a run gets for a choice ("auto", "cpu", "cuda", "cuda:1"). Plain functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thinwire {

struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kCuda };

  Kind kind = Kind::kAuto;
  int index = 0;  // device number for kCuda
};

// Parses a choice; "cuda" means "cuda:0". Returns InvalidArgument with the text and what it may be.
absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text);

// Returns the text that ParseDeviceChoice reads as `choice`: "cuda:0" for "cuda".
std::string ToString(const DeviceChoice& choice);

// Device that a run gets: a number of the backend's, or -1 for the CPU.
struct DeviceDecision {
  int index = -1;
  // For "auto", the reason: "device auto: CPU, because no NVIDIA driver was found".
  std::string note;
};

// Decides between the CPU and the backend's devices. `devices` is their number, or the status that
// says why there is no backend. "auto" takes the first device, else the CPU, and is never refused.
// Returns InvalidArgument for a device that does not exist, with its name and the number of
// devices. Without a device at all it returns FailedPrecondition; without a backend, the code of
// `devices` with its reason.
absl::StatusOr<DeviceDecision> DecideDevice(const DeviceChoice& choice,
                                            const absl::StatusOr<int>& devices);

}  // namespace thinwire
