// Training speed of one uncut CIFAR ResNet-18 on one device: forward, backward, SGD. Prints one
// line of JSON. Data and labels are random and stay the same.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/load.h"
#include "base/random.h"
#include "base/status.h"
#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/recorded_segment.h"
#include "nn/segment.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

struct BenchOptions {
  int64_t width = 64, batch = 100;
  std::string precision = "fp32", device = "cpu", cuda_plugin;
  bool deterministic = false, recorded = true;
  int threads = 2, steps = 5, warmup = 2;

  DType compute() const { return precision == "bf16" ? DType::kBF16 : DType::kF32; }
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

absl::StatusOr<Tensor> RandomImages(const BenchOptions& bench, Device* device, Ops* ops) {
  const Shape shape = {bench.batch, 32, 32, 3};
  ASSIGN_OR_RETURN(Tensor on_host, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  RandomStream random(RandomKey(1, "images"));
  for (float& value : on_host.floats()) value = 2 * random.NextFloat() - 1;
  ASSIGN_OR_RETURN(Tensor images, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(images.data(), on_host.data(), on_host.bytes())));
  ASSIGN_OR_RETURN(Tensor converted, Tensor::Allocate(device, bench.compute(), shape));
  RETURN_IF_ERROR(ToStatus(ops->Convert(images.view(), converted.view())));
  return converted;
}

// Recorded where the device can.
absl::StatusOr<std::unique_ptr<Segment>> NewNetwork(const BenchOptions& bench, Device* device,
                                                    Ops* ops) {
  ASSIGN_OR_RETURN(ModelOptions model_options, OptionsOf("resnet18"));
  model_options.width = bench.width;
  model_options.input = {1, 32, 32, 3};
  ASSIGN_OR_RETURN(const Model model, NamedModel(model_options));
  SegmentOptions options;
  options.device = device;
  options.ops = ops;
  options.compute = bench.compute();
  options.needs_input_gradient = false;
  ASSIGN_OR_RETURN(auto segment, BuildSegment(model.blocks, options));
  if (!bench.recorded) return segment;
  return RecordSegment(std::move(segment), {device, ops, bench.batch, bench.batch});
}

struct Times {
  std::vector<double> wall, cpu;  // seconds; cpu is of all threads
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Times each step after the warm-up.
absl::StatusOr<Times> TimeSteps(const BenchOptions& bench) {
  ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(bench.device, bench.cuda_plugin));
  Device* const device = opened.device;
  ASSIGN_OR_RETURN(const std::unique_ptr<Ops> ops, NewOps(bench, opened));
  ASSIGN_OR_RETURN(auto segment, NewNetwork(bench, device, ops.get()));
  OptimizerSpec sgd;
  sgd.momentum = 0.9;
  sgd.weight_decay = 5e-4;
  ASSIGN_OR_RETURN(auto optimizer, NewOptimizer(sgd, segment->parameters(), device, ops.get()));
  ASSIGN_OR_RETURN(const Tensor images, RandomImages(bench, device, ops.get()));
  std::vector<int32_t> labels(bench.batch);
  for (int64_t i = 0; i < bench.batch; ++i) labels[i] = static_cast<int32_t>(i % 10);

  Times times;
  for (int step = 0; step < bench.warmup + bench.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    Saved saved;
    ASSIGN_OR_RETURN(Tensor logits, segment->Forward(images, Mode::kTrain, &saved));
    Tensor dlogits;
    RETURN_IF_ERROR(SoftmaxCrossEntropy(logits, labels, bench.batch, ops.get(), &dlogits).status());
    RETURN_IF_ERROR(segment->Backward(dlogits, &saved).status());
    RETURN_IF_ERROR(optimizer->Step(0.01));
    RETURN_IF_ERROR(segment->ParametersChanged());
    RETURN_IF_ERROR(ToStatus(device->Finish()));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (step < bench.warmup) continue;
    times.wall.push_back(passed.count());
    times.cpu.push_back(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  return times;
}

int Main(int argc, char** argv) {
  BenchOptions bench;
  CLI::App app("Training speed of one uncut CIFAR ResNet-18");
  app.add_option("--width", bench.width, "channels of the first stage");
  app.add_option("--batch", bench.batch, "images a step");
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

  const absl::StatusOr<Times> times = TimeSteps(bench);
  if (!times.ok()) {
    std::fprintf(stderr, "step_bench: %s\n", times.status().ToString().c_str());
    return 1;
  }
  const double median = Median(times->wall);
  const nlohmann::json line = {{"width", bench.width},
                               {"batch", bench.batch},
                               {"precision", bench.precision},
                               {"device", bench.device},
                               {"threads", bench.threads},
                               {"isa", CpuInstructionSet()},
                               {"step_seconds", median},
                               {"step_cpu_seconds", Median(times->cpu)},
                               {"images_per_second", static_cast<double>(bench.batch) / median}};
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
