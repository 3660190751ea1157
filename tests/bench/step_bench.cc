// Measures the training speed of one uncut model on one device: forward pass, backward pass,
// update. The model is a CIFAR ResNet-18 with SGD, or a GPT-2 with AdamW and clipping. Prints one
// line of JSON. Data and labels are random and stay the same.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/load.h"
#include "base/median.h"
#include "base/random.h"
#include "base/status.h"
#include "models/cost.h"
#include "models/tied_weight.h"
#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/device_clip.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/parameters.h"
#include "nn/segment/recorded_segment.h"
#include "nn/segment/segment.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

struct BenchOptions {
  std::string model = "resnet18", precision = "fp32", device = "cpu", cuda_plugin;
  int64_t width = 64, batch = 100;
  int64_t layers = 4, heads = 4, context = 64, vocabulary = 65;  // these four are a GPT-2's
  bool deterministic = false, recorded = true;
  int threads = 2, steps = 5, warmup = 2;

  bool is_text() const { return model == "gpt2"; }
  DType compute() const { return precision == "bf16" ? DType::kBF16 : DType::kF32; }
  // Number of labels of a sample; each belongs to one row of logits.
  int64_t rows() const { return is_text() ? context : 1; }
};

absl::StatusOr<std::unique_ptr<Ops>> NewOps(const BenchOptions& bench, const OpenedDevice& opened) {
  if (opened.plugin == nullptr) return NewCpuOps(bench.threads);
  OpsOptions options;
  options.deterministic = bench.deterministic;
  options.tf32 = bench.precision == "tf32";
  Ops* ops = nullptr;
  RETURN_IF_ERROR(ToStatus(opened.plugin->NewOps(opened.device, options, &ops)));
  return std::unique_ptr<Ops>(ops);
}

absl::StatusOr<Tensor> OnDevice(const Tensor& on_host, Device* device) {
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(device, on_host.dtype(), on_host.shape()));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(copy.data(), on_host.data(), on_host.bytes())));
  return copy;
}

absl::StatusOr<Tensor> RandomImages(const BenchOptions& bench, Device* device, Ops* ops) {
  const Shape shape = {bench.batch, 32, 32, 3};
  ASSIGN_OR_RETURN(Tensor on_host, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  RandomStream random(RandomKey(1, "images"));
  for (float& value : on_host.floats()) value = 2 * random.NextFloat() - 1;
  ASSIGN_OR_RETURN(const Tensor images, OnDevice(on_host, device));
  ASSIGN_OR_RETURN(Tensor converted, Tensor::Allocate(device, bench.compute(), shape));
  RETURN_IF_ERROR(ToStatus(ops->Convert(images.view(), converted.view())));
  return converted;
}

std::vector<int32_t> RandomIds(int64_t n, int64_t classes) {
  RandomStream random(RandomKey(1, "ids"));
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids)
    id = static_cast<int32_t>(random.NextFloat() * static_cast<float>(classes));
  return ids;
}

absl::StatusOr<Tensor> RandomText(const BenchOptions& bench, Device* device) {
  const std::vector<int32_t> ids = RandomIds(bench.batch * bench.context, bench.vocabulary);
  ASSIGN_OR_RETURN(const Tensor on_host,
                   Tensor::Allocate(CpuDevice(), DType::kI32, {bench.batch, bench.context}));
  std::copy(ids.begin(), ids.end(), static_cast<int32_t*>(on_host.data()));
  return OnDevice(on_host, device);
}

absl::StatusOr<Model> NewModel(const BenchOptions& bench) {
  ASSIGN_OR_RETURN(ModelOptions options, OptionsOf(bench.model));
  options.width = bench.width;
  options.input = {1, 32, 32, 3};
  if (bench.is_text()) {
    options.input = {1, bench.context};
    options.layers = bench.layers;
    options.heads = bench.heads;
    options.classes = bench.vocabulary;
  }
  return NamedModel(options);
}

// Builds the network; it is recorded where the device can record.
absl::StatusOr<std::unique_ptr<Segment>> NewNetwork(const BenchOptions& bench, const Model& model,
                                                    Device* device, Ops* ops) {
  SegmentOptions options;
  options.device = device;
  options.ops = ops;
  options.compute = bench.compute();
  options.needs_input_gradient = false;
  options.ends_model = true;
  ASSIGN_OR_RETURN(auto segment, BuildSegment(model.blocks, options));
  if (const std::optional<TiedWeight> tied = FindTiedWeight(model)) {
    RETURN_IF_ERROR(ShareTiedValue(*tied, segment.get()));
  }
  if (!bench.recorded) return segment;
  return RecordSegment(std::move(segment), {device, ops, bench.batch, bench.batch, true});
}

