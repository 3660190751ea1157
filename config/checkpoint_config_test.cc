#include "config/checkpoint_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/experiment.h"
#include "config/yaml_message.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kExperiment[] = R"(
data: {name: shakespeare, context: 16, batch_size: 4}
optimizer: {lr: 0.1}
epochs: 1
)";

constexpr char kMaskedText[] =
    "data={name: shakespeare, tokens: word_piece, objective: masked, context: 16, batch_size: 4, "
    "corpus: {vocabulary: 65, train_tokens: 999, test_tokens: 999}}";
constexpr char kSentences[] =
    "data={name: glue, task: sst2, context: 16, batch_size: 4, "
    "corpus: {vocabulary: 65, train_samples: 999, test_samples: 999}}";

// Copied from GPT-2's and a Llama's own files, except for the sizes.
constexpr char kGpt2[] = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 32, "n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 32,
  "vocab_size": 70})";
constexpr char kLlama[] = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_act": "silu",
  "hidden_size": 32, "intermediate_size": 80, "max_position_embeddings": 2048,
  "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 3,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "vocab_size": 80})";

constexpr char kBert[] = R"({
  "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1, "hidden_size": 24, "initializer_range": 0.02,
  "intermediate_size": 48, "layer_norm_eps": 1e-12, "max_position_embeddings": 32,
  "model_type": "bert", "num_attention_heads": 3, "num_hidden_layers": 2, "pad_token_id": 0,
  "type_vocab_size": 2, "vocab_size": 70})";

class CheckpointConfigTest : public ::testing::Test {
 protected:
  CheckpointConfigTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void Write(const std::string& text) { std::ofstream(dir_ + "/config.json") << text; }
  // Writes a file with one key of GPT-2's replaced.
  void WriteGpt2With(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(kGpt2);
    config[key] = value;
    Write(config.dump());
  }
  absl::StatusOr<Experiment> Resolved(std::vector<std::string> overrides = {}) {
    overrides.push_back("init=" + dir_);
    return ParseExperiment(kExperiment, "test", overrides);
  }
  std::string ErrorOf(const std::vector<std::string>& overrides = {}) {
    return std::string(Resolved(overrides).status().message());
  }

  const std::string dir_ = ::testing::TempDir() + "/checkpoint_config";
};

TEST_F(CheckpointConfigTest, Gpt2sFileFillsTheModel) {
  Write(kGpt2);
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().name(), "gpt2");
  EXPECT_EQ(e->model().classes(), 70u);
  EXPECT_EQ(e->model().context(), 32u);
  EXPECT_EQ(e->model().width(), 24u);
  EXPECT_EQ(e->model().layers(), 2u);
  EXPECT_EQ(e->model().heads(), 3u);
  EXPECT_EQ(e->model().gelu(), "tanh");
  EXPECT_TRUE(e->model().tied());
  EXPECT_EQ(e->model().dropout(), 0);
}

TEST_F(CheckpointConfigTest, LlamasFileFillsTheModel) {
  Write(kLlama);
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().name(), "llama");
  EXPECT_EQ(e->model().hidden(), 80u);
  EXPECT_EQ(e->model().kv_heads(), 2u);
  EXPECT_EQ(e->model().epsilon(), 1e-6);
  EXPECT_EQ(e->model().rope_theta(), 500000);
  EXPECT_TRUE(e->model().tied());
}

TEST_F(CheckpointConfigTest, BertsFileFillsTheModel) {
  Write(kBert);
  const auto e = Resolved({kMaskedText});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().name(), "bert");
  EXPECT_EQ(e->model().head(), "masked");
  EXPECT_EQ(e->model().classes(), 70u);
  EXPECT_EQ(e->model().vocabulary(), 70u);
  EXPECT_EQ(e->model().context(), 32u);
  EXPECT_EQ(e->model().hidden(), 48u);
  EXPECT_EQ(e->model().epsilon(), 1e-12);
  EXPECT_TRUE(e->model().has_pad());
  EXPECT_EQ(e->model().pad(), 0u);
  EXPECT_FALSE(e->model().has_separator());
}

TEST_F(CheckpointConfigTest, AnAbsentKeyHasTransformersDefault) {
  nlohmann::json given = nlohmann::json::parse(kBert);
  given.erase("max_position_embeddings");
  Write(given.dump());
  const auto e = Resolved({kMaskedText});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().context(), 512u);
}

