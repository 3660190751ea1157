#include "coordinator/run/model_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "config/adapter_config.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "models/file_tensors.h"
#include "models/lora.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Two 1 x 1 convolutions with biases; a linear layer after the cut.
constexpr char kExperiment[] = R"(
model:
  name: custom
  blocks:
    - name: transformer
      layers: [{kind: conv, name: wte, out: 2, kernel: 1}]
    - name: head
      layers: [{kind: global_avg_pool}, {kind: linear, name: fc, out: 10, bias: false}]
data: {name: digits}
pipeline: {cuts: [transformer]}
optimizer: {lr: 0.1}
epochs: 1
)";

class ModelSharesTest : public ::testing::Test {
 protected:
  ModelSharesTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  static StoredTensor Tensor(const std::string& name, std::vector<int64_t> shape,
                             const std::string& dtype = "F32") {
    static const std::string bytes(1000, 'x');
    size_t size = dtype == "F32" || dtype == "I32" ? 4 : 2;
    for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
    return {name, dtype, std::move(shape), std::string_view(bytes).substr(0, size)};
  }
  void Write(const std::vector<StoredTensor>& tensors) {
    const absl::Status status = WriteTensorFile(dir_ + "/model.safetensors", {{}, tensors});
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<ModelShares> Shares(std::vector<std::string> overrides = {}) const {
    overrides.push_back("init=" + dir_);
    return ModelShares::Initial(*ParseExperiment(kExperiment, "test", overrides));
  }
  std::string Error() const { return std::string(Shares().status().message()); }

  const std::string dir_ = ::testing::TempDir() + "/model_shares";
};

std::vector<std::string> Names(const std::string& file) {
  std::vector<std::string> names;
  const auto parsed = ParseSafetensors(file);
  if (!parsed.ok()) return {std::string(parsed.status().message())};
  for (const StoredTensor& tensor : parsed->tensors) names.push_back(tensor.name);
  return names;
}

TEST_F(ModelSharesTest, EachStageGetsItsOwnTensorsAsTheFileHasThem) {
  Write({Tensor("head.fc.weight", {10, 2}), Tensor("transformer.wte.bias", {2}),
         Tensor("transformer.wte.weight", {2, 1, 1, 1}, "BF16")});
  const auto shares = Shares();
  ASSERT_TRUE(shares.ok()) << shares.status();
  FakeStage stages[2];
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  const absl::Status status = shares->Import(&fleet);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Names(stages[0].imported()),
              ElementsAre("transformer.wte.weight", "transformer.wte.bias"));
  EXPECT_THAT(Names(stages[1].imported()), ElementsAre("head.fc.weight"));
  const std::string first = stages[0].imported();
  EXPECT_EQ(ParseSafetensors(first)->tensors[0].dtype, "BF16");
  EXPECT_EQ(ParseSafetensors(first)->tensors[0].data, "xxxx");
}

TEST_F(ModelSharesTest, TheTrunksNamesMayStandAloneAndBuffersAreLeftOut) {
  Write({Tensor("head.fc.weight", {10, 2}), Tensor("wte.bias", {2}),
         Tensor("wte.weight", {2, 1, 1, 1}), Tensor("h.0.attn.bias", {1, 1, 4, 4})});
  EXPECT_TRUE(Shares().ok()) << Error();
}

TEST_F(ModelSharesTest, AParameterThatStandsThereTwiceIsTakenIfItIsTheSame) {
  std::vector<StoredTensor> tensors = {Tensor("head.fc.weight", {10, 2}), Tensor("wte.bias", {2}),
                                       Tensor("transformer.wte.bias", {2}),
                                       Tensor("wte.weight", {2, 1, 1, 1})};
  Write(tensors);
  EXPECT_TRUE(Shares().ok()) << Error();
  tensors[2].data = "xxxxyyyy";
  Write(tensors);
  EXPECT_THAT(Error(), HasSubstr("wte.bias and transformer.wte.bias differ, but are one parameter "
                                 "of the model"));
}

// A GPT-2 of three stages whose head is tied to its embedding.
Experiment Tied() {
  return *ParseExperiment(
      kExperiment, "test",
      {"model={name: gpt2, layers: 1, heads: 1, width: 1}", "data={name: shakespeare, context: 1}",
       "pipeline={cuts: [embedding, h.0], stages: 3}"});
}

