#include "coordinator/plan/warnings.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/plan.h"
#include "compress/level.h"
#include "compress/plugin.h"
#include "config/specs.h"
#include "models/tied_weight.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// How large the measured message is, unless one sample is larger: that takes some milliseconds.
constexpr int64_t kMeasuredElements = 1 << 15;

// low_rank projects, so it never expands. What an absolute threshold keeps of normal values says
// nothing about the run's, and no element of e outgrows the threshold. A plug-in may do anything,
// and is for a stage to run.
bool IsMeasured(const DirectionSpec& does) {
  return does.feedback.kind != FeedbackKind::kNone && does.codec.kind != CodecKind::kLowRank &&
         does.codec.kind != CodecKind::kPlugin &&
         !(does.codec.kind == CodecKind::kThreshold &&
           does.codec.relative_to == RelativeTo::kAbsolute);
}

// The largest message at a cut, or as many of its samples as are measured.
struct Crossing {
  std::string cut;
  Shape message;
};
std::vector<Crossing> CrossingsOf(const Experiment& experiment, const Partition& partition) {
  const auto measured = [](const Shape& sample, int64_t samples) {
    return sample.WithBatch(std::clamp<int64_t>(kMeasuredElements / sample.elements(), 1, samples));
  };
  const int64_t microbatches = experiment.pipeline().microbatches();
  const int64_t microbatch = (experiment.data().batch_size() + microbatches - 1) / microbatches;
  std::vector<Crossing> crossings;
  for (const Cut& cut : partition.cuts) {
    crossings.push_back({cut.name, measured(partition.model.blocks[cut.block].out, microbatch)});
  }
  const std::optional<TiedWeight> tied = FindTiedWeight(partition.model);
  if (tied && !crossings.empty()) {
    crossings.push_back({kTiedCut, measured(Shape{1, tied->shape[1]}, tied->shape[0])});
  }
  return crossings;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  std::vector<std::string> warnings;
  for (const auto& [cut, message] : CrossingsOf(experiment, partition)) {
    for (const bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(const DirectionSpec does,
                       DirectionFrom(DirectionOf(experiment, cut, gradient), gradient));
      if (!IsMeasured(does)) continue;
      ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec,
                       NewCodec(Lowest(does.codec, does.level), CpuCodecKernels()));
      const absl::StatusOr<double> contraction =
          MeasureContraction(*codec, message, CpuDevice(), CpuCodecKernels());
      if (contraction.ok() && *contraction > 0) continue;
      warnings.push_back(absl::StrCat(
          "warning: ", cut, ", ", gradient ? "gradients" : "activations", ": codec ",
          CodecText(codec->spec()), " with ", Name(does.feedback.kind), ": ",
          contraction.ok()
              ? absl::StrCat("contraction ", *contraction, ", want more than 0; its state may grow")
              : absl::StrCat("its contraction cannot be measured: ",
                             contraction.status().message())));
    }
  }
  return warnings;
}

}  // namespace thinwire