TEST_F(CheckpointConfigTest, ABertsPaddingIsTheExperimentsOwn) {
  Write(kBert);
  const auto e = Resolved({kMaskedText, "model.pad=3"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().pad(), 3u);
  nlohmann::json config = nlohmann::json::parse(kBert);
  config["pad_token_id"] = nullptr;
  Write(config.dump());
  EXPECT_TRUE(Resolved({kMaskedText, "model.pad=3"}).ok());
}

TEST_F(CheckpointConfigTest, ABertsVocabularyIsComparedWithTheDatasIdsWhateverItsHead) {
  nlohmann::json config = nlohmann::json::parse(kBert);
  config["vocab_size"] = 130;
  Write(config.dump());
  EXPECT_THAT(ErrorOf({kMaskedText}), HasSubstr("vocab_size is 130, but data.tokens: word_piece of "
                                                "shakespeare makes 65 ids"));
  const std::vector<std::string> classes = {kSentences, "model.head=classes", "model.classes=2"};
  EXPECT_THAT(ErrorOf(classes), HasSubstr("vocab_size is 130, but data glue makes 65 ids"));
  EXPECT_TRUE(Resolved({kSentences, "model.head=classes", "model.vocabulary=130"}).ok());
}

TEST_F(CheckpointConfigTest, ABertGoesOnWithClasses) {
  nlohmann::json given = nlohmann::json::parse(kBert);
  given["id2label"] = {{"0", "no"}, {"1", "yes"}, {"2", "both"}};
  given["label2id"] = {{"no", 0}, {"yes", 1}, {"both", 2}};
  Write(given.dump());
  const auto e = Resolved({kSentences, "model.head=classes"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().classes(), 2u) << "those of the data";
  EXPECT_EQ(e->model().vocabulary(), 70u);
  const auto written = nlohmann::json::parse(CheckpointConfig(*e).value());
  EXPECT_EQ(written["architectures"][0], "BertForSequenceClassification");
  EXPECT_EQ(written["num_labels"], 2);
  EXPECT_FALSE(written.contains("id2label"));
  Write(CheckpointConfig(*e).value());
  EXPECT_EQ(Resolved({kSentences})->model().head(), "classes");
}

TEST_F(CheckpointConfigTest, WithoutPaddingNoIdIsWritten) {
  const auto e = ParseExperiment(
      kExperiment, "test", {kMaskedText, "model={name: bert, layers: 2, heads: 2, width: 8}"});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto config = nlohmann::json::parse(CheckpointConfig(*e).value());
  EXPECT_EQ(config["pad_token_id"], nullptr);
  EXPECT_EQ(config["vocab_size"], 65);
  EXPECT_EQ(config["max_position_embeddings"], 16);
  EXPECT_FALSE(config.contains("bos_token_id"));
}

TEST_F(CheckpointConfigTest, AVitsFileSaysWhatItsImagesAre) {
  const char kImages[] = "data: {name: digits}\noptimizer: {lr: 0.1}\nepochs: 1\n";
  const auto e = ParseExperiment(kImages, "test",
                                 {"model={name: vit, layers: 2, heads: 2, width: 8, patch: 2}"});
  ASSERT_TRUE(e.ok()) << e.status();
  nlohmann::json config = nlohmann::json::parse(CheckpointConfig(*e).value());
  EXPECT_EQ(config["architectures"][0], "ViTForImageClassification");
  EXPECT_EQ(config["image_size"], 8);
  EXPECT_EQ(config["num_channels"], 1);
  EXPECT_EQ(config["patch_size"], 2);
  EXPECT_EQ(config["num_labels"], 10);
  Write(config.dump());
  const auto again = ParseExperiment(kImages, "test", {"init=" + dir_});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(nlohmann::json::parse(CheckpointConfig(*again).value()), config);
  config["image_size"] = 224;
  Write(config.dump());
  EXPECT_THAT(std::string(ParseExperiment(kImages, "test", {"init=" + dir_}).status().message()),
              HasSubstr("image_size is 224, want 8"));
}

TEST_F(CheckpointConfigTest, AResolvedFileKeepsItsModelBesideOtherOverrides) {
  Write(kGpt2);
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  fs::remove(dir_ + "/config.json");
  const auto again = ParseExperiment(ToYaml(*e), "test", {"optimizer.lr=0.2"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->model().layers(), 2u);
}

TEST_F(CheckpointConfigTest, TheNewerPlaceOfTheRotaryBaseIsKnown) {
  nlohmann::json config = nlohmann::json::parse(kLlama);
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_theta", 20000.0}, {"rope_type", "default"}};
  Write(config.dump());
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().rope_theta(), 20000);
  config["rope_parameters"]["rope_type"] = "yarn";
  Write(config.dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("/config.json: rope_parameters.rope_type is \"yarn\", want "
                                   "default, linear or llama3"));
}

TEST_F(CheckpointConfigTest, AScalingThatSaysNothingIsNone) {
  nlohmann::json config = nlohmann::json::parse(kLlama);
  for (const nlohmann::json& nothing :
       std::vector<nlohmann::json>{{{"rope_type", "default"}}, {{"type", "default"}}}) {
    config["rope_scaling"] = nothing;
    Write(config.dump());
    const auto e = Resolved();
    ASSERT_TRUE(e.ok()) << e.status();
    EXPECT_EQ(e->model().rope_theta(), 500000);
    EXPECT_EQ(nlohmann::json::parse(*CheckpointConfig(*e))["rope_scaling"], nullptr);
  }
  config["rope_scaling"] = {{"rope_type", "default"}, {"rope_theta", 20000.0}};
  Write(config.dump());
  EXPECT_EQ(Resolved()->model().rope_theta(), 20000) << "transformers 5 takes it from there";
}

TEST_F(CheckpointConfigTest, AScalingIsReadHoweverItIsSpelt) {
  for (const char* place : {"rope_parameters", "rope_scaling"}) {
    for (const char* kind : {"rope_type", "type"}) {
      nlohmann::json config = nlohmann::json::parse(kLlama);
      config[place] = {{kind, "linear"}, {"factor", 2}};
      Write(config.dump());
      const auto e = Resolved();
      ASSERT_TRUE(e.ok()) << e.status();
      EXPECT_EQ(e->model().rope_scaling().type(), "linear") << place << " " << kind;
      EXPECT_EQ(e->model().rope_scaling().factor(), 2);
    }
  }
  nlohmann::json config = nlohmann::json::parse(kLlama);
  config["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}}}};
  Write(config.dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("rope_parameters.full_attention is {\"rope_type\":\"default\"}, "
                                   "want the same for all layers"));
}

// Returns a Llama's config.json as versions 4 and 5 of transformers write it.
std::vector<nlohmann::json> WithLlama3Scaling() {
  const nlohmann::json scaling = {{"rope_type", "llama3"},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 16}};
  nlohmann::json of_4 = nlohmann::json::parse(kLlama), of_5 = of_4;
  of_4["rope_scaling"] = scaling;
  of_5.erase("rope_theta");
  of_5.erase("rope_scaling");
  of_5["rope_parameters"] = scaling;
  of_5["rope_parameters"]["rope_theta"] = 500000.0;
  return {of_4, of_5};
}

TEST_F(CheckpointConfigTest, Llama3sScalingIsReadFromBothVersionsAndWrittenForBoth) {
  for (const nlohmann::json& given : WithLlama3Scaling()) {
    Write(given.dump());
    const auto e = Resolved();
    ASSERT_TRUE(e.ok()) << e.status();
    const RopeScalingConfig& scaling = e->model().rope_scaling();
    EXPECT_EQ(scaling.type(), "llama3");
    EXPECT_EQ(scaling.factor(), 8);
    EXPECT_EQ(scaling.low(), 1);
    EXPECT_EQ(scaling.high(), 4);
    EXPECT_EQ(scaling.original(), 16u);
    const auto written = nlohmann::json::parse(*CheckpointConfig(*e));
    for (nlohmann::json form : WithLlama3Scaling()) {
      for (const auto& [key, value] : form.items()) EXPECT_EQ(written[key], value) << key;
    }
    Write(written.dump());
    EXPECT_EQ(nlohmann::json::parse(*CheckpointConfig(*Resolved())), written);
  }
}

TEST_F(CheckpointConfigTest, AScalingWithoutAllItsNumbersIsRefused) {
  nlohmann::json config = WithLlama3Scaling()[0];
  config["rope_scaling"].erase("low_freq_factor");
  Write(config.dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("rope_scaling.low_freq_factor is null, want a number"));
  config["rope_scaling"]["low_freq_factor"] = 1;
  for (const nlohmann::json& bad : std::vector<nlohmann::json>{"16", -1, 1.5, 1e20}) {
    config["rope_scaling"]["original_max_position_embeddings"] = bad;
    Write(config.dump());
    EXPECT_THAT(ErrorOf(), HasSubstr("original_max_position_embeddings is " + bad.dump() +
                                     ", want a whole number"));
  }
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 0.5}};
  Write(config.dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("model: llama: rope_scaling.factor is 0.5, want 1 to"));
}