std::vector<FileTensor> TensorsOf(const Experiment& e) {
  std::vector<FileTensor> tensors;
  const Model model = *ModelFrom(e);
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!StandsInFiles(parameter)) continue;
      for (FileTensor& tensor : FileTensors(parameter)) tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

TEST_F(ModelSharesTest, ATiedWeightThatTheFilesHaveTwiceIsTakenIfItIsTheSame) {
  const std::vector<FileTensor> wanted = TensorsOf(Tied());
  std::vector<StoredTensor> tensors;  // of their names
  for (const FileTensor& tensor : wanted) {
    tensors.push_back(Tensor(tensor.name, tensor.shape));
  }
  tensors.push_back(Tensor("lm_head.weight", {65, 1}));
  Write(tensors);
  const auto error = [this] {
    return std::string(ModelShares::Of(Tied(), *ModelFolder::Open(dir_)).status().message());
  };
  EXPECT_EQ(error(), "");
  const std::string other(4 * 65, 'y');
  tensors.back().data = other;
  Write(tensors);
  EXPECT_THAT(error(), HasSubstr("transformer.wte.weight and lm_head.weight differ, but are one "
                                 "parameter of the model"));
  tensors.back() = Tensor("lm_head.weight", {70, 1});
  Write(tensors);
  EXPECT_THAT(error(), HasSubstr("lm_head.weight is F32 [70, 1], want [65, 1]"));
}

TEST_F(ModelSharesTest, ATiedWeightGoesToBothStagesThatHaveACopy) {
  const Experiment e = Tied();
  const std::vector<FileTensor> wanted = TensorsOf(e);
  std::vector<StoredTensor> tensors;  // of their names
  for (const FileTensor& tensor : wanted) {
    tensors.push_back(Tensor(tensor.name, tensor.shape));
  }
  Write(tensors);
  const auto shares = ModelShares::Of(e, *ModelFolder::Open(dir_));
  ASSERT_TRUE(shares.ok()) << shares.status();
  FakeStage stages[3];
  Fleet fleet({stages[0].address(), stages[1].address(), stages[2].address()}, "run",
              FleetOptions());
  ASSERT_TRUE(shares->Import(&fleet).ok());
  EXPECT_THAT(Names(stages[0].imported()), Contains("transformer.wte.weight"));
  EXPECT_THAT(Names(stages[1].imported()), Not(Contains("transformer.wte.weight")));
  EXPECT_THAT(Names(stages[2].imported()), Contains("transformer.wte.weight"));
}

TEST_F(ModelSharesTest, ABottleneckThatTheFolderDoesNotHaveStaysAsItIs) {
  const std::vector<StoredTensor> model = {Tensor("head.fc.weight", {10, 2}),
                                           Tensor("wte.bias", {2}),
                                           Tensor("wte.weight", {2, 1, 1, 1})};
  const std::string bottleneck = "compression.bottleneck={kind: linear, width: 1}";
  Write(model);
  const auto shares = Shares({bottleneck});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fresh(), ElementsAre("transformer"));
  FakeStage stages[2];
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  ASSERT_TRUE(shares->Import(&fleet).ok());
  EXPECT_THAT(stages[0].kept(), ElementsAre("bottleneck.transformer.encode.weight"));
  EXPECT_THAT(stages[1].kept(), ElementsAre("bottleneck.transformer.decode.weight"));
  EXPECT_THAT(Names(stages[1].imported()), ElementsAre("head.fc.weight"));
  const Experiment e = *ParseExperiment(kExperiment, "test", {bottleneck});
  EXPECT_THAT(std::string(ModelShares::Of(e, *ModelFolder::Open(dir_)).status().message()),
              HasSubstr("bottleneck.transformer.encode.weight [1, 2, 1, 1] is missing"));
  std::vector<StoredTensor> half = model;
  half.push_back(Tensor("bottleneck.transformer.encode.weight", {1, 2, 1, 1}));
  Write(half);
  EXPECT_THAT(std::string(Shares({bottleneck}).status().message()),
              HasSubstr("bottleneck.transformer.decode.weight [2, 1, 1, 1] is missing"));
  half.push_back(Tensor("bottleneck.transformer.decode.weight", {2, 1, 1, 1}));
  Write(half);
  EXPECT_THAT(Shares({bottleneck})->fresh(), ElementsAre());
}

