// The codecs that a probe tries, and the directions in which it tries them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// One row of a probe: the codecs of activations and of gradients; no codec: sent uncompressed.
struct ProbeConfiguration {
  std::optional<CodecSpec> activations, gradients;
  std::string cut = {};  // the only cut where they are used; empty: all cuts

  std::string Directions() const;  // "forward", "backward", "both"; "" when nothing is compressed
};

// Returns the configurations to try for a codec text, which is one codec for both directions or
// "ACTIVATIONS | GRADIENTS": forward alone, backward alone, and both. A codec that needs the
// non-zeros of the received activation (support, indices) has no forward row. If such a codec is
// given alone, "both" pairs it with the same codec without support. indices=shared has the row
// "both" only, and wants a pair. A codec may be the path of a library, which gets `parameters`,
// JSON. InvalidArgument names what is wrong with `text`.
absl::StatusOr<std::vector<ProbeConfiguration>> ParseProbeCodec(const std::string& text,
                                                                const std::string& parameters = "");

// Reads a file of such texts, one per line; '#' begins a comment. NotFound; or InvalidArgument,
// which names file and line.
absl::StatusOr<std::vector<ProbeConfiguration>> ReadProbeCodecs(const std::string& path,
                                                                const std::string& parameters = "");

// Returns the configurations that differ in what the resolved experiment sends: where gradients
// cross no cut, those of activations alone, each once.
std::vector<ProbeConfiguration> SentBy(const Experiment& experiment,
                                       std::vector<ProbeConfiguration> configurations);

// Returns texts for ParseProbeCodec: uniform, topk, fp8, blockwise8, randomk and low_rank at
// several levels.
const std::vector<std::string>& StandardProbeCodecs();

// Returns the resolved `experiment` with these codecs at their cuts and no other compression: no
// feedback, no warm-up, no overrides. The error of every message is measured. Resolved again.
absl::StatusOr<Experiment> WithCodecs(Experiment experiment,
                                      const ProbeConfiguration& configuration);

}  // namespace thinwire
