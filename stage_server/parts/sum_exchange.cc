#include "stage_server/parts/sum_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "nn/slice_copies.h"
#include "wire/frame.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

const char* WordOf(Direction direction) {
  return direction == DIRECTION_ACTIVATION ? "results" : "gradients";
}

Direction DirectionOf(PassDirection direction) {
  return direction == PassDirection::kForward ? DIRECTION_ACTIVATION : DIRECTION_GRADIENT;
}

// Returns the name of a message's random numbers, and of its errors.
std::string NameOf(const std::string& layer, const PartRound& round, const PartMessage& message) {
  switch (round.kind) {
    case PartExchange::kSum:
      return absl::StrCat(layer, "/", message.part);
    case PartExchange::kScatter:
      return absl::StrCat(layer, "/", message.part, "/slice", message.slice);
    case PartExchange::kGather:
      return absl::StrCat(layer, "/slice", message.slice);
  }
  return layer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SumExchange>> SumExchange::New(const SumOptions& options,
                                                              const std::vector<StageSum>& sums) {
  std::unique_ptr<SumExchange> exchange(new SumExchange(options));
  for (const StageSum& sum : sums) {
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      RETURN_IF_ERROR(Annotated(exchange->AddRounds(sum, direction),
                                absl::StrCat("sums, ", WordOf(direction), " of ", sum.layer.name)));
    }
  }
  return exchange;
}

absl::Status SumExchange::AddRounds(const StageSum& sum, Direction direction) {
  const bool is_gradient = direction == DIRECTION_GRADIENT;
  for (const PartRound& round : RoundsOf(sum.layer, is_gradient)) {
    RETURN_IF_ERROR(AddRound(sum, direction, round));
  }
  const bool has_text_besides =
      sum.layer.kind == LayerKind::kSum && !sum.layer.slices.are_whole() && !is_gradient;
  return has_text_besides ? AddRound(sum, direction, RoundOfText(sum.layer)) : absl::OkStatus();
}

bool SumExchange::ComesHere(const Round& round, const PartMessage& message) const {
  return round.what.kind != PartExchange::kScatter || carried_.has(message.slice);
}

absl::Status SumExchange::AddRound(const StageSum& sum, Direction direction,
                                   const PartRound& what) {
  Round& round = rounds_[{direction, what.kind, sum.layer.name}];
  round.what = what;
  round.direction = direction;
  round.layer = sum.number;
  // Links read the host's memory.
  const LeftOnDevice left = options_.places > 1 ? LeftOnDevice::kNone : LeftOnDevice::kExact;
  for (int part = 0; part < options_.sums.parts; ++part) {
    for (const PartMessage& message : MessagesOf(what, options_.sums.parts, part)) {
      const BoundarySpec spec = SpecOf(sum, round, message);
      ASSIGN_OR_RETURN(const uint64_t bytes, MaxPayloadBytes(spec));
      max_payload_bytes_ = std::max(max_payload_bytes_, bytes);
      const std::pair<int, int> place(message.part, message.slice);
      if (carried_.has(part)) {
        ASSIGN_OR_RETURN(round.encoders[place],
                         MessageEncoder::New(spec, /*support=*/nullptr, left));
      } else if (ComesHere(round, message)) {
        ASSIGN_OR_RETURN(round.decoders[place], MessageDecoder::New(spec, /*support=*/nullptr));
      }
    }
  }
  return absl::OkStatus();
}

BoundarySpec SumExchange::SpecOf(const StageSum& sum, const Round& round,
                                 const PartMessage& message) const {
  BoundarySpec spec;
  spec.name = NameOf(sum.layer.name, round.what, message);
  spec.cut = sum.number;
  spec.direction = round.direction;
  spec.sample = SampleOf(round.what, message);
  spec.compute = options_.compute;
  spec.max_batch = options_.max_batch;
  spec.codec_seed = options_.codec_seed;
  if (sum.is_coded) {
    static_cast<DirectionSpec&>(spec) = round.direction == DIRECTION_ACTIVATION
                                            ? options_.sums.activations
                                            : options_.sums.gradients;
    spec.error_every = options_.error_every;
  }
  spec.device = options_.device;
  spec.kernels = options_.kernels;
  return spec;
}