constexpr char kBert[] = R"(
model: {name: bert, layers: 1, heads: 1, width: 2, hidden: 2, vocabulary: 65}
data: {name: shakespeare, context: 8, tokens: word_piece, objective: masked,
       corpus: {vocabulary: 65, train_tokens: 999, test_tokens: 999}}
pipeline: {cuts: [layer.0]}
optimizer: {lr: 0.1}
epochs: 1
)";

constexpr char kBertOfClasses[] = R"(
model: {name: bert, layers: 1, heads: 1, width: 2, hidden: 2, head: classes}
data: {name: glue, task: sst2, context: 8,
       corpus: {vocabulary: 65, train_samples: 999, test_samples: 999}}
pipeline: {cuts: [layer.0]}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST_F(ModelSharesTest, LearnedCodesOfSumsThatTheFolderDoesNotHaveStartRandom) {
  std::vector<StoredTensor> stored;
  for (const FileTensor& tensor : TensorsOf(*ParseExperiment(kBert, "test", {"model.heads=2"}))) {
    stored.push_back(Tensor(tensor.name, tensor.shape));
  }
  Write(stored);
  const auto shares = ModelShares::Initial(
      *ParseExperiment(kBert, "test",
                       {"model.heads=2", "tensor.parts=2",
                        "compression.sums.bottleneck={kind: linear, width: 1}", "init=" + dir_}));
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fresh(), ElementsAre("bert.encoder.layer.0.attention.output.dense",
                                           "bert.encoder.layer.0.output.dense"));
}

TEST_F(ModelSharesTest, AdaptersStartAnewOverAModelWithoutAny) {
  std::vector<StoredTensor> stored;
  for (const FileTensor& tensor : TensorsOf(*ParseExperiment(kBert, "test", {}))) {
    stored.push_back(Tensor(tensor.name, tensor.shape));
  }
  Write(stored);
  const auto shares = ModelShares::Initial(
      *ParseExperiment(kBert, "test", {"lora={rank: 1, modules: linear}", "init=" + dir_}));
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fresh(), ElementsAre("lora"));
}

TEST_F(ModelSharesTest, AdaptersWithoutAPlaceAreNamedWithWhatToDo) {
  const std::vector<std::string> adapted = {"lora={rank: 1, modules: linear}"};
  std::vector<StoredTensor> stored;
  for (const FileTensor& tensor : TensorsOf(*ParseExperiment(kBert, "test", adapted))) {
    stored.push_back(Tensor(tensor.name, tensor.shape));
  }
  Write(stored);
  const std::string error(
      ModelShares::Initial(*ParseExperiment(kBert, "test", {"init=" + dir_})).status().message());
  EXPECT_THAT(error, HasSubstr("lora_A.weight is no parameter of the model, an adapter's: want "
                               "`lora` with that module, or a folder of `thinwire checkpoint "
                               "export --merge`; "));
  EXPECT_THAT(error, HasSubstr("lora_B.weight is no parameter of the model; "));
}

