#include "coordinator/plan/codec_speeds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/median.h"
#include "base/random.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/plugin.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/feedback.h"
#include "compress/level.h"
#include "compress/support.h"
#include "config/owned_pieces.h"
#include "config/specs.h"
#include "config/stash.h"
#include "config/tensor_parts.h"
#include "models/parts.h"
#include "models/tied_weight.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr int64_t kMostElements = 1 << 19;  // of a message, unless one sample has more
constexpr int kMostRounds = 9, kLeastRounds = 3;
constexpr double kRoundsSeconds = 0.02;  // after this time no further round begins

// Message of one direction of one cut, with its codec and feedback.
struct Sent {
  std::string cut;
  bool gradient = false;
  CodecSpec codec;
  FeedbackSpec feedback;
  Shape message;  // shape of a whole microbatch
  DType dtype = DType::kF32;
  bool is_rectified = false;  // an activation behind a ReLU
  // Number of contributions to an average, and the codec that they went through.
  int averaged = 1;
  CodecSpec contributed;
};

Coding CodingOf(const Sent& sent) {
  if (sent.averaged > 1) {
    return AverageCoding(sent.codec, sent.feedback, sent.contributed, sent.averaged);
  }
  return {sent.cut, sent.gradient, CodecText(sent.codec), sent.feedback.ToString()};
}

absl::StatusOr<Sent> SentAt(const Experiment& experiment, const std::string& cut, bool gradient) {
  ASSIGN_OR_RETURN(const DirectionSpec does,
                   DirectionFrom(DirectionOf(experiment, cut, gradient), gradient));
  Sent sent;
  sent.cut = cut;
  sent.gradient = gradient;
  sent.codec = Target(does.codec, does.level);
  sent.feedback = does.feedback;
  return sent;
}

// Returns the shape of a piece of middle size, since what a codec takes for an element depends on
// the size of the tensor. Half of the elements on which codecs act lie in pieces of at most that
// size. Empty: there is none.
Shape MiddlePiece(const Partition& partition, int replicas) {
  std::vector<Shape> shapes;
  int64_t elements = 0;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    for (const OwnedPiece& owned : PiecesOfStage(partition, stage, replicas)) {
      if (!owned.piece.coded) continue;
      shapes.push_back(owned.piece.shape);
      elements += owned.piece.shape.elements();
    }
  }
  std::sort(shapes.begin(), shapes.end(),
            [](const Shape& a, const Shape& b) { return a.elements() < b.elements(); });
  int64_t before = 0;
  for (const Shape& shape : shapes) {
    before += shape.elements();
    if (2 * before >= elements) return shape;
  }
  return Shape();
}

// Adds what replicas exchange.
absl::Status AddExchanged(const Experiment& experiment, const Partition& partition,
                          std::vector<Sent>* all) {
  ASSIGN_OR_RETURN(const ReplicasSpec replicas, ReplicasFrom(experiment));
  Sent contribution;
  contribution.cut = kReplicas;
  contribution.gradient = true;
  contribution.message = MiddlePiece(partition, replicas.count);
  if (contribution.message.rank() == 0) return absl::OkStatus();
  const auto add = [all](Sent sent, const DirectionSpec& does) {
    sent.codec = Target(does.codec, does.level);
    sent.feedback = does.feedback;
    if (!sent.codec.is_exact()) all->push_back(std::move(sent));
  };
  const auto add_both = [&](const DirectionSpec& contributions, const DirectionSpec& average) {
    add(contribution, contributions);
    Sent sum = contribution;
    sum.gradient = false;
    sum.averaged = replicas.count;
    sum.contributed = Target(contributions.codec, contributions.level);
    add(std::move(sum), average);
  };
  add_both(replicas.contributions, replicas.average);
  for (const auto& [segment, own] : replicas.segments) add_both(own.contributions, own.average);
  return absl::OkStatus();
}

