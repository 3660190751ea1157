#include "coordinator/checkpoint/folder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/model_folder.h"
#include "base/sha256.h"
#include "coordinator/checkpoint/checkpoint_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() { fs::remove_all(run_); }

  std::unique_ptr<CheckpointWriter> Begin(uint64_t step) {
    auto writer = CheckpointWriter::Begin(checkpoints_, step);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }
  std::string Make(uint64_t step, const std::string& data = "abcd") const {
    return MakeCheckpoint(checkpoints_, step, data);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return (std::ostringstream() << file.rdbuf()).str();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoints_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Returns what is wrong with a checkpoint; the error must be DataLoss.
  static std::string ErrorOf(const std::string& checkpoint) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(checkpoint);
    const absl::Status status =
        manifest.ok() ? VerifyCheckpoint(checkpoint, *manifest) : manifest.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  }
  std::vector<uint64_t> Steps() const { return *ListCheckpoints(checkpoints_); }

  const std::string run_ = ::testing::TempDir() + "/checkpointed_run";
  const std::string checkpoints_ = run_ + "/checkpoints";
};

TEST_F(FolderTest, WhatWasWrittenIsListedReadAndWhole) {
  EXPECT_THAT(Steps(), IsEmpty());
  Make(12);
  const std::string path = Make(9, "xyz");
  EXPECT_EQ(path, checkpoints_ + "/step-9");
  EXPECT_THAT(Steps(), ElementsAre(9, 12));
  EXPECT_THAT(Names(), ElementsAre("step-12", "step-9"));
  const auto manifest = ReadManifest(path);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->step(), 9u);
  ASSERT_EQ(manifest->files_size(), 3);
  EXPECT_EQ(manifest->files(0).name(), kFirst);
  EXPECT_EQ(manifest->files(0).bytes(), fs::file_size(path + "/" + kFirst));
  EXPECT_EQ(manifest->files(0).sha256(), Sha256(Read(path + "/" + kFirst)));
  EXPECT_TRUE(VerifyCheckpoint(path, *manifest).ok());
  EXPECT_EQ(Read(path + "/config.json"), "{}\n");
}

TEST_F(FolderTest, ManyThreadsMayWriteFiles) {
  const auto writer = Begin(12);
  CheckpointManifest parts[4], manifest = ManifestOf(12);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string name = absl::StrCat("part-", i, ".safetensors");
      EXPECT_TRUE(AddFile(*writer, name, "model", std::string(100, 'x'), &parts[i]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CheckpointManifest& part : parts) *manifest.add_files() = part.files(0);
  ASSERT_TRUE(writer->Commit(manifest, {}).ok());
  EXPECT_EQ(NewestCheckpoint(checkpoints_)->manifest.files_size(), 4);
}

TEST_F(FolderTest, ItsPartModelOpensAsAModel) {
  const auto model = ModelFolder::Open(Make(12));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors().size(), 2u);  // no momentum
  EXPECT_EQ(model->tensors().count(kSecond), 1u);
}

TEST_F(FolderTest, WhatIsNamedOtherwiseIsNotListed) {
  Make(3);
  for (const char* name : {"step-4.tmp", "step-5.old", "step-007", "step-", "step-x", "step--1",
                           "step-99999999999999999999", "best"}) {
    fs::create_directories(checkpoints_ + "/" + name);
  }
  std::ofstream(checkpoints_ + "/step-8") << "a file";
  EXPECT_THAT(Steps(), ElementsAre(3));
}

TEST_F(FolderTest, AFolderThatIsNoneIsAnError) {
  fs::create_directories(run_);
  std::ofstream(checkpoints_) << "a file";
  EXPECT_THAT(std::string(ListCheckpoints(checkpoints_).status().message()),
              HasSubstr(checkpoints_ + ": cannot list the folder: Not a directory"));
  EXPECT_THAT(std::string(CheckpointWriter::Begin(checkpoints_, 1).status().message()),
              HasSubstr(checkpoints_ + ": cannot make the folder"));
}

