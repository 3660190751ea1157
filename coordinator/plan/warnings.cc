#include "coordinator/plan/warnings.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/cpu/kernels.h"
#include "compress/feedback/plan.h"
#include "compress/level.h"
#include "compress/plugin.h"
#include "config/specs.h"
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

// The shape of a microbatch, or of as many of its samples as are measured.
Shape MeasuredMessage(const Experiment& experiment, const Shape& sample) {
  const int64_t microbatches = experiment.pipeline().microbatches();
  const int64_t microbatch = (experiment.data().batch_size() + microbatches - 1) / microbatches;
  return sample.WithBatch(
      std::clamp<int64_t>(kMeasuredElements / sample.elements(), 1, microbatch));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  std::vector<std::string> warnings;
  for (const Cut& cut : partition.cuts) {
    const Shape message = MeasuredMessage(experiment, partition.model.blocks[cut.block].out);
    for (const bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(const DirectionSpec does,
                       DirectionFrom(DirectionOf(experiment, cut.name, gradient), gradient));
      if (!IsMeasured(does)) continue;
      ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec,
                       NewCodec(Lowest(does.codec, does.level), CpuCodecKernels()));
      const absl::StatusOr<double> contraction =
          MeasureContraction(*codec, message, CpuDevice(), CpuCodecKernels());
      if (contraction.ok() && *contraction > 0) continue;
      warnings.push_back(absl::StrCat(
          "warning: ", cut.name, ", ", gradient ? "gradients" : "activations", ": codec ",
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
