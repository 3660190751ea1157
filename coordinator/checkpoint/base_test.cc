#include "coordinator/checkpoint/base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/sha256.h"
#include "base/tensor_file.h"
#include "coordinator/checkpoint/checkpoint_testing.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A checkpoint of two tensors, with a third in the folder that the run began from.
class BaseTest : public ::testing::Test {
 protected:
  BaseTest() {
    fs::remove_all(root_);
    fs::create_directories(init_);
    WriteInit("wxyz");
    checkpoint_ = MakeCheckpoint(root_ + "/checkpoints", 12);
    base_.set_init(init_);
    base_.set_at(kAtCoordinator);
    BaseTensor* const tensor = base_.add_tensors();
    tensor->set_name("transformer.wte.weight");
    tensor->set_sha256(Sha256("wxyz"));
    SetBase(base_);
  }
  void WriteInit(const std::string& data) {
    const absl::Status status = WriteTensorFile(
        init_ + "/" + kModelFile, {{}, {{"wte.weight", "F32", {1}, data}, {"b", "U8", {1}, "b"}}});
    EXPECT_TRUE(status.ok()) << status;
  }
  void SetBase(const CheckpointBase& base) {
    const std::string path = checkpoint_ + "/" + kManifestFile;
    CheckpointManifest manifest = *ReadManifest(checkpoint_);
    *manifest.mutable_base() = base;
    EXPECT_TRUE(ReplaceFile(path, ManifestText(manifest)).ok());
  }
  // Returns the bytes of the base's tensor, or the error.
  absl::StatusOr<std::string> Read() const {
    const absl::StatusOr<ModelFolder> folder = OpenWeights(checkpoint_);
    if (!folder.ok()) return folder.status();
    std::string data;
    const absl::Status status = folder->Read(folder->tensors().at("transformer.wte.weight"), 3,
                                             [&data](std::string_view piece) {
                                               data += piece;
                                               return absl::OkStatus();
                                             });
    if (!status.ok()) return status;
    return data;
  }
  std::string Error() const { return std::string(Read().status().message()); }

  const std::string root_ = ::testing::TempDir() + "/base";
  const std::string init_ = root_ + "/init";
  std::string checkpoint_;
  CheckpointBase base_;
};

TEST_F(BaseTest, CompletesACheckpointByTheModelsNames) {
  const auto folder = OpenWeights(checkpoint_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->tensors().size(), 3u);
  const auto data = Read();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(*data, "wxyz");
  EXPECT_TRUE(VerifyBase(base_).ok());
}

TEST_F(BaseTest, AnotherTensorIsRefused) {
  WriteInit("zzzz");
  EXPECT_THAT(Error(),
              HasSubstr("wte.weight has SHA-256 " + Sha256("zzzz") + ", want " + Sha256("wxyz")));
  EXPECT_THAT(std::string(VerifyBase(base_).message()), HasSubstr("wte.weight has SHA-256 "));
}

TEST_F(BaseTest, AFolderThatIsGoneIsNamed) {
  fs::remove_all(init_);
  EXPECT_THAT(Error(), HasSubstr("its frozen parameters are those of init: " + init_));
  base_.set_at("stages");
  SetBase(base_);
  EXPECT_THAT(Error(), HasSubstr(init_ + " on the machines of the stages (init_at: stages)"));
}

TEST_F(BaseTest, ATensorThatIsNotThereIsNamed) {
  base_.mutable_tensors(0)->set_name("transformer.wpe.weight");
  SetBase(base_);
  EXPECT_THAT(Error(), HasSubstr(init_ + ": has no transformer.wpe.weight"));
}

TEST_F(BaseTest, MayBeACheckpointWithABaseItselfButNotWithoutEnd) {
  const std::string first = checkpoint_;
  checkpoint_ = MakeCheckpoint(root_ + "/later", 7);
  base_.set_init(first);
  SetBase(base_);
  const auto data = Read();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(*data, "wxyz");
  base_.set_init(checkpoint_);
  SetBase(base_);
  EXPECT_THAT(Error(), HasSubstr(checkpoint_ + ": stands behind 16 checkpoints"));
}

TEST_F(BaseTest, AnotherProgramsManifestIsNone) {
  std::ofstream(init_ + "/" + kManifestFile) << "{\"name\": \"an app\"}";
  EXPECT_TRUE(OpenWeights(init_).ok());
}

TEST_F(BaseTest, TheConfigIsToldByItsDigest) {
  EXPECT_EQ(*DigestOfConfig(init_), "");
  std::ofstream(init_ + "/config.json") << "{}";
  EXPECT_EQ(*DigestOfConfig(init_), Sha256("{}"));
}

}  // namespace
}  // namespace thinwire
