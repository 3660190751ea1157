#include "stage_server/replicas/averager.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/status.h"
#include "config/piece_codec.h"

namespace thinwire {
namespace {

// The parameters of a segment that have a gradient of their own.
struct Trained {
  std::vector<ParameterSpec> specs;
  std::vector<Parameter*> here;  // null: the parameter's part is elsewhere
};

Trained TrainedOf(const ExchangedSegment& segment) {
  std::map<std::string, Parameter*> here;
  std::vector<ParameterSpec> specs;
  for (Parameter& parameter : segment.segment->parameters()) {
    here[parameter.spec.name] = &parameter;
    specs.push_back(parameter.spec);
  }
  if (!segment.parameters.empty()) specs = segment.parameters;
  Trained trained;
  for (const ParameterSpec& spec : specs) {
    const auto found = here.find(spec.name);
    Parameter* const parameter = found == here.end() ? nullptr : found->second;
    if (!spec.is_trained() || (parameter != nullptr && parameter->follows)) continue;
    trained.specs.push_back(spec);
    trained.here.push_back(parameter);
  }
  return trained;
}

bool IsHere(const Piece& piece, const Trained& trained) {
  return std::all_of(piece.parts.begin(), piece.parts.end(), [&](const Piece::Part& part) {
    return trained.here[part.parameter] != nullptr;
  });
}

template <typename Number>
Payload PayloadOf(std::vector<Number> values) {
  const auto owner = std::make_shared<const std::vector<Number>>(std::move(values));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(owner->data());
  return {owner, {bytes, owner->size() * sizeof(Number)}};
}

}  // namespace

ReplicaAverager::ReplicaAverager(const ExchangeOptions& options)
    : options_(options),
      carried_(options.carried()),
      factored_({options.device, options.kernels, {}}),
      counts_(options.run, options.generation),
      coder_(options_, &counts_) {}

absl::StatusOr<std::unique_ptr<ReplicaAverager>> ReplicaAverager::New(
    const ExchangeOptions& options, const std::vector<ExchangedSegment>& segments) {
  std::unique_ptr<ReplicaAverager> averager(new ReplicaAverager(options));
  for (const ExchangedSegment& segment : segments) {
    RETURN_IF_ERROR(averager->AddSegment(segment));
  }
  const uint64_t of_readiness =
      static_cast<uint64_t>(options.replicas.count) * kReadyNumbers * sizeof(double);
  averager->max_payload_bytes_ = std::max(averager->max_payload_bytes_, of_readiness);
  averager->peers_ = std::make_unique<CarrierPeers>(kReplicas, options.carrier, options.carriers,
                                                    averager->messages_of_step(), options.patience);
  return averager;
}

size_t ReplicaAverager::messages_of_step() const {
  // A contribution of each replica and the sum, of each piece, or of each of its factors.
  size_t exchanged = pieces_.size() + statistics_.size();
  for (const Exchanged& piece : pieces_) exchanged += piece.factored != nullptr;
  return exchanged * static_cast<size_t>(options_.replicas.count + 1) + /*readiness=*/1;
}

absl::Status ReplicaAverager::AddSegment(const ExchangedSegment& segment) {
  segments_.push_back(segment.segment);
  const Trained trained = TrainedOf(segment);
  const std::vector<Piece> pieces = PiecesOf(trained.specs);
  const std::vector<int> owners = OwnersOf(pieces, segment.number, options_.replicas.count);
  for (size_t place = 0; place < pieces.size(); ++place) {
    if (!IsHere(pieces[place], trained)) {
      elsewhere_.insert(PieceNumber(segment.number, place));
      continue;
    }
    const ParameterSpec& first = trained.specs[pieces[place].parts.front().parameter];
    PieceMemory memory(pieces[place], trained.here, options_.device, options_.ops);
    Exchanged& exchanged = pieces_.emplace_back(std::move(memory));
    exchanged.number = PieceNumber(segment.number, place);
    exchanged.owner = owners[place];
    exchanged.is_early = pieces[place].coded && !IsOfTied(pieces[place], options_.tied);
    exchanged.is_of_part = first.slice.is_of_part();
    exchanged.is_counted = options_.counts_all || exchanged.is_of_part;
    const auto fragment = options_.fragments.find(first.name);
    const bool has_turn = pieces[place].coded && fragment != options_.fragments.end();
    if (has_turn) exchanged.fragment = fragment->second;
    RETURN_IF_ERROR(AddCoders(&exchanged));
  }
  max_payload_bytes_ = std::max(max_payload_bytes_, coder_.max_payload_bytes());
  statistics_.Add(PieceNumber(segment.number, kStatisticsPlace), segment.segment, options_.device);
  if (statistics_.size() == 0) return absl::OkStatus();
  const auto bytes = static_cast<uint64_t>(statistics_.segments().back().elements) * sizeof(float);
  max_payload_bytes_ = std::max(max_payload_bytes_, bytes);
  return absl::OkStatus();
}

absl::Status ReplicaAverager::AddCoders(Exchanged* exchanged) {
  const ReplicasSpec& replicas = options_.replicas;
  const Piece& piece = exchanged->memory.piece();
  const int segment = SegmentOfEntries(piece, exchanged->number, options_.tied);
  const DirectionSpec& contributions = replicas.ContributionsOf(segment);
  const bool is_factored = IsFactored(replicas, contributions, piece, options_.tied);
  const DirectionSpec average = is_factored ? DirectionSpec() : replicas.AverageOf(segment);
  if (is_factored) {
    exchanged->factored = std::make_unique<FactoredPiece>(contributions.codec, piece.shape,
                                                          replicas.count, &factored_);
  }
  exchanged->contributors.resize(static_cast<size_t>(replicas.count));
  exchanged->others.resize(exchanged->contributors.size());
  exchanged->kept.resize(exchanged->contributors.size());
  for (int replica = 0; replica < replicas.count; ++replica) {
    if (carried_.has(replica)) {
      ASSIGN_OR_RETURN(exchanged->contributors[replica], coder_.NewEncoder(piece, contributions));
    } else if (AddsHere(*exchanged)) {
      ASSIGN_OR_RETURN(exchanged->others[replica], coder_.NewDecoder(piece, contributions));
    }
  }
  if (gathers()) return absl::OkStatus();
  if (AddsHere(*exchanged)) {
    ASSIGN_OR_RETURN(exchanged->average, coder_.NewEncoder(piece, average));
  } else {
    ASSIGN_OR_RETURN(exchanged->average_of_owner, coder_.NewDecoder(piece, average));
  }
  return absl::OkStatus();
}

int ReplicaAverager::CarrierOfReplica(int replica) const {
  return CarrierOf(replica, options_.carriers, options_.replicas.count, options_.deal);
}

bool ReplicaAverager::AddsAt(int carrier, const Exchanged& piece) const {
  return gathers() || CarrierOfReplica(piece.owner) == carrier;
}

void ReplicaAverager::StartEpoch(const EpochSpec& epoch) {
  for (Exchanged& piece : pieces_) {
    piece.rows = PieceCoder::RowsOf(piece.memory.piece(), epoch, options_.replicas.count);
  }
}

MessageKey ReplicaAverager::KeyOf(const ExchangeStep& step, Phase phase, uint32_t number,
                                  int replica) {
  MessageKey key;
  key.phase = phase;
  key.direction = DIRECTION_GRADIENT;
  key.cut = number;
  key.epoch = step.epoch;
  key.step = step.step;
  key.microbatch = static_cast<uint32_t>(replica);
  return key;
}

MessageEncoder::Outgoing ReplicaAverager::OutgoingOf(const ExchangeStep& step, Phase phase,
                                                     int replica, const Exchanged& piece) const {
  MessageEncoder::Outgoing outgoing;
  outgoing.key = KeyOf(step, phase, piece.number, replica);
  outgoing.compress = step.compress;
  outgoing.rows = piece.rows;
  return outgoing;
}

absl::Status ReplicaAverager::StartStep(const ExchangeStep& step) {
  for (Exchanged& piece : pieces_) piece.is_contributed = false;
  const ReplicasSpec& replicas = options_.replicas;
  const auto every = static_cast<uint64_t>(replicas.digest_every);
  digest_ = 0;
  if (every > 0 && (replicas.trains_locally() || step.step % every == 0)) {
    // Where one carries all, nobody compares it: then only its bytes count.
    digest_ = 1;
    if (options_.carriers > 1) {
      ASSIGN_OR_RETURN(digest_, DigestOfParameters());
    }
  }
  return statistics_.Keep();
}

absl::StatusOr<uint64_t> ReplicaAverager::DigestOfParameters() const {
  Digest digest;
  std::vector<uint8_t> bytes;
  const auto add = [&](const Buffer* memory, size_t size) {
    if (memory == nullptr) return absl::OkStatus();
    bytes.resize(size);
    const Error error = options_.device->CopyToHost(bytes.data(), memory->data(), size);
    digest.Add(bytes.data(), bytes.size());
    return ToStatus(error);
  };
  for (Segment* const segment : segments_) {
    for (const Parameter& parameter : segment->parameters()) {
      if (parameter.is_coded()) {
        RETURN_IF_ERROR(add(parameter.codes.get(), parameter.codes->bytes()));
        const Buffer* const scales = parameter.scales.get();
        RETURN_IF_ERROR(add(scales, scales == nullptr ? 0 : scales->bytes()));
      } else {
        RETURN_IF_ERROR(add(parameter.value.buffer().get(), parameter.value.bytes()));
      }
    }
  }
  return digest.value() != 0 ? digest.value() : 1;
}

absl::Status ReplicaAverager::ContributeEarly(const ExchangeStep& step, int replica, int segment) {
  for (Exchanged& piece : pieces_) {
    if (!piece.is_early || SegmentOfPiece(piece.number) != segment) continue;
    RETURN_IF_ERROR(ContributePiece(step, replica, &piece));
    piece.is_contributed = true;
  }
  return absl::OkStatus();
}

absl::Status ReplicaAverager::Contribute(const ExchangeStep& step, int replica) {
  for (Exchanged& piece : pieces_) {
    if (piece.fragment != step.fragment || std::exchange(piece.is_contributed, false)) continue;
    RETURN_IF_ERROR(ContributePiece(step, replica, &piece));
  }
  const bool has_statistics = step.fragment == 0 && replica < step.with_samples;
  return has_statistics ? ContributeStatistics(step, replica) : absl::OkStatus();
}

absl::Status ReplicaAverager::ContributePiece(const ExchangeStep& step, int replica,
                                              Exchanged* piece) {
  if (IsReducedByFactors(step, *piece)) return ContributeFirst(step, replica, piece);
  MessageEncoder* const encoder = piece->contributors[replica].get();
  MessageEncoder::Outgoing outgoing = OutgoingOf(step, PHASE_CONTRIBUTION, replica, *piece);
  outgoing.sample_digest = digest_;
  ASSIGN_OR_RETURN(outgoing.x, piece->memory.Gather());
  const bool is_decoded_anyway = encoder->feedback().state() != nullptr;
  outgoing.want_received = is_decoded_anyway && AddsHere(*piece);
  const int receivers = gathers() ? options_.replicas.count - 1 : piece->owner != replica;
  ASSIGN_OR_RETURN(const PieceCoder::Coded coded, Encode(outgoing, *piece, receivers, encoder));
  for (int carrier = 0; carrier < options_.carriers; ++carrier) {
    if (carrier == options_.carrier || !AddsAt(carrier, *piece)) continue;
    peers_->Send(carrier, coded.encoded.message);
  }
  if (!AddsHere(*piece)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor contribution, coder_.Received(outgoing, coded.encoded));
  return replica == piece->added ? Add(contribution, piece)
                                 : Keep(contribution, &piece->kept[replica]);
}

absl::Status ReplicaAverager::Keep(const Tensor& contribution, Tensor* kept) const {
  if (kept->empty()) {
    ASSIGN_OR_RETURN(*kept, Tensor::Allocate(options_.device, DType::kF32, contribution.shape()));
  }
  return ToStatus(options_.ops->Convert(contribution.view(), kept->view()));
}

absl::Status ReplicaAverager::Add(const Tensor& contribution, Exchanged* piece) const {
  if (piece->added++ == 0) return Keep(contribution, &piece->sum);
  const TensorView sum = piece->sum.view();
  return ToStatus(options_.ops->Add(sum, contribution.view(), sum));
}

absl::Status ReplicaAverager::ContributeStatistics(const ExchangeStep& step, int replica) {
  for (RunningStatistics::OfSegment& of : statistics_.segments()) {
    ASSIGN_OR_RETURN(std::vector<float> values, statistics_.Read(of));
    of.left.resize(static_cast<size_t>(step.with_samples));
    of.left[replica] = values;
    Message message;
    message.key = KeyOf(step, PHASE_CONTRIBUTION, of.number, replica);
    message.shape = {1, of.elements};
    message.payload = PayloadOf(std::move(values));
    peers_->SendToAll(message);
    if (!options_.counts_all) continue;
    counts_.AddMessage(message, {options_.replicas.count - 1, of.elements});
  }
  return absl::OkStatus();
}

absl::Status ReplicaAverager::FinishStatistics(const ExchangeStep& step) {
  for (RunningStatistics::OfSegment& of : statistics_.segments()) {
    of.left.resize(static_cast<size_t>(step.with_samples));
    for (int replica = 0; replica < step.with_samples; ++replica) {
      if (carried_.has(replica)) continue;
      const int carrier = CarrierOfReplica(replica);
      const MessageKey key = KeyOf(step, PHASE_CONTRIBUTION, of.number, replica);
      ASSIGN_OR_RETURN(const Message message, peers_->Receive(carrier, key));
      const auto bytes = static_cast<size_t>(of.elements) * sizeof(float);
      if (message.payload.bytes.size() != bytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "replica ", replica, ", running statistics: step ", step.step, ": ",
            message.payload.bytes.size(), " bytes from carrier ", carrier, ", want ", bytes));
      }
      of.left[replica].resize(static_cast<size_t>(of.elements));
      std::memcpy(of.left[replica].data(), message.payload.bytes.data(), bytes);
    }
    RETURN_IF_ERROR(statistics_.SetMeans(of));
  }
  return absl::OkStatus();
}

