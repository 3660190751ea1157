// Codecs of both directions from a command line, and an experiment with them.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Codecs of both directions.
struct CodecPair {
  CodecSpec activations, gradients;
  bool is_one = false;  // True if one text gave both.
};

// Parses "ACTIVATIONS | GRADIENTS", or one codec for both directions. If that one needs the
// non-zeros of the received activation (support), activations get the same codec without it. Each
// codec is a text or the path of a library, which gets `parameters`, JSON. InvalidArgument names
// what is wrong with `text`; among others a support for activations, and indices=shared without a
// partner.
absl::StatusOr<CodecPair> ParseCodecPair(const std::string& text, const std::string& parameters);

// Returns false if the experiment has cuts and gradients cross none of them, as nothing before is
// trained. An experiment that is not whole yet may send them.
bool MaySendGradients(const Experiment& experiment);

// Sets these codecs (not set: tensors are sent uncompressed) at one cut, or at every cut if `cut`
// is empty; that of gradients only if the experiment may send these. All other compression is
// removed: feedback, warm-up, other cuts. The experiment must then be resolved again.
absl::Status SetCodecs(const std::optional<CodecSpec>& activations,
                       const std::optional<CodecSpec>& gradients, const std::string& cut,
                       Experiment* experiment);

}  // namespace thinwire
