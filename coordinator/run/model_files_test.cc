#include "coordinator/run/model_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/model_folder.h"
#include "config/experiment.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

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

TEST(ShardNameTest, CountsFromOneInFiveDigits) {
  EXPECT_EQ(ShardName(0, 4), "model-00001-of-00004.safetensors");
}

TEST(SavedModelTest, WritesOneShardPerStageAndAnIndexOfAll) {
  FakeStage stages[2];
  stages[0].exported = OneTensor("conv1.weight");
  stages[1].exported = OneTensor("fc.weight");
  const std::string dir = ::testing::TempDir() + "/model";
  fs::create_directories(dir);
  std::ofstream(dir + "/old") << "";
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  const absl::Status status = SavedModel(dir, {}, false).Save(&fleet);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read(dir + "/model-00002-of-00002.safetensors"), stages[1].exported);
  EXPECT_EQ(nlohmann::json::parse(Read(dir + "/model.safetensors.index.json")).dump(),
            R"({"metadata":{"total_size":8},"weight_map":{)"
            R"("conv1.weight":"model-00001-of-00002.safetensors",)"
            R"("fc.weight":"model-00002-of-00002.safetensors"}})");
  EXPECT_FALSE(fs::exists(dir + "/old"));
}

TEST(SavedModelTest, WhatWasSavedIsAModelFolderWithItsConfig) {
  FakeStage stages[2];
  stages[0].exported = OneTensor("conv1.weight");
  stages[1].exported = OneTensor("fc.weight");
  const std::string dir = ::testing::TempDir() + "/loaded";
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  ASSERT_TRUE(SavedModel(dir, {{"config.json", "{}\n"}}, false).Save(&fleet).ok());
  const auto model = ModelFolder::Open(dir);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tensors().count("conv1.weight"), 1u);
  EXPECT_EQ(model->tensors().at("fc.weight").file, 1u);
  EXPECT_EQ(Read(dir + "/config.json"), "{}\n");
}

TEST(SavedModelTest, WhatIsFrozenIsFetchedOnce) {
  const std::string none("\2\0\0\0\0\0\0\0{}", 10);  // a file without tensors
  FakeStage stages[2];
  stages[0].exported = none;
  stages[0].frozen = OneTensor("wte.weight");
  stages[1].exported = OneTensor("h.lora_A.weight");
  stages[1].frozen = OneTensor("h.weight");
  const std::string dir = ::testing::TempDir() + "/adapted";
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  SavedModel saved(dir, {}, /*has_frozen=*/true);
  const auto frozen_fetches = [&] {
    const std::vector<std::string> calls = stages[1].calls();
    return std::count(calls.begin(), calls.end(), "ExportParameters frozen");
  };
  for (const char* time : {"first", "second"}) {
    ASSERT_TRUE(saved.Save(&fleet).ok()) << time;
    const auto model = ModelFolder::Open(dir);
    ASSERT_TRUE(model.ok()) << time << ": " << model.status();
    EXPECT_EQ(model->tensors().size(), 3u) << time;
    EXPECT_FALSE(fs::exists(dir + "/model-00001-of-00002.safetensors")) << time;
    EXPECT_EQ(Read(dir + "/frozen-00002-of-00002.safetensors"), stages[1].frozen) << time;
    EXPECT_EQ(frozen_fetches(), 1) << time;
  }
  fs::create_hard_link(dir + "/frozen-00001-of-00002.safetensors", dir + ".copy");
  fs::remove(dir + "/frozen-00002-of-00002.safetensors");
  ASSERT_TRUE(saved.Save(&fleet).ok());
  EXPECT_EQ(frozen_fetches(), 2) << "what was removed is fetched again";
  EXPECT_EQ(fs::hard_link_count(dir + ".copy"), 1u) << "into files of its own";
  EXPECT_EQ(ModelFolder::Open(dir)->tensors().size(), 3u);
}

TEST(SavedModelTest, ASaveThatFailsLeavesTheOneBefore) {
  FakeStage stage;
  stage.exported = OneTensor("fc.weight");
  const std::string dir = ::testing::TempDir() + "/kept_model";
  Fleet fleet({stage.address()}, "run", FleetOptions());
  ASSERT_TRUE(SavedModel(dir, {}, false).Save(&fleet).ok());
  stage.exported = "abc";
  EXPECT_FALSE(SavedModel(dir, {}, false).Save(&fleet).ok());
  EXPECT_TRUE(ModelFolder::Open(dir).ok());
  EXPECT_FALSE(fs::exists(dir + ".tmp"));
}

