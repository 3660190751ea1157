#include "coordinator/probe/probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/annotated.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "config/boundaries.h"
#include "config/kept.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/plan/captured_outliers.h"
#include "coordinator/probe/gradient_comparison.h"
#include "coordinator/probe/model_layout.h"
#include "coordinator/run/boundary_totals.h"

namespace thinwire {
namespace {

// Gradients by segment. The trained parameters of a segment follow each other in model order.
using Gradient = std::vector<std::vector<float>>;

// Safetensors file with the gradients of the parameters that one stage trains.
struct GradientFile {
  std::string stage;  // the stage's name, for messages
  std::string bytes;
};

// Copies the gradient of one parameter to its range.
absl::Status Copy(const StoredTensor& tensor, const ModelLayout& layout, Gradient* gradient) {
  const auto found = layout.ranges.find(tensor.name);
  if (found == layout.ranges.end() || tensor.dtype != "F32") {
    return absl::InternalError(absl::StrCat("a gradient of ", tensor.name, " as ", tensor.dtype,
                                            ", want trained parameters, F32"));
  }
  const ModelLayout::Range& range = found->second;
  if (tensor.data.size() != range.elements * sizeof(float)) {
    return absl::InternalError(absl::StrCat("a gradient of ", tensor.name, " with ",
                                            tensor.data.size() / sizeof(float), " elements, want ",
                                            range.elements));
  }
  std::memcpy((*gradient)[range.segment].data() + range.first, tensor.data.data(),
              tensor.data.size());
  return absl::OkStatus();
}

// Returns an upper bound for the size of a stage's gradient file.
uint64_t MostGradientBytes(const ModelLayout& layout) {
  constexpr uint64_t kFileBytes = 1024, kTensorBytes = 256;
  uint64_t bytes = kFileBytes;
  for (const auto& [name, range] : layout.ranges) {
    // Twice, as names may be escaped.
    bytes += range.elements * sizeof(float) + kTensorBytes + 2 * name.size();
  }
  return bytes;
}

// Assembles the gradient. Each trained parameter must occur once, as F32 and with its number of
// elements. Errors are Internal and name the stage and the fault.
absl::StatusOr<Gradient> GradientFrom(const std::vector<GradientFile>& files,
                                      const ModelLayout& layout) {
  Gradient gradient;
  for (const size_t elements : layout.trained_elements) gradient.emplace_back(elements);
  std::set<std::string> seen;
  for (const GradientFile& file : files) {
    const absl::StatusOr<Safetensors> parsed = ParseSafetensors(file.bytes);
    if (!parsed.ok()) {
      return absl::InternalError(
          absl::StrCat(file.stage, ": its gradients: ", parsed.status().message()));
    }
    for (const StoredTensor& tensor : parsed->tensors) {
      RETURN_IF_ERROR(Annotated(Copy(tensor, layout, &gradient), file.stage));
      if (!seen.insert(tensor.name).second) {
        return absl::InternalError(
            absl::StrCat(file.stage, ": a second gradient of ", tensor.name, ", want one"));
      }
    }
  }
  if (seen.size() == layout.ranges.size()) return gradient;
  return absl::InternalError(
      absl::StrCat("gradients of ", seen.size(), " parameters, want ", layout.ranges.size()));
}

// Most bytes of the activations in which outliers are looked for.
constexpr uint64_t kMostCaptured = uint64_t{1} << 28;

// Returns the resolved `experiment` with a capture of the activations of a training step of
// `epoch`; unchanged if these have more bytes, or if there are no cuts.
Experiment Capturing(const Experiment& experiment, uint32_t epoch, uint64_t step) {
  Experiment capturing = experiment;
  capturing.clear_capture();
  capturing.clear_steps();
  capturing.set_epochs(std::max(experiment.epochs(), epoch));
  capturing.mutable_capture()->add_steps(step);
  capturing.mutable_capture()->add_what("activations");
  capturing.mutable_capture()->set_limit_bytes(kMostCaptured);
  return Resolve(&capturing).ok() ? capturing : experiment;
}

struct Batch {
  Gradient gradient;
  double loss = 0;
};

// Results of all batches under one configuration, and the traffic at the cuts.
struct Measured {
  std::vector<Batch> batches;
  std::vector<BoundaryRecord> boundaries;
};

Spread SpreadOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  Spread spread;
  spread.set_mean(sum / n);
  for (const double value : values) squares += (value - spread.mean()) * (value - spread.mean());
  if (values.size() > 1) spread.set_sd(std::sqrt(squares / (n - 1)));
  return spread;
}

ProbeMeasure MeasureOf(const std::vector<Closeness>& batches) {
  std::vector<double> cosines, errors, ratios;
  for (const Closeness& batch : batches) {
    cosines.push_back(batch.cosine);
    errors.push_back(batch.relative_error);
    ratios.push_back(batch.norm_ratio);
  }
  ProbeMeasure measure;
  *measure.mutable_cosine() = SpreadOf(cosines);
  *measure.mutable_relative_error() = SpreadOf(errors);
  *measure.mutable_norm_ratio() = SpreadOf(ratios);
  return measure;
}

Closeness WholeCloseness(const Gradient& g, const Gradient& g0) {
  GradientComparison comparison;
  for (size_t i = 0; i < g.size(); ++i) comparison.Add(g[i], g0[i]);
  return comparison.Result();
}

ProbeMeasure WholeMeasure(const std::vector<Batch>& batches, const std::vector<Batch>& references) {
  std::vector<Closeness> whole;
  for (size_t i = 0; i < batches.size(); ++i) {
    whole.push_back(WholeCloseness(batches[i].gradient, references[i].gradient));
  }
  return MeasureOf(whole);
}

Spread LossOf(const std::vector<Batch>& batches) {
  std::vector<double> losses;
  for (const Batch& batch : batches) losses.push_back(batch.loss);
  return SpreadOf(losses);
}

// Fills bits, errors and boundaries of the directions that `row` compresses.
void AddBoundaries(const std::vector<BoundaryRecord>& boundaries, size_t element_bytes,
                   const ProbeConfiguration& configuration, ProbeRow* row) {
  double wire_bytes = 0, elements = 0, errors = 0;
  for (const BoundaryRecord& boundary : boundaries) {
    if (!configuration.cut.empty() && boundary.name() != configuration.cut) continue;
    for (const bool is_gradient : {false, true}) {
      if (!(is_gradient ? configuration.gradients : configuration.activations)) continue;
      const DirectionRecord& record = is_gradient ? boundary.gradients() : boundary.activations();
      if (record.messages() == 0) continue;  // no gradients cross this cut
      ProbeBoundary* one = row->add_boundaries();
      one->set_cut(boundary.name());
      one->set_gradient(is_gradient);
      one->set_bits_per_element(record.wire_bits_per_element());
      one->set_relative_error(record.relative_error());
      one->set_cosine(record.cosine());
      wire_bytes += static_cast<double>(record.wire_bytes());
      elements += static_cast<double>(record.raw_bytes()) / static_cast<double>(element_bytes);
      errors += record.relative_error();
    }
  }
  if (row->boundaries_size() == 0) return;
  row->set_bits_per_element(8 * wire_bytes / elements);
  row->set_boundary_error(errors / row->boundaries_size());
}

class Prober {
 public:
  Prober(const ProbeTask& task, Fleet* fleet,
         const std::function<void(const std::string&)>& on_progress, ProbeReport* report)
      : task_(task), fleet_(*fleet), on_progress_(on_progress), report_(*report) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    on_progress_("without codecs");
    ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(task_.experiment));
    const uint64_t size = task_.experiment.data().batch_size();
    const uint64_t step = task_.epochs_trained * ((samples + size - 1) / size) + 1;
    ASSIGN_OR_RETURN(const Measured reference, Measure({}, step));
    RETURN_IF_ERROR(AddOutliers(step));
    reference_ = &reference.batches;
    *report_.mutable_loss() = LossOf(reference.batches);
    CompareBatches();
    for (size_t i = 0; i < task_.configurations.size(); ++i) {
      RETURN_IF_ERROR(AddRow(i));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() {
    ASSIGN_OR_RETURN(layout_, LayoutOf(task_.experiment));
    ASSIGN_OR_RETURN(const DType compute, ComputeFrom(task_.experiment));
    element_bytes_ = SizeOf(compute);
    std::vector<AcquireResponse> answers;
    RETURN_IF_ERROR(fleet_.Acquire(&answers));
    threads_ = StageThreads(task_.experiment, &fleet_, answers);
    const BuildInfo& build = answers[0].build();
    report_.set_commit(build.commit());
    report_.set_cpu_model(build.cpu_model());
    report_.set_simd_target(build.simd_target());
    report_.set_threads(static_cast<uint32_t>(threads_[0]));
    *report_.mutable_segments() = {layout_.segments.begin(), layout_.segments.end()};
    for (const std::string& cut : CutNames(task_.experiment)) report_.add_cuts(cut);
    return absl::OkStatus();
  }

  // Adds a warning for each cut at which `step` has captured outliers.
  absl::Status AddOutliers(uint64_t step) {
    std::vector<std::string> files(static_cast<size_t>(fleet_.size()));
    RETURN_IF_ERROR(fleet_.OnAll([&](StageClient& stage) {
      std::string& file = files[stage.stage()];
      return stage.ExportCapture(step, [&](const FileChunk& chunk) {
        file += chunk.data();
        if (file.size() <= 2 * kMostCaptured) return absl::OkStatus();
        return absl::InternalError(absl::StrCat(stage.Name(), ": its capture has ", file.size(),
                                                " bytes or more, want at most ", kMostCaptured));
      });
    }));
    std::map<std::string, std::string> found;
    for (const std::string& file : files) {
      if (file.empty()) continue;
      ASSIGN_OR_RETURN(const Safetensors capture, ParseSafetensors(file));
      ASSIGN_OR_RETURN(const auto of_stage, OutliersOf(capture));
      found.insert(of_stage.begin(), of_stage.end());
    }
    for (const std::string& cut : report_.cuts()) {
      const auto outliers = found.find(cut);
      if (outliers == found.end()) continue;
      report_.add_warnings(absl::StrCat(cut, ", activations: ", outliers->second));
      on_progress_(absl::StrCat("warning: ", *report_.warnings().rbegin()));
    }
    return absl::OkStatus();
  }

  // Configures a new pipeline for each configuration, so that no state of one affects the next.
  // Captures the activations of a step, counted from 1, if there is one.
  absl::StatusOr<Measured> Measure(const ProbeConfiguration& configuration, uint64_t captured = 0) {
    ASSIGN_OR_RETURN(Experiment experiment, WithCodecs(task_.experiment, configuration));
    if (captured > 0) experiment = Capturing(experiment, task_.epochs_trained + 1, captured);
    if (verified_) experiment.mutable_data()->set_verify(false);
    KeepLeast(&experiment);
    ASSIGN_OR_RETURN(const Configured configured, ConfigureStages(experiment, threads_, &fleet_));
    verified_ = true;
    report_.set_parameters(configured.parameters);
    if (task_.weights) RETURN_IF_ERROR(task_.weights->Import(&fleet_));
    const uint64_t samples = configured.data.train_samples();
    RETURN_IF_ERROR(CheckBatches(samples));
    Measured measured;
    BoundaryTotals totals(CutNames(experiment), {fleet_.size()});
    for (int i = 0; i < task_.batches; ++i) {
      ASSIGN_OR_RETURN(Batch batch, Gradients(i, samples, &totals));
      measured.batches.push_back(std::move(batch));
    }
    measured.boundaries = totals.Records();
    return measured;
  }

  absl::Status CheckBatches(uint64_t samples) const {
    const uint64_t size = task_.experiment.data().batch_size();
    const uint64_t batches = (samples + size - 1) / size;
    if (static_cast<uint64_t>(task_.batches) <= batches) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("batches: ", task_.batches, ", an epoch has ", batches));
  }

