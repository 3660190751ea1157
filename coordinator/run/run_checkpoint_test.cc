// Runs with checkpoints: where they are due, resumed, and after the loss of a stage.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/safetensors.h"
#include "config/experiment.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/run/run_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reports the steps of the request, a sample each except for an epoch's first.
void ReportSteps(const TrainRequest& request, FakeStage::Writer* writer) {
  for (uint64_t step = request.first_step(); step <= request.last_step(); ++step) {
    writer->Write(Step(step, /*loss=*/2, /*correct=*/1, /*samples=*/step % 2 == 1 ? 3 : 1));
  }
}

// The model of the stages is real, as checkpoints are distributed by it.
class CheckpointedRunTest : public RunTest {
 protected:
  CheckpointedRunTest() {
    std::filesystem::remove_all(options_.checkpoints);
    experiment_ = *ParseExperiment(R"(
model:
  name: custom
  blocks:
    - {name: a, layers: [{kind: flatten}, {kind: linear, name: fc, out: 1, bias: false}]}
    - {name: b, layers: [{kind: linear, name: fc, out: 10, bias: false}]}
data: {name: digits, batch_size: 3}
pipeline: {cuts: [a]}
optimizer: {lr: 0.1}
checkpoint: {every_steps: 3, keep: 10}
epochs: 2
)",
                                   "test", {});
    first_.state = {FileOf("a.fc.weight", {1, 64})};
    last_.state = {FileOf("b.fc.weight", {10, 1})};
    last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
      ReportSteps(request, writer);
      return grpc::Status::OK;
    };
    options_.run = "run";
  }
  static std::pair<StatePart, std::string> FileOf(const std::string& name,
                                                  const std::vector<int64_t>& shape) {
    static const std::string bytes(4 * 64, 'x');
    const auto elements = static_cast<size_t>(shape[0] * shape[1]);
    std::pair<StatePart, std::string> file;
    file.first.set_tensors("model");
    const std::string_view data = std::string_view(bytes).substr(0, 4 * elements);
    const absl::Status written =
        WriteSafetensors({{}, {{name, "F32", shape, data}}}, 100, [&](std::string_view piece) {
          file.second += piece;
          return absl::OkStatus();
        });
    EXPECT_TRUE(written.ok()) << written;
    return file;
  }
  absl::Status TrainOn() {
    FleetOptions options;
    options.grace = absl::Milliseconds(50);
    options.patience = absl::Milliseconds(500);
    fleet_ = std::make_unique<Fleet>(Addresses(), "run", options);
    const absl::Status status =
        RunExperiment(experiment_, fleet_.get(), &observer_, &summary_, options_);
    fleet_->Release();
    return status;
  }
  std::vector<std::string> Addresses() const { return {first_.address(), last_.address()}; }
  std::vector<uint64_t> Checkpoints() const { return *ListCheckpoints(options_.checkpoints); }
  void LetStagesBeReplaced() {
    options_.next_generation = [this](const Failure& loss) -> absl::StatusOr<Fleet*> {
      losses_.push_back(loss.stage);
      FleetOptions options;
      options.generation = losses_.size() + 1;
      options.grace = absl::Milliseconds(50);
      fleet_ = std::make_unique<Fleet>(Addresses(), "run", options);
      return fleet_.get();
    };
  }
  // Loses the last stage `times` times when it is asked for `step`; the checkpoint of the step
  // before is on the disk then.
  void LoseAt(uint64_t step, int times) {
    last_.train = [this, step, left = std::make_shared<std::atomic<int>>(times)](
                      const TrainRequest& request, grpc::ServerContext*,
                      FakeStage::Writer* writer) {
      const bool is_met = request.first_step() <= step && step <= request.last_step();
      if (is_met && left->fetch_sub(1) > 0) {
        const std::string before = CheckpointPath(options_.checkpoints, step - 1);
        while (step > 1 && !std::filesystem::exists(before)) absl::SleepFor(absl::Milliseconds(1));
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
      }
      ReportSteps(request, writer);
      return grpc::Status::OK;
    };
  }

  RunOptions options_ = [] {
    RunOptions options;
    options.checkpoints = ::testing::TempDir() + "/run_test/checkpoints";
    return options;
  }();
  std::unique_ptr<Fleet> fleet_;
  std::vector<int> losses_;  // stages
};

