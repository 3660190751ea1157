#include "config/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/resolve_testing.h"
#include "google/protobuf/util/message_differencer.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ResolveTest, FillsEveryDefaultThatMeansSomething) {
  Experiment e = With({"compression.activations.codec=uniform", "lr_schedule.name=cosine"});
  e.clear_derived();  // derived_test checks which fields are defaults
  EXPECT_EQ(ToYaml(e), R"(name: least
seed: 1
model:
  name: resnet8
  width: 16
  classes: 10
data:
  name: digits
  batch_size: 100
  augment: per_epoch
  limit: 0
  test_limit: 0
  verify: true
  shuffle: samples
  held_out: 0
pipeline:
  cuts: [layer1.0, layer2.0, layer3.0]
  stages: 4
  microbatches: 1
  schedule: 1f1b
  threads: auto
  transport: unix
  deadline_seconds: 60
  recompute: none
  received: payload
  swap: device
compression:
  activations:
    codec: uniform
    bits: 8
    range: min_max
    scope: tensor
    rounding: nearest
    zero: free
    feedback:
      kind: none
  gradients:
    codec: none
    feedback:
      kind: none
  warmup_epochs: 0
  warmup_steps: 0
optimizer:
  name: sgd
  lr: 0.1
  momentum: 0
  weight_decay: 0
  nesterov: false
lr_schedule:
  name: cosine
  t_max: 3
  min_lr: 0
  warmup_steps: 0
  by: epoch
epochs: 3
precision: fp32
device: [auto]
evaluation:
  every: 1
  compressed: true
  uncompressed: true
  recalibrated: false
  every_steps: 0
metrics:
  error_every: 20
deterministic: true
checkpoint:
  every_steps: 0
  every_epochs: 1
  keep: 2
  codec_state: full
restarts:
  max: 3
  window: 3600
)");
}

TEST(ResolveTest, AResolvedExperimentResolvesToItself) {
  const Experiment once =
      With({"compression.activations={codec: topk, ratio: 0.1}", "pipeline.cuts=[layer1, layer2]",
            "compression.boundaries.layer1.gradients={codec: uniform, bits: 3}",
            "lr_schedule={name: step, step_size: 2}", "data.augment=false"});
  Experiment twice = once;
  ASSERT_TRUE(Resolve(&twice).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(once, twice));
}

TEST(ResolveTest, SeedsThatAreAbsentStayAbsent) {
  EXPECT_FALSE(With({}).seeds().has_init());
  EXPECT_EQ(With({"seeds.data=7"}).seeds().data(), 7u);
}

TEST(ResolveTest, AugmentTakesBooleans) {
  EXPECT_EQ(With({"data.augment=true"}).data().augment(), "per_epoch");
  EXPECT_EQ(With({"data.augment=false"}).data().augment(), "none");
}

TEST(ResolveTest, AFolderIsFilledInOnlyForDataThatHasOne) {
  EXPECT_EQ(With({"data.name=cifar10"}).data().dir(), "data/cifar10");
  EXPECT_FALSE(With({}).data().has_dir());
}

TEST(ResolveTest, EvaluationsAfterStepsHaveAKindOfInference) {
  EXPECT_EQ(ErrorWith({"evaluation={every_steps: 5, compressed: false, uncompressed: false}"}),
            "--set evaluation={every_steps: 5, compressed: false, uncompressed: false}: "
            "evaluation.every_steps: 5, want evaluation.compressed or .uncompressed: true with it");
  EXPECT_EQ(With({"evaluation={every_steps: 5, compressed: false}"}).evaluation().every_steps(),
            5u);
}

TEST(ResolveTest, RecalibrationNeedsTheUncompressedEvaluationAndBatchNorm) {
  EXPECT_EQ(With({"evaluation.recalibrated=true"}).evaluation().recalibration_samples(), 2000u);
  EXPECT_FALSE(With({}).evaluation().has_recalibration_samples());
  EXPECT_EQ(ErrorWith({"evaluation={recalibrated: true, uncompressed: false}"}),
            "--set evaluation={recalibrated: true, uncompressed: false}: evaluation.recalibrated: "
            "true, want evaluation.uncompressed: true with it");
  EXPECT_EQ(ErrorWith({"evaluation={recalibrated: true, recalibration_samples: 0}"}),
            "--set evaluation={recalibrated: true, recalibration_samples: 0}: "
            "evaluation.recalibration_samples: 0, want at least 1");
  EXPECT_EQ(
      ErrorWith({"evaluation.recalibrated=true",
                 "model={name: custom, blocks: [{name: a, layers: [{kind: "
                 "flatten}, {kind: linear, name: fc, out: 10}]}]}"}),
      "--set evaluation.recalibrated=true: evaluation.recalibrated: true, want false: the model "
      "has no batch norm");
}