PlannedSlice SumExchange::SliceOf(Direction direction) const {
  PlannedSlice planned;
  if (!options_.trace || !IsTrainingPass(key_.phase) || !options_.trace->Wants(key_.step)) {
    return planned;
  }
  planned.trace = options_.trace.get();
  planned.slice.name = "sum";
  planned.slice.step = key_.step;
  planned.slice.microbatch = static_cast<int>(key_.microbatch);
  planned.slice.direction = direction;
  return planned;
}

template <typename Exchange>
absl::StatusOr<Tensor> SumExchange::Run(PassDirection direction, PartExchange kind,
                                        const std::string& layer, const Exchange& exchange) {
  // The layers are charged with the time of all that the device still computes.
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const Stopwatch stopwatch;
  absl::StatusOr<Tensor> made = exchange(&rounds_.at({DirectionOf(direction), kind, layer}));
  const Stopwatch::Reading took = stopwatch.Read();
  seconds_ += took.seconds;
  PlannedSlice slice = SliceOf(DirectionOf(direction));
  if (slice.trace != nullptr) slice.Add(took);
  if (made.ok()) return made;
  return Annotated(made.status(),
                   absl::StrCat(kSums, ", ", WordOf(DirectionOf(direction)), " of ", layer));
}

absl::StatusOr<Tensor> SumExchange::Add(PassDirection direction, const std::string& layer,
                                        std::vector<Tensor> partials) {
  return Run(direction, PartExchange::kSum, layer,
             [&](Round* round) { return AddAll(std::move(partials), round); });
}

absl::StatusOr<Tensor> SumExchange::Scatter(PassDirection direction, const std::string& layer,
                                            const PositionSlices& slices,
                                            std::vector<Tensor> partials) {
  return Run(direction, PartExchange::kScatter, layer,
             [&](Round* round) { return ScatterAll(slices, std::move(partials), round); });
}

absl::StatusOr<Tensor> SumExchange::Gather(PassDirection direction, const std::string& layer,
                                           const PositionSlices& slices, Tensor rows) {
  return Run(direction, PartExchange::kGather, layer,
             [&](Round* round) { return GatherAll(slices, rows, round); });
}

absl::StatusOr<Tensor> SumExchange::AddAll(std::vector<Tensor> partials, Round* round) {
  const Tensor& like = partials.front();
  // A tensor of its own, as those that are sent may not change with the sum.
  ASSIGN_OR_RETURN(const Tensor sum, Tensor::Allocate(options_.device, like.dtype(), like.shape()));
  for (int part = carried_.first; part < carried_.end; ++part) {
    Tensor& partial = partials[static_cast<size_t>(part - carried_.first)];
    ASSIGN_OR_RETURN(partial, Send(std::move(partial), {part, 0}, round));
  }
  Tensor first;
  for (int part = 0; part < options_.sums.parts; ++part) {
    Tensor addend;
    if (carried_.has(part)) {
      addend = std::move(partials[static_cast<size_t>(part - carried_.first)]);
    } else {
      ASSIGN_OR_RETURN(addend, Receive({part, 0}, sum.shape(), round));
    }
    RETURN_IF_ERROR(AddPart(part, std::move(addend), sum, &first));
  }
  return sum;
}