TEST_F(CheckpointConfigTest, AScalingThatContradictsTheFileIsRefused) {
  Write(WithLlama3Scaling()[0].dump());
  EXPECT_THAT(ErrorOf({"model.rope_scaling={type: linear, factor: 8}"}),
              AllOf(HasSubstr("model.rope_scaling: {"), HasSubstr("but init: ")));
}

TEST_F(CheckpointConfigTest, IdsThatTheTextDoesNotHaveArePaddingOrAnotherVocabularys) {
  for (const int padded : {65, 70, 128, 129}) {
    WriteGpt2With("vocab_size", padded);
    EXPECT_TRUE(Resolved().ok()) << padded;
  }
  for (const int other : {130, 256, 50257}) {
    WriteGpt2With("vocab_size", other);
    EXPECT_THAT(
        ErrorOf(),
        HasSubstr("init: " + dir_ + "/config.json: vocab_size is " + std::to_string(other) +
                  ", but data.tokens: characters of shakespeare makes 65 ids: want the tokens that "
                  "the checkpoint was trained on (data.tokens, data.vocabulary), or, if the others "
                  "are padding, model.classes: " +
                  std::to_string(other)))
        << other;
    const auto said = Resolved({"model.classes=" + std::to_string(other)});
    EXPECT_TRUE(said.ok()) << said.status();
  }
  WriteGpt2With("vocab_size", 50304);
  EXPECT_TRUE(Resolved({"data.tokens=bpe"}).ok());
  EXPECT_THAT(ErrorOf({"data.tokens=bytes"}), HasSubstr("data.tokens: bytes of shakespeare"));
  WriteGpt2With("vocab_size", 128256);
  EXPECT_THAT(ErrorOf({"data.tokens=bpe"}), HasSubstr("makes 50257 ids"));
}

