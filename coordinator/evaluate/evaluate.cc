#include "coordinator/evaluate/evaluate.h"

#include <algorithm>
#include <utility>

#include "base/annotated.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compress/codecs/plugin.h"
#include "config/codec_pair.h"
#include "config/kept.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/evaluation.h"

namespace thinwire {
namespace {

constexpr char kNone[] = "none", kAsTrained[] = "as trained",
               kFirstLevels[] = "as trained, first levels";

// Returns the elements of a sample's activations at all cuts; 0 where bytes cannot be divided by
// them.
absl::StatusOr<uint64_t> ElementsPerSample(const Experiment& experiment) {
  if (PartsOf(experiment) > 1) return 0;
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  int64_t elements = 0;
  for (const Cut& cut : partition.cuts) {
    elements += partition.model.blocks[cut.block].out.WithBatch(1).elements();
  }
  return static_cast<uint64_t>(elements);
}

// Returns whether the experiment does something to activations, or to sums of parts.
bool Compresses(const Experiment& experiment) {
  const auto codes = [](const DirectionConfig& direction) {
    return direction.has_codec() && direction.codec() != Name(CodecSpec().kind);
  };
  bool codes_some = codes(experiment.compression().sums().activations());
  for (const std::string& cut : GivenCuts(experiment.pipeline())) {
    codes_some = codes_some || codes(DirectionOf(experiment, cut, /*gradient=*/false));
  }
  return codes_some || !WhyNotUncompressed(experiment).empty();
}

// Returns whether messages of activations leave something to the next ones at any cut.
absl::StatusOr<bool> LeavesCarry(const Experiment& experiment) {
  for (const std::string& cut : GivenCuts(experiment.pipeline())) {
    ASSIGN_OR_RETURN(const CodecSpec codec,
                     CodecFrom(DirectionOf(experiment, cut, /*gradient=*/false)));
    if (codec.leaves_carry()) return true;
  }
  return false;
}

// Returns the row's name of the experiment's compression. Levels that follow errors begin anew, as
// weights come without them.
const char* NameAsTrained(const Experiment& experiment) {
  for (const std::string& cut : GivenCuts(experiment.pipeline())) {
    const DirectionConfig& activations = DirectionOf(experiment, cut, /*gradient=*/false);
    if (activations.level().has_target_error()) return kFirstLevels;
  }
  return kAsTrained;
}

class Evaluator {
 public:
  Evaluator(const EvaluationTask& task, Fleet* fleet,
            const std::function<void(const EvaluateRow&)>& on_row, EvaluateReport* report)
      : task_(task), fleet_(*fleet), on_row_(on_row), report_(*report) {}

  absl::Status Run() {
    std::vector<AcquireResponse> answers;
    RETURN_IF_ERROR(fleet_.Acquire(&answers));
    threads_ = StageThreads(task_.experiment, &fleet_, answers);
    const BuildInfo& build = answers[0].build();
    report_.set_commit(build.commit());
    report_.set_cpu_model(build.cpu_model());
    report_.set_simd_target(build.simd_target());
    RETURN_IF_ERROR(Prepare(task_.experiment));
    if (WhyNotUncompressed(task_.experiment).empty()) {
      RETURN_IF_ERROR(AddRow(kNone, /*compressed=*/false));
    }
    if (Compresses(task_.experiment)) {
      RETURN_IF_ERROR(Calibrate(task_.experiment));
      RETURN_IF_ERROR(AddRow(NameAsTrained(task_.experiment), /*compressed=*/true));
    }
    for (const CodecSpec& codec : task_.codecs) {
      ASSIGN_OR_RETURN(const Experiment experiment, WithActivationCodec(task_.experiment, codec));
      RETURN_IF_ERROR(Prepare(experiment));
      RETURN_IF_ERROR(Calibrate(experiment));
      RETURN_IF_ERROR(AddRow(CodecText(codec), /*compressed=*/true));
    }
    return absl::OkStatus();
  }

