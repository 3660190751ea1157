// Cost of what tensor-parallel parts exchange (models/part_rounds.h): bytes on the wire, and the
// codecs' seconds. Layers wait for each round, of which one sum takes one, and two on slices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "config/replicas_spec.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/plan/message_costs.h"
#include "coordinator/plan/speeds.h"
#include "models/part_rounds.h"
#include "proto/experiment.pb.h"
#include "schedule/simulator.h"

namespace thinwire {

// Work of the machine that carries most parts in one direction of a pass.
struct SumsOfPass {
  int rounds = 0;            // one after another
  double codec_seconds = 0;  // of encoding what is sent from here and of decoding what comes
  int messages = 0;          // to and from other machines
  double bytes = 0;          // of all messages that go to one of the other machines, likely
};

// Seconds of a pass that sums take of a processor, and for which layers only wait.
struct SumSeconds {
  double computes = 0, waits = 0;
};

// Not thread-safe.
class SumCosts {
 public:
  // `experiment` is that of one replica, `partition` its own; `places` machines carry the parts.
  // `partition` and `speeds` must outlive the object. Returns the errors of the experiment.
  static absl::StatusOr<SumCosts> New(const Experiment& experiment, const Partition& partition,
                                      int places, const Speeds& speeds);

  // Returns the elements of a sample in all sums of the model, each counted once.
  int64_t Elements() const;
  // Returns the cost of a step's messages of these parts in some blocks, segments as a whole. Bytes
  // are of messages to other machines if `machines` carry the parts; each is decoded where it comes
  // to a machine.
  absl::StatusOr<MessageCost> OfStep(const BlockRange& blocks, const ReplicaRange& parts,
                                     bool gradient, const Coded& coded, int machines) const;
  // Returns what the largest microbatch takes in the sums of some blocks.
  absl::StatusOr<SumsOfPass> OfPass(const BlockRange& blocks, bool gradient,
                                    const Coded& coded) const;
  // Returns the seconds of a pass by which sums lengthen it.
  SumSeconds Seconds(const SumsOfPass& pass, const LinkRate& link,
                     const TransportCost& transport) const;

  // Returns the number of machines that carry the parts.
  int machines() const { return places_; }

  // Returns the parts of the machine at that place of a row; the last one has most.
  ReplicaRange CarriedAt(int place) const { return CarriedBy(place, places_, sums_.parts); }

 private:
  // A layer with rounds.
  struct Layer {
    int block = 0;
    uint32_t number = 0;  // in model order
    const LayerSpec* spec = nullptr;
    bool is_coded = false;
  };
  // A message of a step.
  struct Slot {
    const Layer& layer;
    const PartRound& round;
    PartMessage message;
    int microbatch = 0;
    bool gradient = false;
  };
  // Key of all on which the bytes of a message depend: direction, elements of the tensor, its first
  // and last axis, whether it is coded, and the lengths of two numbers in its header.
  using Key = std::tuple<bool, int64_t, int64_t, int64_t, bool, int, int>;

  SumCosts(const Partition& partition, int places, const Speeds& speeds)
      : partition_(&partition), places_(places), speeds_(&speeds) {}
  void AddLayers();
  // Returns the layers of these blocks that a forward pass, or a backward pass, goes through.
  std::vector<Layer> LayersIn(const BlockRange& blocks, bool gradient) const;
  MessageHeader HeaderOf(Phase phase, bool gradient, uint32_t number, int microbatch) const;
  using Known = std::map<Key, MessageCost>;
  absl::StatusOr<MessageCost> Of(const Slot& slot, const Coded& coded, Known* known) const;
  // Returns the cost of a step's gradients of parameters that are used on slices.
  absl::StatusOr<MessageCost> OfSliceGradients(const BlockRange& blocks, const ReplicaRange& parts,
                                               int machines) const;

  const Partition* partition_;
  int places_;
  const Speeds* speeds_;
  SumsSpec sums_;
  std::vector<Layer> all_;
  DType compute_ = DType::kF32;
  int64_t batch_size_ = 0;
  int microbatches_ = 1;
  uint64_t epochs_ = 0, last_step_ = 0;
  mutable std::map<std::string, Known> known_;  // by codec
};

}  // namespace thinwire
