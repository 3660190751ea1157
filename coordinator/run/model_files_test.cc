#include "coordinator/run/model_files.h"

#include <filesystem>
#include <fstream>

#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Shard(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  // The header's length, little-endian: byte i holds bits 8 i to 8 i + 7.
  for (size_t i = 0; i < 4; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + data;
}

std::string OneTensor(const std::string& name) {
  return Shard("{\"__metadata__\":{\"format\":\"pt\"},\"" + name +
                   "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
               "abcd");
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Written(const std::string& content) {
  const std::string path = ::testing::TempDir() + "/shard.safetensors";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(ShardNameTest, CountsFromOneInFiveDigits) {
  EXPECT_EQ(ShardName(0, 4), "model-00001-of-00004.safetensors");
}

TEST(ReadShardContentsTest, ListsTheTensorsWithoutTheMetadata) {
  const auto contents = ReadShardContents(Written(OneTensor("fc.bias")));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_THAT(contents->tensors, ElementsAre("fc.bias"));
  EXPECT_EQ(contents->data_bytes, 4u);
}

TEST(ReadShardContentsTest, AHeaderMayHoldManyTensors) {
  std::string header;
  for (int i = 0; i < 60'000; ++i) {
    header += header.empty() ? "{\"t" : ",\"t";
    header += std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const auto contents = ReadShardContents(Written(Shard(header + "}", "")));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_THAT(contents->tensors, SizeIs(60'000));
}

TEST(ReadShardContentsTest, AFileCutInItsHeaderIsRefusedAtEachByte) {
  const std::string whole = OneTensor("fc.bias");
  for (size_t size = 0; size < whole.size() - 4; ++size) {
    EXPECT_EQ(ReadShardContents(Written(whole.substr(0, size))).status().code(),
              absl::StatusCode::kDataLoss)
        << size;
  }
}

TEST(SaveModelTest, WritesOneShardPerStageAndAnIndexOfAll) {
  FakeStage stages[2];
  stages[0].exported = OneTensor("conv1.weight");
  stages[1].exported = OneTensor("fc.weight");
  const std::string dir = ::testing::TempDir() + "/model";
  fs::create_directories(dir);
  std::ofstream(dir + "/old") << "";
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  const absl::Status status = SaveModel(&fleet, dir);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(dir + "/model-00002-of-00002.safetensors"), stages[1].exported);
  EXPECT_EQ(nlohmann::json::parse(Read(dir + "/model.safetensors.index.json")).dump(),
            R"({"metadata":{"total_size":8},"weight_map":{)"
            R"("conv1.weight":"model-00001-of-00002.safetensors",)"
            R"("fc.weight":"model-00002-of-00002.safetensors"}})");
  EXPECT_FALSE(fs::exists(dir + "/old"));
}

TEST(LoadModelTest, ReadsWhatWasSaved) {
  FakeStage stages[2];
  stages[0].exported = OneTensor("conv1.weight");
  stages[1].exported = OneTensor("fc.weight");
  const std::string dir = ::testing::TempDir() + "/loaded";
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  ASSERT_TRUE(SaveModel(&fleet, dir).ok());
  const auto model = LoadModel(dir);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 2u);
  EXPECT_EQ(model->tensors[0].name, "conv1.weight");
  EXPECT_EQ(model->tensors[1].data, "abcd");
  fs::remove(dir + "/model-00002-of-00002.safetensors");
  EXPECT_THAT(std::string(LoadModel(dir).status().message()),
              HasSubstr("model-00002-of-00002.safetensors: cannot open"));
}

TEST(LoadModelTest, ATensorThatItsShardDoesNotHaveIsNamed) {
  const std::string dir = ::testing::TempDir() + "/short_model";
  fs::create_directories(dir);
  std::ofstream(dir + "/a.safetensors", std::ios::binary) << OneTensor("fc.bias");
  std::ofstream(dir + "/model.safetensors.index.json")
      << R"({"weight_map": {"fc.bias": "a.safetensors", "fc.weight": "a.safetensors"}})";
  EXPECT_THAT(std::string(LoadModel(dir).status().message()),
              HasSubstr("a.safetensors: fc.weight, which the index names, is not there"));
  std::ofstream(dir + "/model.safetensors.index.json")
      << R"({"weight_map": {"fc.bias": "../a.safetensors"}})";
  EXPECT_THAT(std::string(LoadModel(dir).status().message()), HasSubstr("fc.bias stands in no"));
  std::ofstream(dir + "/model.safetensors.index.json") << R"({"weight_map": {"fc.bias": ".."}})";
  EXPECT_THAT(std::string(LoadModel(dir).status().message()),
              HasSubstr("/..: cannot read: Is a directory"));
}

TEST(SaveModelTest, AnExportThatIsNoSafetensorsFileLeavesNoModel) {
  FakeStage stage;
  stage.exported = "abc";
  const std::string dir = ::testing::TempDir() + "/broken_model";
  Fleet fleet({stage.address()}, "run", FleetOptions());
  EXPECT_THAT(std::string(SaveModel(&fleet, dir).message()),
              HasSubstr("model-00001-of-00001.safetensors: 3 bytes, want at least 8"));
  EXPECT_FALSE(fs::exists(dir));
}

}  // namespace
}  // namespace thinwire
