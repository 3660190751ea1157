#include "coordinator/speeds/plan_speeds.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/status.h"
#include "config/devices.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/plan/codec_speeds.h"
#include "coordinator/plan/run_speeds.h"
#include "coordinator/run/run.h"
#include "coordinator/session/exit_code.h"
#include "models/model.h"
#include "transport/speed.h"

namespace thinwire {
namespace {

// Time of a forward and a backward pass.
struct ComputeSpeed {
  double gflops = 0;  // 10^9 operations per second, without the cost of `layer_seconds`
  // Fixed cost of each layer in a forward pass, however few its samples; backward takes twice as
  // much.
  double layer_seconds = 0;
  std::string by;       // what was trained, for people: "resnet8 of width 16 on cpu, threads 2"
  std::string machine;  // as MachineOf returns it
};

// FLOPs of the training with one batch size: half a second on a core of 40 GFLOP/s.
constexpr double kFlops = 20e9;
// A forward and a backward pass have three times the FLOPs of a forward pass.
constexpr double kPasses = 3;
constexpr int64_t kLeastSteps = 4;

constexpr char kCommon[] = R"(
name: plan
pipeline: {cuts: none, stages: 1}
optimizer: {name: sgd, lr: 0.01}
epochs: 1
evaluation: {every: 0, compressed: false, uncompressed: false}
metrics: {error_every: 0}
checkpoint: {every_epochs: 0}
)";
constexpr char kImages[] = R"(
model: {name: resnet8}
data: {name: digits, augment: none}
)";
constexpr char kTokens[] = R"(
model: {name: gpt2, layers: 1, heads: 1}
data: {name: shakespeare, windows: 2}
)";

// Size of a batch. Large: as many pixels as 25 images of 32 x 32, or 128 tokens. Small: about a
// tenth of that.
enum class Size { kLarge, kSmall };
std::vector<std::string> BatchOf(Size size, bool tokens) {
  const bool is_large = size == Size::kLarge;
  if (!tokens) return {absl::StrCat("data.batch_size=", is_large ? 400 : 40)};
  return {absl::StrCat("data.batch_size=", is_large ? 2 : 1),
          absl::StrCat("data.context=", is_large ? 64 : 16)};
}

double ForwardFlopsOf(const Model& model) {
  double flops = 0;
  for (const BlockSpec& block : model.blocks) flops += ForwardFlops(block);
  return flops;
}

// Returns whether the model is made of attention, like one of tokens, or of convolutions.
bool Attends(const Model& model) {
  bool attends = false;
  for (const BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      attends = attends || layer.kind == LayerKind::kAttention;
    });
  }
  return attends;
}

// Returns the experiment's width, or the nearest with which training takes about a second. A model
// given by its own blocks has no width and gets a usual one.
uint32_t WidthFor(const Experiment& experiment, bool tokens) {
  if (!experiment.model().has_width()) return tokens ? 128 : 16;
  const uint32_t least = tokens ? 32 : 4, most = tokens ? 768 : 64;
  return std::clamp(experiment.model().width(), least, most);
}

absl::StatusOr<Experiment> Resembling(const Experiment& experiment, const std::string& threads,
                                      Size size) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  const bool is_transformer = Attends(model);
  ASSIGN_OR_RETURN(const std::string device, DeviceOf(experiment, /*stage=*/0));
  std::vector<std::string> overrides = {
      absl::StrCat("model.width=", WidthFor(experiment, is_transformer)),
      absl::StrCat("precision=", experiment.precision()), absl::StrCat("device=", device),
      absl::StrCat("pipeline.threads=", threads)};
  for (std::string& of_batch : BatchOf(size, is_transformer))
    overrides.push_back(std::move(of_batch));
  const std::string text = absl::StrCat(kCommon, is_transformer ? kTokens : kImages);
  ASSIGN_OR_RETURN(const Experiment one, ParseExperiment(text, "plan.yaml", overrides));
  ASSIGN_OR_RETURN(const Model small, ModelFrom(one));
  const int64_t batch = one.data().batch_size();
  const double step = kPasses * ForwardFlopsOf(small) * static_cast<double>(batch);
  const int64_t steps = std::max<int64_t>(kLeastSteps, static_cast<int64_t>(kFlops / step));
  if (is_transformer) {
    overrides.push_back(absl::StrCat("data.windows=", steps * batch));
  } else {
    constexpr int64_t kStepsPerEpoch = 8;  // limits the samples, as there are 3823 digits
    overrides.push_back(absl::StrCat("data.limit=", kStepsPerEpoch * batch));
    overrides.push_back(absl::StrCat("epochs=", (steps + kStepsPerEpoch - 1) / kStepsPerEpoch));
  }
  return ParseExperiment(text, "plan.yaml", overrides);
}