TEST_F(FolderTest, AFileThatIsCutShortIsNamedWithBothSizes) {
  const std::string path = Make(12), file = path + "/" + kSecond;
  const uint64_t bytes = fs::file_size(file);
  fs::resize_file(file, bytes - 1);
  EXPECT_EQ(ErrorOf(path), absl::StrCat(file, ": ", bytes - 1, " bytes, want ", bytes));
}

TEST_F(FolderTest, AFlippedBitIsNamedWithBothDigests) {
  const std::string path = Make(12), file = path + "/" + kMomentum;
  const std::string digest = ReadManifest(path)->files(2).sha256();
  std::string bytes = Read(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  std::ofstream(file) << bytes;
  EXPECT_EQ(ErrorOf(path), absl::StrCat(file, ": has SHA-256 ", Sha256(bytes), ", want ", digest));
}

TEST_F(FolderTest, AFileThatIsMissingOrNoFileIsNamed) {
  const std::string path = Make(12), file = path + "/" + kFirst;
  fs::remove(file);
  EXPECT_THAT(ErrorOf(path), HasSubstr(file + ": cannot open: No such file"));
  ASSERT_EQ(mkfifo(file.c_str(), 0666), 0);
  EXPECT_THAT(std::string(VerifyCheckpoint(path, *ReadManifest(path)).message()),
              HasSubstr(file + ": is a FIFO"));
}

TEST_F(FolderTest, AManifestThatIsMissingBrokenOrAnotherStepsIsNamed) {
  const std::string path = Make(12), file = path + "/manifest.json";
  const std::string text = Read(file);
  std::ofstream(file) << text.substr(0, text.size() / 2);
  EXPECT_THAT(ErrorOf(path), HasSubstr(file + ": is no checkpoint's manifest: "));
  std::ofstream(file) << ManifestText(ManifestOf(13));
  EXPECT_EQ(ErrorOf(path), file + ": step: 13, want 12, as the folder is named");
  fs::remove(file);
  EXPECT_THAT(ErrorOf(path), HasSubstr(file + ": cannot open: No such file"));
  ASSERT_EQ(mkfifo(file.c_str(), 0666), 0);
  EXPECT_THAT(std::string(ReadManifest(path).status().message()), HasSubstr(": is a FIFO"));
}

TEST_F(FolderTest, AHugeManifestIsRefusedBeforeAllOfItIsRead) {
  const std::string path = Make(12), file = path + "/manifest.json";
  fs::resize_file(file, uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(ErrorOf(path), HasSubstr("more than 67108864 bytes"));
}

TEST_F(FolderTest, TheNewestThatIsWholeIsFound) {
  Make(3);
  const std::string second = Make(20), broken = Make(100), newest = Make(101);
  fs::remove(broken + "/" + kFirst);
  std::ofstream(newest + "/manifest.json") << "{";
  fs::create_directories(checkpoints_ + "/step-200.tmp");
  const auto found = NewestCheckpoint(checkpoints_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, second);
  EXPECT_EQ(found->manifest.step(), 20u);
  EXPECT_THAT(found->skipped, ElementsAre(HasSubstr(newest + "/manifest.json: is no"),
                                          HasSubstr(broken + "/" + kFirst + ": cannot open")));
}

TEST_F(FolderTest, WhereNoneIsWholeItIsSaidWhy) {
  const absl::Status none = NewestCheckpoint(checkpoints_).status();
  EXPECT_EQ(none, absl::NotFoundError(checkpoints_ + ": has no checkpoint"));
  fs::remove(Make(12) + "/" + kFirst);
  const absl::Status broken = NewestCheckpoint(checkpoints_).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(broken.message()),
              AllOf(HasSubstr(checkpoints_ + ": has no checkpoint that is whole\n"),
                    HasSubstr(std::string(kFirst) + ": cannot open")));
}

TEST_F(FolderTest, PruningKeepsTheNewestAndRemovesHalves) {
  for (const uint64_t step : {8, 9, 10, 100}) Make(step);
  fs::create_directories(checkpoints_ + "/step-9.tmp/sub");
  std::ofstream(checkpoints_ + "/step-9.tmp/half") << "x";
  fs::create_directories(checkpoints_ + "/step-7.old");
  fs::create_directories(checkpoints_ + "/mine.tmp");
  ASSERT_TRUE(PruneCheckpoints(checkpoints_, 2).ok());
  EXPECT_THAT(Names(), ElementsAre("mine.tmp", "step-10", "step-100"));
  ASSERT_TRUE(PruneCheckpoints(checkpoints_, 5).ok());
  EXPECT_THAT(Steps(), ElementsAre(10, 100));
  EXPECT_TRUE(PruneCheckpoints(run_ + "/none", 1).ok());
}

TEST_F(FolderTest, WhatIsNewerThanWhereARunGoesOnIsRemoved) {
  for (const uint64_t step : {8, 9, 10}) Make(step);
  ASSERT_TRUE(RemoveCheckpointsAfter(checkpoints_, 8).ok());
  EXPECT_THAT(Steps(), ElementsAre(8));
  ASSERT_TRUE(RemoveCheckpointsAfter(checkpoints_, 8).ok());
  EXPECT_THAT(Names(), ElementsAre("step-8"));
}

TEST_F(FolderTest, TheBestIsKeptUntilARunGoesOnBeforeIt) {
  for (const uint64_t step : {8, 9, 10, 11}) Make(step);
  EXPECT_EQ(BestStep(checkpoints_), std::nullopt);
  ASSERT_TRUE(SetBest(checkpoints_, 8).ok());
  ASSERT_TRUE(SetBest(checkpoints_, 9).ok());
  EXPECT_EQ(BestStep(checkpoints_), 9u);
  ASSERT_TRUE(PruneCheckpoints(checkpoints_, 1).ok());
  EXPECT_THAT(Steps(), ElementsAre(9, 11));
  EXPECT_TRUE(fs::exists(checkpoints_ + "/best/manifest.json"));
  EXPECT_EQ(NewestCheckpoint(checkpoints_)->manifest.step(), 11u);
  ASSERT_TRUE(RemoveCheckpointsAfter(checkpoints_, 9).ok());
  EXPECT_EQ(BestStep(checkpoints_), 9u);
  ASSERT_TRUE(RemoveCheckpointsAfter(checkpoints_, 8).ok());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FolderTest, OneOfAStepIsFoundByItsStep) {
  for (const uint64_t step : {8, 9}) Make(step);
  const auto found = CheckpointOfStep(checkpoints_, 8);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step(), 8u);
  EXPECT_TRUE(found->is_chosen);
  EXPECT_EQ(CheckpointOfStep(checkpoints_, 7).status(),
            absl::NotFoundError(checkpoints_ + ": has no step-7, but step-8, step-9"));
  fs::remove(checkpoints_ + "/step-9/" + kFirst);
  EXPECT_THAT(std::string(CheckpointOfStep(checkpoints_, 9).status().message()),
              HasSubstr("cannot open"));
}