TEST_F(CheckpointedRunTest, AnEpochIsTrainedInPartsThatEndWhereACheckpointIsDue) {
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_THAT(Checkpoints(), ElementsAre(2, 3, 4));  // 3 by steps, 2 and 4 by epochs
  EXPECT_EQ(observer_.steps.size(), 4u);
  EXPECT_EQ(summary_.epochs_size(), 2);
  const auto manifest = ReadManifest(CheckpointPath(options_.checkpoints, 3));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->epoch(), 2u);
  EXPECT_EQ(manifest->progress().epochs_kept().epochs(), 1u);
  EXPECT_EQ(manifest->progress().sums().samples(), 3u);
  EXPECT_EQ(manifest->files_size(), 2);
}

TEST_F(CheckpointedRunTest, AnInterruptedEvaluationLeavesACheckpointOfTheStepBefore) {
  experiment_.mutable_checkpoint()->set_every_steps(100);
  experiment_.mutable_checkpoint()->set_every_epochs(2);
  first_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext* context,
                           FakeStage::Writer*) {
    if (request.epoch() == 1) return grpc::Status::OK;
    fleet_->Interrupt();
    return FakeStage::Hang(context);
  };
  experiment_.set_epochs(3);
  EXPECT_TRUE(absl::IsCancelled(TrainOn()));
  EXPECT_THAT(Checkpoints(), ElementsAre(4));

  first_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext* context,
                           FakeStage::Writer*) {
    if (request.epoch() < 3) return grpc::Status::OK;
    fleet_->Interrupt();
    return FakeStage::Hang(context);
  };
  summary_.Clear();
  experiment_.mutable_checkpoint()->set_every_epochs(0);
  EXPECT_TRUE(absl::IsCancelled(TrainOn()));
  EXPECT_THAT(Checkpoints(), ElementsAre(4, 6));
  const auto manifest = ReadManifest(CheckpointPath(options_.checkpoints, 6));
  EXPECT_EQ(manifest->progress().epochs_kept().epochs(), 2u);
}

// Returns the steps of evaluations.
template <typename Evaluations>
std::vector<uint64_t> StepsOf(const Evaluations& evaluations) {
  std::vector<uint64_t> steps;
  for (const EvaluationRecord& evaluation : evaluations) steps.push_back(evaluation.step());
  return steps;
}

TEST_F(CheckpointedRunTest, AnEvaluationIsMadeAfterStepsWhereNoneOfAnEpochFollows) {
  experiment_.mutable_evaluation()->set_every_steps(1);
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_THAT(StepsOf(observer_.evaluations), ElementsAre(1, 3));
  ASSERT_THAT(StepsOf(summary_.epochs(1).evaluations()), ElementsAre(3));
  const EvaluationRecord& evaluation = summary_.epochs(1).evaluations(0);
  EXPECT_EQ(evaluation.epoch(), 2u);
  EXPECT_EQ(evaluation.test().compressed().loss(), 4);
  EXPECT_EQ(evaluation.test().uncompressed().loss(), 3);
  EXPECT_GT(summary_.epochs(1).evaluation_seconds(), evaluation.seconds());

  experiment_.mutable_evaluation()->set_every(0);
  summary_.Clear();
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_THAT(StepsOf(summary_.epochs(0).evaluations()), ElementsAre(1, 2));
  EXPECT_FALSE(summary_.epochs(0).has_test());
  EXPECT_THAT(StepsOf(summary_.epochs(1).evaluations()), ElementsAre(3));
}