// Cost of the training with one batch size.
struct Trained {
  double step_seconds = 0, step_flops = 0;
  int64_t layers = 0;
  std::string by, machine;
};

absl::StatusOr<Trained> Train(const Experiment& experiment, const SessionOptions& options,
                              Interruption* interruption) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start(experiment.name(), experiment, options, interruption));
  RunObserver nobody;
  Summary summary;
  RETURN_IF_ERROR(RunExperiment(experiment, session->fleet(), &nobody, &summary));
  const ComputeRecord& compute = summary.compute(0);
  const double seconds = compute.forward_seconds() + compute.backward_seconds();
  if (!(seconds > 0)) return absl::InternalError("the stage tells of no time that it computed");
  const auto steps = static_cast<double>(compute.steps());
  Trained trained;
  trained.step_seconds = seconds / steps;
  trained.step_flops =
      kPasses * ForwardFlopsOf(model) * static_cast<double>(compute.samples()) / steps;
  for (const BlockSpec& block : model.blocks) trained.layers += CountLayers(block);
  trained.by = absl::StrCat(model.name, " of width ", experiment.model().width(), " on ",
                            summary.device(), ", threads ", summary.provenance().threads());
  trained.machine = MachineOf(summary);
  return trained;
}

// Fits a line through both points: seconds of a step = those of its passes + FLOPs / rate.
ComputeSpeed SpeedFrom(const Trained& large, const Trained& small) {
  const double flops = large.step_flops - small.step_flops;
  const double slope = (large.step_seconds - small.step_seconds) / flops;
  const double passes = large.step_seconds - slope * large.step_flops;
  ComputeSpeed speed;
  speed.by = large.by;
  speed.machine = large.machine;
  speed.gflops = large.step_flops / (1e9 * large.step_seconds);
  // Because of noise, passes may seem to take no time at all, or all of it.
  if (!(passes > 0) || !(slope > 0)) return speed;
  speed.gflops = 1e-9 / slope;
  speed.layer_seconds = passes / (kPasses * static_cast<double>(large.layers));
  return speed;
}

absl::StatusOr<ComputeSpeed> Measure(const Experiment& experiment, const std::string& threads,
                                     const SessionOptions& options, Interruption* interruption) {
  std::vector<Trained> trained;
  for (const Size size : {Size::kLarge, Size::kSmall}) {
    ASSIGN_OR_RETURN(const Experiment resembling, Resembling(experiment, threads, size));
    ASSIGN_OR_RETURN(const Trained one, Train(resembling, options, interruption));
    trained.push_back(one);
  }
  return SpeedFrom(trained[0], trained[1]);
}

// Trains a small network on embedded data for about a second. It resembles the model of the
// resolved `experiment`: a ResNet or a GPT-2 of its width. It runs on the device and in the
// precision of the experiment's first stage, in one stage of `threads` (as pipeline.threads), first
// in large batches, then in small ones. Returns the errors of the session or of the run, with what
// to do instead.
absl::StatusOr<ComputeSpeed> MeasureComputeSpeed(const Experiment& experiment,
                                                 const std::string& threads,
                                                 const SessionOptions& options,
                                                 Interruption* interruption) {
  auto speed = Measure(experiment, threads, options, interruption);
  if (speed.ok()) return speed;
  return absl::Status(speed.status().code(),
                      absl::StrCat(speed.status().message(),
                                   "; the stage whose speed is measured failed: give --gflops, or "
                                   "--from the folder of a run"));
}

