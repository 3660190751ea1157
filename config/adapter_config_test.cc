#include "config/adapter_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/tensor_file.h"
#include "config/derived.h"
#include "config/experiment.h"
#include "config/resolve_testing.h"
#include "config/specs.h"
#include "google/protobuf/util/message_differencer.h"
#include "models/frozen.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr char kLlama[] = R"(
model: {name: llama, layers: 3, heads: 4, width: 16, hidden: 24}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [embedding, layers.0]}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";

class AdapterConfigTest : public ::testing::Test {
 protected:
  AdapterConfigTest() {
    fs::remove_all(dir_);
    Write(dir_, R"({"peft_type": "LORA", "r": 2, "lora_alpha": 16})",
          {"layers.0.self_attn.q_proj", "layers.1.self_attn.q_proj", "layers.2.self_attn.q_proj"});
  }

  // Writes an adapter with the keys and a tensor for each layer.
  static void Write(const std::string& dir, const std::string& keys,
                    const std::vector<std::string>& layers) {
    fs::create_directories(dir);
    std::ofstream(absl::StrCat(dir, "/", kAdapterConfigFile)) << keys;
    const std::string values(4, 'x');
    Safetensors file;
    for (const std::string& layer : layers) {
      file.tensors.push_back(
          {absl::StrCat("base_model.model.model.", layer, ".lora_A.weight"), "F32", {1}, values});
    }
    ASSERT_TRUE(WriteTensorFile(absl::StrCat(dir, "/", kAdapterFile), file).ok());
  }

  // Sets one key of the adapter's.
  void Set(const std::string& key, Json value) {
    std::ifstream file(dir_ + "/" + kAdapterConfigFile);
    Json keys = Json::parse(file);
    keys[key] = std::move(value);
    std::ofstream(dir_ + "/" + kAdapterConfigFile) << keys;
  }

  std::vector<std::string> Overrides(const std::string& fields,
                                     std::vector<std::string> more) const {
    more.push_back("init=" + dir_);
    more.push_back(absl::StrCat("lora={init: ", dir_, fields, "}"));
    return more;
  }
  Experiment Read(const std::string& fields = "", std::vector<std::string> more = {}) const {
    return With(Overrides(fields, std::move(more)), kLlama);
  }
  std::string Error(const std::string& fields = "", std::vector<std::string> more = {}) const {
    return ErrorWith(Overrides(fields, std::move(more)), kLlama);
  }

  const std::string dir_ = ::testing::TempDir() + "/an_adapter";
};

TEST_F(AdapterConfigTest, FillsWhatIsAbsentFromTheFiles) {
  Set("lora_dropout", 0.05);
  Set("use_rslora", true);
  const Experiment e = Read();
  EXPECT_EQ(e.lora().rank(), 2u);
  EXPECT_EQ(e.lora().alpha(), 16);
  EXPECT_EQ(e.lora().dropout(), 0.05);
  EXPECT_EQ(e.lora().scaling(), "rank_stabilized");
  EXPECT_THAT(e.lora().modules(), ElementsAre("q_proj"));
  EXPECT_THAT(e.lora().layers(), ElementsAre("all"));
  for (const char* field : {"rank", "alpha", "dropout", "scaling", "modules", "layers"}) {
    EXPECT_TRUE(IsDerived(e, absl::StrCat("lora.", field))) << field;
  }
  EXPECT_EQ(TrainableParameters(PartitionFrom(e)->model), 3 * 2 * (16 + 16));
}

TEST_F(AdapterConfigTest, TheTensorsTellModulesAndBlocks) {
  Write(dir_, R"({"peft_type": "LORA", "target_modules": ".*[12].*(up|o)_proj"})",
        {"layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj", "layers.1.mlp.up_proj",
         "layers.2.mlp.up_proj"});
  const Experiment e = Read();
  EXPECT_THAT(e.lora().modules(), ElementsAre("o_proj", "up_proj"));
  EXPECT_THAT(e.lora().layers(), ElementsAre("1", "2"));
  EXPECT_EQ(e.lora().rank(), 8u);  // peft's defaults
  EXPECT_EQ(e.lora().alpha(), 8);
  Set("layers_to_transform", 1);
  EXPECT_THAT(Read().lora().layers(), ElementsAre("1"));
}