// Writes a BERT without adapters, and an adapter for it; returns what they make of it.
class AdapterSharesTest : public ModelSharesTest {
 protected:
  AdapterSharesTest() {
    std::vector<StoredTensor> base;
    for (const FileTensor& tensor : TensorsOf(Adapted("lora={rank: 1, modules: query}"))) {
      if (IsOfAdapter(tensor.name)) {
        adapter_.push_back(Tensor(absl::StrCat(kAdapterPrefix, tensor.name), tensor.shape));
      } else {
        base.push_back(Tensor(tensor.name, tensor.shape));
      }
    }
    Write(base);
    std::ofstream(dir_ + "/" + kAdapterConfigFile) << R"({"peft_type": "LORA", "r": 1})";
    WriteAdapter(adapter_);
  }
  Experiment Adapted(const std::string& lora) const {
    const auto e = ParseExperiment(kBert, "test", {lora, "init=" + dir_});
    EXPECT_TRUE(e.ok()) << e.status();
    return *e;
  }
  void WriteAdapter(const std::vector<StoredTensor>& tensors) {
    const absl::Status status =
        WriteTensorFile(absl::StrCat(dir_, "/", kAdapterFile), {{}, tensors});
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<ModelShares> Opened() const {
    return ModelShares::Initial(Adapted(absl::StrCat("lora={init: ", dir_, "}")));
  }
  std::string Refusal() const { return std::string(Opened().status().message()); }

  std::vector<StoredTensor> adapter_;
};

TEST_F(AdapterSharesTest, AnAdaptersFolderTakesThePlaceOfDrawnValues) {
  const std::string own(4 * 2, 'y');
  adapter_[0].data = own;
  WriteAdapter(adapter_);
  const auto shares = Opened();
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fresh(), ElementsAre());
  FakeStage stages[2];
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  const absl::Status status = shares->Import(&fleet);
  ASSERT_TRUE(status.ok()) << status;
  const std::string first = stages[0].imported();
  const std::string at = "bert.encoder.layer.0.attention.self.query.";
  EXPECT_THAT(Names(first),
              IsSupersetOf({at + "weight", at + "lora_A.weight", at + "lora_B.weight"}));
  const auto parsed = ParseSafetensors(first);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto a = std::find_if(parsed->tensors.begin(), parsed->tensors.end(),
                              [&](const auto& one) { return one.name == at + "lora_A.weight"; });
  ASSERT_NE(a, parsed->tensors.end());
  EXPECT_EQ(a->data, own);
  EXPECT_THAT(stages[0].kept(), ElementsAre());
  EXPECT_THAT(Names(stages[1].imported()), Not(Contains(at + "lora_A.weight")));
}

TEST_F(AdapterSharesTest, AnAdapterOfTheTrunkAloneFits) {
  for (StoredTensor& tensor : adapter_) {
    tensor.name = absl::StrReplaceAll(tensor.name, {{"model.bert.", "model."}});
  }
  WriteAdapter(adapter_);
  EXPECT_TRUE(Opened().ok()) << Refusal();
}

TEST_F(AdapterSharesTest, AnAdapterThatDoesNotFitIsRefusedByItsTensors) {
  const std::string at = "bert.encoder.layer.0.attention.self.query.lora_";
  std::vector<StoredTensor> others = adapter_;
  others[0] = Tensor(adapter_[0].name, {1, 3});
  WriteAdapter(others);
  EXPECT_EQ(Refusal(), absl::StrCat("lora.init: ", dir_, ": does not fit the model: ",
                                    kAdapterPrefix, at, "A.weight is F32 [1, 3], want [1, 2]"));
  WriteAdapter({adapter_[0]});
  EXPECT_THAT(Refusal(), HasSubstr(at + "B.weight [2, 1] is missing"));
  others = adapter_;
  others.push_back(
      Tensor("base_model.model.bert.encoder.layer.0.attention.self.key.lora_B.weight", {2, 1}));
  others.push_back(Tensor("base_model.model.bert.pooler.dense.weight", {2, 2}));
  WriteAdapter(others);
  EXPECT_THAT(Refusal(),
              testing::AllOf(HasSubstr("layer.0.attention.self.key.lora_B.weight is no "
                                       "adapter of the model: is the adapter that of "
                                       "another model?"),
                             HasSubstr("pooler.dense.weight is no adapter of the model")));
  WriteAdapter({adapter_[0], Tensor(adapter_[1].name, {2, 1}, "I32")});
  EXPECT_THAT(Refusal(), HasSubstr("B.weight is I32 [2, 1], want F32, F16 or BF16 [2, 1]"));
}

TEST_F(AdapterSharesTest, AModelThatHasAdaptersTakesNoOthers) {
  std::vector<StoredTensor> both;
  for (const FileTensor& tensor : TensorsOf(Adapted("lora={rank: 1, modules: query}"))) {
    both.push_back(Tensor(tensor.name, tensor.shape));
  }
  Write(both);
  EXPECT_EQ(Refusal(),
            absl::StrCat("lora.init: ", dir_, ", want none: init: ", dir_, " has adapters itself"));
}