absl::StatusOr<Tensor> SumExchange::ScatterAll(const PositionSlices& slices,
                                               std::vector<Tensor> partials, Round* round) {
  ASSIGN_OR_RETURN(const Tensor sum, NewRows(partials.front(), slices));
  PositionSlices all = slices;
  all.first = 0;
  all.end = slices.count;
  std::map<std::pair<int, int>, Tensor> here;  // by part and slice
  for (int part = carried_.first; part < carried_.end; ++part) {
    Tensor& partial = partials[static_cast<size_t>(part - carried_.first)];
    ASSIGN_OR_RETURN(const Tensor rows, SlicesOf(partial, all, options_.ops));
    RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
    partial = Tensor();
    for (int slice = 0; slice < all.end; ++slice) {
      ASSIGN_OR_RETURN(Tensor decoded, Send(SliceAt(rows, all, slice), {part, slice}, round));
      if (carried_.has(slice)) here[{part, slice}] = std::move(decoded);
    }
  }
  std::vector<Tensor> first(static_cast<size_t>(slices.groups()));
  for (int part = 0; part < options_.sums.parts; ++part) {
    for (int group = 0; group < slices.groups(); ++group) {
      const PartMessage place{part, slices.first + group};
      const Tensor of_slice = SliceAt(sum, slices, group);
      Tensor addend;
      if (carried_.has(part)) {
        addend = std::move(here.at({place.part, place.slice}));
      } else {
        ASSIGN_OR_RETURN(addend, Receive(place, of_slice.shape(), round));
      }
      RETURN_IF_ERROR(
          AddPart(part, std::move(addend), of_slice, &first[static_cast<size_t>(group)]));
    }
  }
  return sum;
}

absl::StatusOr<Tensor> SumExchange::GatherAll(const PositionSlices& slices, const Tensor& rows,
                                              Round* round) {
  ASSIGN_OR_RETURN(const Tensor whole, NewWhole(rows, slices));
  for (int group = 0; group < slices.groups(); ++group) {
    const int slice = slices.first + group;
    ASSIGN_OR_RETURN(const Tensor decoded,
                     Send(SliceAt(rows, slices, group), {slice, slice}, round));
    RETURN_IF_ERROR(PutSlice(decoded, slice, slices, whole, options_.ops));
  }
  for (int slice = 0; slice < slices.count; ++slice) {
    if (carried_.has(slice)) continue;
    const Shape shape = whole.shape().With(1, slices.Of(slice).count);
    ASSIGN_OR_RETURN(const Tensor decoded, Receive({slice, slice}, shape, round));
    RETURN_IF_ERROR(PutSlice(decoded, slice, slices, whole, options_.ops));
  }
  return whole;
}

MessageKey SumExchange::KeyOf(const Round& round, const PartMessage& message) const {
  MessageKey key = key_;
  key.direction = round.direction;
  key.cut = NumberOf(round.what, round.layer, options_.sums.parts, message);
  return key;
}

absl::StatusOr<Tensor> SumExchange::Send(Tensor x, const PartMessage& place, Round* round) {
  MessageEncoder* const encoder = round->encoders.at({place.part, place.slice}).get();
  const bool is_scattered = round->what.kind == PartExchange::kScatter;
  MessageCounts& counts = this->counts(round->direction);
  MessageEncoder::Outgoing outgoing;
  outgoing.key = KeyOf(*round, place);
  outgoing.compress = compress_;
  outgoing.x = std::move(x);
  const Stopwatch encoding;
  ASSIGN_OR_RETURN(const MessageEncoder::Encoded encoded, encoder->Encode(outgoing));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const bool is_training = IsTrainingPass(key_.phase);
  const bool is_coded = !encoded.feedback.exact;
  if (is_training && is_coded) counts.AddEncoding(encoding.Read(), encoded.level);
  // A part's own slice of its sum is coded like the others, and goes nowhere.
  if (is_scattered && place.part == place.slice) return Received(outgoing, encoded, &counts);
  std::optional<MeasuredError> error;
  if (encoder->IsMeasured(outgoing)) {
    ASSIGN_OR_RETURN(error, encoder->Measure(outgoing, encoded));
  }
  if (!is_scattered) {
    peers_.SendToAll(encoded.message);
  } else if (!carried_.has(place.slice)) {
    peers_.Send(CarrierOf(place.slice, options_.places, options_.sums.parts), encoded.message);
  }
  const BoundaryStatistics::Traffic sent =
      TrafficOf(encoded.message, encoded.message.payload.bytes.size(),
                is_scattered ? 1 : options_.sums.parts - 1);
  if (is_training) {
    counts.AddTraining(key_.step, sent, encoded.level, error);
  } else {
    counts.AddEvaluation(sent);
  }
  return Received(outgoing, encoded, &counts);
}

