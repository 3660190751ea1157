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
    return MergeFile(from_, to_, mergings, originals_, [] { return absl::OkStatus(); });
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
  const Originals* originals_ = nullptr;
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

// A folder of the base, in bf16 and with names of the trunk alone.
class OriginalsTest : public MergeTest {
 protected:
  OriginalsTest() {
    const auto bf16 = [](std::vector<uint16_t> values) {
      return std::string(reinterpret_cast<const char*>(values.data()), 2 * values.size());
    };
    const std::string q = bf16({0x3F80, 0x4000}), o = bf16({0x4040, 0x4080});  // 1, 2 and 3, 4
    Safetensors base;
    base.tensors.push_back({"layers.0.q.weight", "BF16", {1, 2}, q});
    base.tensors.push_back({"layers.0.o.weight", "BF16", {1, 2}, o});
    std::filesystem::create_directories(base_);
    EXPECT_TRUE(WriteTensorFile(base_ + "/model.safetensors", base).ok());
  }
  static FileTensor TensorOf(const std::string& name, std::vector<int64_t> shape) {
    FileTensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    return tensor;
  }
  const std::string base_ = dir_ + "/base";
};

TEST_F(OriginalsTest, TakeThePlaceOfWeightsWithAndWithoutAdapters) {
  Add("model.layers.0.q.weight", {1, 2}, {1.1f, 2.1f});
  Add("model.layers.0.q.lora_A.weight", {1, 2}, {10, 20});
  Add("model.layers.0.q.lora_B.weight", {1, 1}, {1});
  Add("model.layers.0.o.weight", {1, 2}, {3.1f, 4.1f});
  Add("model.norm.weight", {1}, {9});
  const auto originals = Originals::Open(base_, {TensorOf("model.layers.0.q.weight", {1, 2}),
                                                 TensorOf("model.layers.0.o.weight", {1, 2})});
  ASSERT_TRUE(originals.ok()) << originals.status();
  originals_ = &*originals;
  const absl::Status status = Merge({{"model.layers.0.q", {0.5, false}}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Values(0), ElementsAre(6, 12));
  EXPECT_THAT(Values(1), ElementsAre(3, 4));
  EXPECT_THAT(Values(2), ElementsAre(9));
}

TEST_F(OriginalsTest, NamesWhatIsNotThere) {
  const auto error = [&](const std::string& dir, const FileTensor& tensor) {
    return std::string(Originals::Open(dir, {tensor}).status().message());
  };
  EXPECT_THAT(error(base_, TensorOf("model.layers.1.q.weight", {1, 2})),
              HasSubstr("base: has no model.layers.1.q.weight"));
  EXPECT_THAT(error(base_, TensorOf("model.layers.0.q.weight", {2, 2})),
              HasSubstr("layers.0.q.weight is BF16 [1, 2], want F32, F16 or BF16 [2, 2]"));
  EXPECT_THAT(error(dir_ + "/gone", TensorOf("q.weight", {1, 2})),
              HasSubstr("want the folder that the run started from"));
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
