#include "coordinator/run/adapter_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "base/file.h"
#include "base/tensor_file.h"
#include "config/experiment.h"
#include "coordinator/files/folders.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

Experiment Adapted(const std::string& lora, const std::string& model = "llama") {
  const auto experiment =
      ParseExperiment("model: {name: " + model + R"(, layers: 2, heads: 4, width: 16}
data: {name: shakespeare, context: 16, batch_size: 6}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)",
                      "f.yaml", {"lora=" + lora});
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

nlohmann::json ConfigOf(const Experiment& experiment) {
  const absl::StatusOr<std::string> text = AdapterConfig(experiment);
  EXPECT_TRUE(text.ok()) << text.status();
  return nlohmann::json::parse(*text);
}

TEST(AdapterConfigTest, HasWhatPeftWants) {
  const nlohmann::json config =
      ConfigOf(Adapted("{rank: 4, alpha: 16, dropout: 0.05, layers: [1]}"));
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "CAUSAL_LM");
  EXPECT_EQ(config["r"], 4);
  EXPECT_EQ(config["lora_alpha"], 16.0);
  EXPECT_EQ(config["lora_dropout"], 0.05);
  EXPECT_EQ(config["bias"], "none");
  EXPECT_EQ(config["fan_in_fan_out"], false);
  EXPECT_EQ(config["use_rslora"], false);
  EXPECT_EQ(config["target_modules"], nlohmann::json({"q_proj", "v_proj"}));
  EXPECT_EQ(config["layers_to_transform"], nlohmann::json::array({1}));
}

TEST(AdapterConfigTest, NamesAllLinearLayersAndGpt2sTransposition) {
  const nlohmann::json config =
      ConfigOf(Adapted("{modules: linear, scaling: rank_stabilized}", "gpt2"));
  EXPECT_EQ(config["target_modules"], nlohmann::json({"c_attn", "c_fc", "c_proj"}));
  EXPECT_EQ(config["fan_in_fan_out"], true);
  EXPECT_EQ(config["use_rslora"], true);
  EXPECT_TRUE(config["layers_to_transform"].is_null());
}

TEST(AdapterConfigTest, NamesABaseOfTheHubAsOthersFindIt) {
  const std::string cache = ::testing::TempDir() + "/hub_of_bases", commit(40, 'b');
  const std::string snapshot = cache + "/models--Ada--small-2/snapshots/" + commit;
  ASSERT_TRUE(MakeFolder(snapshot).ok());
  Experiment e = Adapted("{rank: 4}");
  EXPECT_TRUE(ConfigOf(e)["base_model_name_or_path"].is_null());
  e.set_init("/models/small");
  EXPECT_EQ(ConfigOf(e)["base_model_name_or_path"], "/models/small");
  EXPECT_FALSE(ConfigOf(e).contains("revision"));
  setenv("HF_HUB_CACHE", cache.c_str(), 1);
  e.set_init(snapshot);
  EXPECT_EQ(ConfigOf(e)["base_model_name_or_path"], "Ada/small-2");
  EXPECT_EQ(ConfigOf(e)["revision"], commit);
  unsetenv("HF_HUB_CACHE");
}

TEST(AdapterConfigTest, AModelOfWholeSequencesHasNoTaskType) {
  const auto bert = ParseExperiment(R"(model: {name: bert, layers: 1, heads: 1, width: 8}
data: {name: shakespeare, tokens: word_piece, objective: masked, context: 16, batch_size: 6,
       corpus: {vocabulary: 65, train_tokens: 999, test_tokens: 999}}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)",
                                    "f.yaml", {"lora={modules: linear}"});
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_TRUE(ConfigOf(*bert)["task_type"].is_null());
}

TEST(SaveAdapterTest, WritesTheAdaptersAloneByPeftsNames) {
  const std::string dir = ::testing::TempDir() + "/adapter_of_run";
  ASSERT_TRUE(MakeFolder(dir + "/model").ok());
  const std::string a(2 * 4 * 4, 'a'), b(3 * 2 * 4, 'b'), w(3 * 4 * 4, 'w');
  const std::string at = "model.layers.0.self_attn.q_proj";
  Safetensors model;
  model.tensors = {{at + ".weight", "F32", {3, 4}, w},
                   {at + ".lora_A.weight", "F32", {2, 4}, a},
                   {at + ".lora_B.weight", "F32", {3, 2}, b}};
  ASSERT_TRUE(WriteTensorFile(dir + "/model/model.safetensors", model).ok());
  const absl::Status status = SaveAdapter(Adapted("{rank: 2}"), dir + "/model", dir + "/adapter");
  ASSERT_TRUE(status.ok()) << status;
  const auto file = ReadTensorFile(dir + "/adapter/adapter_model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  std::map<std::string, std::string> tensors;
  for (const StoredTensor& one : file->contents.tensors) tensors[one.name] = std::string(one.data);
  EXPECT_THAT(tensors, ElementsAre(Key("base_model.model." + at + ".lora_A.weight"),
                                   Key("base_model.model." + at + ".lora_B.weight")));
  EXPECT_EQ(tensors.begin()->second, a);
  EXPECT_TRUE(ReadFile(dir + "/adapter/adapter_config.json").ok());
}

}  // namespace
}  // namespace thinwire