// Adds what tensor-parallel parts add up, with the shape of the model's first sum.
absl::Status AddSummed(const Experiment& experiment, const Model& model, int64_t samples,
                       DType compute, std::vector<Sent>* all) {
  ASSIGN_OR_RETURN(const SumsSpec sums, SumsFrom(experiment, model));
  const auto has_sums = [](const BlockSpec& block) { return !SumsOf(block).empty(); };
  const auto block = std::find_if(model.blocks.begin(), model.blocks.end(), has_sums);
  if (block == model.blocks.end()) return absl::OkStatus();
  const LayerSpec& first = *SumsOf(*block).front();
  for (const bool gradient : {false, true}) {
    const DirectionSpec& does = gradient ? sums.gradients : sums.activations;
    Sent sent;
    sent.cut = kSums;
    sent.gradient = gradient;
    sent.codec = Target(does.codec, does.level);
    sent.feedback = does.feedback;
    sent.message = (gradient ? first.in : first.out).WithBatch(samples);
    sent.dtype = compute;
    if (!sent.codec.is_exact()) all->push_back(std::move(sent));
  }
  return absl::OkStatus();
}

// Adds what a stash encodes, with the shape of the largest tensor between blocks.
absl::Status AddStashed(const Experiment& experiment, const Model& model, int64_t samples,
                        DType compute, std::vector<Sent>* all) {
  ASSIGN_OR_RETURN(const auto does, StashFrom(experiment));
  if (!does) return absl::OkStatus();
  Sent sent;
  sent.cut = kStashed;
  sent.codec = does->codec;
  sent.dtype = compute;
  for (const BlockSpec& block : model.blocks) {
    const Shape message = block.out.WithBatch(samples);
    if (message.elements() > sent.message.elements()) sent.message = message;
  }
  all->push_back(std::move(sent));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Sent>> AllSent(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const DType compute, ComputeFrom(experiment));
  const int64_t microbatches = BatchMicrobatchesOf(experiment);
  const int64_t samples = (experiment.data().batch_size() + microbatches - 1) / microbatches;
  std::vector<Sent> all;
  for (const Cut& cut : partition.cuts) {
    const BlockSpec& block = partition.model.blocks[cut.block];
    for (const bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(Sent sent, SentAt(experiment, cut.name, gradient));
      sent.message = block.out.WithBatch(samples);
      sent.dtype = compute;
      sent.is_rectified =
          !gradient && !block.layers.empty() && block.layers.back().kind == LayerKind::kReLU;
      if (!sent.codec.is_exact()) all.push_back(std::move(sent));
    }
  }
  const std::optional<TiedWeight> tied = FindTiedWeight(partition.model);
  for (const bool gradient : {false, true}) {
    if (!tied || partition.cuts.empty()) break;
    ASSIGN_OR_RETURN(Sent sent, SentAt(experiment, kTiedCut, gradient));
    sent.message = tied->shape;
    if (!sent.codec.is_exact()) all.push_back(std::move(sent));
  }
  RETURN_IF_ERROR(AddStashed(experiment, partition.model, samples, compute, &all));
  RETURN_IF_ERROR(AddSummed(experiment, partition.model, samples, compute, &all));
  if (ReplicasOf(experiment) > 1) RETURN_IF_ERROR(AddExchanged(experiment, partition, &all));
  return all;
}

// Draws `count` normal numbers, two from two uniform ones (Box and Muller, 1958).
std::vector<float> Normals(size_t count, uint64_t seed = 1) {
  constexpr float kTwoPi = 6.2831853F;
  RandomStream random(RandomKey(seed, "plan"));
  std::vector<float> values(count + 1);
  for (size_t i = 0; i < count; i += 2) {
    const float radius = std::sqrt(-2 * std::log(1 - random.NextFloat()));
    const float angle = kTwoPi * random.NextFloat();
    values[i] = radius * std::cos(angle);
    values[i + 1] = radius * std::sin(angle);
  }
  values.resize(count);
  return values;
}

