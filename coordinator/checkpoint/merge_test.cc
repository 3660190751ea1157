#include "coordinator/checkpoint/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <list>

#include "base/tensor_file.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MergeTest : public ::testing::Test {
 protected:
  MergeTest() { std::filesystem::create_directories(dir_); }

  void Add(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    std::string& bytes = bytes_.emplace_back(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    file_.tensors.push_back({name, "F32", std::move(shape), bytes});
  }
  absl::Status Merge(const Mergings& mergings) {
    const absl::Status written = WriteTensorFile(from_, file_);
    EXPECT_TRUE(written.ok()) << written;
    return MergeFile(from_, to_, mergings, [] { return absl::OkStatus(); });
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto file = ReadTensorFile(to_);
    EXPECT_TRUE(file.ok()) << file.status();
    for (const StoredTensor& one : file->contents.tensors) names.push_back(one.name);
    return names;
  }
  std::vector<float> Values(size_t tensor) const {
    const auto file = ReadTensorFile(to_);
    const std::string_view data = file->contents.tensors[tensor].data;
    std::vector<float> values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }

  const std::string dir_ = ::testing::TempDir() + "/merge";
  const std::string from_ = dir_ + "/from.safetensors", to_ = dir_ + "/to.safetensors";
  Safetensors file_;
  std::list<std::string> bytes_;
};

TEST_F(MergeTest, AddsTheScaledProductAndLeavesOutTheAdapter) {
  Add("q.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  Add("q.lora_A.weight", {1, 2}, {10, 20});
  Add("q.lora_B.weight", {3, 1}, {1, 0, -1});
  Add("norm.weight", {2}, {7, 8});
  const absl::Status status = Merge({{"q", {0.5, false}}, {"elsewhere", {1, false}}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Names(), ElementsAre("q.weight", "norm.weight"));
  EXPECT_THAT(Values(0), ElementsAre(6, 12, 3, 4, 0, -4));
  EXPECT_THAT(Values(1), ElementsAre(7, 8));
}

TEST_F(MergeTest, KnowsTransposedWeights) {
  Add("c.weight", {2, 3}, {1, 3, 5, 2, 4, 6});
  Add("c.lora_A.weight", {1, 2}, {10, 20});
  Add("c.lora_B.weight", {3, 1}, {1, 0, -1});
  ASSERT_TRUE(Merge({{"c", {0.5, true}}}).ok());
  EXPECT_THAT(Values(0), ElementsAre(6, 3, 0, 12, 4, -4));
}

TEST_F(MergeTest, ATensorMayBeOfHalfAndItsAdapterElsewhere) {
  // 1 and 2 in bf16: 0x3F80 and 0x4000.
  const std::string halves("\x80\x3F\x00\x40", 4);
  ASSERT_TRUE(WriteTensorFile(dir_ + "/base.safetensors", {{},
                                                           {{"q.weight", "BF16", {1, 2}, halves},
                                                            {"norm.weight", "BF16", {2}, halves}}})
                  .ok());
  Add("q.lora_A.weight", {1, 2}, {10, 20});
  Add("q.lora_B.weight", {1, 1}, {1});
  ASSERT_TRUE(WriteTensorFile(from_, file_).ok());
  const auto folder = ModelFolder::OpenFiles(dir_, {"base.safetensors", "from.safetensors"});
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::vector<std::string> names = {"q.weight", "q.lora_A.weight", "q.lora_B.weight",
                                          "norm.weight"};
  const auto go_on = [] { return absl::OkStatus(); };
  ASSERT_TRUE(MergeTensors(*folder, names, to_, {{"q", {0.5, false}}}, go_on).ok());
  EXPECT_THAT(Names(), ElementsAre("q.weight", "norm.weight"));
  EXPECT_THAT(Values(0), ElementsAre(6, 12));
  EXPECT_THAT(Values(1), ElementsAre(1, 2));
  ASSERT_TRUE(MergeTensors(*folder, names, to_, {}, go_on).ok());
  EXPECT_EQ(Names(), names);
  EXPECT_THAT(Values(0), ElementsAre(1, 2));
}

TEST_F(MergeTest, NamesWhatDoesNotFit) {
  Add("q.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  Add("q.lora_A.weight", {1, 2}, {10, 20});
  EXPECT_THAT(std::string(Merge({{"q", {}}}).message()), HasSubstr("has no q.lora_B.weight"));
  Add("q.lora_B.weight", {2, 1}, {1, 0});
  EXPECT_THAT(std::string(Merge({{"q", {}}}).message()),
              HasSubstr("the adapter of q is for a weight of [2, 2], which is [3, 2]"));
}

}  // namespace
}  // namespace thinwire