TEST_F(FolderTest, LaterOnesAreSetAsideAndStayWhole) {
  for (const uint64_t step : {8, 9, 10}) Make(step);
  const std::string aside = checkpoints_ + "/left-8";
  EXPECT_EQ(*SetAsideCheckpointsAfter(checkpoints_, 8), aside);
  EXPECT_THAT(Steps(), ElementsAre(8));
  EXPECT_EQ(NewestCheckpoint(aside)->manifest.step(), 10u);
  EXPECT_EQ(*SetAsideCheckpointsAfter(checkpoints_, 8), "");
  Make(9);
  EXPECT_EQ(*SetAsideCheckpointsAfter(checkpoints_, 8), aside + "-2");
  ASSERT_TRUE(PruneCheckpoints(checkpoints_, 1).ok());
  EXPECT_TRUE(NewestCheckpoint(aside).ok());
}

TEST_F(FolderTest, WithoutCommitNothingIsLeft) {
  {
    const auto writer = Begin(12);
    CheckpointManifest manifest = ManifestOf(12);
    ASSERT_TRUE(AddFile(*writer, kFirst, "model", "abcd", &manifest).ok());
    EXPECT_THAT(Names(), ElementsAre("step-12.tmp"));
    EXPECT_THAT(Steps(), IsEmpty());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FolderTest, OneOfTheSameStepIsReplaced) {
  const std::string path = Make(12);
  std::ofstream(path + "/stale") << "x";
  fs::create_directories(path + ".tmp");
  std::ofstream(path + ".tmp/half") << "x";
  Make(12, "other data");
  EXPECT_THAT(Names(), ElementsAre("step-12"));
  EXPECT_FALSE(fs::exists(path + "/stale"));
  EXPECT_FALSE(fs::exists(path + "/half"));
  EXPECT_THAT(Read(path + "/" + kFirst), EndsWith("other data"));
  EXPECT_TRUE(NewestCheckpoint(checkpoints_).ok());
}

TEST_F(FolderTest, AManifestThatCouldNotBeReadAgainIsNotWritten) {
  const auto writer = Begin(12);
  EXPECT_THAT(std::string(writer->Commit(CheckpointManifest(), {}).message()),
              HasSubstr("manifest.json: format: 0, want 1"));
  EXPECT_THAT(std::string(Begin(12)->Commit(ManifestOf(13), {}).message()),
              HasSubstr("manifest.json: step: 13, want 12"));
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(FolderTest, NamesStayInTheFolderAndComeOnce) {
  const auto writer = Begin(12);
  CheckpointManifest manifest = ManifestOf(12);
  for (const char* name : {"../x", "manifest.json", ""}) {
    EXPECT_EQ(AddFile(*writer, name, "model", "abcd", &manifest).code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  manifest.clear_files();
  EXPECT_TRUE(AddFile(*writer, kFirst, "model", "abcd", &manifest).ok());
  EXPECT_THAT(std::string(AddFile(*writer, kFirst, "model", "abcd", &manifest).message()),
              HasSubstr(std::string(kFirst) + ": cannot make: File exists"));
  manifest.mutable_files()->RemoveLast();
  EXPECT_THAT(std::string(writer->Commit(manifest, {{kFirst, "{}"}}).message()),
              HasSubstr(std::string(kFirst) + ": cannot make: File exists"));
  EXPECT_FALSE(writer->Commit(manifest, {{"../config.json", "{}"}}).ok());
  EXPECT_FALSE(fs::exists(run_ + "/config.json"));
}

TEST_F(FolderTest, AnErrorOfWhoWritesIsPassedOnAndTheFileRemoved) {
  const auto writer = Begin(12);
  CheckpointFile file;
  file.set_name(kFirst);
  const absl::Status gone = absl::UnavailableError("stage 1 is gone");
  const absl::Status status = writer->Write(&file, [&](const FileSink& sink) {
    EXPECT_TRUE(sink("half").ok());
    return gone;
  });
  EXPECT_EQ(status, gone);
  EXPECT_FALSE(fs::exists(checkpoints_ + "/step-12.tmp/" + kFirst));
  EXPECT_EQ(file.bytes(), 0u);
}

TEST_F(FolderTest, AFileThatTheDiskDoesNotTakeIsNamed) {
  const auto writer = Begin(12);
  CheckpointManifest manifest = ManifestOf(12);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = AddFile(*writer, kFirst, "model", std::string(5000, 'x'), &manifest);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(std::string(kFirst) + ": cannot write: File too large"));
}

TEST_F(FolderTest, AManifestOnAFullDiskLeavesTheOneBefore) {
  const std::string path = Make(12);
  {
    const auto writer = Begin(12);
    CheckpointManifest manifest = ManifestOf(12);
    ASSERT_TRUE(AddFile(*writer, kFirst, "model", "other", &manifest).ok());
    fs::create_symlink("/dev/full", path + ".tmp/manifest.json.tmp");
    EXPECT_THAT(std::string(writer->Commit(manifest, {}).message()),
                AllOf(HasSubstr("/manifest.json"), HasSubstr("No space left on device")));
  }
  EXPECT_THAT(Names(), ElementsAre("step-12"));
  EXPECT_THAT(Read(path + "/" + kFirst), EndsWith("abcd"));
}

}  // namespace
}  // namespace thinwire