// Makes the message, or some samples of it. `rectified`: negative values become 0.
absl::StatusOr<Tensor> Synthetic(const Sent& sent, bool rectified, uint64_t seed = 1) {
  const int64_t sample = sent.message.elements() / sent.message[0];
  const int64_t samples = std::clamp<int64_t>(kMostElements / sample, 1, sent.message[0]);
  ASSIGN_OR_RETURN(const Tensor wide,
                   Tensor::Allocate(CpuDevice(), DType::kF32, sent.message.WithBatch(samples)));
  const std::vector<float> values = Normals(static_cast<size_t>(wide.elements()), seed);
  std::transform(values.begin(), values.end(), wide.floats().begin(),
                 [&](float value) { return rectified ? std::max(value, 0.0F) : value; });
  if (sent.dtype == DType::kF32) return wide;
  ASSIGN_OR_RETURN(const Tensor narrow, Tensor::Allocate(CpuDevice(), sent.dtype, wide.shape()));
  auto* to = static_cast<uint16_t*>(narrow.data());
  for (const float value : wide.floats()) {  // round towards 0 to bf16
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    *to++ = static_cast<uint16_t>(bits >> 16);
  }
  return narrow;
}

// Makes an average of contributions that have been coded.
absl::StatusOr<Tensor> SyntheticAverage(const Sent& sent) {
  ASSIGN_OR_RETURN(const auto codec, NewCodec(sent.contributed, CpuCodecKernels()));
  ASSIGN_OR_RETURN(const Tensor sum, Synthetic(sent, /*rectified=*/false));
  std::fill(sum.floats().begin(), sum.floats().end(), 0.0F);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(sum.shape(), sum.dtype()));
  for (int replica = 0; replica < sent.averaged; ++replica) {
    MessageContext context;
    context.random_key = static_cast<uint64_t>(replica + 1);
    ASSIGN_OR_RETURN(Tensor x, Synthetic(sent, /*rectified=*/false, context.random_key));
    ASSIGN_OR_RETURN(const size_t bytes, codec->Encode(x, context, absl::MakeSpan(payload)));
    RETURN_IF_ERROR(codec->Decode(absl::MakeConstSpan(payload.data(), bytes), context, &x));
    std::transform(x.floats().begin(), x.floats().end(), sum.floats().begin(), sum.floats().begin(),
                   [&](float value, float before) {
                     return before + value / static_cast<float>(sent.averaged);
                   });
  }
  return sum;
}

// Both ends of one direction. They send the same tensor again and again.
class Ends {
 public:
  absl::Status Make(const Sent& sent) {
    ASSIGN_OR_RETURN(
        x_, sent.averaged > 1 ? SyntheticAverage(sent) : Synthetic(sent, sent.is_rectified));
    ASSIGN_OR_RETURN(codec_, NewCodec(sent.codec, CpuCodecKernels()));
    if (sent.codec.needs_support()) {
      ASSIGN_OR_RETURN(const Tensor activation, Synthetic(sent, /*rectified=*/true));
      ASSIGN_OR_RETURN(SupportMap support, SupportMap::Of(activation, CpuCodecKernels()));
      support_ = std::make_unique<SupportMap>(std::move(support));
    }
    FeedbackOptions options;
    options.spec = sent.feedback;
    options.spec.dir.clear();  // State in files and limits would only disturb the measurement.
    options.spec.limit_bytes = 0;
    options.spec.on_full = OnFull::kError;
    options.sample = x_.shape().WithBatch(1);
    options.compute = sent.dtype;
    options.device = CpuDevice();
    options.kernels = CpuCodecKernels();
    ASSIGN_OR_RETURN(sender_, FeedbackSender::New(options));
    ASSIGN_OR_RETURN(receiver_, FeedbackReceiver::New(options));
    rows_.resize(static_cast<size_t>(x_.shape()[0]));
    std::iota(rows_.begin(), rows_.end(), 0);
    payload_.resize(FeedbackMaxPayloadBytes(options.spec, *codec_, x_.shape(), x_.dtype()));
    return absl::OkStatus();
  }