TEST_F(CheckpointConfigTest, AVocabularyOfItsOwnIsForOthersToCompare) {
  WriteGpt2With("vocab_size", 256);
  std::ofstream(dir_ + "/vocabulary.json") << "{}";
  EXPECT_TRUE(Resolved().ok());
}

TEST_F(CheckpointConfigTest, WhatOnlyStandsInItsPlaceIsNamed) {
  Write("version https://git-lfs.github.com/spec/v1\noid sha256:24\nsize 665\n");
  EXPECT_THAT(ErrorOf(),
              HasSubstr("init: " + dir_ + "/config.json: is a pointer of Git LFS to 665"));
  Write("<!DOCTYPE html>");
  EXPECT_THAT(ErrorOf(), HasSubstr("/config.json: is an HTML page"));
}

TEST_F(CheckpointConfigTest, WhatIsWrittenIsReadAsTheSameModel) {
  std::vector<std::string> all = {kBert, kGpt2, kLlama};
  for (const char* type : {"mistral", "qwen2", "qwen3", "smollm3", "phi3"}) {
    all.push_back(nlohmann::json({{"model_type", type},
                                  {"vocab_size", 80},
                                  {"hidden_size", 32},
                                  {"num_attention_heads", 4},
                                  {"num_key_value_heads", 2}})
                      .dump());
  }
  for (const std::string& given : all) {
    SCOPED_TRACE(given);
    std::vector<std::string> data;
    if (given == kBert) data.push_back(kMaskedText);
    Write(given);
    const auto e = Resolved(data);
    ASSERT_TRUE(e.ok()) << e.status();
    const auto config = CheckpointConfig(*e);
    ASSERT_TRUE(config.ok()) << config.status();
    Write(*config);
    const auto again = Resolved(data);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(CheckpointConfig(*again).value(), *config);
  }
}

TEST_F(CheckpointConfigTest, WhatTheFileSaysBesidesStays) {
  nlohmann::json given = nlohmann::json::parse(kGpt2);
  given["dtype"] = "bfloat16";
  given["task_specific_params"] = {{"text-generation", {{"max_length", 50}}}};
  Write(given.dump());
  const auto written = nlohmann::json::parse(CheckpointConfig(*Resolved()).value());
  EXPECT_EQ(written["bos_token_id"], 50256);
  EXPECT_EQ(written["n_ctx"], 32);
  EXPECT_EQ(written["task_specific_params"], given["task_specific_params"]);
  EXPECT_EQ(written["attn_pdrop"], 0) << "as it was trained here";
  EXPECT_EQ(written["dtype"], "float32") << "as it is written";
  Write(kLlama);
  const auto llama = nlohmann::json::parse(CheckpointConfig(*Resolved()).value());
  EXPECT_EQ(llama["max_position_embeddings"], 2048);
}

