#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "config/experiment.h"
#include "config/resolve.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/yaml_message.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns `data`, YAML, merged over the defaults of every experiment.
absl::StatusOr<DataConfig> Resolved(const std::string& data) {
  Experiment experiment;
  absl::Status status = MergeYaml(kExperimentDefaults, "defaults", &experiment);
  status.Update(MergeYaml("data: " + data, "test", &experiment));
  status.Update(ResolveData(experiment.mutable_data()));
  if (!status.ok()) return status;
  return experiment.data();
}

std::string Refusal(const std::string& data) {
  const absl::Status status = Resolved(data).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ResolveDataTest, FillsWhatBelongsToTheDataSet) {
  EXPECT_EQ(WriteYaml(*Resolved("{name: shakespeare}")),
            "name: shakespeare\nbatch_size: 100\naugment: per_epoch\nlimit: 0\ntest_limit: 0\n"
            "verify: true\nshuffle: samples\ntokens: characters\ncontext: 256\nwindows: 0\n"
            "held_out: 0\n");
  EXPECT_EQ(WriteYaml(*Resolved("{name: wikitext2, context: 1024}")),
            "name: wikitext2\ndir: data/wikitext2\nbatch_size: 100\naugment: per_epoch\nlimit: 0\n"
            "test_limit: 0\nverify: true\nshuffle: samples\ntokens: bpe\n"
            "vocabulary: data/gpt2-bpe\ncontext: 1024\nwindows: 0\nheld_out: 0\n"
            "end_of_text: token\n");
  EXPECT_EQ(Resolved("{name: shakespeare, tokens: bpe}")->vocabulary(), "data/gpt2-bpe");
}

TEST(ResolveDataTest, FillsWhatBelongsToWordPieces) {
  const DataConfig text = *Resolved(
      "{name: shakespeare, tokens: word_piece, objective: masked, context: 64, "
      "vocabulary: data/word_piece_testdata}");
  const DatasetInfo masked = *DatasetOf(text);
  EXPECT_EQ(masked.labels, 64);
  EXPECT_EQ(masked.vocabulary, text.corpus().vocabulary());
  EXPECT_FALSE(text.has_end_of_text());
  EXPECT_EQ(WriteYaml(*Resolved("{name: glue, task: cola, corpus: {vocabulary: 300, "
                                "train_samples: 8551, test_samples: 1043}}")),
            "name: glue\ndir: data/glue\nbatch_size: 100\naugment: per_epoch\nlimit: 0\n"
            "test_limit: 0\nverify: true\nshuffle: samples\nvocabulary: data/word-pieces\n"
            "context: 128\ncorpus:\n  vocabulary: 300\n  train_samples: 8551\n"
            "  test_samples: 1043\nheld_out: 0\ntask: cola\n");
}

TEST(ResolveDataTest, WhatIsResolvedResolvesToItself) {
  for (const char* data :
       {"{name: digits}",
        "{name: glue, task: sst2, corpus: {vocabulary: 9, train_samples: 9, test_samples: 9}}",
        "{name: shakespeare, windows: 5}", "{name: wikitext2}",
        "{name: text, file: a, corpus: {vocabulary: 9, train_tokens: 999, test_tokens: 999}}"}) {
    const absl::StatusOr<DataConfig> once = Resolved(data);
    ASSERT_TRUE(once.ok()) << once.status();
    DataConfig twice = *once;
    ASSERT_TRUE(ResolveData(&twice).ok());
    EXPECT_EQ(WriteYaml(twice), WriteYaml(*once));
  }
}

TEST(ResolveDataTest, ACorpusThatWasCountedBeforeThereWasAnEndOfTextKeepsItsIds) {
  const std::string counted =
      "name: text, file: a, corpus: {vocabulary: 9, train_tokens: 999, "
      "test_tokens: 999}";
  EXPECT_EQ(Resolved("{" + counted + "}")->end_of_text(), "characters");
  EXPECT_EQ(Resolved("{" + counted + ", end_of_text: token}")->end_of_text(), "token");
  EXPECT_FALSE(Resolved("{" + counted + ", tokens: characters}")->has_end_of_text());
}