absl::Status ReplicaAverager::Finish(const ExchangeStep& step) {
  // First what others wait for.
  RETURN_IF_ERROR(ForEach(step, {/*here=*/true, /*by_factors=*/true}, &ReplicaAverager::SumFirst));
  RETURN_IF_ERROR(ForEach(step, {true, false}, &ReplicaAverager::SumWhole));
  RETURN_IF_ERROR(ForEach(step, {false, true}, &ReplicaAverager::ContributeSecond));
  RETURN_IF_ERROR(ForEach(step, {true, true}, &ReplicaAverager::SumSecond));
  RETURN_IF_ERROR(ForEach(step, {false, false}, &ReplicaAverager::SumWhole));
  RETURN_IF_ERROR(ForEach(step, {false, true}, &ReplicaAverager::TakeSecond));
  return step.fragment == 0 ? FinishStatistics(step) : absl::OkStatus();
}

absl::StatusOr<std::vector<double>> ReplicaAverager::ShareReadiness(
    const ExchangeStep& step, const std::vector<double>& numbers) {
  Message message;
  message.key = KeyOf(step, PHASE_READY, /*number=*/0, carried_.first);
  message.shape = {1, static_cast<int64_t>(2 * numbers.size())};
  message.payload = PayloadOf(numbers);
  if (carried_.size() > 0) peers_->SendToAll(message);
  std::vector<double> all;
  for (int carrier = 0; carrier < options_.carriers; ++carrier) {
    if (carrier == options_.carrier) {
      all.insert(all.end(), numbers.begin(), numbers.end());
      continue;
    }
    const ReplicaRange carried = options_.CarriedBy(carrier);
    if (carried.size() == 0) continue;  // it follows
    const MessageKey key = KeyOf(step, PHASE_READY, /*number=*/0, carried.first);
    ASSIGN_OR_RETURN(const Message met, peers_->Receive(carrier, key));
    const size_t before = all.size();
    all.resize(before + kReadyNumbers * static_cast<size_t>(carried.end - carried.first));
    const size_t bytes = (all.size() - before) * sizeof(double);
    if (met.payload.bytes.size() != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(met.key.ToString(), ": ", met.payload.bytes.size(), " bytes from carrier ",
                       carrier, ", want ", bytes));
    }
    std::memcpy(&all[before], met.payload.bytes.data(), bytes);
  }
  return all;
}

