#include "coordinator/plan/run_speeds.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "config/experiment.h"
#include "config/kept.h"
#include "config/owned_pieces.h"
#include "config/piece_codec.h"
#include "config/replicas_spec.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/files/summary.h"
#include "models/cost.h"
#include "models/frozen.h"
#include "models/model.h"
#include "models/parts.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

// Elements of one exchange.
struct Elements {
  double counted = 0;  // once for each receiver
  double exact = 0;    // part of them on which no codec acts
  double encoded = 0, decoded = 0;
};

// The replicas of a run and who carried them.
struct Carried {
  ReplicasSpec replicas;
  int carriers = 1;

  int By(int carrier) const { return CarriedBy(carrier, carriers, replicas.count).size(); }
};

// Returns how many contributions to a piece are decoded. Who encodes one with feedback knows what
// it decodes to.
double DecodedContributions(const OwnedPiece& owned, const Carried& carried) {
  const ReplicasSpec& replicas = carried.replicas;
  const bool remembers = replicas.contributions.feedback.kind != FeedbackKind::kNone;
  if (replicas.exchange == ReplicaExchange::kGather) {
    return double{1} * carried.carriers * replicas.count - (remembers ? replicas.count : 0);
  }
  const int adder = CarrierOf(owned.owner, carried.carriers, replicas.count);
  return replicas.count - (remembers ? carried.By(adder) : 0);
}

Elements ElementsOf(const Partition& partition, const Carried& carried, bool is_sum) {
  const ReplicasSpec& replicas = carried.replicas;
  const CodecSpec& codec = (is_sum ? replicas.average : replicas.contributions).codec;
  const std::optional<TiedWeight> weight = FindTiedWeight(partition.model);
  const std::string tied = weight ? weight->name : "";
  const double others = replicas.count - 1;
  Elements all;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    for (const OwnedPiece& owned : PiecesOfStage(partition, stage, replicas.count)) {
      if (is_sum && owned.to_all) continue;
      const bool to_all = owned.to_all || replicas.exchange == ReplicaExchange::kGather;
      const bool is_copy = IsOfTied(owned.piece, tied) && SegmentOfPiece(owned.number) > 0;
      const auto elements = static_cast<double>(owned.piece.shape.elements());
      const double counted = is_copy ? 0 : elements * others * (to_all ? replicas.count : 1);
      all.counted += counted;
      if (!ActsOn(codec, owned.piece, tied)) {
        all.exact += counted;
        continue;
      }
      all.encoded += elements * (is_sum ? 1 : replicas.count);
      all.decoded += elements * (is_sum ? carried.carriers : DecodedContributions(owned, carried));
    }
  }
  return all;
}

void AddSpeed(const DirectionRecord& record, bool is_sum, const Elements& elements,
              std::map<Coding, CodingSpeed>* codings) {
  const double raw_bytes = static_cast<double>(record.raw_bytes());
  if (!(elements.counted > elements.exact) || !(raw_bytes > 0) || !(elements.decoded > 0)) return;
  if (!(record.encode_seconds() > 0) || !(record.decode_seconds() > 0)) return;
  const double bytes_of_element = raw_bytes / elements.counted;  // of all exchanges
  const double exact_bytes = bytes_of_element * elements.exact;
  const double payload_bytes =
      std::max(0.0, static_cast<double>(record.payload_bytes()) - exact_bytes);
  codings->insert({{kReplicas, !is_sum, record.parameters(), record.feedback()},
                   {record.encode_seconds() / (bytes_of_element * elements.encoded),
                    record.decode_seconds() / (bytes_of_element * elements.decoded),
                    payload_bytes / (raw_bytes - exact_bytes)}});
}

// Returns "resnet18 of 699,354 parameters for [1, 32, 32, 3]".
std::string SizeOf(const Model& model) {
  return absl::StrCat(model.name, " of ", TrainableParameters(model), " parameters for inputs ",
                      model.input.ToString());
}

absl::Status CheckModel(const Model& ran, const Model& planned, const std::string& name) {
  const bool is_same = std::equal(ran.blocks.begin(), ran.blocks.end(), planned.blocks.begin(),
                                  planned.blocks.end(), [](const BlockSpec& a, const BlockSpec& b) {
                                    return a.name == b.name && a.in == b.in && a.out == b.out &&
                                           ForwardFlops(a) == ForwardFlops(b);
                                  });
  if (is_same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": trained ", SizeOf(ran), ", want ",
                                                 SizeOf(planned), ", which the experiment has"));
}

// Compute time of a segment, and how much training it took.
struct SegmentCompute {
  SegmentRecord took;
  double steps = 0, samples = 0;  // above 0
};