TEST_F(CheckpointedRunTest, AResumedRunHasEachEvaluationAfterAStepOnce) {
  experiment_.mutable_evaluation()->set_every_steps(1);
  ASSERT_TRUE(TrainOn().ok());
  std::filesystem::remove_all(CheckpointPath(options_.checkpoints, 4));
  for (const uint64_t step : {3, 2}) {
    SCOPED_TRACE(step);
    options_.from = *NewestCheckpoint(options_.checkpoints);
    ASSERT_EQ(options_.from->manifest.step(), step);
    summary_.Clear();
    observer_.evaluations.clear();
    const absl::Status status = TrainOn();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(StepsOf(observer_.evaluations), ElementsAre(3)) << "the checkpoint lacks its own";
    EXPECT_THAT(StepsOf(summary_.epochs(0).evaluations()), ElementsAre(1));
    EXPECT_THAT(StepsOf(summary_.epochs(1).evaluations()), ElementsAre(3));
    for (const uint64_t later : {3, 4}) {
      std::filesystem::remove_all(CheckpointPath(options_.checkpoints, later));
    }
  }
}

TEST_F(CheckpointedRunTest, AnInterruptedEvaluationAfterAStepLeavesACheckpointOfIt) {
  experiment_.mutable_evaluation()->set_every_steps(1);
  experiment_.mutable_checkpoint()->set_every_steps(0);
  first_.evaluate = [this](const EvaluateRequest&, grpc::ServerContext* context,
                           FakeStage::Writer*) {
    fleet_->Interrupt();
    return FakeStage::Hang(context);
  };
  EXPECT_TRUE(absl::IsCancelled(TrainOn()));
  EXPECT_THAT(Checkpoints(), ElementsAre(1));
  EXPECT_TRUE(observer_.evaluations.empty());
}

TEST_F(CheckpointedRunTest, ARunOfStepsEndsWithTheLastOfThemWithinAnEpoch) {
  experiment_.set_steps(3);
  experiment_.mutable_data()->set_limit(4);  // as the stages report
  experiment_.mutable_evaluation()->set_every_steps(1);
  experiment_.mutable_checkpoint()->set_every_steps(0);
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_EQ(observer_.steps.back().step(), 3u);
  ASSERT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.epochs(1).train().loss(), 2);
  EXPECT_EQ(summary_.epochs(1).test().compressed().loss(), 4);
  EXPECT_THAT(StepsOf(observer_.evaluations), ElementsAre(1)) << "those of epochs follow 2 and 3";
  EXPECT_THAT(Checkpoints(), ElementsAre(2, 3));

  options_.from = *NewestCheckpoint(options_.checkpoints);
  experiment_.set_steps(5);
  experiment_.set_epochs(3);
  summary_.Clear();
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(observer_.steps.back().step(), 5u);
  ASSERT_EQ(summary_.epochs_size(), 3);
  EXPECT_THAT(StepsOf(summary_.epochs(1).evaluations()), ElementsAre(3));
  EXPECT_THAT(Checkpoints(), ElementsAre(2, 3, 4, 5));
}

EarlyStopConfig StopAfter(uint32_t evaluations) {
  EarlyStopConfig config;
  config.set_metric("loss");
  config.set_patience(evaluations);
  config.set_min_delta(0);
  return config;
}

TEST_F(CheckpointedRunTest, ARunThatGetsNoBetterEndsWithTheEpochOfItsLastEvaluation) {
  experiment_.set_epochs(9);
  *experiment_.mutable_early_stop() = StopAfter(2);
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_EQ(summary_.epochs_size(), 3);
  EXPECT_EQ(observer_.steps.back().step(), 6u);
  EXPECT_EQ(Checkpoints().back(), 6u);
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "stopped");
  EXPECT_EQ(summary_.events(0).step(), 6u);
  EXPECT_EQ(summary_.events(0).standstill(),
            "loss was no better than the 4 after epoch 1 in 2 evaluations");
}