 private:
  // Configures a new pipeline, so that no state of one codec affects the next.
  absl::Status Prepare(Experiment experiment) {
    if (is_verified_) experiment.mutable_data()->set_verify(false);
    KeepLeast(&experiment);
    ASSIGN_OR_RETURN(const Configured configured, ConfigureStages(experiment, threads_, &fleet_));
    is_verified_ = true;
    report_.set_parameters(configured.parameters);
    report_.set_samples(configured.data.test_samples());
    report_.set_calibration_samples(
        std::min<uint64_t>(task_.calibration_samples, configured.data.train_samples()));
    ASSIGN_OR_RETURN(elements_, ElementsPerSample(experiment));
    return task_.weights ? task_.weights->Import(&fleet_) : absl::OkStatus();
  }

  // Lets codecs of activations keep what messages leave to the next ones.
  absl::Status Calibrate(const Experiment& experiment) {
    ASSIGN_OR_RETURN(const bool leaves_carry, LeavesCarry(experiment));
    if (report_.calibration_samples() == 0 || !leaves_carry) return absl::OkStatus();
    EvaluateRequest request = RequestOf(/*compressed=*/true);
    request.set_samples(report_.calibration_samples());
    request.set_calibrates(true);
    return Annotated(EvaluateOnce(experiment.data(), request, &fleet_).status(), "calibration");
  }

  EvaluateRequest RequestOf(bool compressed) const {
    EvaluateRequest request;
    request.set_epoch(task_.epochs.value_or(task_.experiment.epochs()));
    request.set_compressed(compressed);
    return request;
  }

  absl::Status AddRow(const std::string& codec, bool compressed) {
    EvaluateRequest request = RequestOf(compressed);
    request.set_samples(report_.samples());
    const SteadyTime start = SteadyTime::Now();
    ASSIGN_OR_RETURN(const Evaluated evaluated,
                     Annotated(EvaluateOnce(task_.experiment.data(), request, &fleet_), codec));
    EvaluateRow* const row = report_.add_rows();
    row->set_codec(codec);
    *row->mutable_test() = evaluated.measured;
    row->set_wire_bytes(evaluated.wire_bytes);
    row->set_seconds(SecondsSince(start));
    const uint64_t elements = elements_ * report_.samples();
    if (elements > 0) {
      row->set_bits_per_element(8.0 * static_cast<double>(row->wire_bytes()) /
                                static_cast<double>(elements));
    }
    const EvaluateRow& first = report_.rows(0);
    if (first.codec() == kNone) {
      row->set_loss_above_none(row->test().loss() - first.test().loss());
    }
    on_row_(*row);
    return absl::OkStatus();
  }

  const EvaluationTask& task_;
  Fleet& fleet_;
  const std::function<void(const EvaluateRow&)>& on_row_;
  EvaluateReport& report_;
  std::vector<int> threads_;  // by stage
  uint64_t elements_ = 0;     // that a sample sends across all cuts
  bool is_verified_ = false;  // The data's checksums need comparing once.
};

}  // namespace

absl::StatusOr<Experiment> WithActivationCodec(Experiment experiment, const CodecSpec& codec) {
  RETURN_IF_ERROR(SetCodecs(codec, std::nullopt, /*cut=*/"", &experiment));
  if (experiment.compression().has_sums()) {
    experiment.mutable_compression()->mutable_sums()->clear_activations();
    experiment.mutable_compression()->mutable_sums()->clear_gradients();
  }
  RETURN_IF_ERROR(Annotated(Resolve(&experiment), CodecText(codec)));
  return experiment;
}

absl::Status RunEvaluations(const EvaluationTask& task, Fleet* fleet,
                            const std::function<void(const EvaluateRow&)>& on_row,
                            EvaluateReport* report) {
  report->set_name(task.experiment.name());
  report->set_data(task.experiment.data().name());
  report->set_precision(task.experiment.precision());
  for (const std::string& cut : GivenCuts(task.experiment.pipeline())) report->add_cuts(cut);
  return Evaluator(task, fleet, on_row, report).Run();
}

}  // namespace thinwire
