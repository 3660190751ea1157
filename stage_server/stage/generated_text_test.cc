// Generates texts of language models, position by position, through their stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kContext = 12;
constexpr char kExperiment[] = R"(
name: text
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 12, batch_size: 4, limit: 4, test_limit: 4}
pipeline: {cuts: [h.0, h.1, h.2], threads: 1}
compression:
  activations: {codec: topk, ratio: 0.3, scope: token, feedback: ef}
optimizer: {lr: 0.1}
epochs: 1
)";

using Tokens = std::vector<int32_t>;

struct TextStages : Stages {
  explicit TextStages(const std::vector<std::string>& overrides,
                      const BackendOf& backend_of = CpuBackend)
      : Stages(kExperiment, overrides, backend_of) {}

  // Returns what each stage answers.
  std::vector<absl::StatusOr<GenerateResponse>> Ask(const GenerateRequest& request) {
    std::vector<absl::StatusOr<GenerateResponse>> answers(count());
    AtEveryStage([&](size_t i) {
      answers[i] = executor(i).Generate(request);
      return answers[i].status();
    });
    return answers;
  }
  size_t count() { return static_cast<size_t>(stage(0).spec().stages()); }

  // Returns the next token of a text; the stages know its first `known` tokens.
  int32_t Next(const Tokens& text, size_t known, bool compressed = true) {
    GenerateRequest request = request_;
    request.set_step(text.size());
    request.set_first_position(static_cast<uint32_t>(known));
    request.set_compressed(compressed);
    request.mutable_ids()->Add(text.begin() + static_cast<int64_t>(known), text.end());
    int32_t id = -1;
    for (const auto& answer : Ask(request)) {
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) continue;
      wire_bytes += answer->wire_bytes();
      if (answer->has_id()) id = answer->id();
    }
    return id;
  }
  // Returns a prompt and its continuation up to the full context.
  Tokens Text(bool compressed = true) {
    Tokens text = {1, 7, 3, 42, 5};
    size_t known = 0;
    while (text.size() < kContext) {
      const int32_t id = Next(text, known, compressed);
      known = text.size();
      text.push_back(id);
    }
    return text;
  }
  // Returns why every stage refuses a request that continues {1, 2, 3} after `change` has edited
  // it.
  std::string Refusal(const std::function<void(GenerateRequest*)>& change) {
    Next({1, 2, 3}, 0);
    GenerateRequest request;
    request.set_step(4);
    request.set_first_position(3);
    request.add_ids(9);
    change(&request);
    const auto answers = Ask(request);
    for (const auto& answer : answers) EXPECT_EQ(answer.status(), answers[0].status());
    return std::string(answers[0].status().message());
  }

  GenerateRequest request_;  // what requests have beside what Next says
  uint64_t wire_bytes = 0;
};

TEST(GeneratedTextTest, ATextDependsNeitherOnTheStagesNorOnTheDevice) {
  const std::string llama =
      "model={name: llama, layers: 3, heads: 4, kv_heads: 2, width: 16, hidden: 24}";
  for (const auto& [model, cuts] :
       {std::pair<std::string, std::string>("model.name=gpt2", "h.0, h.1, h.2"),
        {llama, "layers.0, layers.1, layers.2"}}) {
    SCOPED_TRACE(model);
    const auto with = [model = model, cuts = cuts](const std::string& stages) {
      return std::vector<std::string>{model, "pipeline.cuts=[" + cuts + "]",
                                      "pipeline.stages=" + stages};
    };
    TextStages one(with("1")), two(with("2")), four(with("4")),
        late(with("2"), [](int) { return NewLateBackend(); });
    std::vector<std::string> turns = with("2");
    turns.push_back("pipeline.schedule=interleaved");
    TextStages ring(turns);
    for (TextStages* stages : {&one, &two, &four, &late, &ring}) {
      stages->request_.mutable_sampling()->set_temperature(2);
      stages->request_.mutable_sampling()->set_seed(5);
    }
    const Tokens text = one.Text();
    EXPECT_EQ(two.Text(), text);
    EXPECT_EQ(four.Text(), text);
    EXPECT_EQ(late.Text(), text);
    EXPECT_EQ(ring.Text(), text);
    EXPECT_EQ(two.wire_bytes, one.wire_bytes);
    EXPECT_EQ(four.wire_bytes, one.wire_bytes);
  }
}

// A codec that codes each position alone does not depend on how a text is cut into calls.
TEST(GeneratedTextTest, EachTokenIsThatOfTheWholeTextAtOnce) {
  for (const bool compressed : {true, false}) {
    TextStages stages({"pipeline.stages=2"});
    const Tokens text = stages.Text(compressed);
    for (size_t n = 5; n < text.size(); ++n) {
      EXPECT_EQ(stages.Next({text.begin(), text.begin() + static_cast<int64_t>(n)}, 0, compressed),
                text[n])
          << n;
    }
  }
}

TEST(GeneratedTextTest, ATextWithLabelsAtAllPositionsHasNoCountsOfClasses) {
  TextStages stages({});
  EXPECT_THAT(stages.Evaluate(true).confusion(), IsEmpty());
}