TEST_F(CheckpointedRunTest, AnEpochThatEndsEarlyCountsWithItsLastEvaluation) {
  experiment_.set_epochs(9);
  experiment_.mutable_evaluation()->set_every_steps(1);
  experiment_.mutable_checkpoint()->set_every_steps(0);
  *experiment_.mutable_early_stop() = StopAfter(2);
  ASSERT_TRUE(TrainOn().ok());  // a gain after step 1, none after epoch 1 and step 3
  ASSERT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(observer_.steps.back().step(), 3u);
  const EpochRecord& last = summary_.epochs(1);
  EXPECT_EQ(last.train().loss(), 2);
  EXPECT_EQ(last.test().compressed().loss(), 4);
  EXPECT_THAT(StepsOf(last.evaluations()), ElementsAre(3));
  EXPECT_THAT(Checkpoints(), ElementsAre(2, 3));

  // It stops again where it stopped, or goes on from there with more patience.
  for (const uint32_t patience : {2, 4}) {
    SCOPED_TRACE(patience);
    options_.from = *NewestCheckpoint(options_.checkpoints);
    *experiment_.mutable_early_stop() = StopAfter(patience);
    summary_.Clear();
    const absl::Status status = TrainOn();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(summary_.events(summary_.events_size() - 1).step(), patience == 2 ? 3u : 5u);
    EXPECT_EQ(summary_.epochs_size(), patience == 2 ? 2 : 3);
  }
}

TEST_F(CheckpointedRunTest, ARunThatCameToItsEndWasNotStopped) {
  *experiment_.mutable_early_stop() = StopAfter(1);
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.events_size(), 0);
}

TEST_F(CheckpointedRunTest, ARunOfTheFormatBeforeGoesOnInThisOne) {
  ASSERT_TRUE(TrainOn().ok());
  const Summary whole = summary_;
  std::filesystem::remove_all(CheckpointPath(options_.checkpoints, 4));
  std::filesystem::remove(options_.checkpoints + "/" + kEpochLog);
  const std::string path = CheckpointPath(options_.checkpoints, 3) + "/" + kManifestFile;
  CheckpointManifest manifest = *ReadManifest(CheckpointPath(options_.checkpoints, 3));
  manifest.set_format(kFormatWithEpochs);
  manifest.mutable_progress()->clear_epochs_kept();
  *manifest.mutable_progress()->add_epochs() = whole.epochs(0);
  ASSERT_TRUE(ReplaceFile(path, ManifestText(manifest)).ok());
  options_.from = *NewestCheckpoint(options_.checkpoints);
  summary_.Clear();
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.epochs(0).SerializeAsString(), whole.epochs(0).SerializeAsString());
  const auto newest = NewestCheckpoint(options_.checkpoints);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->manifest.step(), 4u);
  EXPECT_EQ(newest->manifest.format(), kManifestFormat);
  ASSERT_EQ(newest->manifest.progress().epochs_size(), 1);
  EXPECT_EQ(newest->manifest.progress().epochs(0).SerializeAsString(),
            whole.epochs(0).SerializeAsString());
}

TEST_F(CheckpointedRunTest, ACheckpointIsAsLargeHoweverManyEpochsWereBefore) {
  experiment_.set_epochs(40);
  experiment_.mutable_checkpoint()->set_keep(100);
  ASSERT_TRUE(TrainOn().ok());
  const auto bytes = [this](uint64_t step) {
    CheckpointManifest manifest = *ReadManifest(CheckpointPath(options_.checkpoints, step));
    EXPECT_EQ(manifest.progress().epochs_kept().epochs(), step / 2 - 1);
    return ManifestText(manifest).size();
  };
  EXPECT_LT(bytes(80), bytes(4) + 100);  // the numbers in it are longer
}

