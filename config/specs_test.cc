#include "config/specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "compress/codecs/plugin.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kExperiment[] = R"(
seed: 5
model: {name: resnet8, width: 8}
data: {name: digits, limit: 100}
pipeline: {cuts: [layer1, layer2, layer3], stages: 2}
compression:
  activations: {codec: topk, ratio: 0.1}
  gradients: {codec: uniform, bits: 4, rounding: stochastic}
  boundaries: {layer2: {gradients: {codec: topk, k: 7}}}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.0005, nesterov: true}
lr_schedule: {name: linear, min_lr: 0.01, warmup_steps: 3}
epochs: 4
precision: bf16
)";

Experiment With(const std::vector<std::string>& overrides) {
  const auto e = ParseExperiment(kExperiment, "test.yaml", overrides);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *e : Experiment();
}

TEST(SpecsTest, TheModelIsBuiltForTheData) {
  const auto model = ModelFrom(With({}));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->input, (Shape{1, 8, 8, 1}));
  EXPECT_EQ(model->classes, 10);
  EXPECT_EQ(model->blocks[0].out, (Shape{1, 8, 8, 8}));
}

TEST(SpecsTest, ACustomModelsParametersAreNamedBelowTheirBlock) {
  const auto e = ParseExperiment(R"(
model:
  name: custom
  blocks:
    - name: all
      layers:
        - kind: flatten
        - {kind: residual, body: [{kind: linear, name: a, out: 64}]}
        - {kind: layer_norm, name: ln}
        - {kind: maxout, group: 4}
        - {kind: linear, name: fc, out: 10, bias: false}
data: {name: digits}
optimizer: {lr: 0.1}
epochs: 1
)",
                                 "custom.yaml", {});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto model = ModelFrom(*e);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : Parameters(model->blocks[0])) {
    names.push_back(parameter.name);
  }
  EXPECT_THAT(names, ElementsAre("all.a.weight", "all.a.bias", "all.ln.weight", "all.ln.bias",
                                 "all.fc.weight"));
  EXPECT_EQ(model->blocks[0].layers.back().in_features, 16);
}

constexpr char kLanguage[] = R"(
model: {name: gpt2, layers: 3, heads: 4, width: 32, dropout: 0.1}
data: {name: shakespeare, context: 16}
pipeline: {cuts: [embedding, h.1]}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment Language(const std::vector<std::string>& overrides) {
  const auto e = ParseExperiment(kLanguage, "language.yaml", overrides);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *e : Experiment();
}

TEST(SpecsTest, ALanguageModelHasTheVocabularyAndContextOfItsText) {
  const auto partition = PartitionFrom(Language({}));
  ASSERT_TRUE(partition.ok()) << partition.status();
  const Model& model = partition->model;
  EXPECT_TRUE(model.tokens);
  EXPECT_EQ(model.positions, 16);
  EXPECT_EQ(model.blocks.back().out, (Shape{1, 16, 65}));
  EXPECT_TRUE(IsRandom(model.blocks[1].layers));
  ASSERT_EQ(partition->cuts.size(), 2u);
  EXPECT_EQ(partition->cuts[1].block, 2);
  const auto llama =
      ModelFrom(Language({"model={name: llama, layers: 3, heads: 4, kv_heads: 2, "
                          "width: 32, hidden: 48, rope_theta: 500}",
                          "pipeline.cuts=layers.1"}));
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->blocks[1].layers[0].body[2].rope_theta, 500);
  EXPECT_EQ(Parameters(llama->blocks[1])[1].shape, (Shape{64, 32}));
}