TEST_F(CheckpointConfigTest, TheFileOfARunSaysWhatDefaultsStandFor) {
  const auto e = ParseExperiment(
      kExperiment, "test", {"model={name: gpt2, layers: 2, heads: 2, width: 8, dropout: 0.2}"});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto config = nlohmann::json::parse(CheckpointConfig(*e).value());
  EXPECT_EQ(config["architectures"][0], "GPT2LMHeadModel");
  EXPECT_EQ(config["n_inner"], 32);
  EXPECT_EQ(config["n_positions"], 16);
  EXPECT_EQ(config["vocab_size"], 65);
  EXPECT_EQ(config["resid_pdrop"], 0.2);
}

TEST_F(CheckpointConfigTest, AModelThatTransformersDoesNotKnowHasNoFile) {
  const auto e = ParseExperiment(
      "model: {name: resnet8}\ndata: {name: digits}\n"
      "optimizer: {lr: 0.1}\nepochs: 1\n",
      "test", {});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(CheckpointConfig(*e).value(), "");
}

TEST_F(CheckpointConfigTest, AFieldThatSaysSomethingElseIsNamedWithBothValues) {
  Write(kGpt2);
  EXPECT_THAT(ErrorOf({"model.layers=3"}),
              HasSubstr("model.layers: 3, but init: " + dir_ + "/config.json: n_layer is 2"));
  EXPECT_THAT(ErrorOf({"model.heads=4"}), HasSubstr("model.heads: 4, but init: "));
  EXPECT_THAT(ErrorOf({"model.width=48"}), HasSubstr("n_embd is 24"));
  EXPECT_THAT(ErrorOf({"model.classes=65"}), HasSubstr("vocab_size is 70"));
  EXPECT_THAT(ErrorOf({"model.context=16"}), HasSubstr("n_positions is 32"));
  EXPECT_THAT(ErrorOf({"model.gelu=exact"}),
              HasSubstr("model.gelu: \"gelu\", but init: " + dir_ +
                        "/config.json: activation_function is \"gelu_new\""));
  EXPECT_THAT(ErrorOf({"model.tied=false"}), HasSubstr("tie_word_embeddings is true"));
}

TEST_F(CheckpointConfigTest, AFileThatSaysNothingOfBiasesFitsAModelWithoutThem) {
  Write(kGpt2);
  EXPECT_TRUE(Resolved()->model().bias());
  const auto e = Resolved({"model.bias=false"});
  ASSERT_TRUE(e.ok()) << e.status();
  Write(CheckpointConfig(*e).value());
  EXPECT_FALSE(Resolved()->model().bias());
  EXPECT_THAT(ErrorOf({"model.bias=true"}), HasSubstr("model.bias: true, but init: "));
}

TEST_F(CheckpointConfigTest, ANameWithASizeStandsByIt) {
  Write(kGpt2);
  EXPECT_THAT(ErrorOf({"model.name=gpt2-medium", "model.classes=70", "model.context=32"}),
              HasSubstr("model.width: 1024, but init: "));
}

TEST_F(CheckpointConfigTest, ASequenceLongerThanTheContextIsRefused) {
  Write(kGpt2);
  EXPECT_THAT(ErrorOf({"data.context=33"}),
              AllOf(StartsWith("init: " + dir_ + "/config.json: model: block embedding: "),
                    HasSubstr("context is 32, want at least the 33 positions")));
}

TEST_F(CheckpointConfigTest, AVocabularyWithoutAllOfTheTextsTokensIsRefused) {
  WriteGpt2With("vocab_size", 64);
  EXPECT_EQ(ErrorOf(), "init: " + dir_ +
                           "/config.json: model.classes: 64, want 65, which data shakespeare has, "
                           "or more");
}

TEST_F(CheckpointConfigTest, AnotherArchitectureIsNamed) {
  WriteGpt2With("model_type", "t5");
  EXPECT_THAT(ErrorOf(),
              HasSubstr("/config.json: model_type is \"t5\", want one of \"gpt2\", "
                        "\"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"smollm3\", \"phi3\", "
                        "\"bert\", \"vit\""));
  EXPECT_THAT(ErrorOf({"model.name=gpt2"}),
              AllOf(HasSubstr("model.name: gpt2, but init: "), HasSubstr("is \"t5\"")));
  Write(kLlama);
  EXPECT_THAT(ErrorOf({"model.name=gpt2"}), HasSubstr("model_type is \"llama\""));
}

TEST_F(CheckpointConfigTest, WhatNoModelHereHasIsNamed) {
  WriteGpt2With("scale_attn_by_inverse_layer_idx", true);
  EXPECT_THAT(ErrorOf(), HasSubstr("scale_attn_by_inverse_layer_idx is true, want false"));
}

