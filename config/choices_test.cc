#include "config/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_message.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

template <typename Message>
Message Read(const std::string& yaml) {
  Message message;
  const absl::Status status = MergeYaml(yaml, "test", &message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

template <typename Message>
std::string Resolved(const std::string& yaml) {
  Message message = Read<Message>(yaml);
  const absl::Status status = ResolveChoice("here", &message);
  return status.ok() ? WriteYaml(message) : std::string(status.message());
}

std::string OverlaidText(const std::string& under, const std::string& over) {
  DirectionConfig message = Read<DirectionConfig>(under);
  const DirectionConfig next = Read<DirectionConfig>(over);
  ForgetReplaced(next, &message);
  message.MergeFrom(next);
  return WriteYaml(message);
}

TEST(ResolveChoiceTest, FillsOnlyWhatBelongsToTheChoice) {
  EXPECT_EQ(Resolved<DirectionConfig>("{}"), "codec: none\n");
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: uniform, bits: 4}"),
            "codec: uniform\nbits: 4\nrange: min_max\nscope: tensor\nrounding: nearest\n"
            "zero: free\n");
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: topk, k: 3}"),
            "codec: topk\nscope: sample\nk: 3\nvalues: fp32\ncount: ceil\npad: none\n");
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: topk, indices: shared}"),
            "codec: topk\nvalues: fp32\nindices: shared\n");
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: uniform, range: max_abs, rotation: hadamard}"),
            "codec: uniform\nbits: 8\nrange: max_abs\nscope: tensor\nrounding: nearest\n"
            "zero: free\nrotation: hadamard\nrotation_block: 1024\n");
  EXPECT_EQ(Resolved<LrScheduleConfig>("{}"), "name: constant\n");
  EXPECT_EQ(Resolved<LayerConfig>("{kind: conv, name: c, out: 4, kernel: 3}"),
            "kind: conv\nname: c\nout: 4\nkernel: 3\nstride: 1\npadding: 0\nbias: true\n");
  EXPECT_EQ(Resolved<LayerConfig>("{kind: embedding, name: e, out: 4}"),
            "kind: embedding\nname: e\nout: 4\ndeviation: 0.02\n");
  EXPECT_EQ(Resolved<LayerConfig>("{kind: attention, name: a, heads: 2, dropout: 0.1}"),
            "kind: attention\nname: a\nheads: 2\ndropout: 0.1\n");
  EXPECT_EQ(Resolved<ModelConfig>("{name: gpt2-medium, heads: 8}"),
            "name: gpt2-medium\nwidth: 1024\nlayers: 24\nheads: 8\ndropout: 0\ntied: true\n"
            "epsilon: 1.0e-05\ngelu: tanh\nbias: true\n");
  EXPECT_EQ(Resolved<ModelConfig>("{name: llama, kv_heads: 4}"),
            "name: llama\nwidth: 512\nlayers: 8\nheads: 8\nkv_heads: 4\ndropout: 0\n"
            "tied: false\nepsilon: 1.0e-05\nrope_theta: 10000\n"
            "attention_bias: none\nmlp_bias: false\n");
}

TEST(ResolveChoiceTest, RefusesAFieldOfAnotherChoice) {
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: fp8, bits: 4}"),
            "here.bits: does not belong to codec fp8, which takes format, support, feedback, "
            "lossless, on_nonfinite, epilogue_only");
  EXPECT_EQ(Resolved<DirectionConfig>("{ratio: 0.1}"),
            "here.ratio: does not belong to codec none, which takes support, feedback, lossless, "
            "on_nonfinite, epilogue_only");
  EXPECT_EQ(Resolved<LrScheduleConfig>("{t_max: 5}"),
            "here.t_max: does not belong to name constant, which takes warmup_steps");
  EXPECT_EQ(Resolved<ModelConfig>("{name: resnet8, blocks: [{name: a}]}"),
            "here.blocks: does not belong to name resnet8, which takes width, classes");
  EXPECT_EQ(Resolved<ModelConfig>("{name: gpt2, rope_theta: 10000}"),
            "here.rope_theta: does not belong to name gpt2, which takes width, layers, heads, "
            "context, gelu, bias, hidden, dropout, tied, epsilon, classes");
}

