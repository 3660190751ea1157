// What the stages of an experiment cost when each has the machine for itself, and what the
// pipeline simulator makes of it on a number of cores: the bound that a real run is judged by.
// All stages run in one thread, one action after another, so nothing contends.
//
//   stage_bench EXPERIMENT.yaml CORES [path=value]...
//
// Prints one line of JSON: step_seconds is the simulated makespan of one step.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/steady_time.h"
#include "compress/cpu/kernels.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "nlohmann/json.hpp"
#include "nn/cpu/ops.h"
#include "schedule/simulator.h"
#include "stage_server/stage/feed.h"
#include "stage_server/stage/join_testing.h"
#include "stage_server/stage/local_stage.h"
#include "stage_server/stage/stage_spec.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr int kWarmupSteps = 3, kSteps = 24;

struct BenchStage {
  std::unique_ptr<LocalStage> stage;
  std::unique_ptr<Feed> feed;
  double weight_seconds = 0;  // of all backward passes so far, where the schedule splits them

  absl::Status Backward(const Work& work) {
    RETURN_IF_ERROR(stage->Backward(work));
    if (!SplitsBackward(stage->spec().schedule)) return absl::OkStatus();
    ScopedTimer timer(&weight_seconds, {});
    return stage->BackwardWeights(work);
  }
};

absl::StatusOr<std::vector<BenchStage>> BuildStages(const Experiment& experiment,
                                                    const DataSplits* data) {
  std::vector<BenchStage> stages;
  for (uint32_t i = 0; i < experiment.pipeline().stages(); ++i) {
    ASSIGN_OR_RETURN(const StageSpec spec, StageSpecFrom(experiment, static_cast<int>(i)));
    const Backend backend{CpuDevice(), NewCpuOps(1), CpuCodecKernels()};
    BenchStage stage;
    ASSIGN_OR_RETURN(stage.stage, LocalStage::Build(spec, backend));
    FeedSpec feed;
    feed.shuffle = {spec.shuffle, spec.data_seed, spec.batch_size};
    feed.compute = spec.compute;
    feed.inputs = ReadsInputs(spec);
    feed.labels = spec.last();
    stage.feed = std::make_unique<Feed>(feed, data, backend);
    stages.push_back(std::move(stage));
  }
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    RETURN_IF_ERROR(Join(stages[i].stage.get(), stages[i + 1].stage.get()));
  }
  return stages;
}

// One stage after the other, so that none may wait for one behind it.
absl::Status RunStep(std::vector<BenchStage>& stages, uint64_t step) {
  const StageSpec& spec = stages[0].stage->spec();
  if (spec.optimizer.clip_norm > 0 || spec.tied) {
    return absl::InvalidArgumentError(
        "stage_bench: want no optimizer.clip_norm and no tied weight, for which stages wait");
  }
  if (spec.chunks() > 1) {
    return absl::InvalidArgumentError("stage_bench: want stages of one chunk, not interleaved");
  }
  std::vector<Work> works(spec.microbatches);
  for (int m = 0; m < spec.microbatches; ++m) {
    const SampleRange part = MicrobatchRange(spec.batch_size, spec.microbatches, m);
    Work& work = works[m];
    work.epoch = 1;
    work.step = step;
    work.microbatch = m;
    work.batch_size = spec.batch_size;
    work.samples = part.last - part.first;
    work.first_sample = part.first;
    work.deadline = SteadyTime::Never();
    for (BenchStage& stage : stages) {
      std::optional<Samples> samples;
      if (stage.stage->spec().first() || stage.stage->spec().last()) {
        ASSIGN_OR_RETURN(samples, stage.feed->Take({work.phase, work.epoch, part}));
      }
      RETURN_IF_ERROR(stage.stage->Forward(work, samples).status());
    }
    if (spec.schedule == ScheduleKind::kGPipe) continue;
    for (size_t i = stages.size(); i-- > 0;) RETURN_IF_ERROR(stages[i].Backward(work));
  }
  for (int m = 0; spec.schedule == ScheduleKind::kGPipe && m < spec.microbatches; ++m) {
    for (size_t i = stages.size(); i-- > 0;) RETURN_IF_ERROR(stages[i].Backward(works[m]));
  }
  for (BenchStage& stage : stages) RETURN_IF_ERROR(stage.stage->Update(works[0], 0.01));
  return absl::OkStatus();
}

absl::Status Bench(const std::string& path, int cores, const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(path, overrides));
  ASSIGN_OR_RETURN(const DataOptions options, DataFrom(experiment));
  ASSIGN_OR_RETURN(const DataSplits data, LoadData(options));
  ASSIGN_OR_RETURN(std::vector<BenchStage> stages, BuildStages(experiment, &data));
  uint64_t step = 0;
  while (step < kWarmupSteps) RETURN_IF_ERROR(RunStep(stages, ++step));
  std::vector<ActivitySeconds> before;
  for (BenchStage& stage : stages) {
    before.push_back(stage.stage->activity());
    stage.weight_seconds = 0;
  }
  while (step < kWarmupSteps + kSteps) RETURN_IF_ERROR(RunStep(stages, ++step));

  const StageSpec& spec = stages[0].stage->spec();
  Simulation simulation;
  simulation.schedule = spec.schedule;
  simulation.microbatches = spec.microbatches;
  simulation.cores = cores;
  nlohmann::ordered_json result;
  for (size_t i = 0; i < stages.size(); ++i) {
    ChunkCost cost;
    const ActivitySeconds& now = stages[i].stage->activity();
    cost.forward_seconds = (now.forward - before[i].forward) / kSteps / spec.microbatches;
    cost.backward_seconds = (now.backward - before[i].backward) / kSteps / spec.microbatches;
    cost.weight_seconds = stages[i].weight_seconds / kSteps / spec.microbatches;
    cost.update_seconds = (now.optimizer - before[i].optimizer) / kSteps;
    simulation.chunks.push_back(cost);
    result["stages"].push_back({{"forward_seconds", cost.forward_seconds},
                                {"backward_seconds", cost.backward_seconds},
                                {"weight_seconds", cost.weight_seconds},
                                {"update_seconds", cost.update_seconds}});
  }
  simulation.activations.resize(stages.size() - 1);
  simulation.gradients.resize(stages.size() - 1);
  const Makespan makespan = Simulate(simulation);
  result["cores"] = cores;
  result["microbatches"] = spec.microbatches;
  result["step_seconds"] = makespan.seconds;
  result["bubble_ratio"] = makespan.bubble_ratio;
  result["samples_per_second"] = static_cast<double>(spec.batch_size) / makespan.seconds;
  std::puts(result.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  const int cores = argc > 2 ? std::atoi(argv[2]) : 0;
  if (cores < 1) {
    std::fprintf(stderr, "usage: stage_bench EXPERIMENT.yaml CORES [path=value]...\n");
    return 2;
  }
  const absl::Status status = thinwire::Bench(argv[1], cores, {argv + 3, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "stage_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
