// Averages the gradients of a stage's replicas (Dean et al., NeurIPS 2012, synchronously; two hops
// with an owner for each piece, as in sharded parameter servers). Every replica uses what the
// messages decode to, so all have the same bits whoever carries them.
//
// Here one process carries all replicas of its stage, one after the other. What is counted are the
// messages that as many machines as there are replicas would exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/feedback/message_tensors.h"
#include "config/replicas_spec.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "stage_server/boundary/encoder.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/replicas/piece_memory.h"

namespace thinwire {

struct AveragerOptions {
  ReplicasSpec replicas;
  uint64_t run = 0, generation = 0;  // as in frames, whose bytes are counted
  uint64_t codec_seed = 0;
  std::string tied;         // name of the weight that has a copy; empty: none
  int64_t error_every = 0;  // measures distortion on every n-th step; 0: never
  Device* device = nullptr;
  Ops* ops = nullptr;
  CodecKernels* kernels = nullptr;
};

// What a message of an exchange belongs to.
struct ExchangeStep {
  uint32_t epoch = 0;
  uint64_t step = 0;
  bool compress = false;
};

// A segment whose gradients are exchanged.
struct ExchangedSegment {
  int number = 0;  // in model order
  absl::Span<Parameter> parameters;
};

class ReplicaAverager {
 public:
  // Makes an averager of the segments' trainable parameters, which outlive it as all pointers of
  // the options do. InvalidArgument names a piece that a codec cannot carry.
  static absl::StatusOr<std::unique_ptr<ReplicaAverager>> New(
      const AveragerOptions& options, const std::vector<ExchangedSegment>& segments);

  // Prepares for the steps of an epoch of training.
  void StartEpoch(const EpochSpec& epoch);

  // Takes the parameters' gradients, which are those of one replica's microbatches, as that
  // replica's contribution to the step. Replicas come in ascending order. OutOfRange names piece
  // and replica where a gradient is not finite.
  absl::Status Contribute(const ExchangeStep& step, int replica);

  // Sets the gradients to the sum of all contributions, as everybody uses it.
  absl::Status Finish(const ExchangeStep& step);

  // Counters of one direction; any thread.
  BoundaryStatistics contributions() const;
  BoundaryStatistics average() const;

  // What a replica keeps of its contributions of one piece, for checkpoints. Used between steps
  // only.
  struct Contributor {
    uint32_t piece = 0;  // its number in the model
    int replica = 0;
    MessageEncoder* encoder = nullptr;
  };
  std::vector<Contributor> contributors() const;

 private:
  // One piece with what its messages need.
  struct Exchanged {
    explicit Exchanged(PieceMemory of) : memory(std::move(of)) {}

    PieceMemory memory;
    uint32_t number = 0;                                        // PieceNumber
    int owner = 0;                                              // replica that adds it up
    std::vector<std::unique_ptr<MessageEncoder>> contributors;  // by replica
    std::unique_ptr<MessageEncoder> average;                    // null with kGather
    std::shared_ptr<const EpochRows> rows;                      // of the epoch
    Tensor sum;
  };

  explicit ReplicaAverager(const AveragerOptions& options) : options_(options) {}
  absl::Status AddSegment(const ExchangedSegment& segment);
  absl::Status AddEncoders(Exchanged* exchanged);
  BoundarySpec SpecOf(const Piece& piece, const DirectionSpec& does) const;
  absl::StatusOr<std::unique_ptr<MessageEncoder>> NewEncoder(const BoundarySpec& spec) const;
  // Returns a message of that piece, except for its tensor.
  MessageEncoder::Outgoing OutgoingOf(const ExchangeStep& step, Phase phase, int replica,
                                      size_t piece) const;
  // Encodes a message, counts it once for each of its receivers and returns what it decodes to. The
  // tensor is valid until the next message.
  absl::StatusOr<Tensor> Send(const MessageEncoder::Outgoing& outgoing, const Exchanged& piece,
                              int receivers, MessageEncoder* encoder);
  absl::StatusOr<Tensor> Received(const MessageEncoder::Outgoing& outgoing,
                                  const MessageEncoder::Encoded& encoded);
  BoundaryStatistics::Traffic TrafficOf(const MessageEncoder::Outgoing& outgoing,
                                        const MessageEncoder::Encoded& encoded,
                                        int receivers) const;

  const AveragerOptions options_;
  std::vector<Exchanged> pieces_;
  ReusedTensor decoded_;
  mutable std::mutex mutex_;
  BoundaryStatistics contributions_ ABSL_GUARDED_BY(mutex_), average_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
