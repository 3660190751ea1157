// One direction of one cut, as both of its ends must know it. sender.h and receiver.h are the ends;
// whatever a compensation has to remember belongs there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "compress/feedback/feedback.h"
#include "compress/kernels.h"
#include "stage_server/boundary/patience.h"
#include "stage_server/boundary/step_trace.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// One direction of one cut; equal at both ends.
struct BoundarySpec {
  std::string name;  // of the cut: "layer1"
  std::string peer;  // who is at the other end, for messages: "stage 2 (10.0.0.7:4700)"
  uint32_t cut = 0;  // index in model order
  Direction direction = DIRECTION_UNSPECIFIED;
  Shape sample;  // batch extent 1
  // Of a sample's, by slice, in messages of training, whose units are slices; none: all.
  std::vector<int64_t> slice_positions;
  Shape basis;  // of the messages of PHASE_BASIS; rank 0: there are none
  DType compute = DType::kF32;
  CodecSpec codec;
  LevelSpec level;
  FeedbackSpec feedback;
  OnNonfinite on_nonfinite = OnNonfinite::kError;
  bool keeps_support = false;  // activations: the gradients' codec needs what they received
  int64_t max_batch = 0;       // samples of the largest message
  uint64_t codec_seed = 0;
  int64_t error_every = 0;  // distortion is measured on every n-th step; 0: never
  int capacity = 1;         // messages in flight
  // Of waits for a neighbour's or one's own executor.
  std::shared_ptr<Patience> patience = std::make_shared<Patience>();
  std::shared_ptr<StepTrace> trace;  // null: none
  Device* device = nullptr;          // of the tensors
  CodecKernels* kernels = nullptr;
};

// The longest payload that this direction can carry: exact messages, every level and what feedback
// sends included.
absl::StatusOr<uint64_t> MaxPayloadBytes(const BoundarySpec& spec);

FeedbackOptions FeedbackOptionsOf(const BoundarySpec& spec);

bool IsTraced(const BoundarySpec& spec, const MessageKey& key);

// Of a training message at an end whose codec works on `thread`.
PlannedSlice MessageSlice(const BoundarySpec& spec, Slice::Thread thread, const MessageKey& key,
                          const char* name);

// How one end works: on a thread of its own (a wire), or within the caller's (inside a process).
enum class Worker { kOwnThread, kInline };

// The codec of the last message, made anew when a level changes it. One thread at a time.
class CodecInForce {
 public:
  explicit CodecInForce(CodecKernels* kernels) : kernels_(kernels) {}
  absl::StatusOr<const Codec*> Get(const CodecSpec& spec);

 private:
  CodecKernels* const kernels_;
  std::unique_ptr<Codec> codec_;
};

}  // namespace thinwire
