// Speeds of stages and codecs that a plan computes with. They come from a measurement, from a run
// or from the user.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "models/model.h"
#include "schedule/simulator.h"

namespace thinwire {

// Seconds that one block of the model takes.
struct BlockSeconds {
  double forward = 0;   // of one sample
  double backward = 0;  // of one sample, without the forward pass that pipeline.recompute repeats
  double update = 0;    // of the optimizer, once a step
};

// Coding of the messages of one direction of a cut.
struct Coding {
  // Name of the cut; kReplicas for what replicas exchange, contributions as gradients and averages
  // as activations; kSums for what parts add up; kStashed for what blocks keep.
  std::string cut;
  bool gradient = false;
  std::string codec;     // as CodecText writes it
  std::string feedback;  // as FeedbackSpec::ToString writes it
  // Contributions to an average, as "4 x " and their codec. Empty: whatever they are.
  std::string of = {};

  friend bool operator<(const Coding& a, const Coding& b) {
    return std::tie(a.cut, a.gradient, a.codec, a.feedback, a.of) <
           std::tie(b.cut, b.gradient, b.codec, b.feedback, b.of);
  }
  friend bool operator==(const Coding& a, const Coding& b) { return !(a < b) && !(b < a); }
};

// Speed and compression of a coding, per byte of the uncompressed tensor.
struct CodingSpeed {
  double encode_seconds_per_byte = 0, decode_seconds_per_byte = 0;
  // 0: unknown, payloads count with the codec's rate, if it has one, or with their maximum.
  double payload_per_byte = 0;
};

// All speeds of a plan.
struct Speeds {
  std::vector<BlockSeconds> blocks;  // of the whole model, in order
  // Samples per pass in the measurement of `blocks`, as LeaveOutPasses takes it.
  double samples_of_pass = 0;
  std::string machine;  // machine of the run that measured them; empty: not from a run
  std::map<Coding, CodingSpeed> codings;  // all but those with codec none, which takes no time
  CodingSpeed others;                     // speed of codings that are not in `codings`
  double digest_seconds_per_byte = 0;     // of parameters; 0 unless it was measured
  TransportCost transport;                // 0 unless it was measured
  // Fixed cost of a layer in a forward pass, whatever its samples; a backward pass has twice as
  // much. 0 unless it was measured. The times of `blocks` are without it.
  double layer_seconds = 0;
  std::string compute_source, codec_source;  // where each comes from: "40 GFLOP/s, measured by …"
};

inline constexpr char kStashed[] = "stash";
// Returns the coding of a stash.
Coding StashCoding(const DirectionSpec& does);

// Returns the coding of an average of so many contributions, which went through `contributed`.
Coding AverageCoding(const CodecSpec& codec, const FeedbackSpec& feedback,
                     const CodecSpec& contributed, int replicas);

// Returns the speed of a coding in `codings`, else that of the same coding of whatever
// contributions; null if neither is there.
const CodingSpeed* KnownSpeed(const Coding& coding, const std::map<Coding, CodingSpeed>& codings);
// Returns that speed, or that of all others.
const CodingSpeed& SpeedOf(const Coding& coding, const Speeds& speeds);

// Returns the times of blocks that compute 10^9 x `gflops` operations per second. A backward pass
// has those of BackwardFlops (models/frozen.h). Updates take no time, and passes have no fixed
// cost. InvalidArgument for less than 1e-6 or more than 1e12; the error names the flag --gflops.
absl::StatusOr<std::vector<BlockSeconds>> BlocksAt(const Model& model, double gflops);

// Takes the fixed cost of passes, `layer_seconds` as in Speeds, out of the times of a sample in
// `blocks`. These were measured in passes of `samples_of_pass` samples, so they shrink by their
// share of it, to no less than a tenth. If `samples_of_pass` is 0, the measurement did not include
// it and they stay as they are.
void LeaveOutPasses(const Model& model, double layer_seconds, double samples_of_pass,
                    std::vector<BlockSeconds>* blocks);

// Returns the speed of a codec that encodes, and decodes, 10^9 x `gigabytes_per_second` bytes per
// second. InvalidArgument as in BlocksAt, for the flag --codec_gbps.
absl::StatusOr<CodingSpeed> CodingAt(double gigabytes_per_second);

}  // namespace thinwire
