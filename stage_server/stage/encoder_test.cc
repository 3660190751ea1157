// Pipelines encoders, as threads of one process: padding that every stage finds in the samples'
// ids, labels that are ignored, samples with one label.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::Gt;

// An experiment whose last batch of an epoch has four of six samples.
constexpr char kBert[] = R"(
name: bert
model: {name: bert, layers: 3, heads: 2, width: 16, pad: 0, separator: 1}
pipeline: {cuts: [layer.0, layer.1], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, clip_norm: 1}
epochs: 2
)";

constexpr char kVit[] = R"(
name: vit
model: {name: vit, layers: 3, heads: 2, width: 16, patch: 2}
data: {name: digits, batch_size: 6, limit: 16, test_limit: 8}
pipeline: {cuts: [layer.0, layer.1], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, clip_norm: 1}
epochs: 2
)";

// A text whose samples end with padding. Most positions have no label, the others their own token.
class PaddedText final : public Dataset {
 public:
  explicit PaddedText(std::unique_ptr<Dataset> text) : text_(std::move(text)) {}

  int64_t size() const override { return text_->size(); }
  int64_t classes() const override { return text_->classes(); }
  Shape sample_shape() const override { return text_->sample_shape(); }
  bool is_text() const override { return true; }
  bool hides_tokens() const override { return true; }
  int64_t labels_per_sample() const override { return sample_shape()[1]; }
  uint64_t digest() const override { return text_->digest(); }

  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override {
    LoadTokens(sample, augmentation, out);
    for (size_t t = 0; t < out.size(); ++t) {
      // Samples have unlike numbers of labels, so that means over parts of a batch differ.
      if (t % (2 + sample % 5) != 1) out[t] = -100;
    }
  }
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override {
    text_->LoadTokens(sample, augmentation, out);
    std::fill(out.end() - sample % 7, out.end(), 0);
    out[3] = out[8] = 1;
  }

 private:
  const std::unique_ptr<Dataset> text_;
};

// Writes word pieces of letters, a text of them, sentences with a class and pairs of sentences with
// a score. Returns the folder.
std::string Folder() {
  const std::string dir = testing::TempDir() + "/encoder_test";
  std::filesystem::create_directories(dir + "/STS-B");
  std::ofstream vocabulary(dir + "/vocab.txt"), text(dir + "/text");
  std::ofstream train(dir + "/train.tsv"), test(dir + "/dev.tsv");
  vocabulary << "[PAD]\n[SEP]\n[UNK]\n[CLS]\n[MASK]\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary << letter << "\n";
  for (int i = 0; i < 1200; ++i) text << static_cast<char>('a' + i * i % 23 + i % 3) << " ";
  std::ofstream pairs(dir + "/STS-B/train.tsv"), test_pairs(dir + "/STS-B/dev.tsv");
  for (std::ofstream* part : {&train, &test}) *part << "sentence\tlabel\n";
  for (std::ofstream* part : {&pairs, &test_pairs}) {
    *part << "index\tgenre\tfilename\tyear\told_"
             "index\tsource1\tsource2\tsentence1\tsentence2\tscore\n";
  }
  for (int i = 0; i < 20; ++i) {
    std::string sentence;
    for (int t = 0; t <= i % 9; ++t) sentence += {static_cast<char>('a' + (5 * i + t) % 26), ' '};
    for (std::ofstream* part : {&train, &test}) *part << sentence << "\t" << i * i % 3 % 2 << "\n";
    for (std::ofstream* part : {&pairs, &test_pairs}) {
      *part << i << "\t-\t-\t-\t-\t-\t-\t" << sentence << "\ta b\t" << i % 9 * 0.6 << "\n";
    }
  }
  return dir;
}

// Returns an override with the sentences of a task, or with the text without one.
std::string DataOf(const std::string& task) {
  static const auto* const dir = new std::string(Folder());
  const std::string samples =
      !task.empty()
          ? "name: glue, task: " + task + ", verify: false, dir: " + *dir
          : "name: text, tokens: word_piece, objective: masked, split: 0.6, file: " + *dir +
                "/text";
  return "data={" + samples + ", vocabulary: " + *dir +
         ", context: 24, batch_size: 6, limit: 16, test_limit: 8}";
}

struct Case {
  const char* experiment;
  std::vector<std::string> overrides;
  std::string task = "sst2";  // empty: a text

  std::unique_ptr<Stages> Run(std::vector<std::string> more, int carriers = 1) const {
    more.insert(more.end(), overrides.begin(), overrides.end());
    if (experiment == kBert) more.insert(more.begin(), DataOf(task));
    const auto change_data = [this](DataSplits* data) {
      if (!task.empty()) return;
      data->train = std::make_unique<PaddedText>(std::move(data->train));
      data->test = std::make_unique<PaddedText>(std::move(data->test));
    };
    return std::make_unique<Stages>(
        experiment, more, CpuBackend, [](StageSpec*) {}, carriers, change_data);
  }
};

std::vector<Case> Cases() {
  return {{kBert, {}, /*task=*/""},
          {kBert, {"model.head=classes", "model.dropout=0.1"}},
          {kBert, {"model.head=classes", "model.dropout=0.1"}, "stsb"},
          {kBert, {"model.tied=false", "model.dropout=0.1"}, /*task=*/""},
          {kVit, {"model.dropout=0.1"}}};
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> values;
  double test_loss = 0;

  explicit Trained(const std::unique_ptr<Stages>& stages) {
    for (uint32_t epoch : {1, 2}) {
      for (const double loss : stages->Train(epoch)) losses.push_back(loss);
    }
    values = stages->Values();
    test_loss = stages->Evaluate(/*compressed=*/true).loss();
  }
};

