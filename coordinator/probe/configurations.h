// Which codecs a probe tries, in which directions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// One row of a probe: what acts on activations and on gradients; nothing: sent as they are.
struct ProbeConfiguration {
  std::optional<CodecSpec> activations, gradients;
  std::string cut = {};  // the only one where they act; empty: at every cut

  std::string Directions() const;  // "forward", "backward", "both"; "" when nothing is compressed
};

// A codec as a user gives it, for both directions or "ACTIVATIONS | GRADIENTS", as the
// configurations that make sense of it: forward alone, backward alone, both. Of a codec that needs
// the received activation's non-zeros (support, indices) there is no forward; of a single one
// "both" pairs it with the same codec without support. indices=shared is compared with both only,
// and wants the pair. A codec may be the path of a library, which gets `parameters`, JSON.
// InvalidArgument names what is wrong with `text`.
absl::StatusOr<std::vector<ProbeConfiguration>> ParseProbeCodec(const std::string& text,
                                                                const std::string& parameters = "");

// A file of such codecs, one per line; '#' begins a comment. NotFound, or InvalidArgument naming
// file and line.
absl::StatusOr<std::vector<ProbeConfiguration>> ReadProbeCodecs(const std::string& path,
                                                                const std::string& parameters = "");

// uniform, topk, fp8, blockwise8, randomk and low_rank at several levels, as text for
// ParseProbeCodec.
const std::vector<std::string>& StandardProbeCodecs();

// The resolved `experiment` with these codecs at their cuts and no other compression: no
// compensation, no warm-up, no overrides. Resolved again. The error of every message is measured.
absl::StatusOr<Experiment> WithCodecs(Experiment experiment,
                                      const ProbeConfiguration& configuration);

}  // namespace thinwire
