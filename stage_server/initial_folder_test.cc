#include "stage_server/initial_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "base/tensor_file.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InitialFolderTest : public ::testing::Test {
 protected:
  InitialFolderTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    const absl::Status status = WriteTensorFile(
        dir_ + "/" + kModelFile,
        {{},
         {{"wte", "F32", {1}, "abcd"}, {"head", "F32", {1}, "abcd"}, {"norm", "BF16", {1}, "ef"}}});
    EXPECT_TRUE(status.ok()) << status;
  }
  void Want(const std::string& name, const std::string& source, const std::string& equal = "") {
    ReadInitialRequest::Tensor& tensor = *request_.add_tensors();
    tensor.set_name(name);
    tensor.set_source(source);
    if (!equal.empty()) tensor.add_equal(equal);
  }
  absl::Status Write() {
    file_.clear();
    response_.Clear();
    const auto folder = InitialFolder::Open(dir_);
    if (!folder.ok()) return folder.status();
    const auto sink = [this](std::string_view piece) {
      file_ += piece;
      return absl::OkStatus();
    };
    return folder->Write(request_, sink, &response_);
  }
  std::string Error() { return std::string(Write().message()); }

  const std::string dir_ = ::testing::TempDir() + "/initial_folder";
  ReadInitialRequest request_;
  ReadInitialResponse response_;
  std::string file_;
};

TEST_F(InitialFolderTest, ListsWhatItHas) {
  std::ofstream(dir_ + "/config.json") << "{}";
  const auto folder = InitialFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto list = folder->List();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->folder(), dir_);
  EXPECT_EQ(list->config_sha256(), Sha256("{}"));
  ASSERT_EQ(list->tensors_size(), 3);
  EXPECT_EQ(list->tensors(1).name(), "norm");
  EXPECT_EQ(list->tensors(1).dtype(), "BF16");
  EXPECT_THAT(list->tensors(1).shape(), ElementsAre(1));
  EXPECT_EQ(list->tensors(1).bytes(), 2u);
}

TEST_F(InitialFolderTest, WritesTensorsByTheNamesThatAreWantedAndTellsTheirDigests) {
  Want("model.norm", "norm");
  Want("model.wte", "wte", "head");
  const absl::Status status = Write();
  ASSERT_TRUE(status.ok()) << status;
  const auto file = ParseSafetensors(file_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "model.norm");
  EXPECT_EQ(file->tensors[0].dtype, "BF16");
  EXPECT_EQ(file->tensors[1].data, "abcd");
  EXPECT_THAT(response_.sha256(), ElementsAre(Sha256("ef"), Sha256("abcd")));
}

TEST_F(InitialFolderTest, NamesFolderAndTensorOfWhatIsWrong) {
  Want("model.wte", "wte", "norm");
  EXPECT_THAT(Error(), HasSubstr("init: " + dir_ + ": norm and wte differ, but are one"));
  request_.Clear();
  Want("model.wpe", "wpe");
  EXPECT_THAT(Error(), HasSubstr("init: " + dir_ + ": has no tensor wpe"));
  fs::remove_all(dir_);
  EXPECT_THAT(Error(), HasSubstr("init: " + dir_ + ": cannot open"));
}

}  // namespace
}  // namespace thinwire
