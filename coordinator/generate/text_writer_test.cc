#include "coordinator/generate/text_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/safetensors.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "models/file_tensors.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
model: {name: gpt2, layers: 1, heads: 1, width: 4}
data: {name: shakespeare, context: 6}
pipeline: {cuts: [embedding]}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment Parsed(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

// Makes weights of zeros, in the folder's only file.
ModelShares WeightsOf(const Experiment& experiment, const std::string& dir) {
  std::filesystem::create_directories(dir);
  const std::string zeros(100000, '\0');
  const Model model = *ModelFrom(experiment);
  Safetensors file;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!StandsInFiles(parameter)) continue;
      for (const FileTensor& tensor : FileTensors(parameter)) {
        int64_t bytes = sizeof(float);
        for (const int64_t extent : tensor.shape) bytes *= extent;
        file.tensors.push_back(
            {tensor.name, "F32", tensor.shape, std::string_view(zeros).substr(0, bytes)});
      }
    }
  }
  std::ofstream out(dir + "/model.safetensors", std::ios::binary);
  EXPECT_TRUE(WriteSafetensors(file, std::string::npos, [&](std::string_view piece) {
                out << piece;
                return absl::OkStatus();
              }).ok());
  out.close();
  auto shares = ModelShares::Of(experiment, *ModelFolder::Open(dir));
  EXPECT_TRUE(shares.ok()) << shares.status();
  return *std::move(shares);
}

// Two stages, of which the last draws 10, 11, 12, ...
class TextWriterTest : public ::testing::Test {
 protected:
  TextWriterTest() {
    last_.generate = [this](const GenerateRequest& request, GenerateResponse* response) {
      requests_.push_back(request);
      response->set_id(static_cast<int32_t>(9 + request.step()));
      response->set_wire_bytes(1);
      return grpc::Status::OK;
    };
    first_.generate = [](const GenerateRequest& request, GenerateResponse* response) {
      response->set_wire_bytes(request.ids_size() * 100);
      return grpc::Status::OK;
    };
  }
  // Writes behind each of the texts, one after the other.
  absl::Status Generate(const std::vector<std::vector<int32_t>>& texts) {
    Fleet fleet({first_.address(), last_.address()}, "run", FleetOptions());
    auto writer = TextWriter::Start(
        Parsed(), WeightsOf(Parsed(), ::testing::TempDir() + "/text_writer"), options_, &fleet);
    absl::Status status = writer.status();
    for (const std::vector<int32_t>& text : texts) {
      if (!status.ok()) break;
      status = writer->Write(text, [this](int32_t id) {
        drawn_.push_back(id);
        return id != last_token_;
      });
      totals_ = writer->totals();
    }
    fleet.Release();
    return status;
  }
  // Returns "first_position: ids" of each request to the last stage.
  std::vector<std::string> Asked() const {
    std::vector<std::string> asked;
    for (const GenerateRequest& request : requests_) {
      std::string& text = asked.emplace_back(std::to_string(request.first_position()) + ":");
      for (const int32_t id : request.ids()) text += " " + std::to_string(id);
    }
    return asked;
  }

  FakeStage first_, last_;
  WriterOptions options_{3};
  TextTotals totals_;
  std::vector<int32_t> drawn_;
  int32_t last_token_ = 0;
  std::vector<GenerateRequest> requests_;
};

TEST_F(TextWriterTest, EachTokenFollowsAndTheStagesAreToldItAlone) {
  options_.sampling.set_seed(7);
  ASSERT_EQ(Generate({{1, 2}}), absl::OkStatus());
  EXPECT_THAT(drawn_, ElementsAre(10, 11, 12));
  EXPECT_THAT(Asked(), ElementsAre("0: 1 2", "2: 10", "3: 11"));
  EXPECT_EQ(totals_.tokens, 3);
  EXPECT_EQ(totals_.wire_bytes, 3 + 200 + 100 + 100);
  for (const GenerateRequest& request : requests_) {
    EXPECT_TRUE(request.compressed());
    EXPECT_EQ(request.sampling().seed(), 7u);
  }
  EXPECT_FALSE(first_.imported().empty());
  EXPECT_THAT(first_.calls(), Contains("generates")) << "no data are read for it";
}

