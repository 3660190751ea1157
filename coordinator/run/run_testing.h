// Fixture of tests of runs: two stages that give scripted answers, and an observer that records
// what it hears.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "coordinator/run/run.h"

namespace thinwire {

// Keeps what it is told, and answers each step with `on_step`.
class RecordingObserver : public RunObserver {
 public:
  absl::Status OnStep(const StepRecord& step) override {
    steps.push_back(step);
    return on_step;
  }
  absl::Status OnTotals(const RunTotals& totals) override {
    last_totals = totals;
    return absl::OkStatus();
  }
  absl::Status OnEpoch(const EpochRecord& epoch) override {
    epochs.push_back(epoch);
    return absl::OkStatus();
  }
  absl::Status OnEvaluated(const EvaluationRecord& evaluation) override {
    evaluations.push_back(evaluation);
    return absl::OkStatus();
  }
  absl::Status OnCapture(uint64_t step, const std::vector<std::string>& files) override {
    captures.emplace_back(step, files);
    return absl::OkStatus();
  }
  absl::Status OnTrace(const RunTrace& trace) override {
    traces.push_back(trace);
    return absl::OkStatus();
  }

  absl::Status on_step;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::vector<EvaluationRecord> evaluations;
  std::vector<std::pair<uint64_t, std::vector<std::string>>> captures;
  std::vector<RunTrace> traces;
  RunTotals last_totals;
};

// Returns what the last stage reports of a step.
inline StageEvent Step(uint64_t step, double loss, uint32_t correct, uint32_t samples) {
  StageEvent event;
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(loss);
  event.mutable_step()->set_correct(correct);
  event.mutable_step()->set_samples(samples);
  event.mutable_step()->set_labels(samples);
  event.mutable_step()->set_learning_rate(0.1);
  return event;
}

// Two stages; four training samples in batches of three, two test samples.
class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    experiment_.set_epochs(2);
    experiment_.mutable_data()->set_batch_size(3);
    experiment_.mutable_pipeline()->add_cuts("layer1");
    experiment_.mutable_pipeline()->set_threads("auto");
    experiment_.mutable_pipeline()->set_schedule("1f1b");
    experiment_.mutable_pipeline()->set_microbatches(2);
    experiment_.mutable_evaluation()->set_every(1);
    experiment_.mutable_evaluation()->set_compressed(true);
    experiment_.mutable_evaluation()->set_uncompressed(true);
    first_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
      StageEvent event;
      BoundaryReport* end = event.mutable_stage()->add_boundaries();
      end->set_boundary("layer1");
      end->set_sender(true);
      end->set_wire_bytes(50);
      (*event.mutable_stage()->mutable_activity_seconds())["forward"] = 0.25;
      writer->Write(event);
      return grpc::Status::OK;
    };
    last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
      writer->Write(Step(2 * request.epoch() - 1, /*loss=*/2, /*correct=*/1, /*samples=*/3));
      writer->Write(Step(2 * request.epoch(), /*loss=*/6, /*correct=*/1, /*samples=*/1));
      return grpc::Status::OK;
    };
    last_.evaluate = [](const EvaluateRequest& request, grpc::ServerContext*,
                        FakeStage::Writer* writer) {
      StageEvent event;
      const bool recalibrated = request.recalibration_samples() > 0;
      event.mutable_evaluation()->set_loss(request.compressed() ? 4 : recalibrated ? 2 : 3);
      event.mutable_evaluation()->set_correct(1);
      event.mutable_evaluation()->set_samples(2);
      event.mutable_evaluation()->set_labels(2);
      writer->Write(event);
      return grpc::Status::OK;
    };
  }

  absl::Status Train(const RunOptions& run = {}) {
    FleetOptions options;
    options.grace = absl::Milliseconds(50);
    Fleet fleet({first_.address(), last_.address()}, "run", options);
    const absl::Status status = RunExperiment(experiment_, &fleet, &observer_, &summary_, run);
    fleet.Release();
    return status;
  }

  Experiment experiment_;
  FakeStage first_, last_;
  RecordingObserver observer_;
  Summary summary_;
};

}  // namespace thinwire
