#include "coordinator/plan/warnings.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/codec_table.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/plugin.h"
#include "compress/codecs/rates.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/plan.h"
#include "compress/level.h"
#include "compress/spec.h"
#include "config/smallest_message.h"
#include "config/specs.h"
#include "models/tied_weight.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// Elements of the measured message, unless one sample has more. Measuring it takes some
// milliseconds.
constexpr int64_t kMeasuredElements = 1 << 15;

bool IsMeasured(const DirectionSpec& does) {
  const auto shows = CodecRowOf(does.codec.kind).shows_contraction;
  return does.feedback.kind != FeedbackKind::kNone && (shows == nullptr || shows(does.codec));
}

// Returns the number of samples in a largest microbatch.
int64_t MicrobatchSamples(const Experiment& experiment) {
  const int64_t microbatches = BatchMicrobatchesOf(experiment);
  return (experiment.data().batch_size() + microbatches - 1) / microbatches;
}

// The largest message at a cut, cut down to the samples that are measured.
struct LargestMessage {
  std::string cut;
  Shape message;
};
std::vector<LargestMessage> LargestMessages(const Experiment& experiment,
                                            const Partition& partition) {
  const auto measured = [](const Shape& sample, int64_t samples) {
    return sample.WithBatch(std::clamp<int64_t>(kMeasuredElements / sample.elements(), 1, samples));
  };
  const int64_t microbatch = MicrobatchSamples(experiment);
  std::vector<LargestMessage> largest;
  for (const Cut& cut : partition.cuts) {
    largest.push_back({cut.name, measured(partition.model.blocks[cut.block].out, microbatch)});
  }
  const std::optional<TiedWeight> tied = FindTiedWeight(partition.model);
  if (tied && !largest.empty()) {
    largest.push_back({kTiedCut, measured(Shape{1, tied->shape[1]}, tied->shape[0])});
  }
  return largest;
}

// Returns "warning: layer1, gradients: codec uniform(...)".
std::string Beginning(const std::string& cuts, bool gradient, const std::string& codec) {
  return absl::StrCat("warning: ", cuts, ", ", gradient ? "gradients" : "activations", ": codec ",
                      codec);
}

absl::Status AddCausality(const Experiment& experiment, std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const std::vector<Causality> cuts, CausalityOf(experiment));
  std::vector<std::pair<std::string, std::vector<std::string>>> codecs;  // each codec with its cuts
  for (const auto& [cut, is_causal] : cuts) {
    if (is_causal) continue;
    ASSIGN_OR_RETURN(const CodecSpec codec,
                     CodecFrom(DirectionOf(experiment, cut, /*gradient=*/false)));
    const std::string text = CodecText(codec);
    auto known = std::find_if(codecs.begin(), codecs.end(),
                              [&](const auto& codec) { return codec.first == text; });
    if (known == codecs.end()) known = codecs.insert(known, {text, {}});
    known->second.push_back(cut);
  }
  for (const auto& [codec, cuts_with_it] : codecs) {
    warnings->push_back(absl::StrCat(
        Beginning(absl::StrJoin(cuts_with_it, ", "), /*gradient=*/false, codec),
        " is not causal: what it makes of a token depends on later ones, so that no text can be "
        "generated through it"));
  }
  return absl::OkStatus();
}

// Warns where tokens share a range and the weights are pretrained.
absl::Status AddScopes(const Experiment& experiment, std::vector<std::string>* warnings) {
  if (experiment.init().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Causality> cuts, CausalityOf(experiment));
  for (const auto& [cut, is_causal] : cuts) {
    ASSIGN_OR_RETURN(const CodecSpec codec,
                     CodecFrom(DirectionOf(experiment, cut, /*gradient=*/false)));
    const bool has_range = CodecRowOf(codec.kind).has(CodecRow::kOutliers);
    if (!has_range || codec.scope != Scope::kTensor || codec.divides()) continue;
    warnings->push_back(absl::StrCat(
        Beginning(cut, /*gradient=*/false, CodecText(codec)),
        " has scope tensor with `init`: a pretrained model's outliers make the range of all tokens "
        "a hundred times wider; scope token, outliers: 4 and first_position: exact keep it "
        "narrow"));
  }
  return absl::OkStatus();
}