  absl::StatusOr<Batch> Gradients(int index, uint64_t samples, BoundaryTotals* totals) {
    GradientsRequest request;
    request.set_epoch(task_.epochs_trained + 1);
    request.set_batch(static_cast<uint64_t>(index) + 1);
    request.set_samples(samples);
    request.set_compressed(true);
    Batch batch;
    std::vector<GradientFile> files(static_cast<size_t>(fleet_.size()));
    absl::Mutex mutex;  // guards batch and *totals
    const uint64_t most_bytes = MostGradientBytes(layout_);
    RETURN_IF_ERROR(fleet_.OnAll([&](StageClient& stage) {
      files[stage.stage()].stage = stage.Name();
      std::string& file = files[stage.stage()].bytes;
      return stage.Gradients(request, [&](const StageEvent& event) -> absl::Status {
        file += event.gradients().data();  // empty in other events
        if (file.size() > most_bytes) {
          return absl::InternalError(absl::StrCat(stage.Name(), ": its gradients have ",
                                                  file.size(), " bytes or more, want at most ",
                                                  most_bytes));
        }
        absl::MutexLock lock(&mutex);
        if (event.has_step()) batch.loss = event.step().loss();
        if (event.has_stage()) {
          StageReport report = event.stage();
          report.set_stage(static_cast<uint32_t>(stage.stage()));
          totals->Update(report);
        }
        return absl::OkStatus();
      });
    }));
    ASSIGN_OR_RETURN(batch.gradient, GradientFrom(files, layout_));
    return batch;
  }

