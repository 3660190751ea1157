#include "stage_server/replicas/averager.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "compress/codec_table.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Returns the parameters that have a gradient of their own.
std::vector<Parameter*> TrainedOf(absl::Span<Parameter> parameters) {
  std::vector<Parameter*> trained;
  for (Parameter& parameter : parameters) {
    if (!parameter.gradient.empty() && !parameter.follows) trained.push_back(&parameter);
  }
  return trained;
}

// Returns the rows of the state of a piece's contributions. All replicas together are a batch, in
// which each has the piece's rows as a microbatch.
EpochSpec RowsOfPiece(const EpochSpec& epoch, int64_t rows, int replicas) {
  EpochSpec of = epoch;
  of.shuffle = {ShuffleKind::kSamples, epoch.shuffle.seed, rows * replicas};
  of.microbatches = replicas;
  of.samples = rows * replicas * NumBatches(epoch.samples, epoch.shuffle.batch_size);
  return of;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaAverager>> ReplicaAverager::New(
    const AveragerOptions& options, const std::vector<ExchangedSegment>& segments) {
  std::unique_ptr<ReplicaAverager> averager(new ReplicaAverager(options));
  for (const ExchangedSegment& segment : segments) {
    RETURN_IF_ERROR(averager->AddSegment(segment));
  }
  return averager;
}

absl::Status ReplicaAverager::AddSegment(const ExchangedSegment& segment) {
  const std::vector<Parameter*> trained = TrainedOf(segment.parameters);
  const size_t first = pieces_.size();
  std::vector<ParameterSpec> specs;
  for (const Parameter* parameter : trained) specs.push_back(parameter->spec);
  for (Piece& piece : PiecesOf(specs)) {
    PieceMemory memory(std::move(piece), trained, options_.device, options_.ops);
    Exchanged& exchanged = pieces_.emplace_back(std::move(memory));
    exchanged.number = PieceNumber(segment.number, pieces_.size() - 1 - first);
    RETURN_IF_ERROR(AddEncoders(&exchanged));
  }
  DealOwners(segment.number, first);
  return absl::OkStatus();
}

absl::Status ReplicaAverager::AddEncoders(Exchanged* exchanged) {
  const ReplicasSpec& replicas = options_.replicas;
  const BoundarySpec contribution = SpecOf(exchanged->memory.piece(), replicas.contributions);
  for (int replica = 0; replica < replicas.count; ++replica) {
    ASSIGN_OR_RETURN(exchanged->contributors.emplace_back(), NewEncoder(contribution));
  }
  if (replicas.exchange == ReplicaExchange::kGather) return absl::OkStatus();
  const BoundarySpec average = SpecOf(exchanged->memory.piece(), replicas.average);
  ASSIGN_OR_RETURN(exchanged->average, NewEncoder(average));
  return absl::OkStatus();
}

// Both copies of a tied weight are encoded, each at its stage, and must decode to the same bits. So
// they go exactly where a codec may send other bits on another device.
bool ReplicaAverager::IsCoded(const Piece& piece, const CodecSpec& codec) const {
  const CodecRow& row = CodecRowOf(codec.kind);
  const bool differs = row.has(CodecRow::kRank) || row.is_plugin;
  return piece.coded && !(differs && absl::StartsWith(piece.name, options_.tied + "["));
}

BoundarySpec ReplicaAverager::SpecOf(const Piece& piece, const DirectionSpec& does) const {
  BoundarySpec spec;
  spec.name = piece.name;
  spec.direction = DIRECTION_GRADIENT;
  spec.sample = piece.shape.WithBatch(1);
  spec.max_batch = piece.shape[0];
  spec.codec_seed = options_.codec_seed;
  if (IsCoded(piece, does.codec)) {
    spec.codec = does.codec;
    spec.level = does.level;
    spec.feedback = does.feedback;
    spec.on_nonfinite = does.on_nonfinite;
    spec.error_every = options_.error_every;
  }
  spec.device = options_.device;
  spec.kernels = options_.kernels;
  return spec;
}

absl::StatusOr<std::unique_ptr<MessageEncoder>> ReplicaAverager::NewEncoder(
    const BoundarySpec& spec) const {
  auto encoder = MessageEncoder::New(spec, /*support=*/nullptr, /*sends_from=*/options_.device);
  if (encoder.ok()) return encoder;
  return Annotated(encoder.status(), absl::StrCat("replicas, piece ", spec.name, " of ",
                                                  spec.max_batch, " x ", spec.sample.elements()));
}

// Deals the largest pieces first, each to the replica that adds up the fewest elements of the
// segment so far. Segments begin with one replica after the other.
void ReplicaAverager::DealOwners(int segment, size_t first) {
  std::vector<Exchanged*> by_size;
  for (size_t i = first; i < pieces_.size(); ++i) by_size.push_back(&pieces_[i]);
  const auto elements = [](const Exchanged* piece) {
    return piece->memory.piece().shape.elements();
  };
  std::stable_sort(by_size.begin(), by_size.end(), [&](const Exchanged* a, const Exchanged* b) {
    return elements(a) > elements(b);
  });
  const int count = options_.replicas.count;
  std::vector<int64_t> owned(count);
  for (Exchanged* piece : by_size) {
    const auto least = std::min_element(owned.begin(), owned.end());
    piece->owner = (segment + static_cast<int>(least - owned.begin())) % count;
    *least += elements(piece);
  }
}

void ReplicaAverager::StartEpoch(const EpochSpec& epoch) {
  for (Exchanged& piece : pieces_) {
    piece.rows = std::make_shared<const EpochRows>(
        RowsOfPiece(epoch, piece.memory.piece().shape[0], options_.replicas.count),
        /*needs_ids=*/false);
  }
}

absl::Status ReplicaAverager::Contribute(const ExchangeStep& step, int replica) {
  const bool gathers = options_.replicas.exchange == ReplicaExchange::kGather;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    Exchanged& piece = pieces_[i];
    MessageEncoder::Outgoing outgoing = OutgoingOf(step, PHASE_CONTRIBUTION, replica, i);
    ASSIGN_OR_RETURN(outgoing.x, piece.memory.Gather());
    const int receivers = gathers ? options_.replicas.count - 1 : piece.owner != replica;
    ASSIGN_OR_RETURN(const Tensor contribution,
                     Send(outgoing, piece, receivers, piece.contributors[replica].get()));
    if (piece.sum.empty()) {
      ASSIGN_OR_RETURN(piece.sum,
                       Tensor::Allocate(options_.device, DType::kF32, piece.memory.piece().shape));
    }
    const TensorView sum = piece.sum.view();
    RETURN_IF_ERROR(ToStatus(replica == 0 ? options_.ops->Convert(contribution.view(), sum)
                                          : options_.ops->Add(sum, contribution.view(), sum)));
  }
  return absl::OkStatus();
}

