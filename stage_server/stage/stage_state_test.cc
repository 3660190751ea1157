// Checks that a run resumed from its state, in other processes, trains as if it had not stopped,
// bit for bit.
#include "stage_server/stage/stage_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/settings_testing.h"
#include "models/file_tensors.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// An experiment with ten steps an epoch, the last of which has a smaller batch.
constexpr char kImages[] = R"(
name: resumed
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10, limit: 97, test_limit: 20, augment: per_epoch}
pipeline: {cuts: [stem, layer2], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}
lr_schedule: {name: cosine, warmup_steps: 3, by: step}
metrics: {error_every: 1}
epochs: 2
)";

constexpr char kText[] = R"(
name: resumed
model: {name: gpt2, width: 16, layers: 2, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 6, context: 16, windows: 60, test_limit: 2}
pipeline: {cuts: [h.0], stages: 1, microbatches: 2, threads: 1}
optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5}
epochs: 2
)";

using State = std::vector<std::vector<StateFile>>;  // of each stage

State Copied(Stages* stages, bool codec_state = true) {
  State state(stages->size());
  const auto statuses = stages->AtEveryStage([&](size_t i) {
    auto files = CopyState(&stages->stage(i), {codec_state}, kNoLimit);
    if (files.ok()) state[i] = *std::move(files);
    return files.status();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  return state;
}

std::string BytesOf(const StateFile& file) {
  std::string bytes;
  const absl::Status written = WriteFile(file, /*piece_bytes=*/1000, [&](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(bytes.size(), FileBytes(file));
  return bytes;
}

// Restores a file that comes in pieces of arbitrary length.
absl::Status RestoreOne(LocalStage* stage, const StateFile& file, uint64_t step) {
  const std::string bytes = BytesOf(file);
  std::string_view rest = bytes;
  return RestoreState(stage, file.part, step, kNoLimit, [&rest](std::string_view* piece) {
    *piece = rest.substr(0, 777);
    rest.remove_prefix(piece->size());
    return !piece->empty();
  });
}

void Restored(const State& state, uint64_t step, Stages* stages) {
  const auto statuses = stages->AtEveryStage([&](size_t i) {
    absl::Status status;
    for (const StateFile& file : state[i]) {
      status.Update(RestoreOne(&stages->stage(i), file, step));
    }
    return status;
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

// Trains two epochs, stops after step `at`, lets other stages resume, and expects the result of an
// uninterrupted run. The step lies in the first epoch, in the second, or between them.
void ExpectResumedEqualsUninterrupted(const char* experiment,
                                      const std::vector<std::string>& overrides) {
  Stages whole(experiment, overrides);
  std::vector<double> losses = whole.Train(1);
  const std::vector<double> second = whole.Train(2);
  losses.insert(losses.end(), second.begin(), second.end());
  ASSERT_EQ(losses.size(), 20u);
  for (const uint64_t at : {4, 10, 13}) {
    SCOPED_TRACE(at);
    Stages before(experiment, overrides), after(experiment, overrides);
    std::vector<double> resumed = before.TrainSteps(1, 1, std::min<uint64_t>(at, 10));
    const auto add = [&resumed](const std::vector<double>& more) {
      resumed.insert(resumed.end(), more.begin(), more.end());
    };
    if (at > 10) add(before.TrainSteps(2, 11, at));
    Restored(Copied(&before), at, &after);
    if (at < 10) add(after.TrainSteps(1, at + 1, 10));
    add(after.TrainSteps(2, std::max<uint64_t>(at, 10) + 1, 20));
    EXPECT_THAT(resumed, ElementsAreArray(losses));
    EXPECT_THAT(after.Values(), ElementsAreArray(whole.Values()));
  }
}

std::vector<std::string> Both(const std::string& direction) {
  return {absl::StrCat("compression.activations={", direction, "}"),
          absl::StrCat("compression.gradients={", direction, "}")};
}

// Both kinds of state of contributions: rows of feedback, and what a codec leaves to its next
// message.
TEST(ResumedReplicasTest, GoOn) {
  for (const char* contributions :
       {"{codec: topk, ratio: 0.1, feedback: ef}", "{codec: low_rank, rank: 2}",
        "{codec: low_rank, rank: 2, feedback: ef}"}) {
    SCOPED_TRACE(contributions);
    ExpectResumedEqualsUninterrupted(
        kImages, {"model.width=16", "data.limit=97",
                  absl::StrCat("replicas={count: 2, contributions: ", contributions, "}"),
                  "compression.activations={codec: topk, ratio: 0.2, feedback: ef}",
                  "compression.gradients={codec: low_rank, rank: 2}"});
  }
}

// State of a replica goes to whoever carries it.
TEST(ResumedReplicasTest, GoOnWithOtherCarriers) {
  const auto with = [](int carriers) {
    return std::make_unique<Stages>(
        kImages,
        std::vector<std::string>{
            "model.width=16", "pipeline.stages=1",
            "replicas={count: 4, contributions: {codec: low_rank, rank: 2, feedback: ef}}"},
        CpuBackend, [](StageSpec*) {}, carriers);
  };
  const std::unique_ptr<Stages> whole = with(1);
  const std::vector<double> losses = whole->Train(1);
  for (const auto& [first, then] : Settings<std::pair<int, int>>({{4, 1}, {1, 2}, {2, 4}})) {
    SCOPED_TRACE(absl::StrCat(first, " carriers, then ", then));
    const std::unique_ptr<Stages> before = with(first), after = with(then);
    std::vector<double> resumed = before->TrainSteps(1, 1, 4);
    std::vector<StateFile> all;
    for (std::vector<StateFile>& files : Copied(before.get())) {
      for (StateFile& file : files) all.push_back(std::move(file));
    }
    Restored(State(after->size(), all), 4, after.get());
    for (const double loss : after->TrainSteps(1, 5, 10)) resumed.push_back(loss);
    EXPECT_THAT(resumed, ElementsAreArray(losses));
    EXPECT_THAT(after->Values(), ElementsAreArray(whole->Values()));
  }
}

// Step 10 ends a round with its epoch; the others lie within one.
TEST(ResumedReplicasTest, LocalStepsGoOnWithinARound) {
  for (const char* local :
       {"count: 2, every: 3, contributions: {codec: topk, ratio: 0.1, feedback: ef}",
        "count: 1, every: 7, outer: {name: sgd, lr: 0.5, momentum: 0.5}",
        "count: 2, every: 4, fragments: 2, overlap: 1"}) {
    SCOPED_TRACE(local);
    ExpectResumedEqualsUninterrupted(
        kImages, {"model.width=16", absl::StrCat("replicas={sync: local, ", local, "}")});
  }
  ExpectResumedEqualsUninterrupted(
      kText, {"replicas={count: 2, sync: local, every: 3}",
              "optimizer={name: muon, lr: 0.02, adamw_lr: 0.01, weight_decay: 0.1}",
              "compression.bottleneck={kind: learned_subspace, width: 3, basis_rate: 1}"});
  for (const char* const change : {"pipeline.cuts=none", "freeze=[embedding, h.0]"}) {
    SCOPED_TRACE(change);
    ExpectResumedEqualsUninterrupted(kText, {"replicas={count: 2, sync: local, every: 3}", change});
  }
}

TEST(ResumedReplicasTest, WithinARoundReplicasHaveModelsOfTheirOwn) {
  Stages stages(kImages, {"replicas={count: 2, sync: local, every: 2}"});
  const auto names = [&] {
    const State state = Copied(&stages);
    std::vector<std::string> all;
    for (const StateFile& file : state[0]) {
      all.push_back(file.part.tensors());
      if (file.part.has_replica()) absl::StrAppend(&all.back(), " ", file.part.replica());
    }
    return all;
  };
  stages.TrainSteps(1, 1, 1);
  EXPECT_THAT(names(),
              ElementsAreArray({"model", "momentum_buffer 0", "replica_model 0",
                                "momentum_buffer 1", "replica_model 1", "outer_momentum_buffer"}));
  stages.TrainSteps(1, 2, 2);
  EXPECT_THAT(names(), ElementsAreArray({"model", "momentum_buffer 0", "momentum_buffer 1",
                                         "outer_momentum_buffer"}));
}

class ResumedTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ResumedTest, EveryFeedbackGoesOn) {
  ExpectResumedEqualsUninterrupted(kImages, Both(GetParam().second));
  // Without a codec there is no error to remember.
  if (GetParam().second == std::string("codec: none")) return;
  for (const char* feedback : {"ef", "ef21", "aq_sgd"}) {
    SCOPED_TRACE(feedback);
    ExpectResumedEqualsUninterrupted(
        kImages, Both(absl::StrCat(GetParam().second, ", feedback: ", feedback)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, ResumedTest,
    testing::Values(std::pair("None", "codec: none"),
                    std::pair("Uniform", "codec: uniform, bits: 3, rounding: stochastic"),
                    std::pair("TopK", "codec: topk, ratio: 0.2"),
                    std::pair("RandomK", "codec: randomk, ratio: 0.3"),
                    std::pair("LowRank", "codec: low_rank, rank: 2"),
                    std::pair("Principal",
                              "codec: ecsq, rotation: principal, "
                              "rotation_every: 3, rounding: stochastic"),
                    std::pair("Outliers", "codec: ecsq, outliers: 2, rounding: dither")),
    [](const auto& info) { return info.param.first; });

TEST(StageStateTest, OtherFormsOfStateGoOn) {
  for (const char* direction :
       {"codec: topk, ratio: 0.1, feedback: lazy", "codec: topk, ratio: 0.1, feedback: ef_mixed_b",
        "codec: uniform, bits: 4, feedback: {kind: ef21, store: q4, digest_every: 1}",
        "codec: topk, ratio: 0.1, feedback: {kind: ef, key: sample, store: fp16}",
        "codec: topk, ratio: 0.1, level: {target_error: 0.5, min: 0.02, max: 0.6}",
        "codec: uniform, bits: 8, level: {target_error: 0.1, min: 2, max: 8}, feedback: ef"}) {
    SCOPED_TRACE(direction);
    ExpectResumedEqualsUninterrupted(kImages, Both(direction));
  }
}

TEST(StageStateTest, SchedulesOtherNumbersOfStagesAndWarmUpGoOn) {
  for (const char* override :
       {"pipeline.schedule=gpipe", "pipeline.schedule=zero_bubble", "pipeline.stages=1",
        "pipeline.stages=2", "compression.warmup_steps=7",
        "optimizer={name: adamw, lr: 0.01, weight_decay: 0.1}"}) {
    SCOPED_TRACE(override);
    std::vector<std::string> overrides = Both("codec: topk, ratio: 0.2, feedback: ef21");
    overrides.push_back(override);
    ExpectResumedEqualsUninterrupted(kImages, overrides);
  }
}

TEST(StageStateTest, StagesThatTakeTurnsGoOn) {
  std::vector<std::string> overrides = Both("codec: topk, ratio: 0.2, feedback: ef21");
  overrides.insert(overrides.end(), {"pipeline.cuts=[stem, layer1, layer2]", "pipeline.stages=2",
                                     "pipeline.schedule=interleaved"});
  ExpectResumedEqualsUninterrupted(kImages, overrides);
  overrides[2] = "pipeline.cuts=[embedding, h.0, h.1]";
  overrides.push_back(
      "model.tied=false");  // a copy is in the file of the stage that has the weight
  ExpectResumedEqualsUninterrupted(kText, overrides);
}

TEST(StageStateTest, ALanguageModelWithATiedWeightDropoutAndClippingGoesOn) {
  ExpectResumedEqualsUninterrupted(kText, {});
  ExpectResumedEqualsUninterrupted(kText, Both("codec: topk, ratio: 0.3, feedback: ef21"));
}

TEST(StageStateTest, MuonAndLearnedAndFixedSubspacesGoOn) {
  const std::string muon = "optimizer={name: muon, lr: 0.02, adamw_lr: 0.01, weight_decay: 0.1}";
  ExpectResumedEqualsUninterrupted(kImages, {muon});
  ExpectResumedEqualsUninterrupted(
      kText, {muon, "compression.bottleneck={kind: learned_subspace, width: 3, basis_rate: 1}"});
  ExpectResumedEqualsUninterrupted(kText, {"compression.bottleneck={kind: subspace, width: 3}",
                                           "model.tied=false", "model.dropout=0"});
}

// The files have what the codes stand for, which gives the same codes again.
TEST(StageStateTest, MeansInCodesGoOn) {
  const std::string coded = "optimizer={name: adamw, lr: 0.01, clip_norm: 0.5, moments: int8}";
  const std::string wide = "model.width=64";
  ExpectResumedEqualsUninterrupted(kText, {coded, wide});
  ExpectResumedEqualsUninterrupted(kText, {coded, wide, "tensor.parts=2", "model.dropout=0"});
  ExpectResumedEqualsUninterrupted(
      kText,
      {coded, wide, "replicas={count: 2, sync: local, every: 3}", "pipeline.microbatches=1"});
}

TEST(StageStateTest, MeansInCodesAreFilesOfNumbersAndTheirMemoryIsCounted) {
  const std::string coded = "optimizer={name: adamw, lr: 0.01, moments: int8}";
  Stages with(kText, {"model.width=64", coded}), without(kText, {"model.width=64"});
  with.TrainSteps(1, 1, 2);
  const State state = Copied(&with), plain = Copied(&without);
  ASSERT_EQ(state[0].size(), plain[0].size());
  for (size_t i = 0; i < state[0].size(); ++i) {
    EXPECT_EQ(state[0][i].part.tensors(), plain[0][i].part.tensors());
    EXPECT_EQ(FileBytes(state[0][i]), FileBytes(plain[0][i]));
  }
  uint64_t bytes = 0;
  for (const StateFile& file : state[0]) bytes += FileBytes(file);
  EXPECT_EQ(CopyState(&with.stage(0), {true}, bytes).status().code(),
            absl::StatusCode::kResourceExhausted);
  // Another stage takes them, whatever form it keeps them in.
  Restored(state, 2, &without);
}

// The file has what the codes stand for, which gives the same codes again.
TEST(StageStateTest, ABaseInFewBitsGoesOn) {
  for (const char* base : {"bf16", "int8", "nf4"}) {
    SCOPED_TRACE(base);
    ExpectResumedEqualsUninterrupted(
        kText, {"model.width=64", "lora={rank: 2}", absl::StrCat("base.weights=", base)});
  }
}

TEST(StageStateTest, FrozenParametersTakeNoMemoryForTheirCopy) {
  const std::vector<std::string> adapted = {"model.width=64", "lora={rank: 1}"};
  Stages stages(kText, adapted);
  uint64_t frozen = 0;
  for (const Parameter* parameter : stages.stage(0).parameters()) {
    if (parameter->spec.is_trained()) continue;
    frozen += static_cast<uint64_t>(parameter->spec.shape.elements()) * sizeof(float);
  }
  const auto files = CopyState(&stages.stage(0), {true}, frozen / 2);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_GT(FileBytes(files->front()), frozen / 2);
  CopiedState own;
  own.outlives = true;
  EXPECT_EQ(CopyState(&stages.stage(0), own, frozen / 2).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(StageStateTest, WithoutWhatTheCutsRememberTheFilesAreOfParameters) {
  Stages stages(kImages, Both("codec: topk, ratio: 0.2, feedback: ef21"));
  stages.TrainSteps(1, 1, 2);
  const State all = Copied(&stages), without = Copied(&stages, /*codec_state=*/false);
  for (size_t i = 0; i < stages.size(); ++i) {
    std::vector<std::string> names;
    for (const StateFile& file : without[i]) names.push_back(file.part.tensors());
    EXPECT_THAT(names, ElementsAreArray({"model", "momentum_buffer"}));
    // An outer stage has a sender and a receiver, an inner one two of each.
    EXPECT_EQ(all[i].size(), 2u + (i == 1 ? 4 : 2));
  }
}

TEST(StageStateTest, WhatDoesNotFitIsNamed) {
  Stages stages(kImages, Both("codec: topk, ratio: 0.2, feedback: ef21"));
  Stages plain(kImages, {"optimizer.momentum=0"});
  stages.TrainSteps(1, 1, 2);
  State state = Copied(&stages);
  StateFile &model = state[0][0], &momentum = state[0][1], &end = state[0][2];
  const auto error = [](Stages* into, const StateFile& file) {
    return std::string(RestoreOne(&into->stage(0), file, 2).message());
  };
  EXPECT_THAT(error(&plain, momentum), HasSubstr("momentum_buffer: the optimizer remembers"));
  EXPECT_THAT(error(&plain, end), HasSubstr("stem.activation.sender: "));
  StateFile other = end;
  other.part.set_cut("layer2");
  EXPECT_THAT(error(&stages, other),
              HasSubstr("layer2.activation.sender: stage 0 has no such end of a cut"));
  std::string_view rest = end.bytes;
  const absl::Status too_large =
      RestoreState(&stages.stage(0), end.part, 2, 100, [&rest](std::string_view* piece) {
        *piece = std::exchange(rest, "");
        return !piece->empty();
      });
  EXPECT_EQ(too_large.code(), absl::StatusCode::kResourceExhausted);
  other = end;
  other.part.mutable_level()->set_level(1);
  EXPECT_THAT(error(&stages, other), HasSubstr("level: this end's does not follow errors"));
  for (StateFile* file : {&model, &momentum, &end}) {
    file->bytes.resize(file->bytes.size() - 1);
    EXPECT_FALSE(RestoreOne(&stages.stage(0), *file, 2).ok());
  }
}

TEST(StageStateTest, ACopyThatDoesNotFitIntoMemoryIsRefused) {
  Stages stages(kImages, {});
  const absl::Status status = CopyState(&stages.stage(0), {true}, 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000 are left"));
}

TEST(StageStateTest, StepsThatTheEpochDoesNotHaveAreRefused) {
  Stages stages(kImages, {});
  for (const auto& [first, last] : {std::pair<uint64_t, uint64_t>(0, 3), {5, 4}, {9, 11}}) {
    TrainRequest request;
    request.set_epoch(1);
    request.set_samples(stages.train_size());
    request.set_first_step(first);
    request.set_last_step(last);
    const absl::Status status = stages.executor(0).Train(request, [](const StepReport&) {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("want 1 to 10, the steps of epoch 1"));
  }
}

TEST(StageStateTest, FrozenTensorsMayBeLeftOutAndStayAsTheyAre) {
  const std::vector<std::string> frozen = {"freeze=[stem]", "pipeline.stages=1"};
  Stages trained(kImages, frozen), fresh(kImages, frozen);
  trained.TrainSteps(1, 1, 2);
  std::set<std::string> names;
  std::vector<std::string> kept;
  for (const Parameter* one : trained.stage(0).parameters()) {
    if (one->spec.role != ParameterSpec::Role::kFrozen) continue;
    names.insert(FileTensors(one->spec).front().name);
    kept.push_back(one->spec.name);
  }
  ASSERT_FALSE(names.empty());
  const auto whole = CopyState(&trained.stage(0), {false}, kNoLimit);
  const auto files = CopyState(&trained.stage(0), {false, names}, kNoLimit);
  ASSERT_TRUE(whole.ok() && files.ok());
  EXPECT_EQ(files->size(), whole->size());
  const std::string all = BytesOf(whole->front()), left = BytesOf(files->front());
  const auto parsed = ParseSafetensors(left);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (const StoredTensor& tensor : parsed->tensors) EXPECT_EQ(names.count(tensor.name), 0u);
  EXPECT_LT(left.size(), all.size());
  std::string_view rest = left;
  const auto next = [&rest](std::string_view* piece) {
    *piece = rest.substr(0, 777);
    rest.remove_prefix(piece->size());
    return !piece->empty();
  };
  const absl::Status restored =
      RestoreState(&fresh.stage(0), files->front().part, 2, kNoLimit, next, kept);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(fresh.Values(), ElementsAreArray(trained.Values()));
  rest = left;
  EXPECT_THAT(
      std::string(RestoreState(&fresh.stage(0), files->front().part, 2, kNoLimit, next).message()),
      HasSubstr("is missing"));
}

}  // namespace
}  // namespace thinwire