// Returns the measurement of every segment, by its number; an error if one has none. Segments
// before the first trained block have no backward passes.
absl::StatusOr<std::vector<SegmentCompute>> SegmentsOf(const Summary& summary,
                                                       const Partition& partition,
                                                       const std::string& name) {
  const size_t count = partition.cuts.size() + 1;
  std::vector<SegmentCompute> segments(count);
  for (const ComputeRecord& stage : summary.compute()) {
    for (const SegmentRecord& segment : stage.segments()) {
      if (segment.segment() >= count) continue;
      segments[segment.segment()] = {segment, static_cast<double>(stage.steps()),
                                     static_cast<double>(stage.samples())};
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const SegmentCompute& of = segments[i];
    const bool goes_back = i + 1 == count || HasGradients(partition.model, partition.cuts[i]);
    const double forward = of.took.forward_seconds();
    for (const double seconds : {forward, goes_back ? of.took.backward_seconds() : forward}) {
      if (of.steps > 0 && of.samples > 0 && seconds > 0 && std::isfinite(seconds)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": its summary has ", seconds, " s of compute for ", of.steps,
                       " steps of segment ", i, " of ", count,
                       ", want more than 0: a run of this build that trained to an epoch's end"));
    }
  }
  return segments;
}

// Divides the time of one segment among its blocks.
void AddBlocks(const SegmentCompute& segment, const Model& model, const BlockRange& range,
               const std::vector<BlockKeeping>& keeping, std::vector<BlockSeconds>* blocks) {
  double forward = 0, backward = 0, again = 0;  // FLOPs
  for (int i = range.first; i < range.last; ++i) {
    const BlockSpec& block = model.blocks[i];
    forward += ForwardFlops(block);
    backward += BackwardFlops(model, i);
    if (keeping[i].recompute && i >= FirstTrainedBlock(model)) again += ForwardFlops(block);
  }
  // Leaves out the share of the backward passes that recomputed the forward pass.
  const double backward_share = backward > 0 ? backward / (backward + again) : 1;
  // Blocks without FLOPs, such as an embedding, get equal shares.
  const auto share_of = [&range](double of_block, double all) {
    return all > 0 ? of_block / all : 1.0 / (range.last - range.first);
  };
  for (int i = range.first; i < range.last; ++i) {
    const double share = share_of(ForwardFlops(model.blocks[i]), forward);
    const double back = share_of(BackwardFlops(model, i), backward);
    (*blocks)[i] = {share * segment.took.forward_seconds() / segment.samples,
                    back * backward_share * segment.took.backward_seconds() / segment.samples,
                    share * segment.took.optimizer_seconds() / segment.steps};
  }
}

// Turns backward passes of a run into those of the planned model, of which other blocks may be
// frozen.
void ScaleBackward(const Model& ran, const Model& planned, std::vector<BlockSeconds>* blocks) {
  for (int i = 0; i < static_cast<int>(blocks->size()); ++i) {
    BlockSeconds& seconds = (*blocks)[i];
    const double had = BackwardFlops(ran, i), has = BackwardFlops(planned, i);
    if (had > 0) {
      seconds.backward *= has / had;
    } else if (has > 0) {
      seconds.backward = seconds.forward * has / ForwardFlops(planned.blocks[i]);
    } else if (i < FirstTrainedBlock(planned)) {
      seconds.backward = 0;
    }
  }
}

// Returns the share of the elements of a model's sums, in one direction, on which codecs act.
double CodedShare(const Model& model, const SumsSpec& sums, bool gradient) {
  double all = 0, coded = 0;
  int with_sums = 0;
  for (const BlockSpec& block : model.blocks) {
    const std::vector<const LayerSpec*> of_block = SumsOf(block);
    for (const LayerSpec* const layer : of_block) {
      const auto elements = static_cast<double>((gradient ? layer->in : layer->out).elements());
      all += elements;
      if (with_sums >= sums.exact_blocks) coded += elements;
    }
    with_sums += of_block.empty() ? 0 : 1;
  }
  return all > 0 ? coded / all : 0;
}

// Adds the speeds at which whole sums were coded. Bytes of a partial sum count for each other part.
// It was encoded once, and decoded on each of the machines that carried the parts.
absl::Status AddSumSpeeds(const Summary& summary, const BoundaryRecord& boundary,
                          const Experiment& ran, const Partition& partition, Speeds* speeds) {
  if (HasSlicedPositions(ran)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SumsSpec sums, SumsFrom(ran, partition.model));
  const int carriers = summary.provenance().stages_size() / partition.placement.stages;
  ASSIGN_OR_RETURN(const CarrierGrid grid, GridOf(ran, std::max(carriers, 1)));
  for (const bool gradient : {false, true}) {
    if (gradient && FirstTrainedBlock(partition.model) > 0) continue;  // not of all sums
    const DirectionRecord& record = gradient ? boundary.gradients() : boundary.activations();
    const double share = CodedShare(partition.model, sums, gradient);
    const double raw_bytes = static_cast<double>(record.raw_bytes());
    if (sums.parts == 1 || !(share * raw_bytes > 0)) continue;
    if (!(record.encode_seconds() > 0) || !(record.decode_seconds() > 0)) continue;
    const double encoded = share * raw_bytes / (sums.parts - 1);
    const double payload_bytes =
        std::max(0.0, static_cast<double>(record.payload_bytes()) - (1 - share) * raw_bytes);
    speeds->codings[{kSums, gradient, record.parameters(), record.feedback()}] = {
        record.encode_seconds() / encoded, record.decode_seconds() / (encoded * grid.parts),
        payload_bytes / (share * raw_bytes)};
  }
  return absl::OkStatus();
}

