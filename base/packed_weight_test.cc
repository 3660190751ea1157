#include "base/packed_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <list>

#include "base/model_folder.h"
#include "base/sha256.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with a weight of two rows of four, in blocks of four, and a bias.
class PackedWeightTest : public ::testing::Test {
 protected:
  PackedWeightTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    std::vector<float> levels(16);
    for (int i = 0; i < 16; ++i) levels[i] = static_cast<float>(i) - 8;
    Add<uint8_t>("w.weight", "U8", {4, 1}, {0x0F, 0x78, 0x81, 0xA0});
    Add<float>("w.weight.absmax", "F32", {2}, {2, 0.5f});
    Add<float>("w.weight.quant_map", "F32", {16}, levels);
    AddState("w.weight",
             R"({"quant_type": "nf4", "blocksize": 4, "dtype": "bfloat16", "shape": [2, 4]})");
    Add<float>("w.bias", "F32", {2}, {1, 2});
  }

  template <typename T>
  void Add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    std::string& bytes = bytes_.emplace_back(values.size() * sizeof(T), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    file_.tensors.push_back({name, dtype, std::move(shape), bytes});
  }
  void AddState(const std::string& name, const std::string& state,
                const std::string& format = "bitsandbytes__nf4") {
    const auto size = static_cast<int64_t>(state.size());
    Add<char>(name + ".quant_state." + format, "U8", {size}, {state.begin(), state.end()});
  }
  void Remove(const std::string& name) {
    for (size_t i = 0; i < file_.tensors.size(); ++i) {
      if (file_.tensors[i].name != name) continue;
      file_.tensors.erase(file_.tensors.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  absl::StatusOr<ModelFolder> Opened() {
    const absl::Status written = WriteTensorFile(dir_ + "/model.safetensors", file_);
    EXPECT_TRUE(written.ok()) << written;
    return ModelFolder::Open(dir_);
  }
  std::string ErrorOf() { return std::string(Opened().status().message()); }

  const std::string dir_ = ::testing::TempDir() + "/packed";
  Safetensors file_;
  std::list<std::string> bytes_;
};

std::vector<float> ValuesOf(const ModelFolder& folder, const std::string& name) {
  std::string bytes;
  const absl::Status read =
      folder.Read(folder.tensors().at(name), /*piece_bytes=*/7, [&](std::string_view piece) {
        bytes += piece;
        return absl::OkStatus();
      });
  EXPECT_TRUE(read.ok()) << read;
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_F(PackedWeightTest, IsShownAsTheNumbersThatItStandsFor) {
  const auto folder = Opened();
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_EQ(folder->tensors().size(), 2u);
  const ModelFolder::Entry& entry = folder->tensors().at("w.weight");
  EXPECT_EQ(entry.place.dtype, "F32");
  EXPECT_THAT(entry.place.shape, ElementsAre(2, 4));
  EXPECT_EQ(entry.place.bytes, 32u);
  EXPECT_THAT(ValuesOf(*folder, "w.weight"), ElementsAre(-16, 14, -2, 0, 0, -3.5f, 1, -4));
  EXPECT_THAT(ValuesOf(*folder, "w.bias"), ElementsAre(1, 2));
}

TEST_F(PackedWeightTest, ItsDigestIsThatOfTheNumbers) {
  const auto folder = Opened();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::vector<float> values = ValuesOf(*folder, "w.weight");
  ModelFolder::Entry entry = folder->tensors().at("w.weight");
  const auto read = [&] {
    return folder->Read(entry, /*piece_bytes=*/7,
                        [](std::string_view) { return absl::OkStatus(); });
  };
  entry.sha256 =
      Sha256({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  EXPECT_TRUE(read().ok()) << read();
  entry.sha256 = Sha256("others");
  EXPECT_EQ(read().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(read().message()), HasSubstr("w.weight has SHA-256 "));
}

TEST_F(PackedWeightTest, ScalesMayBeQuantisedThemselves) {
  Remove("w.weight.absmax");
  Remove("w.weight.quant_state.bitsandbytes__nf4");
  std::vector<float> levels(256);
  levels[3] = 0.5f;
  levels[255] = -0.25f;
  Add<uint8_t>("w.weight.absmax", "U8", {2}, {3, 255});
  Add<float>("w.weight.nested_absmax", "F32", {1}, {2});
  Add<float>("w.weight.nested_quant_map", "F32", {256}, levels);
  AddState("w.weight",
           R"({"blocksize": 4, "shape": [2, 4], "nested_blocksize": 256, "nested_offset": 1})");
  const auto folder = Opened();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->tensors().size(), 2u);
  EXPECT_THAT(ValuesOf(*folder, "w.weight"), ElementsAre(-16, 14, -2, 0, 0, -3.5f, 1, -4));
}

// transformers divides a model into shards tensor by tensor.
TEST_F(PackedWeightTest, ItsTensorsMayStandInSeveralShards) {
  const auto whole = Opened();
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::filesystem::remove(dir_ + "/model.safetensors");
  std::vector<std::string> shards;
  for (const StoredTensor& tensor : file_.tensors) {
    shards.push_back(ShardName(static_cast<int>(shards.size()), 5));
    Safetensors shard;
    shard.tensors = {tensor};
    ASSERT_TRUE(WriteTensorFile(dir_ + "/" + shards.back(), shard).ok());
  }
  ASSERT_TRUE(WriteModelIndex(dir_, shards).ok());
  auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->tensors().size(), 2u);
  EXPECT_EQ(ValuesOf(*folder, "w.weight"), ValuesOf(*whole, "w.weight"));
  // Its files are others once they stand behind those of another folder.
  std::filesystem::create_directories(dir_ + "/first");
  ASSERT_TRUE(WriteTensorFile(dir_ + "/first/model.safetensors", Safetensors()).ok());
  auto behind = ModelFolder::Open(dir_ + "/first");
  ASSERT_TRUE(behind.ok()) << behind.status();
  const auto tensors = folder->tensors();
  behind->Add(*std::move(folder), tensors);
  EXPECT_EQ(ValuesOf(*behind, "w.weight"), ValuesOf(*whole, "w.weight"));
}

TEST_F(PackedWeightTest, WhatDoesNotFitIsNamed) {
  const Safetensors whole = file_;
  for (const char* name : {"w.weight.absmax", "w.weight.quant_map"}) {
    Remove(name);
    EXPECT_THAT(ErrorOf(), HasSubstr(std::string("w.weight has no ") + name));
    file_ = whole;
  }
  Remove("w.weight");
  Add<uint8_t>("w.weight", "U8", {3, 1}, {1, 2, 3});
  EXPECT_THAT(ErrorOf(), HasSubstr("has w.weight of U8 [3, 1], want U8 with 4 elements"));
  for (const char* state :
       {"", "[]", "{}", R"({"shape": [2, 4]})", R"({"shape": [], "blocksize": 4})",
        R"({"shape": [2, -4], "blocksize": 4})", R"({"shape": [2, 4, 1], "blocksize": 4})",
        R"({"shape": [2, 4], "blocksize": 0})", R"({"shape": [2, 4], "blocksize": 3})",
        R"({"shape": [2, 4], "blocksize": 4, "nested_blocksize": 0})",
        R"({"shape": [4294967296, 4294967296], "blocksize": 4})"}) {
    file_ = whole;
    Remove("w.weight.quant_state.bitsandbytes__nf4");
    AddState("w.weight", state);
    EXPECT_THAT(ErrorOf(), HasSubstr("w.weight has ")) << state;
  }
  file_ = whole;
  Remove("w.weight.quant_state.bitsandbytes__nf4");
  AddState("w.weight", "{}", "bitsandbytes__fp4");
  EXPECT_THAT(ErrorOf(), HasSubstr("bitsandbytes__fp4, want weights in nf4 or numbers"));
}

}  // namespace
}  // namespace thinwire
