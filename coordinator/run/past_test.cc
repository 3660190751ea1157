#include <filesystem>
#include <fstream>
#include <memory>

#include "coordinator/checkpoint/checkpoint_testing.h"
#include "coordinator/run/resumable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

// A run of two epochs of ten steps.
class PastTest : public ::testing::Test {
 protected:
  PastTest() {
    fs::remove_all(dir_);
    auto record = RunRecord::Create(dir_, /*overwrite=*/false);
    EXPECT_TRUE(record.ok()) << record.status();
    record_ = *std::move(record);
    now_.set_epochs(2);
  }
  void WriteSummary(const std::string& status, int epochs) {
    Summary summary;
    summary.set_status(status);
    for (int i = 0; i < epochs; ++i) summary.add_epochs();
    summary.mutable_provenance()->set_train_digest("abc");
    summary.mutable_provenance()->set_test_digest("def");
    EXPECT_TRUE(record_->WriteSummary(summary).ok());
  }

  const std::string dir_ = ::testing::TempDir() + "/past";
  std::unique_ptr<RunRecord> record_;
  Experiment now_;
};

TEST_F(PastTest, ARunWithoutACheckpointHasNone) {
  const auto last = CheckpointToGoOn(*record_, std::nullopt);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_FALSE(last->has_value());
}

TEST_F(PastTest, TheNewestWholeCheckpointIsTheLast) {
  MakeCheckpoint(record_->checkpoints_dir(), 9);
  std::ofstream(MakeCheckpoint(record_->checkpoints_dir(), 12) + "/manifest.json") << "{";
  const auto last = CheckpointToGoOn(*record_, std::nullopt);
  ASSERT_TRUE(last.ok() && last->has_value()) << last.status();
  EXPECT_EQ((*last)->manifest.step(), 9u);
  EXPECT_EQ((*last)->manifest.train_digest(), "");
  EXPECT_THAT((*last)->skipped, SizeIs(1));
}

TEST_F(PastTest, AManifestWithoutDigestsHasThoseOfTheSummary) {
  MakeCheckpoint(record_->checkpoints_dir(), 9);
  WriteSummary("interrupted", 1);
  const auto last = CheckpointToGoOn(*record_, std::nullopt);
  ASSERT_TRUE(last.ok() && last->has_value()) << last.status();
  EXPECT_EQ((*last)->manifest.train_digest(), "abc");
  EXPECT_EQ((*last)->manifest.test_digest(), "def");
}

TEST_F(PastTest, ARunHasEndedOnceAllEpochsAreTrainedAndTheSummarySaysSo) {
  EXPECT_FALSE(HasEnded(ManifestOf(20), now_, dir_)) << "it has no summary";
  WriteSummary("failed", 2);
  EXPECT_FALSE(HasEnded(ManifestOf(20), now_, dir_));
  WriteSummary("completed", 1);
  EXPECT_FALSE(HasEnded(ManifestOf(20), now_, dir_)) << "of fewer epochs";
  WriteSummary("completed", 2);
  EXPECT_FALSE(HasEnded(ManifestOf(19), now_, dir_)) << "a step is left";
  EXPECT_TRUE(HasEnded(ManifestOf(20), now_, dir_));
  now_.set_epochs(3);
  EXPECT_FALSE(HasEnded(ManifestOf(20), now_, dir_)) << "an epoch more is wanted";
}

}  // namespace
}  // namespace thinwire