void AddCoding(const BoundaryRecord& boundary, bool gradient, Speeds* speeds) {
  const DirectionRecord& record = gradient ? boundary.gradients() : boundary.activations();
  const auto raw_bytes = static_cast<double>(record.raw_bytes());
  if (raw_bytes <= 0 || !(record.encode_seconds() > 0) || !(record.decode_seconds() > 0)) return;
  speeds->codings[{boundary.name(), gradient, record.parameters(), record.feedback()}] = {
      record.encode_seconds() / raw_bytes, record.decode_seconds() / raw_bytes,
      static_cast<double>(record.payload_bytes()) / raw_bytes};
}

}  // namespace

absl::Status AddExchangeSpeeds(const Summary& summary, const Experiment& ran,
                               std::map<Coding, CodingSpeed>* codings) {
  if (!summary.has_replicas() || ReplicasOf(ran) == 1) return absl::OkStatus();
  if (summary.replicas().carriers() == 0) return absl::OkStatus();  // each stage had its own
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(ran));
  Carried carried;
  ASSIGN_OR_RETURN(carried.replicas, ReplicasFrom(ran));
  if (!carried.replicas.segments.empty()) return absl::OkStatus();
  carried.carriers =
      std::min(static_cast<int>(summary.replicas().carriers()), carried.replicas.count);
  DirectionRecord contributions = summary.replicas().contributions();
  Elements elements = ElementsOf(partition, carried, /*is_sum=*/false);
  const bool by_factors =
      carried.replicas.exchange == ReplicaExchange::kReduce &&
      CodecRowOf(carried.replicas.contributions.codec.kind).has(CodecRow::kRank);
  if (by_factors) {
    // The product of the factors is decoded behind their sums, by all machines.
    contributions.set_decode_seconds(summary.replicas().average().decode_seconds());
    elements.decoded = elements.encoded / carried.replicas.count * carried.carriers;
  }
  AddSpeed(contributions, /*is_sum=*/false, elements, codings);
  if (by_factors) return absl::OkStatus();
  if (carried.replicas.exchange == ReplicaExchange::kReduce) {
    AddSpeed(summary.replicas().average(), /*is_sum=*/true,
             ElementsOf(partition, carried, /*is_sum=*/true), codings);
  }
  return absl::OkStatus();
}

absl::StatusOr<Speeds> SpeedsOf(const Summary& summary, const Experiment& ran,
                                const Experiment& experiment, const std::string& name) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(ran));
  ASSIGN_OR_RETURN(const Partition planned, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const auto keeping, KeepingsFrom(ran, partition.model));
  RETURN_IF_ERROR(CheckModel(partition.model, planned.model, name));
  ASSIGN_OR_RETURN(const std::vector<SegmentCompute> segments,
                   SegmentsOf(summary, partition, name));
  Speeds speeds;
  speeds.blocks.resize(partition.model.blocks.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    AddBlocks(segments[i], partition.model,
              SegmentBlocks(partition.model, partition.cuts, static_cast<int>(i)), keeping,
              &speeds.blocks);
  }
  ScaleBackward(partition.model, planned.model, &speeds.blocks);
  speeds.machine = MachineOf(summary);
  speeds.samples_of_pass =
      segments[0].samples / (segments[0].steps * ReplicasOf(ran) * UnitsOf(ran));
  for (const BoundaryRecord& boundary : summary.boundaries()) {
    if (boundary.name() == kSums) {
      RETURN_IF_ERROR(AddSumSpeeds(summary, boundary, ran, partition, &speeds));
      continue;
    }
    for (const bool gradient : {false, true}) AddCoding(boundary, gradient, &speeds);
  }
  if (summary.has_stash()) {
    BoundaryRecord stash;
    stash.set_name(kStashed);
    *stash.mutable_activations() = summary.stash();
    AddCoding(stash, /*gradient=*/false, &speeds);
  }
  RETURN_IF_ERROR(AddExchangeSpeeds(summary, ran, &speeds.codings));
  speeds.compute_source = absl::StrFormat(
      "as %s took it, %d segments in microbatches of %d samples", name, segments.size(),
      (ran.data().batch_size() + BatchMicrobatchesOf(ran) - 1) / BatchMicrobatchesOf(ran));
  speeds.codec_source = absl::StrCat("those of ", name, " as it took them");
  return speeds;
}

std::string MachineOf(const Summary& summary) {
  return absl::StrCat(summary.device(), ", ", summary.provenance().cpu_model());
}

absl::StatusOr<Speeds> SpeedsOfRun(const std::string& dir, const Experiment& experiment) {
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  if (absl::IsNotFound(summary.status())) {
    return Annotated(summary.status(), absl::StrCat(dir, ": no run is recorded here"));
  }
  RETURN_IF_ERROR(summary.status());
  ASSIGN_OR_RETURN(const Experiment ran, ReadResolved(dir + "/experiment.yaml"));
  return SpeedsOf(*summary, ran, experiment, dir);
}

}  // namespace thinwire