// Returns the Llama's file as one of another type, with those keys replaced; null removes a key.
nlohmann::json LlamaLike(const std::string& type,
                         const nlohmann::json& keys = nlohmann::json::object()) {
  nlohmann::json config = nlohmann::json::parse(kLlama);
  config["model_type"] = type;
  config["attention_bias"] = nullptr;
  config.update(keys);
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (config.value(key, nlohmann::json()).is_null()) config.erase(key);
  }
  return config;
}

TEST_F(CheckpointConfigTest, KeysOfLlamasThatChangeNothingAreNoHindrance) {
  Write(LlamaLike("llama", {{"is_llama_config", true},
                            {"rope_interleaved", false},
                            {"pretraining_tp", 1},
                            {"attention_bias", false},
                            {"mlp_bias", false},
                            {"sliding_window", 4}})
            .dump());
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().attention_bias(), "none");
  EXPECT_EQ(nlohmann::json::parse(*CheckpointConfig(*e))["is_llama_config"], true);
}

TEST_F(CheckpointConfigTest, ALlamaMayHaveBiasesAndHeadsOfAnySize) {
  Write(
      LlamaLike("llama", {{"attention_bias", true}, {"mlp_bias", true}, {"head_dim", 24}}).dump());
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().attention_bias(), "all");
  EXPECT_TRUE(e->model().mlp_bias());
  EXPECT_EQ(e->model().head_size(), 24u);
  const auto written = nlohmann::json::parse(*CheckpointConfig(*e));
  EXPECT_EQ(written["attention_bias"], true);
  EXPECT_EQ(written["mlp_bias"], true);
  EXPECT_EQ(written["head_dim"], 24);
  EXPECT_THAT(ErrorOf({"model.head_size=8"}), HasSubstr("head_dim is 24"));
  Write(LlamaLike("llama", {{"head_dim", nullptr}}).dump());
  EXPECT_TRUE(Resolved({"model.head_size=8"}).ok());
  EXPECT_THAT(ErrorOf({"model.head_size=16"}), HasSubstr("model.head_size: 16, but init: "));
}

TEST_F(CheckpointConfigTest, EachTypeHasItsBiasesAndItsDefaults) {
  Write(LlamaLike("qwen2").dump());
  const auto qwen2 = Resolved();
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_EQ(qwen2->model().name(), "qwen2");
  EXPECT_EQ(qwen2->model().attention_bias(), "qkv");
  const auto written = nlohmann::json::parse(*CheckpointConfig(*qwen2));
  EXPECT_EQ(written["architectures"][0], "Qwen2ForCausalLM");
  EXPECT_FALSE(written.contains("attention_bias"));
  EXPECT_THAT(ErrorOf({"model.attention_bias=none"}),
              HasSubstr("qwen2: attention_bias is none, want qkv"));
  Write(LlamaLike("qwen3").dump());
  EXPECT_EQ(Resolved()->model().head_size(), 128u);
  nlohmann::json mistral = LlamaLike("mistral");
  mistral.erase("num_key_value_heads");
  mistral["num_attention_heads"] = 16;
  Write(mistral.dump());
  EXPECT_EQ(Resolved()->model().kv_heads(), 8u);
  nlohmann::json smollm3 = LlamaLike("smollm3");
  smollm3.erase("tie_word_embeddings");
  smollm3.erase("rope_theta");
  Write(smollm3.dump());
  EXPECT_TRUE(Resolved()->model().tied());
  EXPECT_EQ(Resolved()->model().rope_theta(), 2e6);
  EXPECT_EQ(Resolved()->model().no_rope_every(), 4u);
}

TEST_F(CheckpointConfigTest, LayersWithoutRopeAreEveryNth) {
  Write(LlamaLike("smollm3", {{"no_rope_layers", {1, 0, 1}}}).dump());
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->model().no_rope_every(), 2u);
  const auto written = nlohmann::json::parse(*CheckpointConfig(*e));
  EXPECT_EQ(written["no_rope_layers"], nlohmann::json({1, 0, 1}));
  EXPECT_EQ(written["no_rope_layer_interval"], 2);
  Write(LlamaLike("smollm3", {{"no_rope_layers", {1, 1, 1}}}).dump());
  EXPECT_EQ(Resolved()->model().no_rope_every(), 0u);
  Write(LlamaLike("smollm3", {{"no_rope_layers", {0, 1, 1}}}).dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("no_rope_layers is [0,1,1], want 1 for all layers, or 0 for"));
}

