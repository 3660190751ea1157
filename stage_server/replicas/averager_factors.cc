#include <cstdint>
#include <utility>
#include <vector>

#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "stage_server/replicas/averager.h"

namespace thinwire {

absl::Status ReplicaAverager::ContributeFirst(const ExchangeStep& step, int replica,
                                              Exchanged* piece) {
  const MessageKey key = KeyOf(step, PHASE_CONTRIBUTION, piece->number, replica);
  MessageEncoder* const encoder = piece->contributors[replica].get();
  ASSIGN_OR_RETURN(const Tensor gradient, piece->memory.Gather());
  std::vector<uint64_t> rows;
  if (encoder->feedback().state() != nullptr) {
    const StateKey kind = encoder->spec().feedback.key;
    ASSIGN_OR_RETURN(rows, piece->rows->Of(kind, key.step, key.microbatch));
  }
  const Stopwatch encoding;
  const absl::StatusOr<Tensor> factor =
      piece->factored->Project(replica, gradient, std::move(rows), &encoder->feedback());
  if (!factor.ok()) return Named(key, *piece, factor.status());
  counts_.Of(key.phase).AddEncoding(encoding.Read(), /*level=*/{});
  Message message = FactorMessage(key, *factor);
  message.sample_digest = digest_;
  ContributeFactor(message, *factor, piece);
  return absl::OkStatus();
}

void ReplicaAverager::ContributeFactor(const Message& message, const Tensor& factor,
                                       Exchanged* piece) {
  const auto replica = static_cast<int>(message.key.microbatch);
  if (AddsHere(*piece)) {
    piece->factored->Keep(replica, factor);
  } else {
    peers_->Send(CarrierOfReplica(piece->owner), message);
  }
}

absl::Status ReplicaAverager::SumFirst(const ExchangeStep& step, Exchanged* piece) {
  ASSIGN_OR_RETURN(Tensor sum, SumOfFactors(step, PHASE_CONTRIBUTION, piece));
  const Stopwatch encoding;
  const absl::Status made = piece->factored->MakeBasis(std::move(sum));
  if (!made.ok()) return Named(KeyOf(step, PHASE_AVERAGE, piece->number, 0), *piece, made);
  counts_.Of(PHASE_AVERAGE).AddEncoding(encoding.Read(), /*level=*/{});
  SendFactorOfSum(step, PHASE_AVERAGE, piece->factored->basis(), *piece);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReplicaAverager::SumOfFactors(const ExchangeStep& step, Phase phase,
                                                     Exchanged* piece) {
  Tensor sum;
  for (int replica = 0; replica < options_.replicas.count; ++replica) {
    Tensor factor;
    if (carried_.has(replica)) {
      factor = piece->factored->TakeKept(replica);
    } else {
      const MessageKey key = KeyOf(step, phase, piece->number, replica);
      ASSIGN_OR_RETURN(factor, ReceiveFactor(CarrierOfReplica(replica), key, *piece));
    }
    const Stopwatch adding;
    RETURN_IF_ERROR(AddFactor(factor, &sum));
    counts_.Of(phase).AddDecoding(adding.Read());
  }
  return sum;
}

absl::StatusOr<Tensor> ReplicaAverager::ReceiveFactor(int carrier, const MessageKey& key,
                                                      const Exchanged& piece) {
  ASSIGN_OR_RETURN(const Message message, peers_->Receive(carrier, key));
  const bool is_first = key.phase == PHASE_CONTRIBUTION || key.phase == PHASE_AVERAGE;
  absl::Status status = CheckDigest(message);
  if (status.ok()) {
    absl::StatusOr<Tensor> factor = ReadFactor(
        message, is_first ? piece.factored->first_shape() : piece.factored->second_shape());
    if (factor.ok()) return factor;
    status = factor.status();
  }
  return Named(key, piece, Annotated(status, absl::StrCat("from carrier ", carrier)));
}

void ReplicaAverager::SendFactorOfSum(const ExchangeStep& step, Phase phase, const Tensor& factor,
                                      const Exchanged& piece) {
  const Message message = FactorMessage(KeyOf(step, phase, piece.number, /*replica=*/0), factor);
  const int64_t elements = phase == PHASE_AVERAGE ? piece.memory.piece().shape.elements() : 0;
  if (piece.is_counted) counts_.AddMessage(message, {options_.replicas.count - 1, elements});
  peers_->SendToAll(message);
}

absl::Status ReplicaAverager::ContributeSecond(const ExchangeStep& step, Exchanged* piece) {
  const MessageKey key = KeyOf(step, PHASE_AVERAGE, piece->number, /*replica=*/0);
  ASSIGN_OR_RETURN(Tensor basis, ReceiveFactor(CarrierOfReplica(piece->owner), key, *piece));
  piece->factored->SetBasis(std::move(basis));
  return Reproject(step, piece);
}

absl::Status ReplicaAverager::Reproject(const ExchangeStep& step, Exchanged* piece) {
  const bool is_measured =
      options_.error_every > 0 && step.step % static_cast<uint64_t>(options_.error_every) == 0;
  for (int replica = carried_.first; replica < carried_.end; ++replica) {
    const MessageKey key = KeyOf(step, PHASE_SECOND_CONTRIBUTION, piece->number, replica);
    const Stopwatch encoding;
    const absl::StatusOr<Tensor> factor = piece->factored->Reproject(replica);
    if (!factor.ok()) return Named(key, *piece, factor.status());
    counts_.Of(key.phase).AddEncoding(encoding.Read(), /*level=*/{});
    const Message message = FactorMessage(key, *factor);
    ExchangeCounts::Counted counted;
    if (is_measured) {
      ASSIGN_OR_RETURN(counted.error, piece->factored->Measure(replica, *factor));
    }
    CountFactors(step, replica, message, counted, *piece);
    ContributeFactor(message, *factor, piece);
  }
  return absl::OkStatus();
}

// Both are counted at once, as the step's counts may be reported between them where training goes
// on while factors travel. The first one, of the basis' shape, stands for the elements.
void ReplicaAverager::CountFactors(const ExchangeStep& step, int replica, const Message& second,
                                   ExchangeCounts::Counted counted, const Exchanged& piece) {
  if (!piece.is_counted) return;
  Message first = FactorMessage(KeyOf(step, PHASE_CONTRIBUTION, piece.number, replica),
                                piece.factored->basis());
  first.sample_digest = digest_;
  counted.receivers = piece.owner != replica;
  counts_.AddMessage(first, {counted.receivers, piece.memory.piece().shape.elements()});
  counts_.AddMessage(second, counted);
}

absl::Status ReplicaAverager::SumSecond(const ExchangeStep& step, Exchanged* piece) {
  RETURN_IF_ERROR(Reproject(step, piece));
  ASSIGN_OR_RETURN(const Tensor sum, SumOfFactors(step, PHASE_SECOND_CONTRIBUTION, piece));
  SendFactorOfSum(step, PHASE_SECOND_AVERAGE, sum, *piece);
  return UseFactors(step, sum, piece);
}

absl::Status ReplicaAverager::TakeSecond(const ExchangeStep& step, Exchanged* piece) {
  const MessageKey key = KeyOf(step, PHASE_SECOND_AVERAGE, piece->number, /*replica=*/0);
  ASSIGN_OR_RETURN(const Tensor sum, ReceiveFactor(CarrierOfReplica(piece->owner), key, *piece));
  return UseFactors(step, sum, piece);
}

absl::Status ReplicaAverager::UseFactors(const ExchangeStep& step, const Tensor& sum,
                                         Exchanged* piece) {
  const MessageKey key = KeyOf(step, PHASE_SECOND_AVERAGE, piece->number, /*replica=*/0);
  const Stopwatch decoding;
  const absl::StatusOr<Tensor> used = piece->factored->Finish(sum);
  if (!used.ok()) return Named(key, *piece, used.status());
  counts_.Of(key.phase).AddDecoding(decoding.Read());
  return piece->memory.Scatter(*used);
}

}  // namespace thinwire