TEST(SpecsTest, AnExperimentFileCanWriteEveryLayerOfALanguageModel) {
  const auto e = ParseExperiment(R"(
model:
  name: custom
  blocks:
    - name: embedding
      layers:
        - {kind: embedding, name: wte, out: 16}
        - {kind: position_embedding, name: wpe, context: 64}
        - {kind: dropout, name: drop, rate: 0.1}
    - name: block
      layers:
        - kind: residual
          body:
            - {kind: rms_norm, name: norm, epsilon: 1.0e-6}
            - {kind: linear, name: qkv, out: 32, bias: false, deviation: 0.02}
            - {kind: attention, name: attn, heads: 4, kv_heads: 2, rope_theta: 10000, dropout: 0.1}
            - {kind: linear, name: proj, out: 16}
        - {kind: residual, body: [{kind: linear, name: up, out: 32}, {kind: swiglu}]}
        - {kind: gelu, gelu: exact}
    - name: head
      layers: [{kind: linear, name: logits, out: 65, bias: false, tied_to: embedding.wte}]
data: {name: shakespeare, context: 16}
optimizer: {lr: 0.1}
epochs: 1
)",
                                 "custom.yaml", {});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto model = ModelFrom(*e);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<LayerSpec>& body = model->blocks[1].layers[0].body;
  EXPECT_EQ(body[0].epsilon, 1e-6);
  EXPECT_EQ(body[2].kv_heads, 2);
  EXPECT_EQ(body[2].dropout, 0.1);
  EXPECT_EQ(model->blocks[1].layers[2].gelu, GeluForm::kExact);
  EXPECT_EQ(model->blocks[0].layers[2].dropout, 0.1);
  EXPECT_EQ(Parameters(model->blocks[0])[1].shape, (Shape{64, 16}));
  EXPECT_EQ(Parameters(model->blocks[2])[0].tied_to, "embedding.wte.weight");
}