// Measures how fast layers compute, unless a run has told. It also measures the fixed cost of
// passes, which no run tells; it is used for a run only if that ran on a machine like this one.
absl::Status MeasureCompute(const SpeedFlags& flags, const Experiment& experiment,
                            const std::string& threads, const SessionOptions& session,
                            Interruption* interruption, Speeds* speeds) {
  if (flags.gflops) return absl::OkStatus();
  const bool is_told = !speeds->blocks.empty();
  const auto speed = MeasureComputeSpeed(experiment, threads, session, interruption);
  if (is_told && !absl::IsCancelled(speed.status())) {
    // The run may have used a device that is not here.
    if (!speed.ok() || speed->machine != speeds->machine) return absl::OkStatus();
  }
  RETURN_IF_ERROR(speed.status());
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  if (!is_told) {
    ASSIGN_OR_RETURN(speeds->blocks, BlocksAt(partition.model, speed->gflops));
    speeds->compute_source =
        absl::StrFormat("%.3g GFLOP/s, as training %s on this machine now took (--from, --gflops)",
                        speed->gflops, speed->by);
  }
  speeds->layer_seconds = speed->layer_seconds;
  LeaveOutPasses(partition.model, speed->layer_seconds, speeds->samples_of_pass, &speeds->blocks);
  return absl::OkStatus();
}

absl::Status MeasureCodecs(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments, Speeds* speeds) {
  if (flags.codec_gbps) return absl::OkStatus();
  const char* const kMeasured =
      "measured now, on one thread of this machine, on random tensors like those that cross";
  const size_t known = speeds->codings.size();
  for (const Experiment* const experiment : experiments) {
    RETURN_IF_ERROR(MeasureCodings(*experiment, &speeds->codings));
  }
  if (ReplicasOf(*experiments.front()) > 1) speeds->digest_seconds_per_byte = MeasureDigest();
  if (flags.from.empty()) {
    speeds->codec_source = kMeasured;
  } else if (speeds->codings.size() > known) {
    absl::StrAppend(&speeds->codec_source, ", others ", kMeasured);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Speeds> GivenSpeeds(const SpeedFlags& flags, const Experiment& experiment) {
  Speeds speeds;
  if (!flags.from.empty()) {
    ASSIGN_OR_RETURN(speeds, Annotated(SpeedsOfRun(flags.from, experiment), "--from"));
  }
  if (flags.gflops) {
    ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
    ASSIGN_OR_RETURN(speeds.blocks, BlocksAt(partition.model, *flags.gflops));
    speeds.compute_source = absl::StrFormat("%g GFLOP/s (--gflops)", *flags.gflops);
  }
  if (flags.codec_gbps) {
    ASSIGN_OR_RETURN(speeds.others, CodingAt(*flags.codec_gbps));
    speeds.codings.clear();
    speeds.codec_source =
        absl::StrFormat("%g GB/s to encode, and to decode (--codec_gbps)", *flags.codec_gbps);
  }
  return speeds;
}

absl::Status MeasureSpeeds(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments,
                           const std::string& threads, const SessionOptions& session,
                           Interruption* interruption, Speeds* speeds) {
  RETURN_IF_ERROR(
      MeasureCompute(flags, *experiments.front(), threads, session, interruption, speeds));
  interruption->OnFirst([] { _exit(kExitInterrupted); });
  RETURN_IF_ERROR(MeasureCodecs(flags, experiments, speeds));
  if (flags.gflops && flags.codec_gbps) return absl::OkStatus();  // all speeds are given
  ASSIGN_OR_RETURN(speeds->transport, MeasureTransport());
  return absl::OkStatus();
}

}  // namespace thinwire