TEST(ResolveTest, AutoCutsFollowTheStages) {
  EXPECT_EQ(With({"pipeline.cuts=auto", "pipeline.stages=3"}).pipeline().cuts_size(), 2);
  EXPECT_THAT(With({"pipeline.stages=1"}).pipeline().cuts(), ElementsAre("none"));
}

TEST(ResolveTest, StagesThatTakeTurnsHaveTwoSegmentsEachUnlessCutsAreNamed) {
  const Experiment e = With({"pipeline={schedule: interleaved, stages: 2}"});
  EXPECT_EQ(e.pipeline().cuts_size(), 3);
  Experiment again = e;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(e, again));
  EXPECT_THAT(With({"pipeline={schedule: interleaved, stages: 1}"}).pipeline().cuts(),
              ElementsAre("none"));
}

TEST(ResolveTest, StagesFollowTheCuts) {
  EXPECT_EQ(With({"pipeline.cuts=[layer1]"}).pipeline().stages(), 2u);
  const Experiment uncut = With({"pipeline.cuts=[]"});
  EXPECT_EQ(uncut.pipeline().stages(), 1u);
  EXPECT_THAT(uncut.pipeline().cuts(), ElementsAre("none"));
}

TEST(ResolveTest, RequiredFieldsAreNamed) {
  EXPECT_EQ(ErrorWith({}, "model: {name: resnet8}\ndata: {name: digits}\noptimizer: {lr: 0.1}\n"),
            "f.yaml: epochs: is required, or steps");
  EXPECT_EQ(ErrorWith({}, "epochs: 1"), "f.yaml: data.name: is required");
  EXPECT_THAT(ErrorWith({}, "epochs: 1\ndata: {name: digits}\n"),
              HasSubstr(": model.name: is required; known: resnet8"));
  EXPECT_EQ(ErrorWith({}, "epochs: 1\ndata: {name: digits}\nmodel: {name: resnet8}\n"),
            "f.yaml: optimizer.lr: is required");
}