TEST(SpecsTest, AModelThatDoesNotTakeWhatItsDataIsIsRefused) {
  const auto refusal = [](const std::string& override) {
    const auto e = ParseExperiment(kLanguage, "f.yaml", {"pipeline.cuts=none", override});
    EXPECT_EQ(e.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(e.status().message());
  };
  EXPECT_THAT(refusal("model={name: custom, blocks: [{name: a, layers: [{kind: linear, name: l, "
                      "out: 65}]}]}"),
              HasSubstr("model.blocks: the model takes no token ids, which data shakespeare is"));
  EXPECT_THAT(refusal("data={name: digits}"),
              HasSubstr("model: block embedding: transformer.wte: embedding on [1, 8, 8, 1]"));
}

TEST(SpecsTest, StagesHaveTheirShareOfTheWork) {
  const auto work = WorkOfStages(With({"pipeline.stages=2"}));
  ASSERT_TRUE(work.ok()) << work.status();
  ASSERT_EQ(work->size(), 2u);
  EXPECT_NEAR(work->at(0) + work->at(1), 1, 1e-9);
  EXPECT_GT(work->at(0), 0.01);
  EXPECT_EQ(*WorkOfStages(With({"pipeline.stages=1"})), std::vector<double>{1});
}

TEST(SpecsTest, TheLargestSharedStateIsOfTheStageWithMostParametersAndMeans) {
  const auto bytes_of = [](const std::string& optimizer, int stages) {
    return *LargestSharedState(*ParseExperiment(kLanguage, "f.yaml",
                                                {"optimizer=" + optimizer, "pipeline.cuts=auto",
                                                 absl::StrCat("pipeline.stages=", stages)}));
  };
  const double plain = bytes_of("{name: sgd, lr: 0.1}", 1);
  EXPECT_EQ(bytes_of("{name: adamw, lr: 0.1}", 1), 3 * plain);
  EXPECT_EQ(bytes_of("{name: sgd, lr: 0.1, momentum: 0.9}", 1), 2 * plain);
  EXPECT_LT(bytes_of("{name: sgd, lr: 0.1}", 2), plain);
  EXPECT_GT(bytes_of("{name: sgd, lr: 0.1}", 2), plain / 4);
}

TEST(SpecsTest, ThePartitionHasCutsAndStages) {
  const auto partition = PartitionFrom(With({}));
  ASSERT_TRUE(partition.ok()) << partition.status();
  ASSERT_EQ(partition->cuts.size(), 3u);
  EXPECT_EQ(partition->cuts[0].name, "layer1");
  EXPECT_EQ(partition->cuts[0].block, 1);
  EXPECT_EQ(partition->placement.stages, 2);
}

TEST(SpecsTest, StagesTakeTurnsOnTheSegmentsWhereTheScheduleSaysSo) {
  const auto chunks = [](const char* schedule, int stages) {
    const auto partition = PartitionFrom(With(
        {absl::StrCat("pipeline.schedule=", schedule), absl::StrCat("pipeline.stages=", stages)}));
    EXPECT_TRUE(partition.ok()) << partition.status();
    return partition->placement.chunks_per_stage();
  };
  EXPECT_EQ(chunks("interleaved", 2), 2);
  EXPECT_EQ(chunks("1f1b", 2), 1);
  EXPECT_EQ(chunks("interleaved", 1), 1);  // all segments together
}

TEST(SpecsTest, ThePartitionsModelHasItsBottlenecks) {
  const Experiment e = With({"compression.bottleneck.width=3",
                             "compression.boundaries.layer2.bottleneck={kind: maxout, group: 4}",
                             "compression.boundaries.layer3.bottleneck.kind=none"});
  const auto partition = PartitionFrom(e);
  ASSERT_TRUE(partition.ok()) << partition.status();
  const auto shape_at = [&](int cut) {
    return partition->model.blocks[partition->cuts[cut].block].out;
  };
  EXPECT_EQ(shape_at(0), (Shape{1, 8, 8, 3}));
  EXPECT_EQ(shape_at(1), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(shape_at(2), (Shape{1, 2, 2, 32}));
  EXPECT_EQ(ModelFrom(e)->blocks[1].out, (Shape{1, 8, 8, 8}));
}

TEST(SpecsTest, AnUncutModelIsOneStage) {
  Experiment e = With({"pipeline.stages=1"});
  e.mutable_compression()->clear_boundaries();
  e.mutable_pipeline()->clear_cuts();
  e.mutable_pipeline()->add_cuts("none");
  const auto partition = PartitionFrom(e);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_THAT(partition->cuts, IsEmpty());
  EXPECT_EQ(partition->placement.stages, 1);
}

TEST(SpecsTest, ACutHasItsOwnCodecOrTheGeneralOne) {
  const Experiment e = With({});
  CodecSpec topk;
  topk.kind = CodecKind::kTopK;
  topk.scope = Scope::kSample;
  topk.ratio = 0.1;
  EXPECT_EQ(*CodecFrom(DirectionOf(e, "layer1", /*gradient=*/false)), topk);
  EXPECT_EQ(*CodecFrom(DirectionOf(e, "layer2", /*gradient=*/false)), topk);
  CodecSpec uniform;
  uniform.kind = CodecKind::kUniform;
  uniform.bits = 4;
  uniform.rounding = Rounding::kStochastic;
  EXPECT_EQ(*CodecFrom(DirectionOf(e, "layer1", /*gradient=*/true)), uniform);
  CodecSpec seven = topk;
  seven.ratio = 0;
  seven.k = 7;
  EXPECT_EQ(*CodecFrom(DirectionOf(e, "layer2", /*gradient=*/true)), seven);
}

TEST(SpecsTest, DataOptimizerAndRateFollowTheFile) {
  const Experiment e = With({});
  EXPECT_EQ(DataOptionsFrom(e.data())->name, "digits");
  EXPECT_EQ(DataOptionsFrom(e.data())->limit, 100);
  EXPECT_TRUE(DataOptionsFrom(e.data())->verify);
  EXPECT_EQ(*AugmentFrom(e), AugmentKind::kPerEpoch);
  EXPECT_EQ(OptimizerFrom(e)->momentum, 0.9);
  EXPECT_EQ(OptimizerFrom(e)->weight_decay, 0.0005);
  EXPECT_TRUE(OptimizerFrom(e)->nesterov);
  const auto rate = LrScheduleFrom(e);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(rate->kind, LrScheduleSpec::Kind::kLinear);
  EXPECT_EQ(rate->lr, 0.1);
  EXPECT_EQ(rate->min_lr, 0.01);
  EXPECT_EQ(rate->t_max, 4);
  EXPECT_EQ(rate->warmup_steps, 3);
}

TEST(TrainingStepsTest, CountsASmallerLastBatch) {
  const std::vector<std::string> batches = {"epochs=10", "data.batch_size=64", "data.limit=1280"};
  EXPECT_EQ(*TrainingSteps(With(batches)), 200u);
  EXPECT_EQ(*TrainingSteps(With({"epochs=10", "data.batch_size=64", "data.limit=1281"})), 210u);
}

TEST(SpecsTest, MuonHasItsAuthorsDefaultsAndTwoRates) {
  const auto muon = OptimizerFrom(With({"optimizer={name: muon, lr: 0.02, weight_decay: 0}"}));
  ASSERT_TRUE(muon.ok()) << muon.status();
  EXPECT_EQ(muon->kind, OptimizerKind::kMuon);
  EXPECT_EQ(muon->lr, 0.02);
  EXPECT_EQ(muon->adamw_lr, 0.0003);
  EXPECT_EQ(muon->momentum, 0.95);
  EXPECT_TRUE(muon->nesterov);
  EXPECT_EQ(muon->beta2, 0.95);
  EXPECT_EQ(muon->epsilon, 1e-10);
}

TEST(SpecsTest, EveryNameThatAFileMayUseHasASpec) {
  for (const char* name : {"constant", "cosine", "linear"}) {
    EXPECT_TRUE(LrScheduleFrom(With({"lr_schedule={name: " + std::string(name) + "}"})).ok());
  }
  EXPECT_TRUE(LrScheduleFrom(With({"lr_schedule={name: step, step_size: 2}"})).ok());
  EXPECT_EQ(*ScheduleFrom(With({"pipeline.schedule=gpipe"})), ScheduleKind::kGPipe);
  EXPECT_EQ(*ScheduleFrom(With({})), ScheduleKind::kOneForwardOneBackward);
  EXPECT_EQ(*RecomputeFrom(With({})), Recompute::kNone);
  EXPECT_EQ(*RecomputeFrom(With({"pipeline.recompute=blocks"})), Recompute::kBlocks);
  EXPECT_EQ(*ComputeFrom(With({})), DType::kBF16);
  EXPECT_EQ(*ComputeFrom(With({"precision=fp32"})), DType::kF32);
  EXPECT_EQ(*ComputeFrom(With({"precision=tf32"})), DType::kF32);
  EXPECT_EQ(*AugmentFrom(With({"data.augment=fixed"})), AugmentKind::kFixed);
  EXPECT_EQ(*AugmentFrom(With({"data.augment=none"})), AugmentKind::kNone);
  for (const char* name : {"resnet8", "resnet18", "resnet20", "resnet34"}) {
    EXPECT_TRUE(ModelFrom(With({"model.name=" + std::string(name)})).ok()) << name;
  }
}

TEST(SpecsTest, CosinesChangeEveryEpochAndLinearSchedulesEveryStep) {
  EXPECT_EQ(LrScheduleFrom(With({"lr_schedule={name: cosine}"}))->by, LrChange::kEpoch);
  EXPECT_EQ(LrScheduleFrom(With({"lr_schedule={name: cosine, by: step}"}))->by, LrChange::kStep);
  EXPECT_EQ(LrScheduleFrom(With({"lr_schedule={name: linear}"}))->by, LrChange::kStep);
}

TEST(SpecsTest, AdamWHasPyTorchsDefaultsButNoDecay) {
  const OptimizerSpec spec =
      *OptimizerFrom(With({"optimizer={name: adamw, lr: 0.1, weight_decay: 0}"}));
  EXPECT_EQ(spec.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(spec.beta1, 0.9);
  EXPECT_EQ(spec.beta2, 0.999);
  EXPECT_EQ(spec.epsilon, 1e-8);
  EXPECT_EQ(spec.weight_decay, 0);
  EXPECT_EQ(spec.decay, DecayKind::kAll);
  EXPECT_EQ(spec.clip_norm, 0);
  const OptimizerSpec given = *OptimizerFrom(
      With({"optimizer={name: adamw, lr: 0.1, decay: matrices, weight_decay: 0.1, clip_norm: 1}"}));
  EXPECT_EQ(given.decay, DecayKind::kMatrices);
  EXPECT_EQ(given.weight_decay, 0.1);
  EXPECT_EQ(given.clip_norm, 1);
  EXPECT_EQ(given.moments, MomentFormat::kFP32);
  EXPECT_EQ(given.place, OptimizerPlace::kDevice);
  const OptimizerSpec coded =
      *OptimizerFrom(With({"optimizer={name: adamw, lr: 0.1, moments: int8, place: host}"}));
  EXPECT_EQ(coded.moments, MomentFormat::kInt8);
  EXPECT_EQ(coded.place, OptimizerPlace::kHost);
}

TEST(SpecsTest, AbsentSeedsFollowTheSeed) {
  const Seeds derived = SeedsFrom(With({}));
  EXPECT_EQ(derived.init, RandomKey(5, "init"));
  EXPECT_EQ(derived.data, RandomKey(5, "data"));
  EXPECT_EQ(derived.codec, RandomKey(5, "codec"));
  EXPECT_EQ(derived.dropout, RandomKey(5, "dropout"));
  EXPECT_EQ(SeedsFrom(With({"seeds.dropout=7"})).dropout, 7u);
  const Seeds given = SeedsFrom(With({"seeds.data=0"}));
  EXPECT_EQ(given.data, 0u);
  EXPECT_EQ(given.init, derived.init);
}

TEST(SpecsTest, APluginsLibraryIsLoaded) {
  const CodecSpec spec = *CodecFrom(
      With({"compression.gradients={codec: plugin, plugin: compress/codecs/libfake.so, parameters: "
            "'{\"other\": 3}'}"})
          .compression()
          .gradients());
  EXPECT_EQ(spec.kind, CodecKind::kPlugin);
  EXPECT_EQ(CodecText(spec), R"(fake 1.0 {"mischief":"none","other":3})");
}

TEST(SpecsTest, AMissingLibraryIsNamed) {
  DirectionConfig config;
  config.set_codec("plugin");
  config.set_plugin("no/such.so");
  EXPECT_THAT(CodecFrom(config).status().message(), HasSubstr("no/such.so: cannot open"));
}

TEST(SpecsTest, AnUnresolvedExperimentIsRefusedAndNotGuessedAt) {
  const Experiment empty;
  EXPECT_FALSE(PartitionFrom(empty).ok());
  EXPECT_FALSE(CodecFrom(DirectionOf(empty, "layer1", /*gradient=*/false)).ok());
  EXPECT_FALSE(DataOptionsFrom(empty.data()).ok());
  EXPECT_FALSE(AugmentFrom(empty).ok());
  EXPECT_FALSE(OptimizerFrom(empty).ok());
  EXPECT_FALSE(LrScheduleFrom(empty).ok());
  EXPECT_FALSE(ScheduleFrom(empty).ok());
  EXPECT_FALSE(ComputeFrom(empty).ok());
  EXPECT_FALSE(RecomputeFrom(empty).ok());
}

}  // namespace
}  // namespace thinwire