absl::Status AddContractions(const Experiment& experiment, std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  for (const auto& [cut, message] : LargestMessages(experiment, partition)) {
    for (const bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(const DirectionSpec does,
                       DirectionFrom(DirectionOf(experiment, cut, gradient), gradient));
      if (!IsMeasured(does)) continue;
      ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec,
                       NewCodec(Lowest(does.codec, does.level), CpuCodecKernels()));
      const absl::StatusOr<double> contraction =
          MeasureContraction(*codec, message, CpuDevice(), CpuCodecKernels());
      if (contraction.ok() && *contraction > 0) continue;
      warnings->push_back(absl::StrCat(
          Beginning(cut, gradient, CodecText(codec->spec())), " with ", Name(does.feedback.kind),
          ": ",
          contraction.ok()
              ? absl::StrCat("contraction ", *contraction, ", want more than 0; its state may grow")
              : absl::StrCat("its contraction cannot be measured: ",
                             contraction.status().message())));
    }
  }
  return absl::OkStatus();
}

// Returns the shape of the message, or of as many of its samples as show the lowest rate.
Shape MeasuredForRate(const Shape& message) {
  constexpr int64_t kElements = 1 << 20;
  const int64_t of_sample = message.elements() / message[0];
  return message.WithBatch(std::clamp<int64_t>(kElements / of_sample, 1, message[0]));
}

// Warns where the codec's lowest rate is impossible for a message of usual size or for the
// smallest.
absl::Status AddRates(const Experiment& experiment, std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const std::vector<SmallestMessage> smallest,
                   SmallestMessages(experiment, partition));
  const int64_t batch = MicrobatchSamples(experiment);
  for (const SmallestMessage& message : smallest) {
    const CodecSpec codec = Lowest(message.does.codec, message.does.level);
    if (codec.rate == 0) continue;
    const Shape usual = message.cut == kTiedCut ? message.coded : message.coded.WithBatch(batch);
    for (const Shape& shape : {MeasuredForRate(usual), MeasuredForRate(message.coded)}) {
      ASSIGN_OR_RETURN(const double least, MeasureLeastRate(codec, shape, CpuCodecKernels()));
      if (least <= (1 + kRateTolerance) * codec.rate) continue;
      warnings->push_back(absl::StrCat(Beginning(message.cut, message.gradient, CodecText(codec)),
                                       ": rate ", codec.rate, ", but a message of ",
                                       shape.ToString(), " takes ", absl::StrFormat("%.3g", least),
                                       " bits per element and more, at which its values are lost"));
      break;
    }
  }
  return absl::OkStatus();
}

// Warns of lines that are no examples, where these were counted.
void AddSkippedLines(const CorpusConfig& corpus, std::vector<std::string>* warnings) {
  if (corpus.skipped_lines() == 0) return;
  warnings->push_back(absl::StrCat("warning: data: ", corpus.skipped_lines(),
                                   corpus.skipped_lines() == 1 ? " line was" : " lines were",
                                   " skipped (data.on_error), the first is ",
                                   corpus.first_skipped()));
}

}  // namespace

absl::StatusOr<std::vector<Causality>> CausalityOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  std::vector<Causality> cuts;
  if (!IsCausalLanguage(partition.model)) return cuts;
  for (const Cut& cut : partition.cuts) {
    ASSIGN_OR_RETURN(const CodecSpec codec,
                     CodecFrom(DirectionOf(experiment, cut.name, /*gradient=*/false)));
    const Shape& crosses = partition.model.blocks[cut.block].out;
    cuts.push_back({cut.name, IsCausal(codec, crosses[crosses.rank() - 1])});
  }
  return cuts;
}

absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment) {
  std::vector<std::string> warnings;
  AddSkippedLines(experiment.data().corpus(), &warnings);
  RETURN_IF_ERROR(AddCausality(experiment, &warnings));
  RETURN_IF_ERROR(AddScopes(experiment, &warnings));
  RETURN_IF_ERROR(AddContractions(experiment, &warnings));
  RETURN_IF_ERROR(AddRates(experiment, &warnings));
  return warnings;
}

}  // namespace thinwire
