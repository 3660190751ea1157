#include "coordinator/commands/checkpoint.h"

#include <filesystem>
#include <fstream>

#include "base/model_folder.h"
#include "coordinator/checkpoint/checkpoint_testing.h"
#include "coordinator/session/exit_code.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CheckpointCommandTest : public ::testing::Test {
 protected:
  CheckpointCommandTest() {
    fs::remove_all(flags_.run);
    for (const uint64_t step : {9, 12}) MakeCheckpoint(checkpoints_, step);
  }
  // Stores the output in out_ and error_.
  int Run(const std::string& action) {
    flags_.action = action;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Interruption interruption;
    const int code = CheckpointCommand(flags_, &interruption);
    out_ = ::testing::internal::GetCapturedStdout();
    error_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  std::string PathOf(uint64_t step, const std::string& file) const {
    return CheckpointPath(checkpoints_, step) + "/" + file;
  }

  CheckpointFlags flags_ = {"", ::testing::TempDir() + "/checkpoint_command", {}, ""};
  const std::string checkpoints_ = flags_.run + "/checkpoints";
  std::string out_, error_;
};

TEST_F(CheckpointCommandTest, ListsThemWithTheNewestMarked) {
  EXPECT_EQ(Run("list"), kExitDone);
  EXPECT_EQ(error_, "");
  const std::string bytes =
      std::to_string(fs::file_size(PathOf(9, kFirst)) + fs::file_size(PathOf(9, kSecond)) +
                     fs::file_size(PathOf(9, kMomentum)));
  EXPECT_EQ(out_,
            "      step  epoch  written                       size stages\n"
            "         9      1  2026-01-31T12:00:00.000Z     " +
                bytes +
                " B      2\n"
                "        12      2  2026-01-31T12:00:00.000Z     " +
                bytes + " B      2  newest\n");
}

TEST_F(CheckpointCommandTest, ListsAroundAManifestThatIsBroken) {
  std::ofstream(PathOf(12, "manifest.json")) << "{";
  EXPECT_EQ(Run("list"), kExitFailed);
  EXPECT_THAT(out_, AllOf(HasSubstr("2  newest\n"), EndsWith("  broken\n")));
  EXPECT_THAT(error_, StartsWith("thinwire: " + PathOf(12, "manifest.json") + ": is no"));
}

TEST_F(CheckpointCommandTest, VerifiesEachOfThem) {
  EXPECT_EQ(Run("verify"), kExitDone);
  EXPECT_THAT(out_, StartsWith("step-9: whole, 3 files, "));
  EXPECT_THAT(out_, HasSubstr("\nstep-12: whole, 3 files, "));
  EXPECT_EQ(error_, "");
}

TEST_F(CheckpointCommandTest, SaysWhatIsBrokenAndFails) {
  fs::remove(PathOf(9, kSecond));
  EXPECT_EQ(Run("verify"), kExitFailed);
  EXPECT_THAT(out_, AllOf(StartsWith("step-9: broken: " + PathOf(9, kSecond) + ": cannot open"),
                          HasSubstr("\nstep-12: whole")));
  EXPECT_EQ(error_, "thinwire: " + checkpoints_ + ": 1 of 2 checkpoints broken\n");
  flags_.step = 12;
  EXPECT_EQ(Run("verify"), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr("step-9")));
}

TEST_F(CheckpointCommandTest, ANameInAManifestReachesTheTerminalHarmless) {
  CheckpointManifest manifest = ManifestOf(12);
  CheckpointFile* const file = manifest.add_files();
  file->set_name("\x1b]0;owned\a");
  file->set_sha256(std::string(64, 'a'));
  file->set_tensors("model");
  manifest.set_written("\x1b[2J\n");
  std::ofstream(PathOf(12, "manifest.json")) << ManifestText(manifest);
  EXPECT_EQ(Run("verify"), kExitFailed);
  EXPECT_THAT(out_, AllOf(HasSubstr("\\x1b]0;owned"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(Run("list"), kExitDone);
  EXPECT_THAT(out_, AllOf(HasSubstr("\\x1b[2J\\n"), Not(HasSubstr("\x1b"))));
}

TEST_F(CheckpointCommandTest, ExportsTheNewestIntoTheRunsFolder) {
  EXPECT_EQ(Run("export"), kExitDone);
  const std::string out = flags_.run + "/model-step-12";
  EXPECT_EQ(out_, out + ": the model after step 12, epoch 2\n");
  EXPECT_TRUE(ModelFolder::Open(out).ok());
  EXPECT_TRUE(fs::exists(out + "/config.json"));
  EXPECT_FALSE(fs::exists(out + "/" + kMomentum));
}

TEST_F(CheckpointCommandTest, ExportsAnotherStepToAnotherFolderButOnce) {
  flags_.step = 9;
  flags_.out = flags_.run + "/of/nine/";
  EXPECT_EQ(Run("export"), kExitDone);
  EXPECT_TRUE(ModelFolder::Open(flags_.out).ok());
  EXPECT_EQ(Run("export"), kExitUsage);
  EXPECT_THAT(error_, HasSubstr("/of/nine: is there already, want a new or an empty folder"));
}

TEST_F(CheckpointCommandTest, ExportsNothingThatIsBroken) {
  fs::resize_file(PathOf(12, kMomentum), 3);
  EXPECT_EQ(Run("export"), kExitFailed);
  EXPECT_THAT(error_, HasSubstr(PathOf(12, kMomentum) + ": 3 bytes, want "));
  EXPECT_FALSE(fs::exists(flags_.run + "/model-step-12"));
}

TEST_F(CheckpointCommandTest, WhatIsNotThereIsAUsageError) {
  flags_.step = 10;
  EXPECT_EQ(Run("export"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: " + checkpoints_ + ": has no step-10, but step-9, step-12\n");
  flags_.step.reset();
  fs::remove_all(checkpoints_);
  for (const char* action : {"list", "verify", "export"}) {
    EXPECT_EQ(Run(action), kExitUsage);
    EXPECT_EQ(error_, "thinwire: " + checkpoints_ + ": has no checkpoint\n");
  }
  fs::remove_all(flags_.run);
  EXPECT_EQ(Run("list"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: " + flags_.run + ": cannot open: No such file or directory\n");
  std::ofstream(flags_.run) << "a file";
  EXPECT_EQ(Run("list"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: " + flags_.run + ": cannot open: Not a directory\n");
  fs::remove(flags_.run);
}

TEST_F(CheckpointCommandTest, FlagsOfOtherActionsAreRefused) {
  flags_.step = 9;
  EXPECT_EQ(Run("list"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: checkpoint list takes no --step\n");
  flags_.out = "somewhere";
  EXPECT_EQ(Run("verify"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: checkpoint verify takes no --out\n");
  flags_.out.clear();
  flags_.merge = true;
  EXPECT_EQ(Run("verify"), kExitUsage);
  EXPECT_EQ(error_, "thinwire: checkpoint verify takes no --merge\n");
}

}  // namespace
}  // namespace thinwire
