// Checks of what every codec promises (codec.h, semantics of payloads). Anyone can run them on any
// codec, also on one from a user's own library.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "compress/spec.h"

namespace thinwire {

// One check of a codec.
struct ConformanceCheck {
  std::string name;  // "every cut of a payload is refused"
  // Runs the check. Returns what was seen if the promise holds; an error says what was not as
  // promised. A library with a bug may also end the process: if it is not trusted, run each check
  // in a process of its own.
  std::function<absl::StatusOr<std::string>()> run;
};

// Returns checks of the codec on CPU tensors. `kernels` are the CPU's and outlive the checks.
// Returns an error if there is no such codec.
absl::StatusOr<std::vector<ConformanceCheck>> ConformanceChecks(const CodecSpec& spec,
                                                                CodecKernels* kernels);

}  // namespace thinwire
