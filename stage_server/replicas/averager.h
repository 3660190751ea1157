// Averages the gradients of a stage's replicas (Dean et al., NeurIPS 2012, synchronously; two hops
// with an owner for each piece, as in sharded parameter servers). Every replica uses what the
// messages decode to, so all have the same bits whoever carries them.
//
// A process carries some of its stage's replicas, one after the other, or all of them. Its peers
// carry the others. One that carries none gets what all get, and may be steps behind. What is
// counted are the messages that as many machines as there are replicas would exchange, each where
// it is encoded.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/segment/segment.h"
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/encoder.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/peers.h"
#include "stage_server/replicas/exchange_counts.h"
#include "stage_server/replicas/exchange_options.h"
#include "stage_server/replicas/factored_piece.h"
#include "stage_server/replicas/piece_coder.h"
#include "stage_server/replicas/piece_memory.h"
#include "stage_server/replicas/running_statistics.h"

namespace thinwire {

// Step that a message of an exchange belongs to.
struct ExchangeStep {
  uint32_t epoch = 0;
  uint64_t step = 0;
  bool compress = false;
  int with_samples = 0;  // number of replicas, the first ones, that have samples of the batch
  int fragment = 0;      // whose pieces are exchanged; running statistics are of fragment 0
};

// A segment whose gradients are exchanged.
struct ExchangedSegment {
  int number = 0;  // in model order
  Segment* segment = nullptr;
  // Parameters of the whole segment in model order, where tensor-parallel parts of it are
  // elsewhere; empty: all are here.
  std::vector<ParameterSpec> parameters = {};
};

class ReplicaAverager {
 public:
  // Makes an averager of the segments' trainable parameters, which outlive it. InvalidArgument
  // names a piece that a codec cannot carry.
  static absl::StatusOr<std::unique_ptr<ReplicaAverager>> New(
      const ExchangeOptions& options, const std::vector<ExchangedSegment>& segments);

  // Returns the links to the other carriers. All have to be attached before the first step.
  CarrierPeers& peers() const { return *peers_; }
  // Return the longest payload and the most messages in a step that a peer may send.
  uint64_t max_payload_bytes() const { return max_payload_bytes_; }
  size_t messages_of_step() const;

  // Prepares for the steps of an epoch of training.
  void StartEpoch(const EpochSpec& epoch);

  // Takes note of the running statistics and, where that is due, of the parameters' digest, before
  // the contributions to a step.
  absl::Status StartStep(const ExchangeStep& step);
  // Sets the running statistics to those of the step's begin, for the next replica.
  absl::Status StartReplica() const { return statistics_.Restore(); }

  // Takes what it can of a replica's contribution after the last backward pass of a segment: the
  // gradients of pieces to which neighbours do not add. Contribute then takes the rest. So messages
  // travel while segments before it are at work.
  absl::Status ContributeEarly(const ExchangeStep& step, int replica, int segment);

  // Takes the parameters' gradients, which are those of one replica's microbatches, as that
  // replica's contribution to the step, and what its samples left of running statistics. The
  // carried replicas come in ascending order. OutOfRange names piece and replica where a gradient
  // is not finite.
  absl::Status Contribute(const ExchangeStep& step, int replica);

  // Sets the gradients to the sum of all contributions, as everybody uses it, and running
  // statistics to their means over the replicas with samples. Waits for the peers. OutOfRange names
  // piece and replica where a peer's contribution is not finite, FailedPrecondition where it is of
  // other parameters than those here.
  absl::Status Finish(const ExchangeStep& step);

  // Tells the other carriers that the averages of the step have come to all stages of this one, and
  // waits until they say the same. Each adds kReadyNumbers for each replica that it carries; who
  // carries none says nothing.
  // Returns those of all replicas, ascending.
  static constexpr size_t kReadyNumbers = 3;
  absl::StatusOr<std::vector<double>> ShareReadiness(const ExchangeStep& step,
                                                     const std::vector<double>& numbers);

