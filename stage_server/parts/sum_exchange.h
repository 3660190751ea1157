// Adds up what the tensor-parallel parts of a stage's layers have made (models/parts.h). Each
// partial sum is encoded, and everybody, its own part too, adds what it decodes to, in ascending
// order of parts. So all have the same bits, whoever carries which parts.
//
// Where layers between them work on slices of positions (models/sliced_positions.h), a partial sum
// is cut, and each slice goes only to the part that has it. Before parts need whole samples, all
// send each other their slices.
//
// Counts are of the messages that as many machines as there are parts would exchange: a partial
// sum goes to all others, since sums of coded tensors are in general no coded tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "config/replicas_spec.h"
#include "config/tensor_parts.h"
#include "models/model.h"
#include "models/part_rounds.h"
#include "models/parts.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "nn/partial_sums.h"
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/encoder.h"
#include "stage_server/boundary/patience.h"
#include "stage_server/boundary/peers.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/parts/part_gather.h"
#include "wire/message.h"

namespace thinwire {

// One layer of a stage at which parts exchange messages (models/part_rounds.h).
struct StageSum {
  LayerSpec layer;
  uint32_t number = 0;    // in model order
  bool is_coded = false;  // false: its messages go exactly
};

struct SumOptions {
  SumsSpec sums;
  int place = 0, places = 1;           // of the machine among those that carry the parts
  std::shared_ptr<Patience> patience;  // bounds waits for the others

  // Returns the parts that are here.
  ReplicaRange carried() const { return CarriedBy(place, places, sums.parts); }

  int64_t max_batch = 0;  // number of samples of the largest message
  DType compute = DType::kF32;
  uint64_t codec_seed = 0;
  int64_t error_every = 0;           // measures distortion on every n-th step; 0: never
  uint64_t run = 0, generation = 0;  // as in frames, whose bytes are counted
  std::shared_ptr<StepTrace> trace;  // null: none
  Device* device = nullptr;
  Ops* ops = nullptr;
  CodecKernels* kernels = nullptr;
};

// Not thread-safe, except for the counts.
class SumExchange final : public PartialSums {
 public:
  // Makes the exchange of these sums. All pointers outlive it. InvalidArgument names a sum that a
  // codec cannot carry.
  static absl::StatusOr<std::unique_ptr<SumExchange>> New(const SumOptions& options,
                                                          const std::vector<StageSum>& sums);

  // Sets whose messages the next sums are: phase, epoch, step and microbatch of `key`.
  void Begin(const MessageKey& key, bool compress) {
    key_ = key;
    compress_ = compress;
    seconds_ = 0;
  }

  absl::StatusOr<Tensor> Add(PassDirection direction, const std::string& layer,
                             std::vector<Tensor> partials) override;
  absl::StatusOr<Tensor> Scatter(PassDirection direction, const std::string& layer,
                                 const PositionSlices& slices,
                                 std::vector<Tensor> partials) override;
  absl::StatusOr<Tensor> Gather(PassDirection direction, const std::string& layer,
                                const PositionSlices& slices, Tensor rows) override;

  // Sets gradients to the sums over all slices (Parameter::of_slices), and clears those of slices.
  // Called behind the last backward pass of a step through a segment, that of `key`, with the
  // number of the segment as key.cut.
  absl::Status AddSliceGradients(const MessageKey& key, absl::Span<Parameter> parameters);

  // Returns the links to the machines that carry the other parts. All have to be attached before
  // the first pass.
  CarrierPeers& peers() { return peers_; }
  PartGather& gather() { return gather_; }
  // Returns the longest payload of a partial sum.
  uint64_t max_payload_bytes() const { return max_payload_bytes_; }

  // Returns the counts of what is encoded and decoded here, in one direction; any thread.
  MessageCounts& counts(Direction direction) {
    return direction == DIRECTION_ACTIVATION ? activation_counts_ : gradient_counts_;
  }
  // Returns the seconds spent here since Begin or the last call, without waits for a core. They are
  // also in those of layers.
  double TakeSeconds() { return std::exchange(seconds_, 0); }

 private:
  // A round, and coders of its messages.
  struct Round {
    PartRound what;
    Direction direction = DIRECTION_UNSPECIFIED;
    uint32_t layer = 0;  // number of its layer
    // By part and slice: an encoder of each message from here, a decoder of each that comes here.
    std::map<std::pair<int, int>, std::unique_ptr<MessageEncoder>> encoders;
    std::map<std::pair<int, int>, std::unique_ptr<MessageDecoder>> decoders;
  };
  // Direction and kind of a round, and name of its layer.
  using RoundName = std::tuple<Direction, PartExchange, std::string>;

  explicit SumExchange(const SumOptions& options)
      : options_(options),
        carried_(options.carried()),
        peers_(kSums, options.place, options.places, /*most_early=*/0, options.patience),
        gather_(options.sums.parts, &peers_) {}
  absl::Status AddRounds(const StageSum& sum, Direction direction);
  absl::Status AddRound(const StageSum& sum, Direction direction, const PartRound& what);
  BoundarySpec SpecOf(const StageSum& sum, const Round& round, const PartMessage& message) const;
  // Returns whether a message is needed here.
  bool ComesHere(const Round& round, const PartMessage& message) const;

  // Returns the slice of a sum; recorded nowhere unless its step is traced.
  PlannedSlice SliceOf(Direction direction) const;
  // Calls exchange(&round) for a round of that name, measures it, and tells errors about what.
  template <typename Exchange>
  absl::StatusOr<Tensor> Run(PassDirection direction, PartExchange kind, const std::string& layer,
                             const Exchange& exchange);
  absl::StatusOr<Tensor> AddAll(std::vector<Tensor> partials, Round* round);
  absl::StatusOr<Tensor> ScatterAll(const PositionSlices& slices, std::vector<Tensor> partials,
                                    Round* round);
  absl::StatusOr<Tensor> GatherAll(const PositionSlices& slices, const Tensor& rows, Round* round);

  MessageKey KeyOf(const Round& round, const PartMessage& message) const;
  // Encodes a tensor of a part that is here, sends and counts its message, and returns what that
  // decodes to.
  absl::StatusOr<Tensor> Send(Tensor x, const PartMessage& place, Round* round);
  // Returns what a message of another part, with a tensor of that shape, decodes to.
  absl::StatusOr<Tensor> Receive(const PartMessage& place, const Shape& shape, Round* round);
  absl::StatusOr<Tensor> Received(const MessageEncoder::Outgoing& outgoing,
                                  const MessageEncoder::Encoded& encoded, MessageCounts* counts);
  BoundaryStatistics::Traffic TrafficOf(const MessageHeader& message, uint64_t payload_bytes,
                                        int receivers) const;
  // Adds what a part's message decodes to, part after part, in the memory of `sum`; *first keeps
  // that of the first part until then.
  absl::Status AddPart(int part, Tensor addend, const Tensor& sum, Tensor* first) const;

  const SumOptions options_;
  const ReplicaRange carried_;
  CarrierPeers peers_;
  PartGather gather_;
  uint64_t max_payload_bytes_ = 0;
  std::map<RoundName, Round> rounds_;
  MessageKey key_;
  bool compress_ = false;
  double seconds_ = 0;
  MessageCounts activation_counts_, gradient_counts_;
};

}  // namespace thinwire