TEST_F(ModelSharesTest, ABertOfMaskedWordsGoesOnWithAClassifierThatStartsRandom) {
  std::vector<StoredTensor> stored;
  for (const FileTensor& tensor : TensorsOf(*ParseExperiment(kBert, "test", {}))) {
    stored.push_back(Tensor(tensor.name, tensor.shape));
  }
  stored.push_back(Tensor("cls.seq_relationship.weight", {2, 4}));
  stored.push_back(Tensor("bert.embeddings.position_ids", {1, 8}, "I32"));
  Write(stored);
  const Experiment masked = *ParseExperiment(kBert, "test", {"init=" + dir_});
  EXPECT_THAT(ModelShares::Initial(masked)->fresh(), ElementsAre());
  const Experiment classes = *ParseExperiment(kBertOfClasses, "test", {"init=" + dir_});
  const auto shares = ModelShares::Initial(classes);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fresh(), ElementsAre("pooler", "classifier"));
  FakeStage stages[2];
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  ASSERT_TRUE(shares->Import(&fleet).ok());
  EXPECT_THAT(stages[1].kept(), ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                            "classifier.weight", "classifier.bias"));
  EXPECT_THAT(Names(stages[0].imported()), Contains("bert.embeddings.word_embeddings.weight"));
}

TEST_F(ModelSharesTest, AHeadIsThereWholeOrNotAtAll) {
  const std::vector<FileTensor> tensors = TensorsOf(*ParseExperiment(kBert, "test", {}));
  std::vector<StoredTensor> stored;
  for (const FileTensor& tensor : tensors) {
    if (tensor.name != "cls.predictions.bias") stored.push_back(Tensor(tensor.name, tensor.shape));
  }
  stored.push_back(Tensor("cls.predictions.other", {1}));
  Write(stored);
  EXPECT_THAT(std::string(ModelShares::Initial(*ParseExperiment(kBert, "test", {"init=" + dir_}))
                              .status()
                              .message()),
              testing::AllOf(HasSubstr("cls.predictions.other is no parameter of the model"),
                             HasSubstr("cls.predictions.bias [65] is missing")));
}

TEST_F(ModelSharesTest, WhatDoesNotFitIsNamedAllAtOnce) {
  Write({Tensor("head.fc.weight", {10, 3}), Tensor("wte.weight", {2, 1, 1, 1}, "I32"),
         Tensor("foo", {1})});
  EXPECT_EQ(Error(),
            "init: " + dir_ +
                ": does not fit the model: foo is no parameter of the model; head.fc.weight is F32 "
                "[10, 3], want [10, 2]; wte.weight is I32 [2, 1, 1, 1], want F32, F16 or BF16 [2, "
                "1, 1, 1]; transformer.wte.bias [2] is missing");
}

TEST_F(ModelSharesTest, OfManyThatDoNotFitAFewAreNamedAndTheRestIsCounted) {
  std::vector<StoredTensor> tensors;
  for (int i = 0; i < 9; ++i) tensors.push_back(Tensor("foo" + std::to_string(i), {1}));
  Write(tensors);
  EXPECT_THAT(Error(), HasSubstr("foo4 is no parameter of the model; and 7 more"));
}

TEST_F(ModelSharesTest, AFolderThatIsNotThereIsNamedWithItsField) {
  fs::remove_all(dir_);
  EXPECT_EQ(Error(), "init: " + dir_ + ": cannot open: No such file or directory");
}

TEST_F(ModelSharesTest, AFileThatShrinksIsTheCoordinatorsError) {
  Write({Tensor("head.fc.weight", {10, 2}), Tensor("transformer.wte.bias", {2}),
         Tensor("transformer.wte.weight", {2, 1, 1, 1})});
  const auto shares = Shares();
  ASSERT_TRUE(shares.ok()) << shares.status();
  fs::resize_file(dir_ + "/model.safetensors", fs::file_size(dir_ + "/model.safetensors") - 90);
  FakeStage stages[2];
  Fleet fleet({stages[0].address(), stages[1].address()}, "run", FleetOptions());
  EXPECT_THAT(std::string(shares->Import(&fleet).message()),
              HasSubstr("model.safetensors: ends at byte "));
}

}  // namespace
}  // namespace thinwire