  absl::Status Encode() {
    FeedbackSender::Outgoing outgoing;
    outgoing.x = &x_;
    outgoing.rows = rows_;
    outgoing.step = ++step_;
    outgoing.context = Context();
    ASSIGN_OR_RETURN(encoded_, sender_->Encode(*codec_, outgoing, absl::MakeSpan(payload_)));
    return absl::OkStatus();
  }

  absl::Status Decode() {
    FeedbackReceiver::Incoming incoming;
    incoming.payload = absl::MakeConstSpan(payload_.data(), encoded_.bytes);
    incoming.shape = x_.shape();
    incoming.rows = rows_;
    incoming.exact = encoded_.exact;
    incoming.first_visit = encoded_.first_visit;
    incoming.state_digest = encoded_.state_digest;
    incoming.step = step_;
    incoming.context = Context();
    return receiver_->Decode(*codec_, incoming).status();
  }

  double raw_bytes() const { return static_cast<double>(x_.bytes()); }
  double payload_bytes() const { return static_cast<double>(encoded_.bytes); }

 private:
  MessageContext Context() const {
    MessageContext context;
    context.random_key = step_;
    context.support = support_.get();
    return context;
  }

  Tensor x_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<SupportMap> support_;
  std::vector<uint64_t> rows_;
  std::unique_ptr<FeedbackSender> sender_;
  std::unique_ptr<FeedbackReceiver> receiver_;
  std::vector<uint8_t> payload_;
  FeedbackSender::Encoded encoded_;
  uint64_t step_ = 0;
};

absl::StatusOr<CodingSpeed> Measure(const Sent& sent) {
  Ends ends;
  RETURN_IF_ERROR(ends.Make(sent));
  // Warms up: may be a row's first visit, and memory is not allocated yet.
  RETURN_IF_ERROR(ends.Encode());
  RETURN_IF_ERROR(ends.Decode());
  std::vector<double> encode, decode;
  double payload_bytes = 0;  // the largest: the payloads of ef21 shrink as it repeats one tensor
  const SteadyTime start = SteadyTime::Now();
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && SecondsSince(start) > kRoundsSeconds) break;
    const SteadyTime begin = SteadyTime::Now();
    RETURN_IF_ERROR(ends.Encode());
    encode.push_back(SecondsSince(begin));
    payload_bytes = std::max(payload_bytes, ends.payload_bytes());
    const SteadyTime middle = SteadyTime::Now();
    RETURN_IF_ERROR(ends.Decode());
    decode.push_back(SecondsSince(middle));
  }
  return CodingSpeed{UpperMedian(encode) / ends.raw_bytes(), UpperMedian(decode) / ends.raw_bytes(),
                     payload_bytes / ends.raw_bytes()};
}

}  // namespace

absl::Status MeasureCodings(const Experiment& experiment, std::map<Coding, CodingSpeed>* codings) {
  ASSIGN_OR_RETURN(const std::vector<Sent> all, AllSent(experiment));
  for (const Sent& sent : all) {
    const Coding coding = CodingOf(sent);
    if (KnownSpeed(coding, *codings) != nullptr) continue;
    const std::string where = absl::StrCat(
        sent.cut, ", ", sent.gradient ? "gradients" : "activations", ": ", coding.codec);
    ASSIGN_OR_RETURN(const CodingSpeed speed, Annotated(Measure(sent), where));
    codings->emplace(coding, speed);
  }
  return absl::OkStatus();
}

double MeasureDigest() {
  const std::vector<float> values = Normals(kMostElements);
  const size_t bytes = values.size() * sizeof(float);
  Digest digest;
  std::vector<double> seconds;
  for (int round = 0; round < kLeastRounds; ++round) {
    const SteadyTime begin = SteadyTime::Now();
    digest.Add(values.data(), bytes);
    seconds.push_back(SecondsSince(begin));
  }
  // Uses the value, so that a compiler cannot leave it out.
  return digest.value() == 0 ? 0 : UpperMedian(seconds) / static_cast<double>(bytes);
}

}  // namespace thinwire