TEST_F(TextWriterTest, TheTextEndsWhereItIsToldTo) {
  options_.tokens = 100;
  last_token_ = 11;
  ASSERT_EQ(Generate({{1, 2}}), absl::OkStatus());
  EXPECT_THAT(drawn_, ElementsAre(10, 11));
  EXPECT_EQ(totals_.tokens, 2);
}

TEST_F(TextWriterTest, AFullContextGoesOnWithItsLaterHalf) {
  options_.tokens = 7;
  ASSERT_EQ(Generate({{1, 2, 3, 4}}), absl::OkStatus());
  EXPECT_THAT(Asked(), ElementsAre("0: 1 2 3 4", "4: 10", "5: 11", "0: 10 11 12", "3: 13", "4: 14",
                                   "5: 15"));
}

TEST_F(TextWriterTest, OfALongPromptTheEndIsKept) {
  options_.tokens = 2;
  ASSERT_EQ(Generate({{1, 2, 3, 4, 5, 6, 7, 8}}), absl::OkStatus());
  EXPECT_THAT(Asked(), ElementsAre("0: 3 4 5 6 7 8", "0: 7 8 10"));
}

TEST_F(TextWriterTest, WhatTheTextBeforeBeganWithIsNotToldAgain) {
  options_.tokens = 1;
  ASSERT_EQ(Generate({{1, 2}, {1, 2, 10, 5}, {1, 2, 10, 7}, {1, 2, 10, 7}, {3}}), absl::OkStatus());
  EXPECT_THAT(Asked(), ElementsAre("0: 1 2", "2: 10 5", "3: 7", "3: 7", "0: 3"));
  EXPECT_EQ(totals_.tokens, 5);
}

TEST_F(TextWriterTest, WhatAStageSaysEndsTheTextAndIsNamed) {
  first_.generate = [](const GenerateRequest& request, GenerateResponse*) {
    return request.step() < 3 ? grpc::Status::OK
                              : grpc::Status(grpc::StatusCode::INTERNAL, "a broken stage");
  };
  EXPECT_THAT(std::string(Generate({{1, 2}}).message()), HasSubstr("Generate: a broken stage"));
  EXPECT_EQ(totals_.tokens, 2);
}

TEST_F(TextWriterTest, AStageThatDrawsNothingIsAnError) {
  last_.generate = [](const GenerateRequest&, GenerateResponse*) { return grpc::Status::OK; };
  EXPECT_EQ(Generate({{1, 2}}), absl::InternalError("the last stage drew no token"));
}

TEST(CheckGeneratesTest, WantsALanguageModelAndCodecsOfSinglePositions) {
  const auto refusal = [](const std::vector<std::string>& overrides, bool compressed = true) {
    return std::string(CheckGenerates(Parsed(overrides), compressed).message());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({"compression.activations={codec: topk, ratio: 0.5, scope: token}"}), "");
  const std::vector<std::string> wide = {
      "compression.activations={codec: topk, ratio: 0.5, scope: sample}"};
  EXPECT_THAT(refusal(wide), HasSubstr("cut embedding: activations: topk(ratio=0.5, scope=sample"));
  EXPECT_THAT(refusal(wide), HasSubstr("or --compression off"));
  EXPECT_EQ(refusal(wide, /*compressed=*/false), "");
  // AQ-SGD evaluates without compression.
  EXPECT_EQ(refusal({"compression.activations={codec: uniform, bits: 4, feedback: aq_sgd, "
                     "scope: sample}"}),
            "");
  EXPECT_THAT(refusal({"model.name=resnet8", "data.name=digits", "pipeline.cuts=[]"}),
              HasSubstr("model resnet8 takes images, want a language model"));
}

}  // namespace
}  // namespace thinwire
