// Cost of each message of a training step: bytes on the wire, and the codec's seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/spec.h"
#include "compress/spec.h"
#include "config/specs.h"
#include "coordinator/plan/speeds.h"
#include "models/tied_weight.h"
#include "proto/experiment.pb.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// Codec and feedback that make a message.
struct Coded {
  CodecSpec codec;
  FeedbackSpec feedback;
};

// Place of a message in a training step.
struct MessageSlot {
  // Number of the cut in model order; the number of cuts stands for the tied weight's gradients.
  int cut = 0;
  bool gradient = false;
  int microbatch = 0;  // with slices the number of the slice: microbatch x slices + slice
};

// Cost of a message, or of several.
struct MessageCost {
  int64_t raw_bytes = 0;
  // The most bytes: the bounds of payloads, frame headers and gRPC prefixes. They are exact for a
  // codec whose payloads always have one size.
  int64_t wire_bytes = 0;
  int64_t likely_wire_bytes = 0;  // the same, with payloads of the size that `Speeds` predicts
  double encode_seconds = 0, decode_seconds = 0;

  MessageCost& operator+=(const MessageCost& other);
};

// Returns the cost of a message with this header, for a codec of that speed.
absl::StatusOr<MessageCost> CostOf(const MessageHeader& header, const FeedbackSpec& feedback,
                                   const CodingSpeed& speed);

class MessageCosts {
 public:
  // `partition` is the experiment's, `slices` the result of SlicesFrom for it. `experiment`,
  // `partition` and `speeds` must outlive the object. Returns the errors of the experiment.
  static absl::StatusOr<MessageCosts> New(const Experiment& experiment, const Partition& partition,
                                          std::vector<int64_t> slices, const Speeds& speeds);

  // Returns the cost of one message.
  absl::StatusOr<MessageCost> Of(const MessageSlot& slot, const Coded& coded) const;
  // Returns the wire bytes of the message that carries a partial sum of the gradient's norm across
  // `cut` in that direction.
  int64_t SumBytes(int cut, bool gradient) const;
  // Returns the wire bytes of a learned basis's gradient at `cut` in that direction; 0 where there
  // is no learned basis.
  int64_t BasisBytes(int cut, bool gradient) const;

 private:
  MessageCosts(const Experiment& experiment, const Partition& partition, const Speeds& speeds)
      : experiment_(&experiment), partition_(&partition), speeds_(&speeds) {}

  int tied_cut() const { return static_cast<int>(partition_->cuts.size()); }
  int64_t SamplesOf(int microbatch) const;
  Shape ShapeOf(const MessageSlot& slot) const;
  DType TypeOf(const MessageSlot& slot) const;
  MessageHeader HeaderOf(const MessageSlot& slot, const Coded& coded, const Shape& shape) const;
  const CodingSpeed& SpeedOf(const MessageSlot& slot, const Coded& coded) const;

  const Experiment* experiment_;
  const Partition* partition_;
  const Speeds* speeds_;
  std::optional<TiedWeight> tied_;
  std::vector<int64_t> slices_;
  DType compute_ = DType::kF32;
  uint64_t last_step_ = 0;
};

}  // namespace thinwire