TEST_F(AdapterConfigTest, GivenFieldsMaySayTheSame) {
  const Experiment e =
      Read(", rank: 2, alpha: 16, dropout: 0, scaling: standard, modules: q_proj, layers: all");
  EXPECT_FALSE(IsDerived(e, "lora.rank"));
  EXPECT_THAT(e.lora().modules(), ElementsAre("q_proj"));
  EXPECT_THAT(Read(", layers: [0, 1, 2]").lora().layers(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(Read(", modules: linear").lora().modules(), ElementsAre("linear"));
}

TEST_F(AdapterConfigTest, AGivenFieldThatDiffersIsRefusedWithBothValues) {
  const auto refusal = [&](const std::string& given) { return Error(", " + given); };
  const std::string config = absl::StrCat("but lora.init: ", dir_, "/adapter_config.json has ");
  EXPECT_THAT(refusal("rank: 4"), HasSubstr(absl::StrCat("lora.rank: 4, ", config, "r 2")));
  EXPECT_THAT(refusal("alpha: 8"),
              HasSubstr(absl::StrCat("lora.alpha: 8, ", config, "lora_alpha 16")));
  EXPECT_THAT(refusal("dropout: 0.5"),
              HasSubstr(absl::StrCat("lora.dropout: 0.5, ", config, "lora_dropout 0")));
  EXPECT_THAT(refusal("scaling: rank_stabilized"),
              HasSubstr(absl::StrCat("rank_stabilized, ", config, "use_rslora false")));
  const std::string tensors = absl::StrCat("but lora.init: ", dir_, "/adapter_model.safetensors");
  EXPECT_THAT(refusal("modules: [q_proj, v_proj]"),
              HasSubstr(absl::StrCat("lora.modules: [q_proj, v_proj], ", tensors,
                                     " has adapters of [q_proj]")));
  EXPECT_THAT(refusal("layers: [1]"), HasSubstr(absl::StrCat("lora.layers: [1], ", tensors,
                                                             " has adapters in blocks [0, 1, 2]")));
}

TEST_F(AdapterConfigTest, OtherKindsOfAdaptersAreRefusedByTheirKeys) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"peft_type", R"("IA3")"},
      {"peft_type", "null"},
      {"use_dora", "true"},
      {"modules_to_save", R"(["lm_head"])"},
      {"rank_pattern", R"({"q_proj":4})"},
      {"alpha_pattern", R"({"q_proj":4})"},
      {"target_parameters", R"(["experts.up"])"},
      {"layer_replication", "[[0,2]]"},
      {"lora_bias", "true"},
      {"trainable_token_indices", "[1,2]"},
      {"bias", R"("all")"},
      {"init_lora_weights", R"("pissa_niter_4")"},
      {"fan_in_fan_out", "true"},
      {"r", "0"},
      {"r", R"("8")"},
      {"lora_alpha", R"("big")"},
      {"lora_dropout", "[]"},
      {"use_rslora", "1"},
      {"layers_to_transform", "-1"}};
  const std::string config = absl::StrCat(dir_, "/", kAdapterConfigFile);
  for (const auto& [key, value] : kinds) {
    fs::copy_file(config, config + ".kept", fs::copy_options::overwrite_existing);
    Set(key, Json::parse(value));
    EXPECT_THAT(Error(), HasSubstr(absl::StrCat("lora.init: ", config, ": ", key, " is ", value,
                                                ", want ")));
    fs::rename(config + ".kept", config);
  }
  Set("use_dora", false);
  Set("rank_pattern", Json::object());
  Set("modules_to_save", Json());
  Set("init_lora_weights", "gaussian");
  EXPECT_EQ(Read().lora().rank(), 2u);
}

TEST_F(AdapterConfigTest, FilesThatAreNoneAreRefusedByName) {
  const std::string config = absl::StrCat(dir_, "/", kAdapterConfigFile);
  Write(dir_, R"({"peft_type": "LORA"})", {});
  EXPECT_THAT(Error(),
              HasSubstr("adapter_model.safetensors: has no tensor base_model.model.LAYER"));
  std::ofstream(config) << "[]";
  EXPECT_THAT(Error(), HasSubstr(absl::StrCat("lora.init: ", config, ": is no JSON map")));
  std::ofstream(config) << "<!DOCTYPE html><html>";
  EXPECT_THAT(Error(), HasSubstr("is an HTML page"));
  fs::remove(config);
  EXPECT_THAT(Error(), HasSubstr(absl::StrCat("lora.init: ", config, ": cannot open")));
  EXPECT_THAT(ErrorWith({absl::StrCat("lora={init: ", dir_, "}")}, kLlama),
              HasSubstr("want init with it, the model that the adapter is of"));
}

