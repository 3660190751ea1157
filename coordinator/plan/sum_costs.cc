#include "coordinator/plan/sum_costs.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "data/sampler.h"
#include "models/frozen.h"
#include "models/parts.h"

namespace thinwire {
namespace {

// Returns the bytes of a number in a header, which has none of a 0.
int LengthOf(uint32_t number) {
  int bytes = 0;
  for (; number > 0; number >>= 7) ++bytes;
  return bytes;
}

// Returns the number of other machines to which a message goes, where so many carry the parts.
int ReceiversOf(const PartRound& round, const PartMessage& message, int parts, int machines) {
  if (round.kind != PartExchange::kScatter) return machines - 1;
  return CarrierOf(message.part, machines, parts) == CarrierOf(message.slice, machines, parts) ? 0
                                                                                               : 1;
}

// Returns the cost of a message whose bytes count once for each receiver.
MessageCost Times(int receivers, MessageCost cost) {
  cost.raw_bytes *= receivers;
  cost.wire_bytes *= receivers;
  cost.likely_wire_bytes *= receivers;
  return cost;
}

}  // namespace

absl::StatusOr<SumCosts> SumCosts::New(const Experiment& experiment, const Partition& partition,
                                       int places, const Speeds& speeds) {
  SumCosts costs(partition, places, speeds);
  ASSIGN_OR_RETURN(costs.sums_, SumsFrom(experiment, partition.model));
  ASSIGN_OR_RETURN(costs.compute_, ComputeFrom(experiment));
  ASSIGN_OR_RETURN(costs.last_step_, TrainingSteps(experiment));
  costs.epochs_ = experiment.epochs();
  costs.batch_size_ = experiment.data().batch_size();
  costs.microbatches_ = static_cast<int>(experiment.pipeline().microbatches());
  costs.AddLayers();
  return costs;
}

void SumCosts::AddLayers() {
  int with_sums = 0;
  for (int block = 0; block < static_cast<int>(partition_->model.blocks.size()); ++block) {
    const std::vector<const LayerSpec*> of_block =
        LayersWithRounds(partition_->model.blocks[block]);
    for (const LayerSpec* const layer : of_block) {
      const auto number = static_cast<uint32_t>(all_.size());
      all_.push_back({block, number, layer, with_sums >= sums_.exact_blocks});
    }
    with_sums += of_block.empty() ? 0 : 1;
  }
}

std::vector<SumCosts::Layer> SumCosts::LayersIn(const BlockRange& blocks, bool gradient) const {
  std::vector<Layer> layers;
  for (const Layer& layer : all_) {
    const bool is_in = blocks.first <= layer.block && layer.block < blocks.last;
    const bool passes = !gradient || GoesBack(partition_->model, layer.block, *layer.spec);
    if (is_in && passes) layers.push_back(layer);
  }
  return layers;
}

int64_t SumCosts::Elements() const {
  int64_t elements = 0;
  for (const Layer& layer : all_) {
    if (layer.spec->kind == LayerKind::kSum) elements += layer.spec->out.elements();
  }
  return elements;
}

absl::StatusOr<MessageCost> SumCosts::OfStep(const BlockRange& blocks, const ReplicaRange& parts,
                                             bool gradient, const Coded& coded,
                                             int machines) const {
  MessageCost cost;
  Known& known = known_[CodecText(coded.codec)];
  for (const Layer& layer : LayersIn(blocks, gradient)) {
    for (const PartRound& round : RoundsOf(*layer.spec, gradient)) {
      const int decoders = round.kind == PartExchange::kScatter ? 1 : places_;
      for (int part = parts.first; part < parts.end; ++part) {
        for (const PartMessage& message : MessagesOf(round, sums_.parts, part)) {
          const int receivers = ReceiversOf(round, message, sums_.parts, machines);
          for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
            ASSIGN_OR_RETURN(MessageCost one,
                             Of({layer, round, message, microbatch, gradient}, coded, &known));
            one.decode_seconds *= decoders;
            cost += Times(receivers, one);
          }
        }
      }
    }
  }
  if (!gradient) return cost;
  ASSIGN_OR_RETURN(const MessageCost of_slices, OfSliceGradients(blocks, parts, machines));
  cost += of_slices;
  return cost;
}

