#include "coordinator/plan/message_costs.h"

#include <utility>

#include "base/status.h"
#include "compress/codecs/division.h"
#include "compress/codecs/plugin.h"
#include "compress/feedback/plan.h"
#include "data/sampler.h"
#include "models/bottleneck.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Stand-ins for a frame's varying fields: every value but 0 takes the same number of bytes there.
constexpr uint64_t kRun = 1, kGeneration = 1, kSomeDigest = 1;

int64_t BytesOf(const MessageHeader& header, size_t payload_bytes) {
  return static_cast<int64_t>(WireBytes(header, payload_bytes, kRun, kGeneration));
}

}  // namespace

MessageCost& MessageCost::operator+=(const MessageCost& other) {
  raw_bytes += other.raw_bytes;
  wire_bytes += other.wire_bytes;
  likely_wire_bytes += other.likely_wire_bytes;
  encode_seconds += other.encode_seconds;
  decode_seconds += other.decode_seconds;
  return *this;
}

absl::StatusOr<MessageCost> CostOf(const MessageHeader& header, const FeedbackSpec& feedback,
                                   const CodingSpeed& speed) {
  ASSIGN_OR_RETURN(const size_t most_bytes,
                   CompensatedMaxPayloadBytes(feedback, header.codec, header.shape, header.dtype));
  const size_t usual_bytes = most_bytes - Division::ChannelBytes(header.codec, header.shape);
  MessageCost cost;
  cost.raw_bytes = header.shape.elements() * static_cast<int64_t>(SizeOf(header.dtype));
  cost.wire_bytes = cost.likely_wire_bytes = BytesOf(header, usual_bytes);
  if (header.codec.is_exact()) return cost;
  const auto raw_bytes = static_cast<double>(cost.raw_bytes);
  cost.encode_seconds = raw_bytes * speed.encode_seconds_per_byte;
  cost.decode_seconds = raw_bytes * speed.decode_seconds_per_byte;
  const double of_rate = header.codec.rate / 8 * static_cast<double>(header.shape.elements());
  const double likely = speed.payload_per_byte > 0 ? raw_bytes * speed.payload_per_byte : of_rate;
  if (likely > 0 && likely < static_cast<double>(usual_bytes)) {
    cost.likely_wire_bytes = BytesOf(header, static_cast<size_t>(likely));
  }
  return cost;
}

absl::StatusOr<MessageCosts> MessageCosts::New(const Experiment& experiment,
                                               const Partition& partition,
                                               std::vector<int64_t> slices, const Speeds& speeds) {
  MessageCosts costs(experiment, partition, speeds);
  if (!partition.cuts.empty()) costs.tied_ = FindTiedWeight(partition.model);
  costs.slices_ = std::move(slices);
  ASSIGN_OR_RETURN(costs.compute_, ComputeFrom(experiment));
  ASSIGN_OR_RETURN(costs.last_step_, TrainingSteps(experiment));
  return costs;
}

int64_t MessageCosts::SamplesOf(int microbatch) const {
  const SampleRange range =
      MicrobatchRange(experiment_->data().batch_size(),
                      static_cast<int>(experiment_->pipeline().microbatches()), microbatch);
  return range.last - range.first;
}

// Shape of what crosses in a message: a microbatch or its slice, or a weight's gradient at the tied
// cut.
Shape MessageCosts::ShapeOf(const MessageSlot& slot) const {
  if (slot.cut == tied_cut()) return tied_->shape;
  const Shape& sample = partition_->model.blocks[partition_->cuts[slot.cut].block].out;
  if (slices_.empty()) return sample.WithBatch(SamplesOf(slot.microbatch));
  const int slices = static_cast<int>(slices_.size());
  return sample.With(1, slices_[slot.microbatch % slices])
      .WithBatch(SamplesOf(slot.microbatch / slices));
}

DType MessageCosts::TypeOf(const MessageSlot& slot) const {
  return slot.cut == tied_cut() ? DType::kF32 : compute_;
}

// Returns the header of the last step, where epoch and step take the most bytes. It has a digest of
// state only if every step has one.
MessageHeader MessageCosts::HeaderOf(const MessageSlot& slot, const Coded& coded,
                                     const Shape& shape) const {
  MessageHeader header;
  header.key.phase = PHASE_TRAIN;
  header.key.direction = slot.gradient ? DIRECTION_GRADIENT : DIRECTION_ACTIVATION;
  header.key.cut = static_cast<uint32_t>(slot.cut);
  header.key.epoch = experiment_->epochs();
  header.key.step = last_step_;
  header.key.microbatch = static_cast<uint32_t>(slot.microbatch);
  header.dtype = TypeOf(slot);
  header.shape = shape;
  header.codec = coded.codec;
  if (slot.cut != tied_cut()) header.sample_digest = kSomeDigest;
  if (coded.feedback.digest_every == 1) header.state_digest = kSomeDigest;
  return header;
}

int64_t MessageCosts::SumBytes(int cut, bool gradient) const {
  MessageHeader header = HeaderOf({cut, gradient, /*microbatch=*/0}, Coded(), Shape{0});
  header.key.phase = PHASE_GRADIENT_NORM;
  header.sample_digest = 0;
  header.sum_of_squares = 0;
  return BytesOf(header, /*payload_bytes=*/0);
}

int64_t MessageCosts::BasisBytes(int cut, bool gradient) const {
  const std::optional<LearnedBasis> basis =
      LearnedBasisAt(partition_->model, partition_->cuts[cut]);
  if (!basis) return 0;
  MessageHeader header = HeaderOf({cut, gradient, /*microbatch=*/0}, Coded(), basis->shape);
  header.key.phase = PHASE_BASIS;
  header.dtype = DType::kF32;
  header.sample_digest = 0;
  return BytesOf(header, static_cast<size_t>(basis->shape.elements()) * sizeof(float));
}

const CodingSpeed& MessageCosts::SpeedOf(const MessageSlot& slot, const Coded& coded) const {
  const std::string name = slot.cut == tied_cut() ? kTiedCut : partition_->cuts[slot.cut].name;
  return thinwire::SpeedOf({name, slot.gradient, CodecText(coded.codec), coded.feedback.ToString()},
                           *speeds_);
}

absl::StatusOr<MessageCost> MessageCosts::Of(const MessageSlot& slot, const Coded& coded) const {
  return CostOf(HeaderOf(slot, coded, ShapeOf(slot)), coded.feedback, SpeedOf(slot, coded));
}

}  // namespace thinwire
