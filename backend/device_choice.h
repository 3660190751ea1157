// Which device a run asks for ("auto", "cpu", "cuda", "cuda:1"), as plain functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thinwire {

struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kCuda };

  Kind kind = Kind::kAuto;
  int index = 0;  // of kCuda
};

// "cuda" is "cuda:0". InvalidArgument naming the text and what it may be.
absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text);

// The inverse; "cuda:0" for "cuda".
std::string ToString(const DeviceChoice& choice);

// What a run gets: the CPU (-1) or a device of the backend, and for "auto" why, in one line.
struct DeviceDecision {
  int index = -1;
  std::string note;  // "device auto: CPU, because no NVIDIA driver was found"
};

// `devices`: how many the backend has, or why there is no backend. "auto" takes the first device
// and is never refused. A device that does not exist: InvalidArgument naming it and how many there
// are; no backend: FailedPrecondition, or the code of `devices`, with its reason.
absl::StatusOr<DeviceDecision> DecideDevice(const DeviceChoice& choice,
                                            const absl::StatusOr<int>& devices);

}  // namespace thinwire
