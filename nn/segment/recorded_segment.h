// A segment whose training passes are launched whole. A layer's kernels take less time than their
// launches when batches are small; on a device that records (tensor/device.h: Recorder) a pass is
// submitted layer by layer once and repeated from then on.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/segment/segment.h"

namespace thinwire {

struct RecordingOptions {
  Device* device = nullptr;  // as the segment's
  Ops* ops = nullptr;
  // Batches of these sizes are recorded, all others run layer by layer: the odd last batch of an
  // epoch comes too rarely to keep memory for it.
  int64_t least_batch = 0, most_batch = 0;
  // As the segment's (segment.h): no pass reads the logits again, so that their gradient may take
  // their memory, and costs no copy.
  bool ends_model = false;
};

// The same segment to its user, bit for bit. It draws no random numbers (models/model.h: IsRandom),
// as a recording knows one step only, and trains on whole samples, without a cache. What Forward
// and Backward return is overwritten by a later pass only after every reference to it has gone;
// with ends_model, what Forward returns by that microbatch's Backward, too. Where the device does
// not record, and when a recording fails, passes run layer by layer; the latter is said once on
// stderr.
std::unique_ptr<Segment> RecordSegment(std::unique_ptr<Segment> segment,
                                       const RecordingOptions& options);

}  // namespace thinwire