  // Returns the counts of contributions and sums; any thread.
  ExchangeCounts& counts() { return counts_; }

  // State that is remembered of a replica's contributions of one piece: at its carrier by
  // `encoder`, at the others by `decoder`, both null where a carrier does not need them. Used
  // between steps only.
  struct Contributor {
    uint32_t piece = 0;  // its number in the model
    int replica = 0;
    MessageEncoder* encoder = nullptr;
    MessageDecoder* decoder = nullptr;
    bool is_of_part = false;  // of a tensor-parallel part's piece
  };
  std::vector<Contributor> contributors() const;
  // Returns whether the piece of that number belongs to a tensor-parallel part elsewhere.
  bool IsElsewhere(uint32_t piece) const { return elsewhere_.count(piece) > 0; }

 private:
  // One piece with what its messages need.
  struct Exchanged {
    explicit Exchanged(PieceMemory of) : memory(std::move(of)) {}

    PieceMemory memory;
    uint32_t number = 0;  // PieceNumber
    int fragment = 0;
    int owner = 0;                // replica that adds it up
    bool is_of_part = false;      // of a tensor-parallel part
    bool is_counted = true;       // here, and not by another carrier of the same replicas
    bool is_early = false;        // may be contributed early: a whole piece that is not tied
    bool is_contributed = false;  // already, by the replica at work
    // By replica: encoders of the carried ones, decoders of the others where this carrier adds.
    std::vector<std::unique_ptr<MessageEncoder>> contributors;
    std::vector<std::unique_ptr<MessageDecoder>> others;
    // Set where the owner is carried, and where it is not; both null with kGather.
    std::unique_ptr<MessageEncoder> average;
    std::unique_ptr<MessageDecoder> average_of_owner;
    std::shared_ptr<const EpochRows> rows;  // of the epoch
    Tensor sum;                             // of the first `added` replicas
    int added = 0;
    std::vector<Tensor> kept;  // by replica: contributions that wait for those before them
    std::unique_ptr<FactoredPiece> factored;  // where a step that compresses reduces by factors
  };

  explicit ReplicaAverager(const ExchangeOptions& options);
  absl::Status AddSegment(const ExchangedSegment& segment);
  absl::Status AddCoders(Exchanged* exchanged);
  bool gathers() const { return options_.replicas.exchange == ReplicaExchange::kGather; }
  int CarrierOfReplica(int replica) const;
  // Returns whether that carrier adds up the contributions to the piece.
  bool AddsAt(int carrier, const Exchanged& piece) const;
  bool AddsHere(const Exchanged& piece) const { return AddsAt(options_.carrier, piece); }

  // Returns the key of a message of that number; a sum is of replica 0.
  static MessageKey KeyOf(const ExchangeStep& step, Phase phase, uint32_t number, int replica);
  // Returns a message of that piece, except for its tensor.
  MessageEncoder::Outgoing OutgoingOf(const ExchangeStep& step, Phase phase, int replica,
                                      const Exchanged& piece) const;
  absl::Status ContributePiece(const ExchangeStep& step, int replica, Exchanged* piece);
  absl::Status ContributeStatistics(const ExchangeStep& step, int replica);
  absl::Status FinishStatistics(const ExchangeStep& step);

  // Pieces that one phase of Finish is for: added up here or elsewhere, by factors or whole.
  struct Which {
    bool here = false, by_factors = false;
  };
  using Act = absl::Status (ReplicaAverager::*)(const ExchangeStep& step, Exchanged* piece);
  absl::Status ForEach(const ExchangeStep& step, Which which, Act act);
  // Sends or receives the sum of a whole piece.
  absl::Status SumWhole(const ExchangeStep& step, Exchanged* piece);