TEST(ResolveTest, EveryValueOutOfRangeIsRefusedByNameAndValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"name=a/b",
       "name: \"a/b\", want 1 to 128 letters, digits, '.', '_' and '-', not '.' or '..' "
       "and not beginning with '-'"},
      {"name=..", "name: \"..\", want 1 to 128 letters"},
      {"epochs=0", "epochs: 0, want at least 1"},
      {"precision=fp64",
       "precision: unknown precision \"fp64\"; did you mean fp32? Known: fp32, "
       "tf32, bf16"},
      {"device=gpu", "device: device \"gpu\": want auto, cpu, cuda or cuda:N"},
      {"device=cuda:-1", "device: device \"cuda:-1\": want"},
      {"data.name=digit",
       "data.name: unknown data \"digit\"; did you mean digits? Known: cifar10, "
       "cifar100, digits, fashion_mnist, glue, images, jsonl, mnist, shakespeare, text, tokens, "
       "wikitext2"},
      {"data.batch_size=0", "data.batch_size: 0, want 1 to 1048576"},
      {"data.augment=yes",
       "data.augment: unknown augmentation \"yes\"; did you mean none? Known: "
       "none, fixed, per_epoch, true, false"},
      {"model.name=resnet", "model.name: unknown name \"resnet\"; did you mean resnet8? Known: "},
      {"model.classes=9", "model.classes: 9, want 10, which data digits has, or more"},
      {"model.width=0", "model.width: 0, want at least 1"},
      {"model.width=1000000", "model: resnet8: width is 1000000, want 1 to 65536"},
      {"optimizer.lr=0", "optimizer.lr: 0, want a finite number above 0"},
      {"optimizer.lr=-0.1", "optimizer.lr: -0.1, want a finite number above 0"},
      {"optimizer.momentum=1", "optimizer.momentum: 1, want at least 0 and less than 1"},
      {"optimizer.weight_decay=-1", "optimizer.weight_decay: -1, want a finite number, at least 0"},
      {"optimizer.nesterov=true", "optimizer.momentum: 0, want more than 0 with nesterov"},
      {"optimizer.name=adam",
       "optimizer.name: unknown name \"adam\"; did you mean adamw? Known: sgd, adamw, muon"},
      {"optimizer={name: muon, lr: 0.02, adamw_lr: 0}",
       "optimizer.adamw_lr: 0, want a finite number above 0"},
      {"optimizer={name: adamw, lr: 1, adamw_lr: 1}",
       "optimizer.adamw_lr: does not belong to name adamw"},
      {"optimizer.clip_norm=-1", "optimizer.clip_norm: -1, want a finite number, at least 0"},
      {"optimizer={name: adamw, lr: 1, momentum: 0.9}",
       "optimizer.momentum: does not belong to name adamw, which takes"},
      {"optimizer={name: adamw, lr: 1, beta2: 1}",
       "optimizer.beta2: 1, want at least 0 and less than 1"},
      {"optimizer={name: adamw, lr: 1, epsilon: 0}",
       "optimizer.epsilon: 0, want more than 0 and at most 1"},
      {"optimizer={name: adamw, lr: 1, decay: weights}",
       "optimizer.decay: unknown \"weights\", nearest is"},
      {"optimizer={name: adamw, lr: 1, moments: int4}",
       "optimizer.moments: unknown \"int4\", nearest is"},
      {"optimizer={name: muon, lr: 0.02, moments: int8}",
       "optimizer.moments: does not belong to name muon"},
      {"optimizer={name: adamw, lr: 1, place: disk}",
       "optimizer.place: unknown \"disk\", nearest is"},
      {"optimizer={name: sgd, lr: 1, place: host}", "optimizer.place: does not belong to name sgd"},
      {"lr_schedule={name: cosine, by: batch}", "lr_schedule.by: unknown \"batch\", nearest is"},
      {"lr_schedule={name: cosine, t_max: 0}", "lr_schedule.t_max: 0, want at least 1"},
      {"lr_schedule={name: linear, min_lr: 1}",
       "lr_schedule.min_lr: 1, want 0 to 0.1, which is optimizer.lr"},
      {"lr_schedule={name: step, step_size: 0}", "lr_schedule.step_size: 0, want at least 1"},
      {"lr_schedule={name: step, step_size: 1, gamma: 1.5}",
       "lr_schedule.gamma: 1.5, want more than 0 and at most 1"},
      {"pipeline.microbatches=0", "pipeline.microbatches: 0, want 1 to 100, the batch size"},
      {"pipeline.microbatches=101", "pipeline.microbatches: 101, want 1 to 100, the batch size"},
      {"pipeline.schedule=1f2b",
       "pipeline.schedule: unknown schedule \"1f2b\"; did you mean 1f1b? "
       "Known: gpipe, 1f1b"},
      {"pipeline.transport=rdma", "pipeline.transport: unknown transport \"rdma\""},
      {"pipeline.recompute=block", "pipeline.recompute: unknown recompute \"block\""},
      {"pipeline.deadline_seconds=0",
       "pipeline.deadline_seconds: 0, want more than 0 and at most 86400"},
      {"pipeline.threads=0", "pipeline.threads: 0, want auto or 1 to 1024"},
      {"pipeline.threads=many", "pipeline.threads: many, want auto or 1 to 1024"},
      {"pipeline.stages=0", "pipeline.stages: 0, want 1 to cuts + 1"},
      {"pipeline.stages=9", "pipeline.cuts: auto: "},
      {"pipeline={cuts: [layer1], stages: 3}", "pipeline.stages: "},
      {"pipeline.cuts=[layer9]", "pipeline.cuts: "},
      {"pipeline.schedule=interleaved",
       "pipeline.stages: absent, want how many stages take turns on the segments, as interleaved"},
      {"pipeline={schedule: interleaved, stages: 8}", "pipeline.cuts: auto: "},
      {"pipeline={schedule: interleaved, cuts: [stem, layer1], stages: 2}",
       "pipeline.stages: stages is 2, but 2 cuts make 3 segments: want twice, three times"},
      {"pipeline={schedule: interleaved, cuts: [layer1], stages: 2}",
       "pipeline.stages: stages is 2, but 1 cuts make 2 segments: want twice, three times"},
      {"compression.warmup_epochs=4", "compression.warmup_epochs: 4, want 0 to 3, the epochs"},
      {"compression.activations={codec: uniform, bits: 9}",
       "compression.activations: uniform: bits is 9, want 1 to 8"},
      {"compression.activations={codec: uniform, bits: 0}",
       "compression.activations: uniform: bits is 0"},
      {"compression.activations={codec: uniform, rounding: up}",
       "compression.activations: rounding: unknown \"up\""},
      {"compression.activations={codec: topk}", "compression.activations: topk: ratio is 0 and k "},
      {"compression.activations={codec: topk, ratio: 1.5}",
       "compression.activations: topk: ratio is 1.5"},
      {"compression.activations={codec: topk, ratio: 0.1, k: 4}",
       "compression.activations: topk: ratio is 0.1 and k is 4, want exactly one of them set"},
      {"compression.gradients={codec: topk, ratio: 0.1, bits: 4}",
       "compression.gradients.bits: 4, want values uniform or means with it"},
      {"compression.gradients.feedback=ef",
       "compression.gradients.feedback: ef with codec none, which leaves no error"},
      {"compression.boundaries.layer9.gradients.codec=fp16",
       "compression.boundaries.layer9: unknown cut \"layer9\"; did you mean layer1.0? Known: "},
  };
  for (const auto& [assignment, message] : cases) {
    EXPECT_THAT(ErrorWith({assignment}),
                StartsWith(absl::StrCat("--set ", assignment, ": ", message)))
        << assignment;
  }
}

