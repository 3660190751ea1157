// Runs all stages of one experiment as threads of one process, joined by memory links. It is small
// enough for the thread sanitizer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/dataset.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/executor.h"
#include "stage_server/stage/feed.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Makes the backend of stage i, from 0.
using BackendOf = std::function<Backend(int)>;
Backend CpuBackend(int stage);

// Errors are reported as failed expectations of the test.
class Stages {
 public:
  // Builds all stages of each carrier of the replicas, carrier by carrier; `change` edits the spec
  // of each, `change_data` the data.
  Stages(
      const std::string& experiment, const std::vector<std::string>& overrides,
      const BackendOf& backend_of = CpuBackend,
      const std::function<void(StageSpec*)>& change = [](StageSpec*) {}, int carriers = 1,
      const std::function<void(DataSplits*)>& change_data = [](DataSplits*) {});

  // Runs `task` for every stage, each on its own thread.
  std::vector<absl::Status> AtEveryStage(const std::function<absl::Status(size_t)>& task);

  // Train an epoch, or some of its steps; return the losses, of all replicas.
  std::vector<double> Train(uint32_t epoch = 1);
  std::vector<double> TrainSteps(uint32_t epoch, uint64_t first_step, uint64_t last_step);
  // Trains an epoch where stages may fail; returns the first error of each. `on_step(i, report)` is
  // called in the thread of stage i of those that were built.
  std::vector<absl::Status> TryTrain(
      uint32_t epoch, const std::function<void(size_t, const StepReport&)>& on_step =
                          [](size_t, const StepReport&) {});

  EvaluationReport Evaluate(bool compressed, uint64_t recalibration_samples = 0);

  // Returns parameters and running statistics of all stages, in order of their names. Those of all
  // carriers must be equal.
  std::vector<float> Values() const;

  // Returns what all stages captured of a step: raw bytes by name.
  std::map<std::string, std::string> TakeCaptures(uint64_t step);

  // Returns the gradients of a batch at all stages, one after the other.
  std::vector<float> Gradients(uint64_t batch, bool compressed);

  // Return the ends of one direction of a cut, at whichever stage they are.
  BoundarySender& sender(const std::string& cut, Direction direction);
  BoundaryReceiver& receiver(const std::string& cut, Direction direction);

  Executor& executor(size_t i) { return *executors_[i]; }
  LocalStage& stage(size_t i) { return *stages_[i]; }
  size_t size() const { return stages_.size(); }
  // Returns the request that trains a whole epoch.
  TrainRequest Epoch(uint32_t epoch) const;
  int64_t train_size() const { return data_.train->size(); }

 private:
  std::vector<double> Train(const TrainRequest& request);
  void AddStage(const StageSpec& spec, const Backend& backend);
  void JoinAll();

  Experiment experiment_;
  DataSplits data_;
  size_t per_carrier_ = 0;
  std::vector<std::unique_ptr<LocalStage>> stages_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

}  // namespace thinwire
