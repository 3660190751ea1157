// Codecs of both directions as a command line names them, and an experiment with them.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct CodecPair {
  CodecSpec activations, gradients;
  bool is_one = false;  // one text stood for both
};

// "ACTIVATIONS | GRADIENTS", or a codec for both directions: of one that needs the received
// activation's non-zeros (support) activations take the same without. Each is a text or the path of
// a library, which gets `parameters`, JSON. InvalidArgument names what is wrong with `text`; also
// for activations that need a support, and for indices=shared without a partner.
absl::StatusOr<CodecPair> ParseCodecPair(const std::string& text, const std::string& parameters);

// These codecs (none: tensors go as they are) at one cut, or at every one if `cut` is empty, and no
// other compression: no compensation, no warm-up, nothing at other cuts. The experiment is then to
// be resolved again.
absl::Status SetCodecs(const std::optional<CodecSpec>& activations,
                       const std::optional<CodecSpec>& gradients, const std::string& cut,
                       Experiment* experiment);

}  // namespace thinwire