TEST(EncoderTest, StagesTrainWhatOneDoes) {
  const std::vector<std::vector<std::string>> settings = {
      {},
      {"pipeline.schedule=gpipe", "pipeline.recompute=blocks"},
      {"pipeline.schedule=zero_bubble"},
      {"compression.activations={codec: topk, ratio: 0.2, feedback: ef}",
       "compression.gradients={codec: uniform, bits: 6}"}};
  for (const Case& c : Cases()) {
    for (std::vector<std::string> setting : settings) {
      SCOPED_TRACE(testing::PrintToString(setting) + testing::PrintToString(c.overrides));
      const Trained three(c.Run(setting));
      setting.push_back("pipeline.stages=1");
      const Trained one(c.Run(setting));
      EXPECT_EQ(one.losses, three.losses);
      EXPECT_EQ(one.values, three.values);
      EXPECT_EQ(one.test_loss, three.test_loss);
      EXPECT_THAT(one.losses, Each(Gt(0)));
    }
  }
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double distance = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    distance += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(distance / norm);
}

// Each label of the batch counts once, wherever it is.
TEST(EncoderTest, TheMeanOverLabelsDoesNotDependOnMicrobatches) {
  const Case masked{kBert, {}, /*task=*/""};
  const std::vector<float> whole =
      masked.Run({"pipeline.microbatches=1"})->Gradients(1, /*compressed=*/false);
  for (const char* microbatches : {"2", "3", "6"}) {
    const std::string override = std::string("pipeline.microbatches=") + microbatches;
    EXPECT_LT(Distance(masked.Run({override})->Gradients(1, false), whole), 2e-6) << microbatches;
  }
}

TEST(EncoderTest, ReplicasHaveTheMeanOfTheWholeBatchOnHoweverManyMachines) {
  const Case masked{kBert, {"optimizer.momentum=0"}, /*task=*/""};
  const std::vector<std::string> two = {"replicas={count: 2}", "pipeline.microbatches=1"};
  const Trained here(masked.Run(two)), apart(masked.Run(two, /*carriers=*/2));
  EXPECT_EQ(here.losses, apart.losses);
  EXPECT_EQ(here.values, apart.values);
  const Trained microbatches(masked.Run({}));
  for (size_t i = 0; i < here.losses.size(); ++i) {
    EXPECT_NEAR(here.losses[i], microbatches.losses[i], 1e-5) << i;
  }
  EXPECT_LT(Distance(here.values, microbatches.values), 1e-5);
}

TEST(EncoderTest, EvaluationCountsTheLabelsThatAreNotIgnored) {
  const Case masked{kBert, {}, /*task=*/""}, classes{kBert, {"model.head=classes"}};
  const EvaluationReport of_masked = masked.Run({})->Evaluate(true);
  uint64_t labels = 0;
  for (int sample = 0; sample < 8; ++sample) {
    for (int t = 0; t < 24; ++t) labels += t % (2 + sample % 5) == 1 ? 1 : 0;
  }
  EXPECT_EQ(of_masked.labels(), labels);
  EXPECT_NEAR(of_masked.perplexity(), std::exp(of_masked.loss()), 1e-9);
  const EvaluationReport of_classes = classes.Run({})->Evaluate(true);
  EXPECT_EQ(of_classes.labels(), 8u);
  EXPECT_FALSE(of_classes.has_perplexity());
}

TEST(EncoderTest, OfScoresTheLossIsTheMeanSquaredErrorAndPredictionsAreReported) {
  const Case scored{kBert, {"model.head=classes", "optimizer.lr=0.01"}, "stsb"};
  const auto stages = scored.Run({});
  const double before = stages->Evaluate(true).loss();
  for (const uint32_t epoch : {1, 2}) stages->Train(epoch);
  const EvaluationReport report = stages->Evaluate(true);
  ASSERT_EQ(report.predictions_size(), 8);
  ASSERT_EQ(report.scores_size(), 8);
  double squares = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(report.scores(i) * 0x1p-28, i * 0.6, 2e-9);
    const double error = static_cast<double>(report.predictions(i)) - report.scores(i) * 0x1p-28;
    squares += error * error;
  }
  EXPECT_NEAR(report.loss(), squares / 8, 1e-12);
  EXPECT_LT(report.loss(), before);
  EXPECT_EQ(report.labels(), 8u);
  EXPECT_FALSE(report.has_correct());
  EXPECT_EQ(report.confusion_size(), 0);
  EXPECT_EQ(stages->Evaluate(false).predictions_size(), 8);
}

TEST(EncoderTest, DoesNotGenerateText) {
  const Case masked{kBert, {}, /*task=*/""};
  const auto stages = masked.Run({});
  GenerateRequest request;
  request.add_ids(5);
  request.set_step(1);
  for (const absl::Status& status : stages->AtEveryStage(
           [&](size_t i) { return stages->executor(i).Generate(request).status(); })) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        testing::HasSubstr("block embedding has a layer type_embedding of whole sequences"));
  }
}

}  // namespace
}  // namespace thinwire