TEST(SavedModelTest, AnExportThatIsNoSafetensorsFileLeavesNoModel) {
  FakeStage stage;
  stage.exported = "abc";
  const std::string dir = ::testing::TempDir() + "/broken_model";
  Fleet fleet({stage.address()}, "run", FleetOptions());
  EXPECT_THAT(std::string(SavedModel(dir, {}, false).Save(&fleet).message()),
              HasSubstr("model-00001-of-00001.safetensors: safetensors: 3 bytes, want at least 8"));
  EXPECT_FALSE(fs::exists(dir));
}

TEST(SideFilesTest, OfATextThatOnlyTheStagesHaveThereIsNoVocabulary) {
  const Experiment e = *ParseExperiment(
      "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
      "data: {name: text, file: no/such, vocabulary: no/such, context: 8,\n"
      "       corpus: {vocabulary: 300, train_tokens: 99, test_tokens: 99}}\n",
      "test", {});
  const auto files = SideFilesOf(e);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->count("vocabulary.json"), 0u);
  Experiment goes_on = e;
  goes_on.set_init(::testing::TempDir() + "/checkpoint");
  fs::create_directories(goes_on.init());
  std::ofstream(goes_on.init() + "/vocabulary.json") << "its own";
  EXPECT_EQ(SideFilesOf(goes_on)->at("vocabulary.json"), "its own");
}

TEST(CheckInitialVocabularyTest, IdsThatTheCheckpointDoesNotHaveAreRefused) {
  const std::string dir = ::testing::TempDir() + "/taught";
  fs::create_directories(dir);
  std::ofstream(dir + "/vocabulary.json") << R"({"tokens": "characters", "characters": "abc"})";
  const auto with = [&](const std::string& tokens) {
    return *ParseExperiment(
        "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
        "data: {name: shakespeare, context: 8}\n",
        "test", {"init=" + dir, "data.tokens=" + tokens});
  };
  EXPECT_THAT(std::string(CheckInitialVocabulary(with("bytes")).message()),
              HasSubstr("init: the data's vocabulary is not the checkpoint's: it has 256 tokens"));
  EXPECT_THAT(std::string(CheckInitialVocabulary(with("characters")).message()),
              HasSubstr("it has 65 tokens, but 3 by " + dir + "/vocabulary.json"));
  std::ofstream(dir + "/vocabulary.json") << R"({"tokens": "bytes"})";
  EXPECT_TRUE(CheckInitialVocabulary(with("bytes")).ok());
}

TEST(SideFilesTest, AreTheConfigAndWhatTokenizesInTheFolderOfInit) {
  const std::string dir = ::testing::TempDir() + "/published";
  fs::create_directories(dir);
  std::ofstream(dir + "/config.json") << R"({"model_type": "gpt2", "vocab_size": 70, "n_embd": 8,
      "n_layer": 1, "n_head": 1, "n_positions": 16, "bos_token_id": 69, "author": "me"})";
  std::ofstream(dir + "/tokenizer.json") << "pieces";
  std::ofstream(dir + "/README.md") << "not for transformers";
  const Experiment e =
      *ParseExperiment("data: {name: shakespeare, context: 16}\noptimizer: {lr: 0.1}\nepochs: 1\n",
                       "test", {"init=" + dir, "data.tokens=characters"});
  const auto files = SideFilesOf(e);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ(files->at("tokenizer.json"), "pieces");
  const auto config = nlohmann::json::parse(files->at("config.json"));
  EXPECT_EQ(config["author"], "me");
  EXPECT_EQ(config["bos_token_id"], 69);
  const auto vocabulary = nlohmann::json::parse(files->at("vocabulary.json"));
  EXPECT_EQ(vocabulary["characters"].get<std::string>().substr(0, 4), "\n !$");
  const Experiment images = *ParseExperiment(
      "model: {name: resnet8}\ndata: {name: digits}\noptimizer: {lr: 0.1}\nepochs: 1\n", "test",
      {});
  EXPECT_EQ(SideFilesOf(images)->size(), 0u);
}

}  // namespace
}  // namespace thinwire