TEST_F(AdapterConfigTest, WhatTheModelDoesNotHaveIsTheFilesFault) {
  Write(dir_, R"({"peft_type": "LORA"})", {"layers.0.self_attn.c_attn"});
  EXPECT_THAT(Error(), AllOf(StartsWith(absl::StrCat("lora.init: ", dir_, ": ")),
                             HasSubstr("lora: modules: c_attn, want one of")));
  Write(dir_, R"({"peft_type": "LORA"})", {"layers.0.self_attn.q_proj", "lm_head"});
  EXPECT_THAT(Error(),
              HasSubstr("modules: lm_head, want linear layers between embedding and head"));
  Write(dir_, R"({"peft_type": "LORA", "layers_to_transform": [7]})",
        {"layers.7.self_attn.q_proj"});
  EXPECT_THAT(Error(), HasSubstr("lora: layers: 7, which model llama does not have"));
}

TEST_F(AdapterConfigTest, AResolvedFileIsReadWithoutTheFolder) {
  const Experiment e = Read();
  fs::remove_all(dir_);
  const auto again = ParseResolved(ToYaml(e), "f.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*again, e));
  const auto goes_on =
      ParseExperiment(kLlama, "f.yaml", Overrides("", {"epochs=2"}), {/*stages=*/0, &e});
  ASSERT_TRUE(goes_on.ok()) << goes_on.status();
  EXPECT_TRUE(MessageDifferencer::Equals(goes_on->lora(), e.lora()));
}

TEST_F(AdapterConfigTest, AnotherAdapterBringsItsOwnFields) {
  const Experiment e = Read();
  const std::string other = dir_ + "_of_another";
  Write(other, R"({"peft_type": "LORA", "r": 3})", {"layers.0.mlp.up_proj"});
  const Experiment then = With({"lora.init=" + other}, ToYaml(e));
  EXPECT_EQ(then.lora().rank(), 3u);
  EXPECT_THAT(then.lora().modules(), ElementsAre("up_proj"));
  EXPECT_EQ(With({"epochs=2"}, ToYaml(e)).lora().rank(), 2u);
  EXPECT_THAT(ErrorWith({"lora.rank=3"}, ToYaml(e)), HasSubstr("lora.rank: 3, but lora.init"));
}

TEST_F(AdapterConfigTest, TheHubsCacheHasAdaptersByName) {
  const std::string cache = ::testing::TempDir() + "/hub_of_adapters", commit(40, 'a');
  const std::string snapshot = absl::StrCat(cache, "/models--Ada--tuned/snapshots/", commit);
  fs::create_directories(cache + "/models--Ada--tuned/refs");
  std::ofstream(cache + "/models--Ada--tuned/refs/main") << commit;
  fs::remove_all(snapshot);
  fs::create_directories(fs::path(snapshot).parent_path());
  fs::copy(dir_, snapshot);
  setenv("HF_HUB_CACHE", cache.c_str(), 1);
  const Experiment e = With({"init=" + dir_, "lora={init: \"hf:Ada/tuned\"}"}, kLlama);
  EXPECT_EQ(e.lora().init(), snapshot);
  EXPECT_EQ(e.lora().rank(), 2u);
  const auto none =
      ParseExperiment(kLlama, "f.yaml", {"init=" + dir_, "lora={init: \"hf:Ada/none\"}"});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("lora.init: hf:Ada/none: is not in"));
  unsetenv("HF_HUB_CACHE");
}

TEST_F(AdapterConfigTest, AnotherBaseByNameIsTold) {
  const auto other_base = [&](const std::string& base) {
    Set("base_model_name_or_path", base);
    const auto line = OtherBaseOfAdapter(Read());
    EXPECT_TRUE(line.ok()) << line.status();
    return line.value_or("");
  };
  EXPECT_EQ(other_base(""), "");
  EXPECT_EQ(other_base(dir_ + "/"), "");
  EXPECT_EQ(other_base("Ada/an_adapter"), "");  // the hub's model in a folder of its name
  EXPECT_EQ(other_base("Ada/small"),
            absl::StrCat("lora.init: ", dir_, " is an adapter of Ada/small, and init is ", dir_,
                         ": over another model than its own it means nothing"));
  EXPECT_THAT(other_base("/elsewhere/an_adapter"), HasSubstr("of /elsewhere/an_adapter, and"));
}

}  // namespace
}  // namespace thinwire