TEST_F(CheckpointConfigTest, AWindowIsThatOfItsTypeAndItsLayers) {
  // Returns the window and its layers, of the file's three.
  const auto window_of = [&](const std::string& type, const nlohmann::json& keys) {
    Write(LlamaLike(type, keys).dump());
    const auto e = Resolved();
    if (!e.ok()) return std::string(e.status().message());
    return absl::StrCat(e->model().window(), " of ",
                        absl::StrJoin(e->model().window_layers(), " "));
  };
  for (const char* type : {"mistral", "phi3"}) {
    EXPECT_EQ(window_of(type, {{"sliding_window", 8}}), "8 of ") << type;
    EXPECT_EQ(window_of(type, {{"sliding_window", nullptr}}), "0 of ") << type;
  }
  EXPECT_EQ(window_of("mistral", nlohmann::json::object()), "4096 of ");
  EXPECT_EQ(window_of("phi3", nlohmann::json::object()), "0 of ");
  EXPECT_EQ(window_of("llama", {{"sliding_window", 8}}), "0 of ");
  nlohmann::json used = {{"sliding_window", 8}, {"use_sliding_window", true}};
  EXPECT_EQ(window_of("qwen2", {{"sliding_window", 8}}), "0 of ");
  EXPECT_EQ(window_of("qwen2", used), "0 of ") << "28 layers have none";
  used["max_window_layers"] = 1;
  EXPECT_EQ(window_of("qwen2", used), "8 of 1 2");
  used["max_window_layers"] = 0;
  EXPECT_EQ(window_of("qwen3", used), "8 of ");
  used["layer_types"] = {"full_attention", "full_attention", "full_attention"};
  EXPECT_EQ(window_of("qwen2", used), "0 of ");
  used["layer_types"][1] = "sliding_attention";
  EXPECT_EQ(window_of("qwen2", used), "8 of 1");
  used["layer_types"][1] = "linear_attention";
  EXPECT_THAT(window_of("qwen2", used),
              HasSubstr("layer_types has \"linear_attention\", want \"full_attention\" or"));
  used.erase("layer_types");
  used["no_rope_layers"] = {1, 0, 1};
  EXPECT_EQ(window_of("smollm3", used), "8 of 1");
  used["no_rope_layers"] = {1, 1, 1};
  EXPECT_EQ(window_of("smollm3", used), "0 of ");
  EXPECT_THAT(window_of("mistral", {{"sliding_window", "wide"}}),
              HasSubstr("sliding_window is \"wide\", want a whole number"));
}

TEST_F(CheckpointConfigTest, AWindowIsWrittenAsItWasRead) {
  const nlohmann::json files[] = {
      LlamaLike("mistral", {{"sliding_window", 8}}),
      LlamaLike("qwen2",
                {{"sliding_window", 8},
                 {"use_sliding_window", true},
                 {"max_window_layers", 1},
                 {"layer_types", {"full_attention", "sliding_attention", "sliding_attention"}}})};
  for (const nlohmann::json& file : files) {
    Write(file.dump());
    const auto written = nlohmann::json::parse(*CheckpointConfig(*Resolved()));
    for (const char* key :
         {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}) {
      EXPECT_EQ(written.value(key, nlohmann::json()), file.value(key, nlohmann::json())) << key;
    }
  }
}

TEST_F(CheckpointConfigTest, ARunKeepsTheLayersOfItsWindow) {
  Write(LlamaLike("qwen2",
                  {{"sliding_window", 8}, {"use_sliding_window", true}, {"max_window_layers", 1}})
            .dump());
  const auto past = Resolved();
  ASSERT_TRUE(past.ok()) << past.status();
  const auto again = ParseExperiment(WriteYaml(*past), "test", {}, {0, &*past});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->model().window_layers(), ElementsAre(1, 2));
}

TEST_F(CheckpointConfigTest, AnotherWindowIsRefused) {
  Write(LlamaLike("mistral", {{"sliding_window", 8}}).dump());
  EXPECT_THAT(ErrorOf({"model.window=9"}),
              AllOf(HasSubstr("config.json: it has a window of 8 in all layers, but model has a "
                              "window of 9 in all layers")));
  EXPECT_THAT(ErrorOf({"model.window=0"}), HasSubstr("but model has no window"));
  Write(LlamaLike("qwen2").dump());
  EXPECT_THAT(ErrorOf({"model={window: 8, window_layers: [0, 2]}"}),
              HasSubstr("it has no window, but model has a window of 8 in layers [0, 2]"));
}