absl::StatusOr<Tensor> SumExchange::Receive(const PartMessage& place, const Shape& shape,
                                            Round* round) {
  MessageDecoder* const decoder = round->decoders.at({place.part, place.slice}).get();
  const MessageKey key = KeyOf(*round, place);
  const int carrier = CarrierOf(place.part, options_.places, options_.sums.parts);
  ASSIGN_OR_RETURN(const Message message, peers_.Receive(carrier, key));
  const Stopwatch decoding;
  const auto decode = [&]() -> absl::StatusOr<Tensor> {
    if (message.shape != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", message.shape.ToString(), ", want ", shape.ToString()));
    }
    RETURN_IF_ERROR(CheckExactness(decoder->spec(), compress_, message));
    RETURN_IF_ERROR(decoder->Check(message));
    return decoder->Decode(message, /*rows=*/nullptr);
  };
  const absl::StatusOr<Tensor> decoded = decode();
  if (!decoded.ok()) {
    return Annotated(decoded.status(), absl::StrCat("part ", place.part, ", from carrier ", carrier,
                                                    ", ", key.ToString()));
  }
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const bool is_coded = !message.codec.is_exact();
  if (IsTrainingPass(key.phase) && is_coded) counts(key.direction).AddDecoding(decoding.Read());
  return decoded;
}

absl::StatusOr<Tensor> SumExchange::Received(const MessageEncoder::Outgoing& outgoing,
                                             const MessageEncoder::Encoded& encoded,
                                             MessageCounts* counts) {
  if (encoded.feedback.exact) return outgoing.x;
  const Stopwatch decoding;
  ASSIGN_OR_RETURN(Tensor decoded,
                   Tensor::Allocate(options_.device, outgoing.x.dtype(), outgoing.x.shape()));
  RETURN_IF_ERROR(encoded.codec->Decode(encoded.message.payload.bytes, encoded.context, &decoded));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  if (IsTrainingPass(key_.phase)) counts->AddDecoding(decoding.Read());
  return decoded;
}

BoundaryStatistics::Traffic SumExchange::TrafficOf(const MessageHeader& message,
                                                   uint64_t payload_bytes, int receivers) const {
  const auto count = static_cast<uint64_t>(receivers);
  const auto elements = static_cast<uint64_t>(message.shape.elements());
  BoundaryStatistics::Traffic sent;
  sent.messages = count;
  sent.elements = count * elements;
  sent.raw_bytes = count * elements * SizeOf(message.dtype);
  sent.payload_bytes = count * payload_bytes;
  sent.wire_bytes = count * WireBytes(message, payload_bytes, options_.run, options_.generation);
  return sent;
}

absl::Status SumExchange::AddPart(int part, Tensor addend, const Tensor& sum, Tensor* first) const {
  if (part == 0) {
    *first = std::move(addend);
    return absl::OkStatus();
  }
  const Tensor before = part == 1 ? std::exchange(*first, Tensor()) : sum;
  return ToStatus(options_.ops->Add(before.view(), addend.view(), sum.view()));
}

absl::Status SumExchange::AddSliceGradients(const MessageKey& key,
                                            absl::Span<Parameter> parameters) {
  ASSIGN_OR_RETURN(const std::vector<MessageHeader> sent,
                   gather_.AddSlices(key, parameters, options_.ops));
  MessageCounts& counts = this->counts(DIRECTION_GRADIENT);
  for (const MessageHeader& message : sent) {
    const uint64_t bytes = static_cast<uint64_t>(message.shape.elements()) * sizeof(float);
    counts.AddTraining(key.step, TrafficOf(message, bytes, options_.sums.parts - 1),
                       /*level=*/std::nullopt, /*error=*/std::nullopt);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