OptimizerSpec OptimizerOf(const BenchOptions& bench) {
  OptimizerSpec spec;
  if (bench.is_text()) {
    spec.kind = OptimizerKind::kAdamW;
    spec.weight_decay = 0.1;
    spec.clip_norm = 1;
  } else {
    spec.momentum = 0.9;
    spec.weight_decay = 5e-4;
  }
  return spec;
}

struct Times {
  std::vector<double> wall, cpu;  // seconds; cpu counts all threads
};

// Model in training on one batch.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> New(const BenchOptions& bench) {
    auto training = std::unique_ptr<Training>(new Training(bench));
    RETURN_IF_ERROR(training->Build());
    return training;
  }

  // Takes one step and returns when the device is done.
  absl::Status Step() {
    Saved saved;
    ASSIGN_OR_RETURN(Tensor logits, segment_->Forward(input_, Mode::kTrain, &saved));
    Tensor dlogits;
    ASSIGN_OR_RETURN(
        const PendingLoss loss,
        SubmitSoftmaxCrossEntropy(std::move(logits), classes_, labels_,
                                  static_cast<int64_t>(labels_.size()), ops_.get(), &dlogits));
    RETURN_IF_ERROR(segment_->Backward(dlogits, &saved).status());
    RETURN_IF_ERROR(SumTiedGradients());
    RETURN_IF_ERROR(ToStatus(device_->Finish()));
    if (!std::isfinite(loss.sums().loss)) return absl::OutOfRangeError("the loss is no number");
    return Update();
  }

  // Number of multiplications and additions of one step.
  double flops() const { return flops_; }
  Device* device() { return device_; }
  Ops* ops() { return ops_.get(); }

 private:
  static constexpr double kRate = 1e-3;

  explicit Training(const BenchOptions& bench) : bench_(bench), spec_(OptimizerOf(bench)) {}

  absl::Status Build() {
    ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(bench_.device, bench_.cuda_plugin));
    device_ = opened.device;
    ASSIGN_OR_RETURN(ops_, NewOps(bench_, opened));
    ASSIGN_OR_RETURN(const Model model, NewModel(bench_));
    flops_ = 3 * SegmentCosts(model, {}).front().forward_flops * static_cast<double>(bench_.batch);
    tied_ = FindTiedWeight(model);
    ASSIGN_OR_RETURN(segment_, NewNetwork(bench_, model, device_, ops_.get()));
    ASSIGN_OR_RETURN(optimizer_, NewOptimizer(spec_, segment_->parameters(), device_, ops_.get()));
    if (spec_.clip_norm > 0) {
      ASSIGN_OR_RETURN(
          clip_, DeviceClip::New(segment_->parameters(), spec_.clip_norm, device_, ops_.get()));
    }
    classes_ = bench_.is_text() ? bench_.vocabulary : 10;
    labels_ = RandomIds(bench_.batch * bench_.rows(), classes_);
    ASSIGN_OR_RETURN(input_, bench_.is_text() ? RandomText(bench_, device_)
                                              : RandomImages(bench_, device_, ops_.get()));
    return absl::OkStatus();
  }

  // Updates the parameters as a stage that has the whole model does.
  absl::Status Update() {
    GradientScale scale;
    if (clip_ != nullptr) {
      RETURN_IF_ERROR(clip_->Submit());
      scale = GradientScale(clip_->factor());
    }
    RETURN_IF_ERROR(optimizer_->Step(kRate, scale));
    RETURN_IF_ERROR(segment_->ParametersUpdated());
    RETURN_IF_ERROR(ToStatus(device_->Finish()));
    return clip_ != nullptr ? clip_->Check() : absl::OkStatus();
  }

  absl::Status SumTiedGradients() {
    if (!tied_) return absl::OkStatus();
    const absl::Span<Parameter> parameters = segment_->parameters();
    return AddTiedGradients(*FindParameter(parameters, tied_->name),
                            *FindParameter(parameters, tied_->copy), ops_.get());
  }

  const BenchOptions bench_;
  const OptimizerSpec spec_;
  Device* device_ = nullptr;
  std::unique_ptr<Ops> ops_;
  double flops_ = 0;
  std::optional<TiedWeight> tied_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DeviceClip> clip_;  // null if gradients are not clipped
  int64_t classes_ = 0;
  std::vector<int32_t> labels_;
  Tensor input_;
};

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// Measures the time of each step after the warm-up.
absl::StatusOr<Times> TimeSteps(const BenchOptions& bench, Training* training) {
  Times times;
  for (int step = 0; step < bench.warmup + bench.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    RETURN_IF_ERROR(training->Step());
    if (step < bench.warmup) continue;
    times.wall.push_back(Seconds(start));
    times.cpu.push_back(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  return times;
}

// Returns the operations per second of the fastest of several products of matrices of 2048 x 2048.
absl::StatusOr<double> PeakFlops(const BenchOptions& bench, Training* training) {
  constexpr int64_t kSize = 2048;
  LinearSpec spec;
  spec.in_features = spec.out_features = kSize;
  spec.compute = bench.compute();
  Linear* made = nullptr;
  RETURN_IF_ERROR(ToStatus(training->ops()->NewLinear(spec, &made)));
  const std::unique_ptr<Linear> linear(made);
  Tensor weights, x, y;
  ASSIGN_OR_RETURN(weights, Tensor::Allocate(training->device(), DType::kF32, {kSize, kSize}));
  ASSIGN_OR_RETURN(x, Tensor::Allocate(training->device(), bench.compute(), {kSize, kSize}));
  ASSIGN_OR_RETURN(y, Tensor::Allocate(training->device(), bench.compute(), {kSize, kSize}));
  auto* const values = static_cast<float*>(weights.data());
  RETURN_IF_ERROR(ToStatus(training->ops()->Zero(values, weights.elements())));
  RETURN_IF_ERROR(ToStatus(training->ops()->Convert(weights.view(), x.view())));
  RETURN_IF_ERROR(ToStatus(linear->LoadWeights(values, nullptr)));
  double least = 0;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(ToStatus(linear->Forward(x.view(), y.view())));
    RETURN_IF_ERROR(ToStatus(training->device()->Finish()));
    const double seconds = Seconds(start);
    if (i == 1 || (i > 1 && seconds < least)) least = seconds;  // the first run only prepares
  }
  return 2.0 * kSize * kSize * kSize / least;
}

absl::StatusOr<nlohmann::json> Measure(const BenchOptions& bench) {
  ASSIGN_OR_RETURN(const auto training, Training::New(bench));
  ASSIGN_OR_RETURN(const Times times, TimeSteps(bench, training.get()));
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  ASSIGN_OR_RETURN(const double peak, PeakFlops(bench, training.get()));
  const double median = UpperMedian(times.wall);
  const char* const speed = bench.is_text() ? "tokens_per_second" : "images_per_second";
  return nlohmann::json{{"model", bench.model},
                        {"width", bench.width},
                        {"batch", bench.batch},
                        {"precision", bench.precision},
                        {"device", bench.device},
                        {"threads", bench.threads},
                        {"isa", CpuInstructionSet()},
                        {"step_seconds", median},
                        {"step_cpu_seconds", UpperMedian(times.cpu)},
                        {speed, static_cast<double>(bench.batch * bench.rows()) / median},
                        {"share_of_peak", training->flops() / median / peak},
                        {"peak_flops", peak},
                        {"host_bytes", usage.ru_maxrss * 1024}};
}

int Main(int argc, char** argv) {
  BenchOptions bench;
  CLI::App app("Training speed of one uncut model");
  app.add_option("--model", bench.model)->check(CLI::IsMember({"resnet18", "gpt2"}));
  app.add_option("--width", bench.width, "channels of the first stage, or features of a position");
  app.add_option("--batch", bench.batch, "images or sequences a step");
  app.add_option("--layers", bench.layers, "gpt2: blocks");
  app.add_option("--heads", bench.heads, "gpt2: heads of attention");
  app.add_option("--context", bench.context, "gpt2: tokens of a sequence");
  app.add_option("--vocabulary", bench.vocabulary, "gpt2: different tokens");
  app.add_option("--precision", bench.precision, "fp32, tf32 (cuda) or bf16")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}));
  app.add_option("--device", bench.device, "cpu, cuda or cuda:N");
  app.add_option("--cuda_plugin", bench.cuda_plugin, "path of libthinwire_cuda.so");
  app.add_flag("--deterministic", bench.deterministic, "equal bits in every run (cuda)");
  app.add_flag("!--layer_by_layer", bench.recorded, "no recorded passes (cuda)");
  app.add_option("--threads", bench.threads, "OpenMP threads")->check(CLI::PositiveNumber);
  app.add_option("--steps", bench.steps, "steps timed")->check(CLI::PositiveNumber);
  app.add_option("--warmup", bench.warmup, "steps before");
  CLI11_PARSE(app, argc, argv);

  const absl::StatusOr<nlohmann::json> line = Measure(bench);
  if (!line.ok()) {
    std::fprintf(stderr, "step_bench: %s\n", line.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", line->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
