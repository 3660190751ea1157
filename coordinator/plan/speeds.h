// How fast stages compute and codecs work: what a plan is told by a measurement, by a run or by its
// user.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "schedule/simulator.h"

namespace thinwire {

// What a block of the model takes, seconds.
struct BlockSeconds {
  double forward = 0;   // one sample
  double backward = 0;  // one sample, without what pipeline.recompute does again
  double update = 0;    // the optimizer, once a step
  double pass = 0;  // besides, for each forward pass, however few its samples; twice that backward
};

// What codes the messages of one direction of a cut.
struct Coding {
  std::string cut;
  bool gradient = false;
  std::string codec;     // as CodecText has it
  std::string feedback;  // as FeedbackSpec::ToString has it

  friend bool operator<(const Coding& a, const Coding& b) {
    return std::tie(a.cut, a.gradient, a.codec, a.feedback) <
           std::tie(b.cut, b.gradient, b.codec, b.feedback);
  }
  friend bool operator==(const Coding& a, const Coding& b) { return !(a < b) && !(b < a); }
};

struct CodingSpeed {
  double encode_seconds_per_byte = 0, decode_seconds_per_byte = 0;  // of the tensor's own bytes
  double payload_per_byte = 0;  // likewise; 0: as long as payloads can be
};

struct Speeds {
  std::vector<BlockSeconds> blocks;          // of the whole model, in order
  double samples_of_pass = 0;                // in which they were measured, with what a pass takes
  std::string machine;                       // that a run had, which has told them
  std::map<Coding, CodingSpeed> codings;     // but for codec none, which takes no time
  CodingSpeed others;                        // of codings that are not there
  TransportCost transport;                   // of messages; none, unless it was measured
  double layer_seconds = 0;                  // as AddPasses was told, likewise
  std::string compute_source, codec_source;  // where both come from: "40 GFLOP/s, measured by …"
};

// Blocks that compute so many 10^9 operations per second: those of the forward pass, and twice as
// many backward. Updates take no time, passes none besides. InvalidArgument for less than 1e-6 or
// more than 1e12, as --gflops.
absl::StatusOr<std::vector<BlockSeconds>> BlocksAt(const Model& model, double gflops);

// Makes a forward pass take so many seconds for each layer besides. What `blocks` has of a sample
// was measured in passes of so many samples, and is less without; 0: it was not part of it.
void AddPasses(const Model& model, double layer_seconds, double samples_of_pass,
               std::vector<BlockSeconds>* blocks);

// A codec that encodes, and decodes, so many 10^9 bytes per second. Likewise, as --codec_gbps.
absl::StatusOr<CodingSpeed> CodingAt(double gigabytes_per_second);

}  // namespace thinwire