TEST(ResolveTest, ABottleneckIsLinearUnlessItSaysOtherwise) {
  const Experiment e = With({"compression.bottleneck.width=4"});
  EXPECT_EQ(e.compression().bottleneck().kind(), "linear");
  EXPECT_FALSE(With({}).compression().has_bottleneck());
}

TEST(ResolveTest, ACutsOwnBottleneckLeavesTheRestToTheGeneralOne) {
  const Experiment e = With({"pipeline.cuts=[stem, layer1, layer2]",
                             "compression.bottleneck={kind: layer_norm, width: 8}",
                             "compression.boundaries.layer1.bottleneck.width=4",
                             "compression.boundaries.layer2.bottleneck.kind=none"});
  const BottleneckConfig& first = e.compression().boundaries().at("layer1").bottleneck();
  EXPECT_EQ(first.kind(), "layer_norm");
  EXPECT_EQ(first.width(), 4u);
  const BottleneckConfig& second = e.compression().boundaries().at("layer2").bottleneck();
  EXPECT_EQ(second.kind(), "none");
  EXPECT_FALSE(second.has_width());
  Experiment again = e;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(e, again));
}

TEST(ResolveTest, ABottleneckThatDoesNotFitIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{kind: linear}", "compression.bottleneck.width: is required with kind linear"},
      {"{kind: maxout}", "compression.bottleneck.group: is required with kind maxout"},
      {"{kind: liner, width: 4}",
       "compression.bottleneck.kind: unknown kind \"liner\"; did you mean linear? Known: none, "
       "linear, layer_norm, maxout"},
      {"{kind: maxout, width: 4}", "compression.bottleneck.width: does not belong to kind maxout"},
      {"{kind: none, width: 4}",
       "compression.bottleneck.width: does not belong to kind none, which takes nothing"},
      {"{width: 0}", "compression: cut layer1.0: linear bottleneck: width: 0, want 1 to 16"},
      {"{width: 17}", "compression: cut layer1.0: linear bottleneck: width: 17, want 1 to 16"},
      {"{kind: layer_norm, width: 1}", "layer_norm bottleneck: width: 1, want 2 to 16"},
      {"{kind: residual, width: 4, hidden: 4000000}", "hidden: 4000000, want 1 to 1048576"},
      {"{kind: learned_subspace, width: 4}", "the model takes no token ids, want a language model"},
      {"{kind: subspace, width: 4, anchor_rank: 1}",
       "compression.bottleneck.anchor_rank: does not belong to kind subspace"},
      {"{kind: maxout, group: 3}", "maxout bottleneck: group: 3, want a divisor of the cut's 16"},
  };
  for (const auto& [bottleneck, message] : cases) {
    EXPECT_THAT(ErrorWith({absl::StrCat("compression.bottleneck=", bottleneck)}),
                HasSubstr(message))
        << bottleneck;
  }
}