TEST_F(CheckpointConfigTest, WithoutACheckpointAWindowIsWrittenForEveryVersion) {
  const auto e = ParseExperiment(kExperiment, "test",
                                 {"model={name: qwen3, layers: 3, heads: 2, width: 8, window: 4, "
                                  "window_layers: [1]}"});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto written = nlohmann::json::parse(*CheckpointConfig(*e));
  EXPECT_EQ(written["sliding_window"], 4);
  EXPECT_EQ(written["use_sliding_window"], true);
  EXPECT_EQ(written["max_window_layers"], 1);
  EXPECT_EQ(written["layer_types"],
            nlohmann::json({"full_attention", "sliding_attention", "full_attention"}));
}

TEST_F(CheckpointConfigTest, WithoutACheckpointNoWindowIsWritten) {
  const auto e = ParseExperiment(kExperiment, "test",
                                 {"model={name: mistral, layers: 2, heads: 2, width: 8}"});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto written = nlohmann::json::parse(*CheckpointConfig(*e));
  EXPECT_TRUE(written.contains("sliding_window"));
  EXPECT_EQ(written["sliding_window"], nullptr);
}

TEST_F(CheckpointConfigTest, WhatOtherLlamaLikeModelsHaveIsNamed) {
  const std::pair<const char*, nlohmann::json> others[] = {{"num_experts", 8},
                                                           {"final_logit_softcapping", 30.0},
                                                           {"rope_interleaved", true},
                                                           {"partial_rotary_factor", 0.5}};
  for (const auto& [key, value] : others) {
    Write(LlamaLike("phi3", {{key, value}}).dump());
    EXPECT_THAT(ErrorOf(), AllOf(HasSubstr(std::string(key) + " is " + value.dump() + ", want "),
                                 HasSubstr("which is all that models here know")));
  }
  Write(LlamaLike("phi3", {{"rope_parameters",
                            {{"rope_type", "default"}, {"partial_rotary_factor", 0.75}}}})
            .dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("partial_rotary_factor is 0.75, want 1.0"));
  Write(LlamaLike("phi3", {{"rope_scaling", {{"type", "longrope"}}}}).dump());
  EXPECT_THAT(ErrorOf(), HasSubstr("rope_scaling.rope_type is \"longrope\", want default, "));
}

TEST_F(CheckpointConfigTest, OfQuantisedWeightsThoseOfBitsandbytesInNF4AreRead) {
  const nlohmann::json nf4 = {{"quant_method", "bitsandbytes"}, {"bnb_4bit_quant_type", "nf4"}};
  Write(LlamaLike("phi3", {{"quantization_config", nf4}}).dump());
  const auto e = Resolved();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_FALSE(nlohmann::json::parse(*CheckpointConfig(*e)).contains("quantization_config"));
  nlohmann::json fp4 = nf4;
  fp4["bnb_4bit_quant_type"] = "fp4";
  for (const nlohmann::json& other : {fp4, nlohmann::json({{"quant_method", "gptq"}})}) {
    Write(LlamaLike("phi3", {{"quantization_config", other}}).dump());
    EXPECT_THAT(ErrorOf(), HasSubstr("quantization_config is " + other.dump() + ", want null"));
  }
}

TEST_F(CheckpointConfigTest, ValuesOfAnotherTypeAndFilesThatAreNoneAreNamed) {
  WriteGpt2With("n_layer", "two");
  EXPECT_THAT(ErrorOf(), HasSubstr("n_layer is \"two\", want a whole number"));
  WriteGpt2With("n_layer", -2);
  EXPECT_THAT(ErrorOf(), HasSubstr("n_layer is -2, want a whole number"));
  WriteGpt2With("activation_function", "relu");
  EXPECT_THAT(ErrorOf(), HasSubstr("activation_function is \"relu\", want \"gelu_new\" or"));
  WriteGpt2With("tie_word_embeddings", 1);
  EXPECT_THAT(ErrorOf(), HasSubstr("tie_word_embeddings is 1, want true or false"));
  for (const char* text : {"", "[]", "{"}) {
    Write(text);
    EXPECT_THAT(ErrorOf(), HasSubstr("init: " + dir_ + "/config.json: is no JSON map")) << text;
  }
}

TEST_F(CheckpointConfigTest, WithoutTheFileTheExperimentSaysItAll) {
  EXPECT_THAT(ErrorOf(), HasSubstr("init: " + dir_ + "/config.json: is not there, and the "));
  EXPECT_TRUE(Resolved({"model={name: gpt2, layers: 1, heads: 1, width: 8}"}).ok());
}

}  // namespace
}  // namespace thinwire
