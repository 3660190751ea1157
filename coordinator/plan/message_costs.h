// What each message of a training step takes: bytes on the wire, and the codec's time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

// What a message is made by.
struct Coded {
  CodecSpec codec;
  FeedbackSpec feedback;
};

// Which message of a training step.
struct MessageSlot {
  int cut = 0;  // in model order; the number of cuts: that of a tied weight's gradients
  bool gradient = false;
  int microbatch = 0;  // where sequences are cut, number of the slice: microbatch x slices + slice
};

struct MessageCost {
  int64_t raw_bytes = 0;
  int64_t wire_bytes = 0, likely_wire_bytes = 0;  // at most, and as the codec's speed has it
  double encode_seconds = 0, decode_seconds = 0;
};

class MessageCosts {
 public:
  // `partition` is the experiment's, and `slices` what SlicesFrom says of it. The experiment, the
  // partition and the speeds outlive it. Errors of the experiment.
  static absl::StatusOr<MessageCosts> New(const Experiment& experiment, const Partition& partition,
                                          std::vector<int64_t> slices, const Speeds& speeds);

  absl::StatusOr<MessageCost> Of(const MessageSlot& slot, const Coded& coded) const;
  // What a part of the gradient's norm takes in that direction of a cut.
  int64_t SumBytes(int cut, bool gradient) const;
  // What the gradient of a learned basis takes there; 0 where none is.
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