absl::StatusOr<MessageCost> SumCosts::OfSliceGradients(const BlockRange& blocks,
                                                       const ReplicaRange& parts,
                                                       int machines) const {
  MessageCost cost;
  for (int segment = 0; segment <= static_cast<int>(partition_->cuts.size()); ++segment) {
    const BlockRange range = SegmentBlocks(partition_->model, partition_->cuts, segment);
    if (range.first < blocks.first || range.last > blocks.last) continue;
    int64_t elements = 0;
    for (int block = range.first; block < range.last; ++block) {
      for (const ParameterSpec& parameter : Parameters(partition_->model.blocks[block])) {
        const bool is_added_up = parameter.is_trained() && !parameter.slices.are_whole();
        if (is_added_up) elements += parameter.shape.elements();
      }
    }
    for (int part = parts.first; elements > 0 && part < parts.end; ++part) {
      MessageHeader header =
          HeaderOf(PHASE_PART, /*gradient=*/true,
                   static_cast<uint32_t>(segment * sums_.parts + part), microbatches_ - 1);
      header.shape = {1, elements};
      ASSIGN_OR_RETURN(const MessageCost one, CostOf(header, FeedbackSpec(), CodingSpeed()));
      cost += Times(machines - 1, one);
    }
  }
  return cost;
}

absl::StatusOr<SumsOfPass> SumCosts::OfPass(const BlockRange& blocks, bool gradient,
                                            const Coded& coded) const {
  SumsOfPass pass;
  const ReplicaRange carried = CarriedAt(places_ - 1);
  Known& known = known_[CodecText(coded.codec)];
  const int here = carried.size(), others = places_ - 1, elsewhere = sums_.parts - here;
  for (const Layer& layer : LayersIn(blocks, gradient)) {
    for (const PartRound& round : RoundsOf(*layer.spec, gradient)) {
      const PartMessage first = MessagesOf(round, sums_.parts, carried.first).front();
      ASSIGN_OR_RETURN(const MessageCost message,
                       Of({layer, round, first, /*microbatch=*/0, gradient}, coded, &known));
      const bool scatters = round.kind == PartExchange::kScatter;
      const int encoded = scatters ? here * sums_.parts : here;
      const int decoded = scatters ? here * sums_.parts : sums_.parts;
      const int sent = scatters ? here * elsewhere : here * others;
      ++pass.rounds;
      pass.codec_seconds += encoded * message.encode_seconds + decoded * message.decode_seconds;
      pass.messages += sent + (scatters ? here * elsewhere : elsewhere);
      if (others > 0) {
        pass.bytes +=
            static_cast<double>(sent) / others * static_cast<double>(message.likely_wire_bytes);
      }
    }
  }
  return pass;
}

// Takes a machine to receive while it sends, as much as it sends, and nothing else to cross its
// interface meanwhile. Machines are never quite at the same sum, so what the bytes take of a
// processor, at both their ends, is not hidden behind their crossing.
SumSeconds SumCosts::Seconds(const SumsOfPass& pass, const LinkRate& link,
                             const TransportCost& transport) const {
  if (places_ == 1 || pass.rounds == 0) return {pass.codec_seconds, 0};
  const int others = places_ - 1;
  const double on_interface = pass.bytes * (link.nic == Nic::kShared ? others : 1);
  const double crosses = link.bits_per_second > 0 ? 8 * on_interface / link.bits_per_second : 0;
  const double of_processor = 2 * pass.bytes * others * transport.seconds_per_byte;
  return {pass.codec_seconds + of_processor + pass.messages * transport.seconds_per_message,
          crosses + pass.rounds * link.latency_seconds};
}

// Returns the header of a message of the last step, where it takes the most bytes.
MessageHeader SumCosts::HeaderOf(Phase phase, bool gradient, uint32_t number,
                                 int microbatch) const {
  MessageHeader header;
  header.key.phase = phase;
  header.key.direction = gradient ? DIRECTION_GRADIENT : DIRECTION_ACTIVATION;
  header.key.cut = number;
  header.key.epoch = epochs_;
  header.key.step = last_step_;
  header.key.microbatch = static_cast<uint32_t>(microbatch);
  return header;
}

absl::StatusOr<MessageCost> SumCosts::Of(const Slot& slot, const Coded& coded, Known* known) const {
  const Layer& layer = slot.layer;
  const SampleRange range = MicrobatchRange(batch_size_, microbatches_, slot.microbatch);
  MessageHeader header =
      HeaderOf(PHASE_TRAIN, slot.gradient,
               NumberOf(slot.round, layer.number, sums_.parts, slot.message), slot.microbatch);
  header.dtype = compute_;
  header.shape = SampleOf(slot.round, slot.message).WithBatch(range.last - range.first);
  if (layer.is_coded) header.codec = coded.codec;
  const Key key{slot.gradient,
                header.shape.elements(),
                header.shape[0],
                header.shape[header.shape.rank() - 1],
                layer.is_coded,
                LengthOf(header.key.cut),
                LengthOf(header.key.microbatch)};
  const auto found = known->find(key);
  if (found != known->end()) return found->second;
  const Coding coding{kSums, slot.gradient, CodecText(header.codec), coded.feedback.ToString()};
  ASSIGN_OR_RETURN(const MessageCost cost,
                   CostOf(header, coded.feedback, SpeedOf(coding, *speeds_)));
  known->emplace(key, cost);
  return cost;
}

}  // namespace thinwire
