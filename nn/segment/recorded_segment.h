// A segment whose training passes are launched as a whole. When batches are small, launching a
// layer's kernels takes longer than running them. So on a device that records (tensor/device.h:
// Recorder), a pass is submitted layer by layer once and replayed from then on.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/segment/segment.h"

namespace thinwire {

struct RecordingOptions {
  Device* device = nullptr;  // of the segment
  Ops* ops = nullptr;
  // Batches of these sizes are recorded, all others run layer by layer. The odd last batch of an
  // epoch comes too rarely to keep memory for it.
  int64_t least_batch = 0, most_batch = 0;
  // As for the segment (segment.h). No pass reads the logits again, so their gradient may take
  // their memory and needs no copy.
  bool ends_model = false;
};

// Returns a segment that behaves like `segment`, bit for bit. `segment` must draw no random numbers
// (models/model.h: IsRandom), as a recording knows one step only, and must train on whole samples
// without a cache. A later pass overwrites what Forward and Backward returned only when every
// reference to it has gone. With ends_model, that microbatch's Backward may overwrite what Forward
// returned. If the device does not record, or a recording fails, passes run layer by layer; a
// failure is reported once on stderr.
std::unique_ptr<Segment> RecordSegment(std::unique_ptr<Segment> segment,
                                       const RecordingOptions& options);

}  // namespace thinwire