TEST_F(CheckpointedRunTest, AResumedRunTrainsWhatIsLeftAndKnowsWhatWas) {
  ASSERT_TRUE(TrainOn().ok());
  std::filesystem::remove_all(CheckpointPath(options_.checkpoints, 4));
  options_.from = *NewestCheckpoint(options_.checkpoints);
  const Summary whole = summary_;
  summary_.Clear();
  observer_.steps.clear();
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(observer_.steps.size(), 1u);
  EXPECT_EQ(observer_.steps[0].step(), 4u);
  EXPECT_EQ(first_.restored_step(), 3u);
  ASSERT_EQ(first_.restored().size(), 1u);
  EXPECT_EQ(first_.restored()[0].first.tensors(), "model");
  ASSERT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.epochs(1).train().loss(), whole.epochs(1).train().loss());
  EXPECT_EQ(summary_.epochs(0).SerializeAsString(), whole.epochs(0).SerializeAsString());
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "resumed");
}

TEST_F(CheckpointedRunTest, ARunThatIsToGoOnWithOtherDataIsRefusedBeforeAStep) {
  first_.configured.set_train_digest(1);
  last_.configured.set_train_digest(1);
  ASSERT_TRUE(TrainOn().ok());
  options_.from = *NewestCheckpoint(options_.checkpoints);
  EXPECT_EQ(options_.from->manifest.train_digest(), "0000000000000001");
  first_.configured.set_train_digest(2);
  last_.configured.set_train_digest(2);
  observer_.steps.clear();
  for (int time = 0; time < 2; ++time) {
    EXPECT_THAT(std::string(TrainOn().message()),
                AllOf(HasSubstr("step-4: the training data are others"),
                      HasSubstr("(digest 0000000000000001, now 0000000000000002)")));
    EXPECT_EQ(summary_.provenance().train_digest(), "0000000000000001");
    EXPECT_EQ(summary_.epochs_size(), 1);  // the second was evaluated after the checkpoint
  }
  EXPECT_TRUE(observer_.steps.empty());
  EXPECT_TRUE(first_.restored().empty());
}

TEST_F(CheckpointedRunTest, ALossIsMadeGoodFromTheLastCheckpoint) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/4, /*times=*/1);
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(losses_, ElementsAre(1));
  EXPECT_EQ(first_.restored_step(), 3u);
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "restarted");
  EXPECT_EQ(summary_.events(0).stage(), 1u);
  EXPECT_EQ(summary_.events(0).step(), 3u);
  EXPECT_TRUE(summary_.events(0).has_seconds());
  EXPECT_EQ(summary_.epochs_size(), 2);
}

TEST_F(CheckpointedRunTest, BeforeTheFirstCheckpointTheRunBeginsAnew) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/1, /*times=*/1);
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(summary_.events(0).step(), 0u);
  EXPECT_TRUE(first_.restored().empty());
  EXPECT_EQ(summary_.epochs_size(), 2);
}

TEST_F(CheckpointedRunTest, TooManyLossesEndTheRun) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/4, /*times=*/100);
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("Socket closed"));
  EXPECT_EQ(losses_.size(), 3u);  // restarts.max
}

TEST_F(CheckpointedRunTest, AnErrorOfTheWorkItselfIsNoLoss) {
  LetStagesBeReplaced();
  last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "the loss is nan");
  };
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("the loss is nan"));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(CheckpointedRunTest, AStageThatDiesBeforeItIsLeasedIsLost) {
  LetStagesBeReplaced();
  std::atomic<bool> dies = true;
  first_.acquire = [&] {
    if (!dies.exchange(false)) return grpc::Status::OK;
    fleet_->Fail({0, Failure::Kind::kDead, absl::UnavailableError("it died")});
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(losses_, ElementsAre(0));
}

TEST_F(CheckpointedRunTest, AStageThatWasNeverThereIsNotLost) {
  LetStagesBeReplaced();
  first_.acquire = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not there"); };
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("not there"));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(CheckpointedRunTest, ACheckpointThatCannotBeWrittenEndsTheRunAndNamesTheFile) {
  std::filesystem::create_directories(std::filesystem::path(options_.checkpoints).parent_path());
  std::ofstream(options_.checkpoints) << "no folder";
  LetStagesBeReplaced();
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr(options_.checkpoints));
  EXPECT_TRUE(losses_.empty());
}

}  // namespace
}  // namespace thinwire
