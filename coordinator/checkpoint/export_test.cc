#include "coordinator/checkpoint/export.h"

#include <filesystem>
#include <fstream>

#include "base/model_folder.h"
#include "coordinator/checkpoint/checkpoint_testing.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ExportTest : public ::testing::Test {
 protected:
  ExportTest() {
    fs::remove_all(root_);
    checkpoint_ = MakeCheckpoint(root_ + "/checkpoints", 12);
  }
  absl::Status Export() const {
    return ExportModel(checkpoint_, *ReadManifest(checkpoint_), out_, check_);
  }
  static std::vector<std::string> NamesIn(const std::string& dir) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
    return names;
  }

  const std::string root_ = ::testing::TempDir() + "/export";
  const std::string out_ = root_ + "/models/mine";
  std::string checkpoint_;
  std::function<absl::Status()> check_ = [] { return absl::OkStatus(); };
};

TEST_F(ExportTest, HasTheModelItsIndexAndWhatStandsBeside) {
  fs::create_directories(checkpoint_ + "/folder");
  const absl::Status status = Export();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(NamesIn(out_), UnorderedElementsAre(kFirst, kSecond, "config.json", kModelIndex));
  const auto model = ModelFolder::Open(out_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tensors().size(), 2u);
}

TEST_F(ExportTest, FillsAnEmptyFolderAndNoOther) {
  fs::create_directories(out_);
  EXPECT_TRUE(Export().ok());
  const absl::Status again = Export();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.message()), HasSubstr(out_ + ": is there already"));
}

TEST_F(ExportTest, AFolderOfTheTemporarysNameIsNotTouched) {
  fs::create_directories(out_ + ".tmp");
  std::ofstream(out_ + ".tmp/mine") << "x";
  EXPECT_EQ(Export().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(NamesIn(out_ + ".tmp"), UnorderedElementsAre("mine"));
}

TEST_F(ExportTest, OneThatIsInterruptedLeavesNothing) {
  int asked = 0;
  check_ = [&] { return ++asked < 2 ? absl::OkStatus() : absl::CancelledError("interrupted"); };
  EXPECT_EQ(Export(), absl::CancelledError("interrupted"));
  EXPECT_TRUE(fs::is_empty(root_ + "/models"));
}

TEST_F(ExportTest, ACheckpointWithoutAModelIsRefused) {
  std::ofstream(checkpoint_ + "/manifest.json") << ManifestText(ManifestOf(12));
  EXPECT_THAT(std::string(Export().message()),
              HasSubstr(checkpoint_ + "/manifest.json: names no file of the model"));
  EXPECT_FALSE(fs::exists(out_));
}

}  // namespace
}  // namespace thinwire
