// What every codec promises (codec.h, semantics of payloads), as checks that anyone can run on any
// codec, a user's own library too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "compress/spec.h"

namespace thinwire {

struct ConformanceCheck {
  std::string name;  // "every cut of a payload is refused"
  // What was seen, if it holds. An error says what was not as promised. A library with a bug may
  // also end the process: whoever does not trust it runs a check in a process of its own.
  std::function<absl::StatusOr<std::string>()> run;
};

// Checks of CPU tensors; `kernels` are the CPU's and outlive the checks. An error if there is no
// such codec.
absl::StatusOr<std::vector<ConformanceCheck>> ConformanceChecks(const CodecSpec& spec,
                                                                CodecKernels* kernels);

}  // namespace thinwire