TEST(GeneratedTextTest, TheSeedDecidesWhatIsDrawnAndCompressionWhatIsSent) {
  TextStages stages({"pipeline.stages=2"});
  Sampling& sampling = *stages.request_.mutable_sampling();
  sampling.set_temperature(2);
  const Tokens one = stages.Text();
  const uint64_t bytes = std::exchange(stages.wire_bytes, 0);
  EXPECT_EQ(stages.Text(), one);
  EXPECT_EQ(std::exchange(stages.wire_bytes, 0), bytes);
  sampling.set_seed(9);
  EXPECT_NE(stages.Text(), one);
  stages.wire_bytes = 0;
  stages.Text(/*compressed=*/false);
  EXPECT_GT(stages.wire_bytes, bytes + 100);
}

TEST(GeneratedTextTest, OnlyTokensOfTheVocabularyAreDrawn) {
  TextStages stages({"pipeline.stages=2", "model.classes=500"});
  Sampling& sampling = *stages.request_.mutable_sampling();
  sampling.set_temperature(1000);
  const auto greatest = [&] {
    const Tokens text = stages.Text();
    return *std::max_element(text.begin(), text.end());
  };
  EXPECT_GT(greatest(), 64);
  sampling.set_vocabulary(65);
  EXPECT_LT(greatest(), 65);
  sampling.set_vocabulary(1);
  EXPECT_EQ(stages.Next({1, 2, 3}, 0), 0);
  sampling.set_vocabulary(9999);
  EXPECT_GT(greatest(), 64);
}

TEST(GeneratedTextTest, ATextMayGoOnFromAnyOfItsPositions) {
  TextStages stages({"pipeline.stages=2"}), anew({"pipeline.stages=2"});
  const Tokens text = stages.Text();
  Tokens other(text.begin(), text.begin() + 6);
  other.push_back((text[6] + 1) % 65);
  EXPECT_EQ(stages.Next(other, 6), anew.Next(other, 0));
  EXPECT_EQ(stages.stage(0).positions(), 7);
  other.push_back(3);
  EXPECT_EQ(stages.Next(other, 7), anew.Next(other, 0));
}

TEST(GeneratedTextTest, TrainingIsAsItWouldHaveBeenAndEndsTheText) {
  TextStages plain({"pipeline.stages=2"}), other({"pipeline.stages=2"});
  other.Text();
  EXPECT_EQ(other.stage(0).positions(), kContext - 1);
  EXPECT_EQ(other.Train(), plain.Train());
  EXPECT_EQ(other.Values(), plain.Values());
  EXPECT_EQ(other.stage(0).positions(), 0);
  EXPECT_EQ(other.Evaluate(true).loss(), plain.Evaluate(true).loss());
  EXPECT_THAT(other.Refusal([](GenerateRequest* request) { request->set_first_position(4); }),
              HasSubstr("first_position: 4, want 0 to 3, the positions so far"));
}

TEST(GeneratedTextTest, WhatDoesNotFitIsRefusedAndTheTextGoesOn) {
  TextStages stages({"pipeline.stages=2"});
  EXPECT_THAT(stages.Refusal([](GenerateRequest* request) { request->clear_ids(); }),
              HasSubstr("ids: 0 from position 3, want 1 to 9, for a context of 12"));
  EXPECT_THAT(stages.Refusal([](GenerateRequest* request) {
    for (int i = 0; i < 9; ++i) request->add_ids(1);
  }),
              HasSubstr("ids: 10 from position 3, want 1 to 9"));
  EXPECT_THAT(stages.Refusal([](GenerateRequest* request) { request->add_ids(65); }),
              HasSubstr("ids: 65, want 0 to 64, the model's vocabulary"));
  EXPECT_THAT(stages.Refusal([](GenerateRequest* request) { request->clear_step(); }),
              HasSubstr("step: 0, want tokens from 1"));
  EXPECT_THAT(stages.Refusal([](GenerateRequest* request) {
    request->mutable_sampling()->set_temperature(-1);
  }),
              HasSubstr("temperature: -1"));
  EXPECT_THAT(stages.Refusal([](GenerateRequest*) {}), IsEmpty());
}

TEST(GeneratedTextTest, StagesThatAreGivenDifferentTokensNoticeIt) {
  TextStages stages({"pipeline.stages=2"});
  const auto statuses = stages.AtEveryStage([&](size_t i) {
    GenerateRequest request;
    request.set_step(1);
    request.add_ids(static_cast<int32_t>(i));
    return stages.executor(i).Generate(request).status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_THAT(std::string(statuses[1].message()),
              HasSubstr("text activation of cut 1, epoch 1, step 1, microbatch 0: sample "
                        "digest"));
}

TEST(GeneratedTextTest, AModelOfImagesIsRefused) {
  Stages images(
      "name: images\nmodel: {name: resnet8, width: 4}\n"
      "data: {name: digits, limit: 20, test_limit: 20}\noptimizer: {lr: 0.1}\n"
      "pipeline: {cuts: []}\nepochs: 1\n",
      {});
  EXPECT_THAT(std::string(images.executor(0).Generate({}).status().message()),
              HasSubstr("model resnet8 takes no tokens"));
}

}  // namespace
}  // namespace thinwire