  // Compares the batches with each other without codecs, which shows how much the gradient's
  // direction varies in stochastic gradient descent itself.
  void CompareBatches() {
    std::vector<double> cosines;
    for (size_t i = 0; i < reference_->size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        cosines.push_back(
            WholeCloseness((*reference_)[i].gradient, (*reference_)[j].gradient).cosine);
      }
    }
    if (!cosines.empty()) *report_.mutable_cosine_between_batches() = SpreadOf(cosines);
  }

  absl::Status AddRow(size_t index) {
    const ProbeConfiguration& configuration = task_.configurations[index];
    ASSIGN_OR_RETURN(Measured measured, Measure(configuration));
    ProbeRow* row = report_.add_rows();
    row->set_compressed(configuration.Directions());
    row->set_activations(CodecText(configuration.activations.value_or(CodecSpec())));
    row->set_gradients(CodecText(configuration.gradients.value_or(CodecSpec())));
    row->set_cut(configuration.cut);
    AddBoundaries(measured.boundaries, element_bytes_, configuration, row);
    *row->mutable_loss() = LossOf(measured.batches);
    *row->mutable_all() = WholeMeasure(measured.batches, *reference_);
    if (configuration.gradients && forward_codec_ && forward_codec_ == configuration.activations) {
      *row->mutable_given_forward() = WholeMeasure(measured.batches, forward_);
    }
    for (size_t segment = 0; segment < layout_.segments.size(); ++segment) {
      std::vector<Closeness> part;
      for (size_t i = 0; i < measured.batches.size(); ++i) {
        GradientComparison comparison;
        comparison.Add(measured.batches[i].gradient[segment], (*reference_)[i].gradient[segment]);
        part.push_back(comparison.Result());
      }
      *row->add_segments() = MeasureOf(part);
    }
    on_progress_(absl::StrFormat(
        "%d/%d  %s%s  %s | %s  %.3g bits  cosine %.4f", index + 1, task_.configurations.size(),
        row->compressed(), row->cut().empty() ? "" : " at " + row->cut(), row->activations(),
        row->gradients(), row->bits_per_element(), row->all().cosine().mean()));
    if (!configuration.gradients) {
      forward_codec_ = configuration.activations;
      forward_ = std::move(measured.batches);
    }
    return absl::OkStatus();
  }

  const ProbeTask& task_;
  Fleet& fleet_;
  const std::function<void(const std::string&)>& on_progress_;
  ProbeReport& report_;
  ModelLayout layout_;
  std::vector<int> threads_;  // by stage
  size_t element_bytes_ = 0;  // of an element that crosses uncompressed
  bool verified_ = false;     // the data's checksums need comparing once
  const std::vector<Batch>* reference_ = nullptr;
  // The codec of the last configuration that compressed activations alone.
  std::optional<CodecSpec> forward_codec_;
  std::vector<Batch> forward_;
};

}  // namespace

absl::Status RunProbe(const ProbeTask& task, Fleet* fleet,
                      const std::function<void(const std::string&)>& on_progress,
                      ProbeReport* report) {
  report->set_name(task.experiment.name());
  report->set_epochs_trained(task.epochs_trained);
  report->set_batches(static_cast<uint32_t>(task.batches));
  report->set_batch_size(task.experiment.data().batch_size());
  report->set_microbatches(task.experiment.pipeline().microbatches());
  report->set_precision(task.experiment.precision());
  return Prober(task, fleet, on_progress, report).Run();
}

}  // namespace thinwire