  // Steps of a piece that is reduced by factors (averager_factors.cc), in their order.
  static bool IsReducedByFactors(const ExchangeStep& step, const Exchanged& piece) {
    return step.compress && piece.factored != nullptr;
  }
  // Contributes a replica's P.
  absl::Status ContributeFirst(const ExchangeStep& step, int replica, Exchanged* piece);
  // Adds up all P, and sends their basis.
  absl::Status SumFirst(const ExchangeStep& step, Exchanged* piece);
  // Receives the basis, and contributes the Q of all carried replicas.
  absl::Status ContributeSecond(const ExchangeStep& step, Exchanged* piece);
  // Contributes likewise to a piece that is added up here, adds up all Q, and sends and uses them.
  absl::Status SumSecond(const ExchangeStep& step, Exchanged* piece);
  // Receives and uses the sum of all Q.
  absl::Status TakeSecond(const ExchangeStep& step, Exchanged* piece);
  absl::Status Reproject(const ExchangeStep& step, Exchanged* piece);
  absl::Status UseFactors(const ExchangeStep& step, const Tensor& sum, Exchanged* piece);
  // Sends a carried replica's factor to who adds it up, or keeps it.
  void ContributeFactor(const Message& message, const Tensor& factor, Exchanged* piece);
  // Counts both of a replica's factors.
  void CountFactors(const ExchangeStep& step, int replica, const Message& second,
                    ExchangeCounts::Counted counted, const Exchanged& piece);
  // Returns the sum of a factor of all replicas, in ascending order. `phase` is of contributions.
  absl::StatusOr<Tensor> SumOfFactors(const ExchangeStep& step, Phase phase, Exchanged* piece);
  // Sends a factor of the sum to all, and counts it.
  void SendFactorOfSum(const ExchangeStep& step, Phase phase, const Tensor& factor,
                       const Exchanged& piece);
  // Returns the factor that a carrier sends under that key.
  absl::StatusOr<Tensor> ReceiveFactor(int carrier, const MessageKey& key, const Exchanged& piece);

  absl::Status AddUp(const ExchangeStep& step, Exchanged* piece);
  absl::Status Add(const Tensor& contribution, Exchanged* piece) const;
  absl::Status Keep(const Tensor& contribution, Tensor* kept) const;
  // Returns the sum as everybody uses it: encoded here and sent to the peers, or received. The
  // tensor is valid until the next message.
  absl::StatusOr<Tensor> SumOf(const ExchangeStep& step, Exchanged* piece);

  // Encodes a message and counts it once for each of its receivers. What is sent of it has memory
  // of its own.
  absl::StatusOr<PieceCoder::Coded> Encode(const MessageEncoder::Outgoing& outgoing,
                                           const Exchanged& piece, int receivers,
                                           MessageEncoder* encoder);
  // Returns what a message of a peer, which has to be that of `key`, decodes to. The tensor is
  // valid until the next message.
  absl::StatusOr<Tensor> ReceiveFrom(int carrier, const ExchangeStep& step, const MessageKey& key,
                                     const Exchanged& piece, MessageDecoder* decoder);
  absl::StatusOr<Tensor> DecodeOfPeer(const Message& message, const ExchangeStep& step,
                                      const Exchanged& piece, MessageDecoder* decoder);
  absl::StatusOr<uint64_t> DigestOfParameters() const;
  absl::Status CheckDigest(const Message& message) const;
  // Names the message that `status` is about.
  static absl::Status Named(const MessageKey& key, const Exchanged& piece,
                            const absl::Status& status);

  const ExchangeOptions options_;
  const ReplicaRange carried_;
  std::unique_ptr<CarrierPeers> peers_;
  FactoredPiece::Shared factored_;  // outlives the pieces
  std::vector<Exchanged> pieces_;
  std::set<uint32_t> elsewhere_;  // numbers of pieces
  RunningStatistics statistics_;
  std::vector<Segment*> segments_;
  uint64_t digest_ = 0;  // of the parameters, in contributions of this step; 0: none
  uint64_t max_payload_bytes_ = 0;
  ExchangeCounts counts_;
  PieceCoder coder_;
};

}  // namespace thinwire