TEST(ResolveChoiceTest, RefusesUnknownAndMissingChoices) {
  EXPECT_EQ(Resolved<DirectionConfig>("{codec: topkk}"),
            "here.codec: unknown codec \"topkk\"; did you mean topk? Known: none, fp16, bf16, "
            "fp8, uniform, ecsq, topk, randomk, threshold, blockwise8, low_rank, plugin");
  EXPECT_EQ(Resolved<OptimizerConfig>("{name: adam}"),
            "here.name: unknown name \"adam\"; did you mean adamw? Known: sgd, adamw, muon");
  EXPECT_EQ(Resolved<ModelConfig>("{}"),
            "here.name: is required; known: resnet8, resnet18, resnet20, resnet34, gpt2, "
            "gpt2-medium, gpt2-large, gpt2-xl, llama, mistral, qwen2, qwen3, smollm3, phi3, bert, "
            "vit, custom");
}

TEST(ResolveChoiceTest, RefusesAMissingFieldThatTheChoiceRequires) {
  EXPECT_EQ(Resolved<LrScheduleConfig>("{name: step}"),
            "here.step_size: is required with name step");
  EXPECT_EQ(Resolved<ModelConfig>("{name: custom}"), "here.blocks: is required with name custom");
}

TEST(ForgetReplacedTest, ANewChoiceStartsFromItsOwnDefaults) {
  EXPECT_EQ(
      OverlaidText("{codec: uniform, bits: 4, scope: channel, feedback: none}", "{codec: topk}"),
      "codec: topk\nfeedback:\n  kind: none\n");
}

TEST(ForgetReplacedTest, TheSameChoiceKeepsItsFields) {
  EXPECT_EQ(OverlaidText("{codec: uniform, bits: 4}", "{codec: uniform, scope: channel}"),
            "codec: uniform\nbits: 4\nscope: channel\n");
  EXPECT_EQ(OverlaidText("{codec: uniform, bits: 4}", "{bits: 3}"), "codec: uniform\nbits: 3\n");
}

TEST(ForgetReplacedTest, RatioAndKReplaceEachOther) {
  EXPECT_EQ(OverlaidText("{codec: topk, ratio: 0.1}", "{k: 3}"), "codec: topk\nk: 3\n");
  EXPECT_EQ(OverlaidText("{codec: topk, k: 3}", "{ratio: 0.5}"), "codec: topk\nratio: 0.5\n");
}

TEST(ForgetReplacedTest, OneWayOfChoosingTheLevelReplacesTheOther) {
  EXPECT_EQ(OverlaidText("{codec: uniform, level: {by_epoch: {1: 8, 3: 4}}}",
                         "{level: {by_epoch: {2: 6}}}"),
            "codec: uniform\nlevel:\n  by_epoch:\n    2: 6\n");
  EXPECT_EQ(OverlaidText("{codec: uniform, level: {by_epoch: {1: 8}}}",
                         "{level: {target_error: 0.1, min: 2, max: 8}}"),
            "codec: uniform\nlevel:\n  target_error: 0.1\n  min: 2\n  max: 8\n");
  EXPECT_EQ(OverlaidText("{codec: uniform, level: {target_error: 0.1, min: 2, max: 8}}",
                         "{level: {min: 4}}"),
            "codec: uniform\nlevel:\n  target_error: 0.1\n  min: 4\n  max: 8\n");
  EXPECT_EQ(OverlaidText("{codec: uniform, level: {by_epoch: {1: 8}}}", "{codec: topk}"),
            "codec: topk\n");
}

}  // namespace
}  // namespace thinwire
