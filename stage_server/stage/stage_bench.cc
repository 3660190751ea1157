// Measures the stages of an experiment when each has the machine to itself, and simulates the
// pipeline on a number of cores. That bounds what a real run can reach. All stages run in one
// thread, one action after another, so nothing contends.
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
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr int kWarmupSteps = 3, kSteps = 24;

struct BenchStage {
  std::unique_ptr<LocalStage> stage;
  std::unique_ptr<Feed> feed;
  double weight_seconds = 0;    // all backward passes so far, if the schedule splits them
  std::vector<Action> actions;  // of a step
  // Counts of the current step:
  size_t done = 0;                  // actions
  int forwards = 0, backwards = 0;  // microbatches

  absl::Status Run(const Action& action, const Work& work, const SampleRange& part) {
    if (action.kind == Action::Kind::kBackwardWeight) {
      ScopedTimer timer(&weight_seconds, {});
      return stage->BackwardWeights(work);
    }
    if (action.kind != Action::Kind::kForward) {
      ++backwards;
      return stage->Backward(work);
    }
    ++forwards;
    std::optional<Samples> samples;
    if (ReadsSamples(stage->spec())) {
      ASSIGN_OR_RETURN(samples, feed->Take({work.phase, work.epoch, part}));
    }
    return stage->Forward(work, samples).status();
  }
};

absl::Status CheckWaits(const StageSpec& spec) {
  if (spec.optimizer.clip_norm > 0 || spec.tied) {
    return absl::InvalidArgumentError(
        "stage_bench: want no optimizer.clip_norm and no tied weight, for which stages wait");
  }
  if (spec.chunks() > 1 || spec.slices() > 1) {
    return absl::InvalidArgumentError(
        "stage_bench: want stages of one chunk, not interleaved, and one slice");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BenchStage>> BuildStages(const Experiment& experiment,
                                                    const DataSplits* data) {
  std::vector<BenchStage> stages;
  for (uint32_t i = 0; i < experiment.pipeline().stages(); ++i) {
    ASSIGN_OR_RETURN(const StageSpec spec, StageSpecFrom(experiment, static_cast<int>(i)));
    Backend backend;
    backend.device = CpuDevice();
    backend.kernels = CpuCodecKernels();
    backend.ops = NewCpuOps(1);
    BenchStage stage;
    RETURN_IF_ERROR(CheckWaits(spec));
    ASSIGN_OR_RETURN(stage.stage, LocalStage::Build(spec, backend));
    stage.actions =
        StageActions(spec.schedule, static_cast<int>(i), spec.stages(), spec.microbatches);
    FeedSpec feed;
    feed.shuffle = {spec.shuffle, spec.seeds.data, spec.batch_size};
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

// Returns whether the neighbours have made what the stage's next action needs.
bool IsReady(const std::vector<BenchStage>& stages, size_t i) {
  if (stages[i].done == stages[i].actions.size()) return false;
  const Action& action = stages[i].actions[stages[i].done];
  switch (action.kind) {
    case Action::Kind::kForward:
      return i == 0 || stages[i - 1].forwards > action.microbatch;
    case Action::Kind::kBackward:
    case Action::Kind::kBackwardInput:
      return i + 1 == stages.size() || stages[i + 1].backwards > action.microbatch;
    case Action::Kind::kBackwardWeight:
      break;
  }
  return true;
}

// Runs one step. Stages take turns, so that each holds as many microbatches as in a run and none
// waits.
absl::Status RunStep(std::vector<BenchStage>& stages, uint64_t step) {
  const StageSpec& spec = stages[0].stage->spec();
  Work work;
  work.epoch = 1;
  work.step = step;
  work.batch_size = spec.batch_size;
  ASSIGN_OR_RETURN(work.loss_labels,
                   stages.back().feed->CountLabels({work.phase, work.epoch, {0, spec.batch_size}}));
  work.deadline = SteadyTime::Never();
  for (BenchStage& stage : stages) stage.done = stage.forwards = stage.backwards = 0;
  for (bool runs = true; runs;) {
    runs = false;
    for (size_t i = 0; i < stages.size(); ++i) {
      if (!IsReady(stages, i)) continue;
      const Action& action = stages[i].actions[stages[i].done++];
      const SampleRange part =
          MicrobatchRange(spec.batch_size, spec.microbatches, action.microbatch);
      work.microbatch = action.microbatch;
      work.samples = part.last - part.first;
      work.first_sample = part.first;
      RETURN_IF_ERROR(stages[i].Run(action, work, part));
      runs = true;
    }
  }
  work.microbatch = 0;
  for (BenchStage& stage : stages) RETURN_IF_ERROR(stage.stage->Update(work, 0.01));
  return absl::OkStatus();
}

absl::Status Bench(const std::string& path, int cores, const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(path, overrides));
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(experiment.data()));
  ASSIGN_OR_RETURN(const DataSplits data, LoadData(options));
  ASSIGN_OR_RETURN(std::vector<BenchStage> stages, BuildStages(experiment, &data));
  uint64_t step = 0;
  while (step < kWarmupSteps) RETURN_IF_ERROR(RunStep(stages, ++step));
  std::vector<ActivitySeconds::Layers> before;
  for (BenchStage& stage : stages) {
    before.push_back(stage.stage->activity().AllSegments());
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
    const ActivitySeconds::Layers now = stages[i].stage->activity().AllSegments();
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