absl::Status ReplicaAverager::Finish(const ExchangeStep& step) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Exchanged& piece = pieces_[i];
    Tensor sum = piece.sum;
    if (piece.average != nullptr) {
      // Its random numbers may not depend on the owner: a tied weight's copy has others.
      MessageEncoder::Outgoing outgoing = OutgoingOf(step, PHASE_AVERAGE, /*replica=*/0, i);
      outgoing.x = piece.sum;
      ASSIGN_OR_RETURN(sum,
                       Send(outgoing, piece, options_.replicas.count - 1, piece.average.get()));
    }
    RETURN_IF_ERROR(piece.memory.Scatter(sum));
  }
  return absl::OkStatus();
}

MessageEncoder::Outgoing ReplicaAverager::OutgoingOf(const ExchangeStep& step, Phase phase,
                                                     int replica, size_t piece) const {
  MessageEncoder::Outgoing outgoing;
  outgoing.key.phase = phase;
  outgoing.key.direction = DIRECTION_GRADIENT;
  outgoing.key.cut = pieces_[piece].number;
  outgoing.key.epoch = step.epoch;
  outgoing.key.step = step.step;
  outgoing.key.microbatch = static_cast<uint32_t>(replica);
  outgoing.compress = step.compress;
  outgoing.rows = pieces_[piece].rows;
  const bool has_state = pieces_[piece].contributors[replica]->feedback().state() != nullptr;
  outgoing.want_received = phase == PHASE_CONTRIBUTION && has_state;  // is decoded anyway
  return outgoing;
}