TEST(ResolveDataTest, IsDescribedWithoutLoadingAnything) {
  const DatasetInfo wikitext2 =
      *DatasetOf(*Resolved("{name: wikitext2, dir: no/such, vocabulary: no/such, context: 1024}"));
  EXPECT_EQ(wikitext2.sample, (Shape{1, 1024}));
  EXPECT_EQ(wikitext2.classes, 50257);
  EXPECT_EQ(wikitext2.train_samples, 2390);
  EXPECT_EQ(DatasetOf(*Resolved("{name: shakespeare, windows: 77}"))->train_samples, 77);
  const DatasetInfo held_out = *DatasetOf(*Resolved("{name: cifar10, held_out: 5000}"));
  EXPECT_EQ(held_out.train_samples, 45000);
  EXPECT_EQ(held_out.test_samples, 5000);
  EXPECT_EQ(DatasetOf(*Resolved("{name: shakespeare, tokens: bpe}"))->classes, 50257);
}

TEST(ResolveDataTest, ATextOfUnknownSizeIsCounted) {
  const std::string path = testing::TempDir() + "/counted.txt";
  std::ofstream(path) << std::string(900, 'a') + std::string(100, 'b');
  const absl::StatusOr<DataConfig> data =
      Resolved("{name: text, tokens: characters, context: 10, file: " + path + "}");
  std::filesystem::remove(path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(WriteYaml(data->corpus()), "vocabulary: 2\ntrain_tokens: 900\ntest_tokens: 100\n");
  EXPECT_EQ(DatasetOf(*data)->train_samples, 89) << "the file is not there any more";
}

TEST(ResolveDataTest, FilesOfIdsAreCountedAndBelongToTheStages) {
  const std::string path = testing::TempDir() + "/counted.bin";
  std::ofstream(path, std::ios::binary) << std::string(1800, 'a') + std::string(200, 'b');
  const std::string data = "{name: tokens, context: 10, type: uint16, ";
  const absl::StatusOr<DataConfig> divided = Resolved(data + "file: " + path + "}");
  const absl::StatusOr<DataConfig> both =
      Resolved(data + "train: " + path + ", test: " + path + "}");
  std::filesystem::remove(path);
  ASSERT_TRUE(divided.ok() && both.ok()) << divided.status() << both.status();
  EXPECT_EQ(WriteYaml(divided->corpus()),
            "vocabulary: 25187\ntrain_tokens: 900\ntest_tokens: 100\n");
  EXPECT_EQ(divided->tokens(), "ids");
  EXPECT_EQ(both->corpus().test_tokens(), 1000u);
}

TEST(ResolveDataTest, LinesOfExamplesAreEncodedAndTheirSamplesCounted) {
  const std::string path = testing::TempDir() + "/counted.jsonl";
  std::ofstream lines(path);
  for (int i = 0; i < 20; ++i) lines << "{\"text\": \"to be or not\"}\n";
  lines.close();
  const auto data =
      Resolved("{name: jsonl, tokens: bytes, context: 8, chat: chatml, file: " + path + "}");
  std::filesystem::remove(path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(WriteYaml(data->corpus()), "vocabulary: 256\ntrain_samples: 36\ntest_samples: 4\n");
  EXPECT_EQ(data->packing() + " " + data->too_long() + " " + data->loss_on(), "none split answers");
  EXPECT_EQ(data->chat().kind(), "chatml");
  EXPECT_EQ(DataOptionsFrom(*data)->text.chat.user, "<|im_start|>user\n{}<|im_end|>\n");
  const DatasetInfo info = *DatasetOf(*data);
  EXPECT_EQ(info.train_samples, 36);
  EXPECT_EQ(info.labels, 8);
}

TEST(ResolveDataTest, LinesThatAreSkippedAreCounted) {
  const std::string path = testing::TempDir() + "/skipped.jsonl";
  std::ofstream(path) << "{\"body\": \"to be or not\"}\nno\n{\"text\": \"a\"}\n"
                      << "{\"body\": \"to be\"}\n";
  const auto data = Resolved(
      "{name: jsonl, tokens: bytes, context: 16, split: 0.5, fields: {text: body}, on_error: skip, "
      "file: " +
      path + "}");
  std::filesystem::remove(path);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(WriteYaml(data->corpus()),
            "vocabulary: 256\ntrain_samples: 1\ntest_samples: 1\nskipped_lines: 2\n"
            "first_skipped: \"skipped.jsonl:2: byte 2 is no JSON\"\n");
  EXPECT_EQ(WriteYaml(data->fields()), "text: body\n");
  EXPECT_EQ(DataOptionsFrom(*data)->text.keys.text, "body");
}

TEST(ResolveDataTest, AFormatMayBeThatOfAKnownTemplate) {
  const std::string folder = testing::TempDir() + "/templates";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tokenizer_config.json") << R"({"chat_template": "abc"})";
  const std::string beginning = "{name: jsonl, file: a, chat: auto, ";
  EXPECT_THAT(
      Refusal(beginning + "tokens: hf, vocabulary: " + folder + "}"),
      HasSubstr("data.chat: auto: the chat template of " + folder + " has SHA-256 ba7816bf"));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(Refusal(beginning + "tokens: bytes}"),
              HasSubstr("data.chat: auto, want data.tokens: hf with it"));
}

TEST(ResolveDataTest, LabelsOfCifar100AreFineOrCoarse) {
  const DataConfig fine = *Resolved("{name: cifar100}");
  EXPECT_EQ(fine.labels() + " " + fine.dir(), "fine data/cifar100");
  EXPECT_EQ(DatasetOf(fine)->classes, 100);
  const DatasetInfo coarse = *DatasetOf(*Resolved("{name: cifar100, labels: coarse}"));
  EXPECT_EQ(coarse.classes, 20);
  EXPECT_EQ(coarse.train_samples, 50'000);
}

TEST(ResolveDataTest, ImagesOfOneColourFitAModel) {
  for (const char* const name : {"mnist", "fashion_mnist"}) {
    const auto experiment = ParseExperiment(
        "model: {name: resnet8}\npipeline: {cuts: [layer2]}\noptimizer: {lr: 0.1}\nepochs: 1\n",
        name, {std::string("data={name: ") + name + "}"});
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_EQ(DatasetOf(experiment->data())->sample, (Shape{1, 28, 28, 1}));
    EXPECT_TRUE(PartitionFrom(*experiment).ok());
  }
}

TEST(ResolveDataTest, PicturesInFoldersAreCountedByClass) {
  const std::string dir = testing::TempDir() + "/pictures";
  for (const char* path :
       {"train/a/1.jpg", "train/a/2.jpg", "train/b/1.png", "val/a/1.jpg", "val/b/1.jpg"}) {
    const std::filesystem::path file = dir + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "not decoded here";
  }
  const auto data = Resolved("{name: images, size: 32, resize: 32, dir: " + dir + "}");
  std::filesystem::remove_all(dir);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(WriteYaml(data->corpus()), "train_samples: 3\ntest_samples: 2\nclasses: 2\n");
  EXPECT_EQ(data->crop() + " " + data->normalize(), "random_resized imagenet");
  EXPECT_EQ(DatasetOf(*data)->classes, 2);
  EXPECT_EQ(DatasetOf(*data)->sample, (Shape{1, 32, 32, 3}));
}

TEST(ResolveDataTest, AFormatMayHaveOtherStrings) {
  const DataConfig changed = *Resolved(
      "{name: jsonl, tokens: bytes, file: a, chat: {kind: zephyr, system: '', end: x, trim: true}, "
      "corpus: {vocabulary: 256, train_samples: 9, test_samples: 9}}");
  const ChatFormat format = DataOptionsFrom(changed)->text.chat;
  EXPECT_EQ(format.system + format.user + format.end, "<|user|>\n{}</s>\nx");
  EXPECT_TRUE(format.trim);
}

TEST(ResolveDataTest, EveryValueThatDoesNotFitIsRefused) {
  const std::vector<std::pair<const char*, const char*>> refusals = {
      {"{name: digits, context: 8}", "data.context: does not belong to name digits"},
      {"{name: digits, dir: here}", "data.dir: does not belong to name digits"},
      {"{name: shakespeare, file: a}", "data.file: does not belong to name shakespeare"},
      {"{name: text}", "data.file: is required with name text, or data.train and data.test"},
      {"{name: text, file: a, train: b, test: c}",
       "data.file: a, want either it or data.train and data.test"},
      {"{name: text, train: b}", "data.test: is required with data.train"},
      {"{name: tokens, test: b}", "data.train: is required with data.test"},
      {"{name: tokens, file: a, tokens: characters}",
       "data.tokens: characters, want ids, or the tokens of which they are"},
      {"{name: text, file: a, tokens: ids}", "data.tokens: ids, want tokens of the text"},
      {"{name: tokens, file: a, type: int8}", "data.type: unknown"},
      {"{name: text, file: a, type: uint16}", "data.type: does not belong to name text"},
      {"{name: jsonl, file: a, tokens: characters}",
       "data.tokens: characters, want tokens that every document has, such as hf, bpe or bytes"},
      {"{name: jsonl, file: a, windows: 3}", "data.windows: does not belong to name jsonl"},
      {"{name: jsonl, file: a, tokens: bytes, packing: best}", "data.packing: unknown"},
      {"{name: jsonl, file: a, tokens: bytes, too_long: cut}", "data.too_long: unknown"},
      {"{name: jsonl, file: a, tokens: bytes, loss_on: none}", "data.loss_on: unknown"},
      {"{name: jsonl, file: a, tokens: bytes, on_error: go}", "data.on_error: unknown"},
      {"{name: jsonl, file: a, tokens: bytes, fields: {text: prompt}}",
       "data.fields: text and prompt are both prompt, want different keys"},
      {"{name: text, file: a, fields: {text: b}}", "data.fields: does not belong to name text"},
      {"{name: text, file: a, on_error: skip}", "data.on_error: does not belong to name text"},
      {"{name: jsonl, file: a, tokens: bytes, loss_on: masks}",
       "data.loss_on: unknown loss \"masks\"; did you mean all? Known: answers, all"},
      {"{name: tokens, file: a, loss_on: some}", "data.loss_on: unknown"},
      {"{name: cifar100, labels: both}", "data.labels: unknown"},
      {"{name: cifar10, labels: fine}", "data.labels: does not belong to name cifar10"},
      {"{name: jsonl, file: a, tokens: bytes, chat: chatgpt}", "data.chat.kind: unknown"},
      {"{name: jsonl, file: a, tokens: bytes, chat: {user: '{}'}}",
       "data.chat: assistant: \"\", want {} in it once, for the content"},
      {"{name: jsonl, file: a, tokens: bytes, corpus: {vocabulary: 3, train_tokens: 9}}",
       "data.corpus: want vocabulary, train_samples and test_samples"},
      {"{name: images, dir: no/such}", "data: no/such/train: cannot read"},
      {"{name: images, crop: centre}", "data.crop: unknown"},
      {"{name: images, normalize: data}", "data.normalize: unknown"},
      {"{name: images, size: 64, resize: 32}",
       "data: size is 64, resize is 32: want 1 <= size <= resize <= 4096"},
      {"{name: images, corpus: {classes: 3}}", "data.corpus: want classes, train_samples and"},
      {"{name: digits, size: 8}", "data.size: does not belong to name digits"},
      {"{name: jsonl, file: a, tokens: word_piece, chat: chatml}",
       "data.chat: chatml with data.tokens: word_piece"},
      {"{name: text, file: a, chat: chatml}", "data.chat: does not belong to name text"},
      {"{name: tokens, file: no/such.bin}", "data: cannot read data.file no/such.bin"},
      {"{name: shakespeare, tokens: words}", "data.tokens: unknown"},
      {"{name: shakespeare, vocabulary: here}",
       "data.vocabulary: here, want data.tokens: bpe, word_piece or hf with it"},
      {"{name: shakespeare, end_of_text: token}",
       "data.end_of_text: token, want data.tokens: bpe with it"},
      {"{name: wikitext2, end_of_text: none}", "data.end_of_text: unknown"},
      {"{name: wikitext2, lowercase: false}",
       "data.lowercase: false, want data.tokens: word_piece with it"},
      {"{name: wikitext2, objective: masked}",
       "data.objective: masked, want data.tokens: word_piece with it"},
      {"{name: wikitext2, objective: hidden}", "data.objective: unknown"},
      {"{name: wikitext2, mask_rate: 0.3}",
       "data.mask_rate: 0.3, want data.objective: masked with it"},
      {"{name: shakespeare, tokens: word_piece, objective: masked, mask_rate: 1}",
       "data.mask_rate: 1, want more than 0 and less than 1"},
      {"{name: shakespeare, tokens: word_piece, vocabulary: no/such}",
       "data: cannot read no/such/vocab.txt"},
      {"{name: shakespeare, specials: ids}", "data.specials: ids, want data.tokens: hf with it"},
      {"{name: shakespeare, tokens: hf}", "data.vocabulary: is required with data.tokens: hf"},
      {"{name: shakespeare, tokens: hf, vocabulary: no/such}",
       "data: no/such has no tokenizer.json, want one of Hugging Face's tokenizers"},
      {"{name: shakespeare, tokens: hf, vocabulary: here, specials: none}",
       "data.specials: unknown"},
      {"{name: glue}", "data.task: is required with name glue"},
      {"{name: glue, task: qqp}", "data.task: unknown"},
      {"{name: glue, task: sst2, tokens: bpe}", "data.tokens: does not belong to name glue"},
      {"{name: glue, task: sst2, corpus: {vocabulary: 9, train_tokens: 9, test_tokens: 9}}",
       "data.corpus: want vocabulary, train_samples and test_samples"},
      {"{name: glue, task: rte, dir: no/such}", "data: cannot read no/such/train.tsv"},
      {"{name: shakespeare, context: 0}", "data.context: 0, want 1 to 1048576"},
      {"{name: shakespeare, context: 200000}",
       "data: the test text of shakespeare has 111540 tokens, want at least 200001"},
      {"{name: shakespeare, windows: 4000000000}",
       "data.windows: 4000000000, want 0 to 2147483648"},
      {"{name: shakespeare, windows: 9, augment: none}",
       "data.augment: none, want fixed or per_epoch with data.windows"},
      {"{name: shakespeare, context: 64, limit: 15686}",
       "data.limit: 15686, want at most 15685, the samples there are"},
      {"{name: digits, held_out: 3823}",
       "data: held_out is 3823, but the training data of digits hold 3823 samples: want fewer"},
      {"{name: digits, held_out: 823, limit: 3001}",
       "data.limit: 3001, want at most 3000, the samples there are"},
      {"{name: digits, held_out: 823, test_limit: 824}",
       "data.test_limit: 824, want at most 823, the samples there are"},
      {"{name: shakespeare, context: 64, held_out: 15685}",
       "data: the training text of shakespeare, without the 15685 samples held out, has 13 tokens, "
       "want at least 65"},
      {"{name: text, file: a, split: 1}", "data.split: 1, want more than 0 and less than 1"},
      {"{name: text, file: a, corpus: {vocabulary: 9}}",
       "data.corpus: want vocabulary (at least 1), train_tokens and test_tokens"},
      {"{name: text, file: no/such, tokens: characters}",
       "data: cannot read data.file no/such: there is no such file; to resolve this without the "
       "text"},
      {"{name: wikitext2, verify: false, dir: no/such}",
       "data: cannot read no/such/wiki.train.tokens: `thinwire data fetch wikitext2`"},
  };
  for (const auto& [data, message] : refusals) EXPECT_THAT(Refusal(data), HasSubstr(message));
}

constexpr char kPlanned[] =
    "model: {name: resnet8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
    "data: {name: text, file: no/such, tokens: characters, context: 8,\n"
    "       corpus: {vocabulary: 9, train_tokens: 99, test_tokens: 99}}\n";

std::string With(const std::vector<std::string>& overrides) {
  return std::string(ParseExperiment(kPlanned, "f.yaml", overrides).status().message());
}

TEST(ResolveDataTest, AModelWithLogitsForEachPositionDoesNotFitLabelledSentences) {
  EXPECT_THAT(With({"model={name: gpt2, layers: 1, heads: 1, width: 8}",
                    "data={name: glue, task: sst2, corpus: {vocabulary: 9, train_samples: 99, "
                    "test_samples: 99}}"}),
              HasSubstr("model: the model has logits for 128 positions of a sample, but data glue "
                        "has 1 label for each"));
}

TEST(ResolveDataTest, AModelThatSeesWholeSequencesDoesNotFitTheirNextTokens) {
  const std::string bert = "model={name: bert, layers: 1, heads: 1, width: 8}";
  EXPECT_THAT(With({bert}),
              HasSubstr("model: a layer attention of whole sequences in block layer.0 "
                        "sees the tokens that it is to predict: data.objective is "
                        "next, want masked"));
  EXPECT_EQ(With({bert, "data.tokens=word_piece", "data.objective=masked",
                  "data.corpus={vocabulary: 9, train_tokens: 99, test_tokens: 99}"}),
            "");
}

TEST(ResolveDataTest, AModelWithLogitsForASampleDoesNotFitLabelsOfPositions) {
  EXPECT_THAT(With({"model={name: bert, layers: 1, heads: 1, width: 8, head: classes}"}),
              HasSubstr("model: the model has logits for 1 position of a sample, but data text has "
                        "8 labels for each"));
}

TEST(ResolveDataTest, AModelOfScoresHasOneOutput) {
  const std::string glue =
      "data={name: glue, task: stsb, context: 8, corpus: {vocabulary: 9, train_samples: 99, "
      "test_samples: 99}}";
  const std::string bert = "model={name: bert, layers: 1, heads: 1, width: 8, head: classes}";
  EXPECT_EQ(ParseExperiment(kPlanned, "f.yaml", {glue, bert})->model().classes(), 1u);
  EXPECT_THAT(With({glue, bert, "model.classes=2"}),
              HasSubstr("model.classes: 2, want 1, the score that data glue has with task stsb"));
  EXPECT_THAT(With({glue, "model={name: bert, layers: 1, heads: 1, width: 8, head: masked}"}),
              HasSubstr("model"));
}

TEST(ResolveDataTest, AModelHasAllIdsOfItsData) {
  const std::string glue =
      "data={name: glue, task: sst2, context: 8, corpus: {vocabulary: 9, train_samples: 99, "
      "test_samples: 99}}";
  const std::string bert = "model={name: bert, layers: 1, heads: 1, width: 8, head: classes}";
  EXPECT_EQ(ParseExperiment(kPlanned, "f.yaml", {glue, bert})->model().vocabulary(), 9u);
  EXPECT_THAT(With({glue, bert, "model.vocabulary=8"}),
              HasSubstr("model: vocabulary is 8, want at least 9, the token ids of data glue"));
}

TEST(ResolveDataTest, TokensThatNobodySaidAreThoseOfInit) {
  const std::string init = "data/hf_testdata/characters";
  const std::string small =
      "model: {name: gpt2, layers: 1, heads: 1, width: 8, classes: 705}\noptimizer: {lr: 0.1}\n"
      "epochs: 1\ninit: " +
      init + "\ndata: {name: shakespeare, context: 8}\n";
  const auto with = [&](const std::vector<std::string>& overrides) {
    const auto experiment = ParseExperiment(small, "f.yaml", overrides);
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return experiment.ok() ? experiment->data() : DataConfig();
  };
  const DataConfig taken = with({});
  EXPECT_EQ(taken.tokens(), "hf");
  EXPECT_EQ(taken.specials(), "text");
  EXPECT_EQ(taken.vocabulary(), std::filesystem::absolute(init));
  EXPECT_EQ(taken.corpus().vocabulary(), 705u);
  EXPECT_EQ(with({"data.tokens=hf"}).vocabulary(), taken.vocabulary());
  EXPECT_EQ(with({"data.tokens=characters"}).tokens(), "characters");
  const std::string other = "data/hf_testdata/bytes";
  EXPECT_EQ(with({"data.tokens=hf", "data.vocabulary=" + other}).vocabulary(), other);
}

// A cache of the hub with one model's tokenizer.
class ResolveHubDataTest : public ::testing::Test {
 protected:
  ResolveHubDataTest() {
    std::filesystem::remove_all(cache_);
    std::filesystem::create_directories(snapshot_);
    std::filesystem::create_directories(cache_ + "/models--Ada--small/refs");
    std::filesystem::copy_file("data/hf_testdata/characters/tokenizer.json",
                               snapshot_ + "/tokenizer.json");
    std::ofstream(cache_ + "/models--Ada--small/refs/main") << commit_;
    setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  }
  ~ResolveHubDataTest() override {
    unsetenv("HF_HUB_CACHE");
    std::filesystem::remove_all(cache_);
  }
  static DataConfig With(const std::string& init, const std::string& data) {
    const auto experiment = ParseExperiment(
        "model: {name: gpt2, layers: 1, heads: 1, width: 8, classes: 705}\noptimizer: {lr: 0.1}\n"
        "epochs: 1\n" +
            init + "data: {name: shakespeare, context: 8" + data + "}\n",
        "f.yaml", {});
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return experiment.ok() ? experiment->data() : DataConfig();
  }

  const std::string commit_ = std::string(40, 'b');
  const std::string cache_ = testing::TempDir() + "/resolved_hub",
                    snapshot_ = cache_ + "/models--Ada--small/snapshots/" + commit_;
};

TEST_F(ResolveHubDataTest, TokensOfInitAreNamedAsItIs) {
  EXPECT_EQ(With("init: hf:Ada/small\n", "").vocabulary(), "hf:Ada/small@" + commit_);
  EXPECT_EQ(With("init: " + snapshot_ + "\n", "").vocabulary(), snapshot_);
  EXPECT_EQ(With("init: hf:Ada/small\n", ", tokens: hf, vocabulary: " + snapshot_).vocabulary(),
            snapshot_);
}

TEST_F(ResolveHubDataTest, TokensOfInitStayThoseWithOtherOverrides) {
  constexpr char kFile[] =
      "{model: {name: gpt2, layers: 1, heads: 1, width: 8, classes: 705}, optimizer: {lr: 0.1}, "
      "epochs: 1, init: hf:Ada/small, data: {name: shakespeare, context: 8}}";
  const auto first = ParseExperiment(kFile, "f.yaml", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto again = ParseExperiment(ToYaml(*first), "experiment.yaml", {"epochs=2"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WriteYaml(again->data()), WriteYaml(first->data()));
}

TEST_F(ResolveHubDataTest, ACountedTextNeedsNoVocabularyUntilItIsRead) {
  const DataConfig counted = With("", ", tokens: hf, vocabulary: \"hf:Ada/small\"");
  std::filesystem::remove_all(cache_);
  DataConfig again = counted;
  ASSERT_EQ(ResolveData(&again), absl::OkStatus());
  EXPECT_EQ(WriteYaml(again), WriteYaml(counted));
  const auto options = DataOptionsFrom(again);
  ASSERT_TRUE(options.ok()) << options.status();
  const absl::Status unread = LoadTokenizer(*options).status();
  EXPECT_EQ(unread.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unread.message()), HasSubstr("data.vocabulary: hf:Ada/small@"));
}

TEST(ResolveDataTest, ATokenizerWithMoreIdsThanTheModelHasRowsIsRefused) {
  EXPECT_THAT(
      With(
          {"model={name: gpt2, layers: 1, heads: 1, width: 8, classes: 600}",
           "data={name: shakespeare, tokens: hf, vocabulary: data/hf_testdata/bytes, context: 8}"}),
      HasSubstr("model.classes: 600, want 605, which data shakespeare has, or more"));
}

TEST(ResolveDataTest, OtherTextIsCountedAnewThoughTheFileHasASize) {
  EXPECT_THAT(With({}), Not(HasSubstr("no/such"))) << "only the model does not fit";
  EXPECT_THAT(With({"data.context=9"}), Not(HasSubstr("no/such")));
  EXPECT_THAT(With({"data.split=0.5"}), HasSubstr("cannot read data.file no/such"));
  EXPECT_THAT(With({"data.file=no/more"}), HasSubstr("cannot read data.file no/more"));
}

TEST(ResolveDataTest, SamplesOfDocumentsAreCountedAnewWhereTheyBecomeOthers) {
  const std::string jsonl =
      "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
      "data: {name: jsonl, file: no/such, tokens: bytes, context: 8,\n"
      "       corpus: {vocabulary: 256, train_samples: 999, test_samples: 99}}\n";
  EXPECT_TRUE(ParseExperiment(jsonl, "f.yaml", {"data.batch_size=7"}).ok());
  for (const char* change :
       {"data.context=9", "data.packing=stream", "data.too_long=drop", "data.on_error=skip",
        "data.fields.text=body", "data.loss_on=all", "data.chat=chatml"}) {
    EXPECT_THAT(std::string(ParseExperiment(jsonl, "f.yaml", {change}).status().message()),
                HasSubstr("cannot read data.file no/such"))
        << change;
  }
}

TEST(ResolveDataTest, AnotherChatFormatLosesTheSystemMessageOfTheOldOne) {
  const std::string path = testing::TempDir() + "/other_chat.jsonl";
  std::ofstream lines(path);
  for (int i = 0; i < 20; ++i)
    lines << R"({"prompt": "a", "completion": "b"})"
          << "\n";
  lines.close();
  const std::string recorded =
      "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
      "data: {name: jsonl, tokens: bytes, context: 64, chat: {kind: chatml, default_system: Be.},\n"
      "       split: 0.5, file: " +
      path + "}\n";
  const auto with = [&](const std::vector<std::string>& changes) {
    const auto experiment = ParseExperiment(recorded, "f.yaml", changes);
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return experiment.ok() ? experiment->data().chat() : ChatConfig();
  };
  EXPECT_EQ(with({"data.chat=chatml"}).default_system(), "Be.");
  EXPECT_EQ(with({"data.chat.end=x"}).default_system(), "Be.");
  EXPECT_FALSE(with({"data.chat=zephyr"}).has_default_system());
  EXPECT_EQ(with({"data.chat.kind=zephyr", "data.chat.default_system=Go."}).default_system(),
            "Go.");
  std::filesystem::remove(path);
}

TEST(ResolveDataTest, OfACorpusOfBeforeTheMovedTextKeepsItsIds) {
  const std::string path = testing::TempDir() + "/moved.txt";
  std::ofstream text(path);
  for (int i = 0; i < 40; ++i) text << "the theatre<|endoftext|>";
  text.close();
  const std::string recorded =
      "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
      "data: {name: text, file: no/such, tokens: bpe, vocabulary: data/bpe_testdata, context: 8,\n"
      "       verify: false, corpus: {vocabulary: 957, train_tokens: 999, test_tokens: 99}}\n";
  const auto moved = ParseExperiment(recorded, "f.yaml", {"data.file=" + path});
  const auto said =
      ParseExperiment(recorded, "f.yaml", {"data.file=" + path, "data.end_of_text=token"});
  std::filesystem::remove(path);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->data().end_of_text(), "characters");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_LT(said->data().corpus().train_tokens(), moved->data().corpus().train_tokens());
}

TEST(ResolveDataTest, DocumentsThatAreCountedAnewKeepTheirEndOfText) {
  const std::string path = testing::TempDir() + "/counted.jsonl";
  std::ofstream text(path);
  for (int i = 0; i < 40; ++i) text << "{\"text\": \"the theatre of the king\"}\n";
  text.close();
  const std::string recorded =
      "model: {name: gpt2, layers: 1, heads: 1, width: 8}\noptimizer: {lr: 0.1}\nepochs: 1\n"
      "data: {name: jsonl, file: " +
      path +
      ", tokens: bpe, vocabulary: data/bpe_testdata,\n"
      "       verify: false, corpus: {vocabulary: 957, train_samples: 999, test_samples: 99}}\n";
  const auto changed = ParseExperiment(recorded, "f.yaml", {"data.context=8"});
  std::filesystem::remove(path);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->data().end_of_text(), "token");
}

TEST(ResolveDataTest, OverridingTheNameDropsWhatBelongsToTheFormerData) {
  const absl::StatusOr<Experiment> digits = ParseExperiment(kPlanned, "f", {"data.name=digits"});
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_FALSE(digits->data().has_corpus());
  EXPECT_FALSE(digits->data().has_tokens());
}

}  // namespace
}  // namespace thinwire