TEST(ResolveTest, AModelWithABottleneckHasNoUncompressedEvaluation) {
  EXPECT_TRUE(With({}).evaluation().uncompressed());
  EXPECT_FALSE(With({"compression.bottleneck.width=4"}).evaluation().uncompressed());
  EXPECT_TRUE(With({"compression.bottleneck.kind=none"}).evaluation().uncompressed());
  EXPECT_TRUE(
      With({"compression.bottleneck.width=4", "pipeline.cuts=[]"}).evaluation().uncompressed());
  EXPECT_EQ(ErrorWith({"compression.bottleneck.width=4", "evaluation.uncompressed=true"}),
            "--set evaluation.uncompressed=true: evaluation.uncompressed: true, want false: cut "
            "layer1.0 has a bottleneck, "
            "which is part of the model and cannot be switched off");
}

TEST(ResolveTest, AnUncutModelHasNoBoundaries) {
  EXPECT_EQ(ErrorWith({"pipeline.cuts=[]", "compression.boundaries.none.gradients.codec=fp16"}),
            "--set compression.boundaries.none.gradients.codec=fp16: compression.boundaries.none: "
            "the model is not cut");
}

constexpr char kCustom[] = R"(
model:
  name: custom
  blocks:
    - name: stem
      layers:
        - {kind: conv, name: conv, out: 4, kernel: 3, padding: 1}
        - {kind: max_pool, kernel: 2}
    - name: body
      layers:
        - {kind: residual, body: [{kind: conv, name: c, out: 4, kernel: 1, bias: false}]}
    - name: head
      layers: [{kind: flatten}, {kind: linear, name: fc, out: 10}]
data: {name: digits}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST(ResolveTest, ACustomModelsLayersAreFilledIn) {
  const Experiment e = With({}, kCustom);
  const LayerConfig& pool = e.model().blocks(0).layers(1);
  EXPECT_EQ(pool.stride(), 2u);
  EXPECT_EQ(pool.padding(), 0u);
  EXPECT_FALSE(e.model().blocks(1).layers(0).body(0).bias());
  EXPECT_TRUE(e.model().blocks(2).layers(1).bias());
  EXPECT_EQ(e.pipeline().cuts_size(), 2);
}

TEST(ResolveTest, ACustomModelsErrorsNameBlockAndLayer) {
  const auto error_with_block = [](const std::string& block) {
    const std::string override = "model.blocks=[" + block + "]";
    const std::string error = ErrorWith({override}, kCustom), place = "--set " + override + ": ";
    EXPECT_THAT(error, StartsWith(place));
    return error.substr(place.size());
  };
  EXPECT_EQ(error_with_block("{layers: []}"), "model.blocks[0].name: is required");
  EXPECT_EQ(error_with_block("{name: auto}"),
            "model.blocks[0].name: \"auto\" has a meaning of its own in pipeline.cuts");
  EXPECT_EQ(error_with_block("{name: a, layers: [{kind: relu}, {kind: convv}]}"),
            "model.blocks[0].layers[1].kind: unknown kind \"convv\"; did you mean conv? "
            "Known: conv, batch_norm, layer_norm, relu, max_pool, maxout, resize, global_avg_pool, "
            "flatten, linear, residual, embedding, position_embedding, rms_norm, gelu, swiglu, "
            "attention, head_norm, dropout, sequence, class_token, type_embedding, first, tanh");
  EXPECT_EQ(error_with_block("{name: a, layers: [{kind: conv, name: c, out: 1}]}"),
            "model.blocks[0].layers[0].kernel: is required with kind conv");
  EXPECT_EQ(error_with_block("{name: a, layers: [{kind: relu, kernel: 3}]}"),
            "model.blocks[0].layers[0].kernel: does not belong to kind relu, which takes "
            "name");
  EXPECT_THAT(error_with_block("{name: a, layers: [{kind: residual, body: [{kind: linear}]}]}"),
              HasSubstr("model.blocks[0].layers[0].body[0].name: is required with kind linear"));
  EXPECT_THAT(error_with_block("{name: a, layers: [{kind: max_pool, kernel: 9}]}"),
              HasSubstr("model.blocks: block a: max_pool on [1, 8, 8, 1]: kernel 9 with "));
  EXPECT_THAT(error_with_block("{name: a, layers: [{kind: linear, name: fc, out: 10}]}"),
              HasSubstr("block a gives [1, 8, 8, 10], want [1, 10] for its classes (flatten"));
}

constexpr char kCut[] = R"(
model: {name: resnet8}
data: {name: digits, batch_size: 10}
pipeline: {cuts: [layer1, layer2]}
optimizer: {lr: 0.1}
epochs: 3
)";