absl::StatusOr<Tensor> ReplicaAverager::Send(const MessageEncoder::Outgoing& outgoing,
                                             const Exchanged& piece, int receivers,
                                             MessageEncoder* encoder) {
  const auto named = [&](const absl::Status& status) {
    if (status.ok()) return status;
    const std::string whose = outgoing.key.phase == PHASE_AVERAGE
                                  ? "sum of replicas"
                                  : absl::StrCat("replica ", outgoing.key.microbatch);
    return Annotated(
        status, absl::StrCat(whose, ", ", piece.memory.piece().name, ": step ", outgoing.key.step));
  };
  const Stopwatch encoding;
  absl::StatusOr<MessageEncoder::Encoded> encoded = encoder->Encode(outgoing);
  RETURN_IF_ERROR(named(encoded.status()));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const Stopwatch::Reading encode = encoding.Read();
  std::optional<MeasuredError> error;
  if (encoder->IsMeasured(outgoing)) {
    ASSIGN_OR_RETURN(error, encoder->Measure(outgoing, *encoded));
  }
  const Stopwatch decoding;
  ASSIGN_OR_RETURN(const Tensor received, Received(outgoing, *encoded));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const Stopwatch::Reading decode = decoding.Read();

  const std::lock_guard<std::mutex> lock(mutex_);
  BoundaryStatistics& counts = outgoing.key.phase == PHASE_AVERAGE ? average_ : contributions_;
  if (!piece.memory.is_copy()) counts.train += TrafficOf(outgoing, *encoded, receivers);
  counts.encode.Observe(encode.seconds);
  counts.encode_cpu_seconds += encode.cpu_seconds;
  counts.decode.Observe(decode.seconds);
  counts.decode_cpu_seconds += decode.cpu_seconds;
  if (error && !piece.memory.is_copy()) counts.errors.Add(*error);
  const CodecSpec& codec = encoded->message.codec;
  if (encoder->spec().level.kind != LevelKind::kFixed && !codec.is_exact()) {
    counts.level = LevelOf(codec);
  }
  return received;
}

absl::StatusOr<Tensor> ReplicaAverager::Received(const MessageEncoder::Outgoing& outgoing,
                                                 const MessageEncoder::Encoded& encoded) {
  const FeedbackSender::Encoded& made = encoded.feedback;
  if (!made.received.empty()) return made.received;
  if (made.exact) return outgoing.x;
  ASSIGN_OR_RETURN(Tensor decoded,
                   decoded_.Get(options_.device, outgoing.x.dtype(), outgoing.x.shape()));
  RETURN_IF_ERROR(encoded.codec->Decode(encoded.message.payload.bytes, encoded.context, &decoded));
  return decoded;
}

BoundaryStatistics::Traffic ReplicaAverager::TrafficOf(const MessageEncoder::Outgoing& outgoing,
                                                       const MessageEncoder::Encoded& encoded,
                                                       int receivers) const {
  const uint64_t payload_bytes = encoded.message.payload.bytes.size();
  const auto copies = static_cast<uint64_t>(receivers);
  BoundaryStatistics::Traffic traffic;
  traffic.messages = copies;
  traffic.elements = copies * outgoing.x.elements();
  traffic.raw_bytes = copies * outgoing.x.bytes();
  traffic.payload_bytes = copies * payload_bytes;
  traffic.wire_bytes =
      copies * WireBytes(encoded.message, payload_bytes, options_.run, options_.generation);
  return traffic;
}

BoundaryStatistics ReplicaAverager::contributions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return contributions_;
}

BoundaryStatistics ReplicaAverager::average() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return average_;
}

std::vector<ReplicaAverager::Contributor> ReplicaAverager::contributors() const {
  std::vector<Contributor> all;
  for (const Exchanged& piece : pieces_) {
    for (int replica = 0; replica < options_.replicas.count; ++replica) {
      all.push_back({piece.number, replica, piece.contributors[replica].get()});
    }
  }
  return all;
}

}  // namespace thinwire