absl::Status ReplicaAverager::ForEach(const ExchangeStep& step, Which which, Act act) {
  for (Exchanged& piece : pieces_) {
    const bool is_meant = piece.fragment == step.fragment && AddsHere(piece) == which.here &&
                          IsReducedByFactors(step, piece) == which.by_factors;
    if (is_meant) RETURN_IF_ERROR((this->*act)(step, &piece));
  }
  return absl::OkStatus();
}

absl::Status ReplicaAverager::SumWhole(const ExchangeStep& step, Exchanged* piece) {
  if (AddsHere(*piece)) RETURN_IF_ERROR(AddUp(step, piece));
  ASSIGN_OR_RETURN(const Tensor sum, SumOf(step, piece));
  return piece->memory.Scatter(sum);
}

absl::Status ReplicaAverager::AddUp(const ExchangeStep& step, Exchanged* piece) {
  for (int replica = piece->added; replica < options_.replicas.count; ++replica) {
    if (carried_.has(replica)) {
      RETURN_IF_ERROR(Add(piece->kept[replica], piece));
      continue;
    }
    const MessageKey key = KeyOf(step, PHASE_CONTRIBUTION, piece->number, replica);
    ASSIGN_OR_RETURN(const Tensor contribution, ReceiveFrom(CarrierOfReplica(replica), step, key,
                                                            *piece, piece->others[replica].get()));
    RETURN_IF_ERROR(Add(contribution, piece));
  }
  piece->added = 0;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReplicaAverager::SumOf(const ExchangeStep& step, Exchanged* piece) {
  if (gathers()) return piece->sum;
  // Its random numbers may not depend on the owner: a tied weight's copy has others.
  MessageEncoder::Outgoing outgoing = OutgoingOf(step, PHASE_AVERAGE, /*replica=*/0, *piece);
  if (piece->average == nullptr) {
    return ReceiveFrom(CarrierOfReplica(piece->owner), step, outgoing.key, *piece,
                       piece->average_of_owner.get());
  }
  outgoing.x = piece->sum;
  ASSIGN_OR_RETURN(const PieceCoder::Coded coded,
                   Encode(outgoing, *piece, options_.replicas.count - 1, piece->average.get()));
  peers_->SendToAll(coded.encoded.message);
  return coder_.Received(outgoing, coded.encoded);
}

absl::StatusOr<PieceCoder::Coded> ReplicaAverager::Encode(const MessageEncoder::Outgoing& outgoing,
                                                          const Exchanged& piece, int receivers,
                                                          MessageEncoder* encoder) {
  absl::StatusOr<PieceCoder::Coded> coded = coder_.Encode(outgoing, encoder);
  if (!coded.ok()) return Named(outgoing.key, piece, coded.status());
  Message& message = coded->encoded.message;
  const bool shares_memory = message.payload.bytes.data() == outgoing.x.data();
  if (shares_memory && options_.carriers > 1) {
    ASSIGN_OR_RETURN(message.payload, OnHost(message.payload.bytes, options_.device));
  }
  if (!piece.memory.is_copy() && piece.is_counted) {
    counts_.AddMessage(message,
                       {receivers, message.shape.elements(), coded->encoded.level, coded->error});
  }
  return coded;
}

absl::StatusOr<Tensor> ReplicaAverager::ReceiveFrom(int carrier, const ExchangeStep& step,
                                                    const MessageKey& key, const Exchanged& piece,
                                                    MessageDecoder* decoder) {
  ASSIGN_OR_RETURN(const Message message, peers_->Receive(carrier, key));
  absl::StatusOr<Tensor> decoded = DecodeOfPeer(message, step, piece, decoder);
  if (decoded.ok()) return decoded;
  return Named(key, piece, Annotated(decoded.status(), absl::StrCat("from carrier ", carrier)));
}

absl::StatusOr<Tensor> ReplicaAverager::DecodeOfPeer(const Message& message,
                                                     const ExchangeStep& step,
                                                     const Exchanged& piece,
                                                     MessageDecoder* decoder) {
  RETURN_IF_ERROR(CheckDigest(message));
  return coder_.Decode(message, step.compress, piece.rows.get(), decoder);
}

absl::Status ReplicaAverager::CheckDigest(const Message& message) const {
  const bool has_digest = message.key.phase == PHASE_CONTRIBUTION;
  if (!has_digest || message.sample_digest == digest_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its parameters have the digest ", absl::Hex(message.sample_digest), ", those here ",
      absl::Hex(digest_), ": the carriers of this stage are no longer equal"));
}

absl::Status ReplicaAverager::Named(const MessageKey& key, const Exchanged& piece,
                                    const absl::Status& status) {
  const std::string whose =
      IsOfSum(key.phase) ? "sum of replicas" : absl::StrCat("replica ", key.microbatch);
  return Annotated(status,
                   absl::StrCat(whose, ", ", piece.memory.piece().name, ": step ", key.step));
}

std::vector<ReplicaAverager::Contributor> ReplicaAverager::contributors() const {
  std::vector<Contributor> all;
  for (const Exchanged& piece : pieces_) {
    for (int replica = 0; replica < options_.replicas.count; ++replica) {
      Contributor& one = all.emplace_back();
      one.piece = piece.number;
      one.replica = replica;
      one.encoder = piece.contributors[replica].get();
      one.decoder = piece.others[replica].get();
      one.is_of_part = piece.is_of_part;
    }
  }
  return all;
}

}  // namespace thinwire