TEST(ResolveTest, ACaptureIsOfAllCutsBothWaysUnlessItSays) {
  EXPECT_FALSE(With({}, kCut).has_capture());
  const Experiment e = With({"capture.steps=[1, 30]"}, kCut);
  EXPECT_THAT(e.capture().steps(), ElementsAre(1, 30));
  EXPECT_THAT(e.capture().what(), ElementsAre("activations", "gradients"));
  EXPECT_THAT(e.capture().cuts(), ElementsAre("layer1", "layer2"));
  EXPECT_THAT(With({"capture={steps: 3, cuts: layer2}"}, kCut).capture().cuts(),
              ElementsAre("layer2"));
}

TEST(ResolveTest, AnImpossibleCaptureIsRefused) {
  EXPECT_THAT(ErrorWith({"capture={}"}, kCut), HasSubstr("capture.steps: is required"));
  EXPECT_THAT(ErrorWith({"capture.steps=[2, 2]"}, kCut), HasSubstr("2 after 2, want ascending"));
  EXPECT_THAT(ErrorWith({"capture.steps=0"}, kCut), HasSubstr("0 after 0, want ascending"));
  EXPECT_THAT(ErrorWith({"capture.steps=[]"}, kCut), HasSubstr("a list of whole numbers"));
  EXPECT_THAT(ErrorWith({"capture={steps: 1, cuts: layer3}"}, kCut), HasSubstr("capture.cuts"));
  EXPECT_THAT(ErrorWith({"capture={steps: 1, cuts: [layer1, layer1]}"}, kCut),
              HasSubstr("layer1 stands there twice"));
  EXPECT_THAT(ErrorWith({"capture={steps: 1, what: weights}"}, kCut), HasSubstr("activations"));
  EXPECT_THAT(ErrorWith({"capture.steps=1", "pipeline.cuts=[]"}, kCut),
              HasSubstr("the model is not cut"));
}

TEST(ResolveTest, ACaptureBeyondItsLimitIsRefusedWithBothNumbers) {
  // After layer2 of an 8x8 image: 4 x 4 x 32 fp32, 10 samples, both directions.
  EXPECT_THAT(
      With({"capture={steps: 1, cuts: layer2, limit_bytes: 40960}"}, kCut).capture().limit_bytes(),
      40960u);
  EXPECT_THAT(ErrorWith({"capture={steps: [1, 2], cuts: layer2, limit_bytes: 81919}"}, kCut),
              HasSubstr("2 steps of 1 cuts have 81920 bytes, want at most capture.limit_bytes, "
                        "81919"));
}

TEST(ResolveTest, ChecksCheckpointsAndRestarts) {
  EXPECT_EQ(With({}).checkpoint().every_epochs(), 1u);
  EXPECT_EQ(With({"checkpoint.every_steps=50"}).checkpoint().every_steps(), 50u);
  EXPECT_THAT(ErrorWith({"checkpoint.keep=0"}), HasSubstr("checkpoint.keep: 0, want at least 1"));
  EXPECT_THAT(ErrorWith({"checkpoint.codec_state=epoch"}),
              HasSubstr("checkpoint.codec_state: unknown codec_state \"epoch\""));
  EXPECT_FALSE(With({}).checkpoint().has_best());
  EXPECT_EQ(With({"checkpoint.best=accuracy"}).checkpoint().best(), "accuracy");
  EXPECT_THAT(ErrorWith({"checkpoint.best=f1"}),
              HasSubstr("checkpoint.best: unknown measure \"f1\""));
  EXPECT_THAT(
      ErrorWith({"checkpoint.best=accuracy", "model={name: bert, head: classes, classes: 1}",
                 "data={name: glue, task: stsb, corpus: {vocabulary: 99, train_samples: 200, "
                 "test_samples: 100}}",
                 "pipeline.cuts=none"}),
      HasSubstr("checkpoint.best: accuracy, want loss: labels of task stsb are scores"));
  EXPECT_THAT(ErrorWith({"checkpoint.best=loss", "evaluation.compressed=false",
                         "evaluation.uncompressed=false"}),
              HasSubstr("checkpoint.best: loss, but nothing is evaluated"));
  EXPECT_THAT(ErrorWith({"restarts.window=0"}), HasSubstr("restarts.window: 0"));
}

}  // namespace
}  // namespace thinwire
