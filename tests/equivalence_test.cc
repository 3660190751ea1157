// Tests that N stages compute what one stage does. Every step's loss and the final parameters are
// the same bits for every codec, schedule, precision and transport, however the segments are spread
// over servers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/settings_testing.h"
#include "compress/sample_specs_testing.h"
#include "compress/spec_parameters.h"
#include "nn/cpu/ops.h"
#include "schedule/schedule_testing.h"
#include "tests/pipeline_testing.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"(
name: equivalence
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 42, limit: 100, test_limit: 90}
pipeline: {cuts: [stem, layer1, layer2], microbatches: 4, threads: 1}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.0005}
epochs: 2
)";

Trained Train(const std::vector<std::string>& overrides, bool tcp = false) {
  return TrainPipeline(kExperiment, overrides, tcp);
}

void ExpectSame(const Trained& a, const Trained& b) {
  EXPECT_THAT(b.step_losses, ElementsAreArray(a.step_losses));
  EXPECT_EQ(b.compressed_loss, a.compressed_loss);
  EXPECT_EQ(b.uncompressed_loss, a.uncompressed_loss);
  EXPECT_EQ(b.recalibrated_loss, a.recalibrated_loss);
  EXPECT_EQ(b.compressed_correct, a.compressed_correct);
  ASSERT_EQ(b.parameters.size(), a.parameters.size());
  for (const auto& [name, bytes] : a.parameters) {
    const auto found = b.parameters.find(name);
    ASSERT_NE(found, b.parameters.end()) << name;
    EXPECT_TRUE(found->second == bytes) << name << " differs";
  }
}

// Expects equal results and, at every cut, equal numbers of messages and bytes.
void ExpectSameTraffic(const Trained& a, const Trained& b) {
  ExpectSame(a, b);
  for (const auto& [name, sender] : a.boundaries) {
    EXPECT_EQ(sender.messages(), b.boundaries.at(name).messages()) << name;
    EXPECT_EQ(sender.wire_bytes(), b.boundaries.at(name).wire_bytes()) << name;
  }
}

struct Codec {
  const char* name;
  std::vector<std::string> overrides;
};

const Codec kCodecs[] = {
    {"none", {}},
    {"uniform nearest",
     {"compression.activations={codec: uniform, bits: 4}",
      "compression.gradients={codec: uniform, bits: 6}"}},
    {"uniform stochastic",
     {"compression.activations={codec: uniform, bits: 4, rounding: stochastic}",
      "compression.gradients={codec: uniform, bits: 4, rounding: stochastic, scope: sample}"}},
    {"topk",
     {"compression.activations={codec: topk, ratio: 0.2}",
      "compression.gradients={codec: topk, ratio: 0.1}"}},
    {"bottlenecks",
     {"compression.bottleneck={kind: linear, width: 4}",
      "compression.boundaries.layer1.bottleneck={kind: layer_norm, width: 3}",
      "compression.boundaries.layer2.bottleneck={kind: maxout, group: 4}",
      "compression.activations={codec: uniform, bits: 4}"}},
    {"aq_sgd and ef",
     {"compression.activations={codec: uniform, bits: 4, feedback: {kind: aq_sgd, digest_every: "
      "1}}",
      "compression.gradients={codec: low_rank, rank: 2, feedback: ef}"}},
    {"principal axes",
     {"compression.activations={codec: ecsq, rotation: principal, rotation_every: 2}",
      "compression.gradients={codec: ecsq, rotation: principal, rotation_every: 3, feedback: ef}"}},
    {"outliers",
     {"compression.activations={codec: uniform, bits: 4, outliers: 2, scope: token}",
      "compression.gradients={codec: ecsq, outliers: 1, rotation: principal, feedback: ef}"}},
    {"ef21 and lazy in the epilogue",
     {"compression.activations={codec: topk, ratio: 0.2, feedback: {kind: ef21, digest_every: 1}}",
      "compression.gradients={codec: topk, ratio: 0.1, feedback: lazy, epilogue_only: true}"}},
    {"shared indices under ef, after a warm-up",
     {"compression.activations={codec: topk, ratio: 0.2, feedback: ef}",
      "compression.gradients={codec: topk, indices: shared}", "compression.warmup_steps=2"}},
    {"levels",
     {"compression.activations={codec: topk, ratio: 0.5, level: {by_epoch: {2: 0.1}}}",
      "compression.gradients={codec: uniform, level: {target_error: 0.1, min: 2, max: 8}}",
      "metrics.error_every=1"}},
    {"casts, blocks, random entries and a threshold",
     {"compression.boundaries={stem: {activations: {codec: fp16}, gradients: {codec: bf16}}, "
      "layer1: {activations: {codec: fp8}, gradients: {codec: blockwise8, block: 64}}, "
      "layer2: {activations: {codec: threshold, threshold: 0.5, relative_to: rms}, "
      "gradients: {codec: randomk, ratio: 0.2, unbiased: true}}}"}},
    {"replicas",
     {"model.width=16", "replicas.count=3",
      "replicas.contributions={codec: ecsq, rate: 2, feedback: ef}",
      "replicas.average={codec: uniform, bits: 8}",
      "compression.activations={codec: topk, ratio: 0.2, feedback: {kind: ef21, digest_every: 1}}",
      "compression.gradients={codec: low_rank, rank: 2, feedback: ef}"}},
    {"replicas with local steps",
     {"model.width=16", "replicas={count: 3, sync: local, every: 2}",
      "replicas.contributions={codec: ecsq, rate: 2, feedback: ef}",
      "replicas.average={codec: uniform, bits: 8}",
      "optimizer={name: adamw, lr: 0.01, clip_norm: 0.5}",
      "compression.gradients={codec: low_rank, rank: 2, feedback: ef}"}},
    {"adamw with means in codes",
     {"optimizer={name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5, moments: int8}",
      "compression.activations={codec: uniform, bits: 4}"}},
    {"adamw with means in codes, of replicas with local steps",
     {"model.width=16", "replicas={count: 3, sync: local, every: 2}",
      "optimizer={name: adamw, lr: 0.01, moments: int8}"}},
    {"adamw with a clipped gradient",
     {"optimizer={name: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices, clip_norm: 0.5}",
      "lr_schedule={name: cosine, by: step, warmup_steps: 2}",
      "compression.activations={codec: uniform, bits: 4}"}},
};

const Codec kFrozen[] = {
    {"first blocks", {"freeze=[stem, layer1]"}},
    {"blocks between, after the second cut too", {"freeze=[layer1, layer3]"}},
    {"first blocks, a clipped gradient and feedback",
     {"freeze=[stem, layer1]", "optimizer={name: adamw, lr: 0.01, clip_norm: 0.5}",
      "compression.activations={codec: topk, ratio: 0.2, feedback: {kind: ef21, digest_every: 1}}",
      "compression.gradients={codec: topk, ratio: 0.1, feedback: lazy, epilogue_only: true}"}},
    {"first blocks and a bottleneck behind them",
     {"freeze=[stem, layer1]",
      "compression.boundaries.layer1.bottleneck={kind: linear, width: 4}"}},
    {"first blocks of replicas",
     {"model.width=16", "freeze=[stem, layer1]", "replicas.count=3",
      "replicas.contributions={codec: ecsq, rate: 2, feedback: ef}"}},
    {"first blocks of replicas with local steps",
     {"model.width=16", "freeze=[stem, layer1]", "replicas={count: 3, sync: local, every: 2}",
      "optimizer={name: adamw, lr: 0.01, clip_norm: 0.5}"}},
};

// "{codec: fp8, format: e4m3}"
std::string EntryOf(const CodecSpec& spec) {
  std::string entry = absl::StrCat("{codec: ", Name(spec.kind));
  VisitParameters(spec, [&](const char* name, const auto& value, const auto& use) {
    if (IsRare(use.presence) && value == use.fallback) return;
    absl::StrAppend(&entry, ", ", name, ": ", Spelled(value));
  });
  return entry + "}";
}

// Returns the codecs above and every codec that they do not name, but plug-ins, with which
// own_codec_test.sh trains.
std::vector<Codec> EveryCodec() {
  std::vector<Codec> all(std::begin(kCodecs), std::end(kCodecs));
  std::string named;
  for (const Codec& codec : kCodecs) {
    absl::StrAppend(&named, absl::StrJoin(codec.overrides, ", "), ",");
  }
  for (const CodecRow& row : CodecRows()) {
    const bool is_named = absl::StrContains(named, absl::StrCat("codec: ", row.name, ",")) ||
                          absl::StrContains(named, absl::StrCat("codec: ", row.name, "}"));
    if (is_named || row.is_lossless || row.is_plugin) continue;
    const std::string entry = EntryOf(SampleSpecs(row).front());
    all.push_back({row.name,
                   {absl::StrCat("compression.activations=", entry),
                    absl::StrCat("compression.gradients=", entry)}});
  }
  return all;
}

class EquivalenceTest : public ::testing::TestWithParam<std::tuple<const char*, Codec>> {
 protected:
  std::string precision() const { return absl::StrCat("precision=", std::get<0>(GetParam())); }
  bool IsComputed() const {
    const DType compute =
        std::string(std::get<0>(GetParam())) == "bf16" ? DType::kBF16 : DType::kF32;
    return NewCpuOps(1)->CheckComputeType(compute).ok();
  }
};

TEST_P(EquivalenceTest, StagesScheduleAndTransportChangeNothing) {
  if (!IsComputed()) GTEST_SKIP() << "this processor does not compute with " << precision();
  const auto with = [&](std::vector<std::string> more) {
    const std::vector<std::string>& overrides = std::get<1>(GetParam()).overrides;
    more.push_back(precision());
    more.insert(more.end(), overrides.begin(), overrides.end());
    return more;
  };
  SCOPED_TRACE(std::get<1>(GetParam()).name);
  const Trained one = Train(with({"pipeline.stages=1"}));
  EXPECT_THAT(one.step_losses, SizeIs(6));
  EXPECT_NE(one.recalibrated_loss, one.uncompressed_loss);
  for (const std::string& schedule : PlainSchedulesForTests()) {
    const std::string set = absl::StrCat("pipeline.schedule=", schedule);
    SCOPED_TRACE(set);
    for (const auto& [stages, tcp] :
         Settings<std::pair<int, bool>>({{2, false}, {4, false}, {4, true}})) {
      ExpectSame(one, Train(with({absl::StrCat("pipeline.stages=", stages), set}), tcp));
    }
  }
  for (const bool tcp : Settings({false, true})) {
    SCOPED_TRACE("interleaved");
    ExpectSame(one, Train(with({"pipeline.stages=2", "pipeline.schedule=interleaved"}), tcp));
  }
  ExpectSame(one, Train(with({"pipeline.stages=1"})));  // a second run is equal to the first
}

INSTANTIATE_TEST_SUITE_P(PrecisionsAndCodecs, EquivalenceTest,
                         ::testing::Combine(::testing::Values("fp32", "bf16"),
                                            ::testing::ValuesIn(EveryCodec())));

INSTANTIATE_TEST_SUITE_P(Frozen, EquivalenceTest,
                         ::testing::Combine(::testing::Values("fp32"),
                                            ::testing::ValuesIn(kFrozen)));

TEST(FrozenBlocksTest, KeepTheirBitsAndGetNoGradients) {
  const std::vector<std::string> frozen = {"freeze=[stem, layer1]", "pipeline.stages=4"};
  const auto with = [&](const std::string& lr) {
    return TrainPipeline(kExperiment, {frozen[0], frozen[1], lr});
  };
  const Trained slow = with("optimizer.lr=0.01"), fast = with("optimizer.lr=0.1");
  int kept = 0;
  for (const auto& [name, bytes] : slow.parameters) {
    if (absl::StrContains(name, "running")) continue;
    const bool is_frozen = name == "conv1.weight" || absl::StartsWith(name, "bn1.") ||
                           absl::StartsWith(name, "layer1.");
    EXPECT_EQ(fast.parameters.at(name) == bytes, is_frozen) << name;
    kept += is_frozen;
  }
  EXPECT_GT(kept, 6);
  for (const char* cut : {"stem/gradient", "layer1/gradient"}) {
    EXPECT_EQ(slow.boundaries.at(cut).messages(), 0u) << cut;
    EXPECT_EQ(slow.boundaries.at(cut).wire_bytes(), 0u) << cut;
  }
  EXPECT_GT(slow.boundaries.at("layer2/gradient").messages(), 0u);
}

// The head is tied to the embedding and has a copy of its weight.
constexpr char kLanguageModel[] = R"(
name: language
model: {name: gpt2, layers: 2, heads: 2, width: 16, dropout: 0.1}
data: {name: shakespeare, context: 16, batch_size: 7, limit: 20, test_limit: 9}
pipeline: {cuts: [embedding, h.0, h.1], microbatches: 3, threads: 1}
optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices, clip_norm: 0.5}
lr_schedule: {name: cosine, by: step, warmup_steps: 2}
epochs: 2
)";

class LanguageModelTest : public ::testing::TestWithParam<Codec> {
 protected:
  static Trained Train(const std::vector<std::string>& more, bool tcp = false) {
    std::vector<std::string> overrides = GetParam().overrides;
    overrides.insert(overrides.end(), more.begin(), more.end());
    return TrainPipeline(kLanguageModel, overrides, tcp);
  }
};

TEST_P(LanguageModelTest, StagesScheduleAndTransportChangeNothing) {
  SCOPED_TRACE(GetParam().name);
  const Trained one = Train({"pipeline.stages=1"});
  EXPECT_THAT(one.step_losses, SizeIs(6));
  EXPECT_EQ(one.parameters.count("transformer.wte.weight"), 1u);
  EXPECT_EQ(one.parameters.count("lm_head.weight"), 0u);  // a copy is not exported
  ASSERT_THAT(one.boundaries, SizeIs(8));
  for (const std::string& schedule : PlainSchedulesForTests()) {
    const std::string set = absl::StrCat("pipeline.schedule=", schedule);
    SCOPED_TRACE(set);
    ExpectSame(one, Train({"pipeline.stages=2", set}));
    ExpectSameTraffic(one, Train({"pipeline.stages=4", set}, /*tcp=*/true));
  }
  SCOPED_TRACE("interleaved");
  ExpectSameTraffic(one,
                    Train({"pipeline.stages=2", "pipeline.schedule=interleaved"}, /*tcp=*/true));
}

const Codec kLanguageModelCodecs[] = {
    {"none", {}},
    {"blocks that run forward again, without biases",
     {"pipeline.recompute=blocks", "model.bias=false"}},
    {"muon, with residual bottlenecks",
     {"optimizer={name: muon, lr: 0.02, adamw_lr: 0.01, weight_decay: 0.1, clip_norm: 0.5}",
      "compression.bottleneck={kind: residual, width: 4}",
      "compression.activations={codec: uniform, bits: 6}"}},
    {"learned subspaces",
     {"compression.bottleneck={kind: learned_subspace, width: 4, basis_rate: 10}",
      "compression.boundaries.h.0.bottleneck={anchor_rank: 3}",
      "compression.gradients={codec: uniform, bits: 6}"}},
    {"codecs at the cuts and at the tied one",
     {"compression.activations={codec: topk, ratio: 0.5, scope: token}",
      "compression.gradients={codec: uniform, bits: 6}",
      "compression.boundaries.tied={activations: {codec: topk, ratio: 0.1, feedback: {kind: ef21, "
      "digest_every: 1}}, gradients: {codec: uniform, bits: 4, feedback: ef}}"}},
};
class LlamaTest : public testing::TestWithParam<const char*> {};

// These models have no tied weight, heads that share keys and values, and error feedback at their
// cuts.
TEST_P(LlamaTest, StagesAndScheduleChangeNothing) {
  const auto train = [](std::vector<std::string> more) {
    more.insert(more.end(),
                {absl::StrCat("model={layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 24, ",
                              GetParam(), "}"),
                 "pipeline.cuts=[embedding, layers.0, layers.1]",
                 "compression.activations={codec: topk, ratio: 0.5, scope: token, feedback: ef21}",
                 "compression.gradients={codec: uniform, bits: 6, feedback: ef}"});
    return TrainPipeline(kLanguageModel, more);
  };
  const Trained one = train({"pipeline.stages=1"});
  EXPECT_THAT(one.step_losses, SizeIs(6));
  for (const char* schedule : {"1f1b", "zero_bubble"}) {
    const std::string set = absl::StrCat("pipeline.schedule=", schedule);
    SCOPED_TRACE(set);
    ExpectSame(one, train({"pipeline.stages=2", set}));
    ExpectSame(one, train({"pipeline.stages=4", set}));
  }
  ExpectSame(one, train({"pipeline.stages=2", "pipeline.schedule=interleaved"}));
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaTest,
                         testing::Values("name: llama",
                                         "name: qwen3, head_size: 8, attention_bias: all, "
                                         "rope_scaling: {type: llama3, factor: 8, original: 16}",
                                         "name: qwen2, window: 5, window_layers: [1]"));

// Covers links between stages of this process; recovery_test.sh covers links between processes.
TEST(TeraPipeTest, StagesAndTransportChangeNothing) {
  const auto train = [](std::vector<std::string> more, bool tcp) {
    more.insert(more.end(), {"model.dropout=0", "pipeline.schedule=terapipe", "pipeline.slices=4",
                             "compression.activations={codec: topk, ratio: 0.5, scope: token}",
                             "compression.gradients={codec: uniform, bits: 6}"});
    return TrainPipeline(kLanguageModel, more, tcp);
  };
  const Trained one = train({"pipeline.stages=1"}, /*tcp=*/false);
  EXPECT_THAT(one.step_losses, SizeIs(6));
  ExpectSame(one, train({"pipeline.stages=2"}, /*tcp=*/false));
  const Trained four = train({"pipeline.stages=4"}, /*tcp=*/true);
  ExpectSame(one, four);
  ExpectSameTraffic(one, four);
}

// Works where servers may read the test's files.
class PackedDocumentsTest : public ::testing::Test {
 protected:
  PackedDocumentsTest() : before_(fs::current_path()) { fs::current_path(testing::TempDir()); }
  ~PackedDocumentsTest() override { fs::current_path(before_); }

  // Writes documents of 1 to 14 letters and returns a `data` that packs them.
  static std::string Data() {
    std::ofstream file("packed.jsonl");
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int j = 0; j <= i * 5 % 14; ++j) text += static_cast<char>('a' + (i * 7 + j * 3) % 26);
      file << R"({"text": ")" << text << "\"}\n";
    }
    return "data={name: jsonl, file: packed.jsonl, tokens: bytes, packing: best_fit, loss_on: all, "
           "split: 0.8, limit: 0, test_limit: 0}";
  }

 private:
  const fs::path before_;
};

// Documents of one sample do not see one another, which stages in the middle learn from frames.
TEST_F(PackedDocumentsTest, StagesAndScheduleChangeNothing) {
  const auto train = [](std::vector<std::string> more, bool tcp = false) {
    more.insert(more.begin(),
                {Data(), "pipeline.recompute=blocks",
                 "compression.activations={codec: topk, ratio: 0.5, scope: token, feedback: ef21}",
                 "compression.gradients={codec: uniform, bits: 6, feedback: ef}"});
    return TrainPipeline(kLanguageModel, more, tcp);
  };
  const Trained one = train({"pipeline.stages=1"});
  EXPECT_FALSE(one.step_losses.empty());
  ExpectSameTraffic(one, train({"pipeline.stages=4"}, /*tcp=*/true));
  ExpectSame(one, train({"pipeline.stages=2", "pipeline.schedule=interleaved"}));
  const Trained whole = train({"pipeline.stages=1", "data.packing=stream"});
  EXPECT_NE(one.step_losses.front(), whole.step_losses.front());
}

// Which rows go exactly depends on where documents begin, in both directions and in every slice.
TEST_F(PackedDocumentsTest, FirstPositionsAreThoseOfDocumentsWhereverTheyAre) {
  const auto train = [](const char* stages, const char* schedule, bool tcp = false) {
    return TrainPipeline(
        kLanguageModel,
        {Data(), "model.dropout=0", absl::StrCat("pipeline.stages=", stages),
         absl::StrCat("pipeline={schedule: ", schedule, "}"),
         "compression.activations={codec: uniform, bits: 3, scope: token, first_position: exact}",
         "compression.gradients={codec: uniform, bits: 4, scope: token, first_position: exact}"},
        tcp);
  };
  const Trained one = train("1", "1f1b");
  ExpectSameTraffic(one, train("4", "1f1b", /*tcp=*/true));
  const Trained slices = train("1", "terapipe, slices: 4");
  ExpectSame(slices, train("4", "terapipe, slices: 4"));
  EXPECT_NEAR(one.step_losses.front(), slices.step_losses.front(), 1e-6);
}

TEST_F(PackedDocumentsTest, MicrobatchesChangeNoLoss) {
  const auto train = [](const char* microbatches) {
    return TrainPipeline(kLanguageModel, {Data(), "model.dropout=0", "pipeline.stages=4",
                                          absl::StrCat("pipeline.microbatches=", microbatches)});
  };
  const Trained three = train("3"), one = train("1");
  ASSERT_EQ(three.step_losses.size(), one.step_losses.size());
  EXPECT_NEAR(three.step_losses.front(), one.step_losses.front(), 1e-6);
  EXPECT_NEAR(three.step_losses.back(), one.step_losses.back(), 1e-3);
}

TEST_F(PackedDocumentsTest, SlicesChangeNothingThatStagesWould) {
  const auto train = [](const char* stages, const char* schedule) {
    return TrainPipeline(kLanguageModel,
                         {Data(), "model.dropout=0", absl::StrCat("pipeline.stages=", stages),
                          absl::StrCat("pipeline={schedule: ", schedule, "}")});
  };
  const Trained one = train("1", "terapipe, slices: 4"), four = train("4", "terapipe, slices: 4");
  ExpectSame(one, four);
  ExpectSameTraffic(one, four);
  const Trained whole = train("1", "1f1b");
  EXPECT_NEAR(one.step_losses.front(), whole.step_losses.front(), 1e-6);
  EXPECT_NEAR(one.step_losses.back(), whole.step_losses.back(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Codecs, LanguageModelTest, ::testing::ValuesIn(kLanguageModelCodecs));

TEST(SubspaceTest, StagesAndTransportChangeNothing) {
  const auto train = [](const std::string& stages, bool tcp) {
    return TrainPipeline(kLanguageModel,
                         {"model.tied=false", "model.dropout=0", "pipeline.stages=" + stages,
                          "compression.bottleneck={kind: subspace, width: 4}",
                          "compression.activations={codec: uniform, bits: 6}"},
                         tcp);
  };
  const Trained one = train("1", /*tcp=*/false);
  EXPECT_EQ(one.parameters.count("bottleneck.embedding.encode.weight"), 1u);
  EXPECT_EQ(one.parameters.count("bottleneck.h.0.encode.weight"), 0u);  // it is the one above
  ExpectSame(one, train("2", /*tcp=*/false));
  ExpectSame(one, train("4", /*tcp=*/true));
}

class FrozenLanguageModelTest : public testing::TestWithParam<const char*> {};

// Without a trained embedding there is no tied cut.
TEST_P(FrozenLanguageModelTest, StagesScheduleAndTransportChangeNothing) {
  const auto train = [](std::vector<std::string> more, bool tcp = false) {
    more.insert(more.end(),
                {GetParam(), "compression.activations={codec: topk, ratio: 0.5, scope: token}"});
    return TrainPipeline(kLanguageModel, more, tcp);
  };
  const Trained one = train({"pipeline.stages=1"});
  EXPECT_THAT(one.step_losses, SizeIs(6));
  EXPECT_EQ(one.boundaries.count("tied/gradient"), 0u);
  EXPECT_EQ(one.boundaries.at("embedding/gradient").raw_bytes(), 0u);
  for (const std::string& schedule : PlainSchedulesForTests()) {
    const std::string set = absl::StrCat("pipeline.schedule=", schedule);
    SCOPED_TRACE(set);
    ExpectSame(one, train({"pipeline.stages=2", set}));
    ExpectSameTraffic(one, train({"pipeline.stages=4", set}, /*tcp=*/true));
  }
  ExpectSameTraffic(one,
                    train({"pipeline.stages=2", "pipeline.schedule=interleaved"}, /*tcp=*/true));
  ExpectSameTraffic(one, train({"pipeline.stages=2", "pipeline.recompute=blocks"}));
  const std::vector<std::string> slices = {"model.dropout=0", "pipeline.schedule=terapipe",
                                           "pipeline.slices=4"};
  const auto sliced = [&](const char* stages) {
    std::vector<std::string> more = slices;
    more.push_back(stages);
    return train(more, /*tcp=*/true);
  };
  SCOPED_TRACE("terapipe");
  ExpectSameTraffic(sliced("pipeline.stages=1"), sliced("pipeline.stages=4"));
}

INSTANTIATE_TEST_SUITE_P(BlocksAndAdapters, FrozenLanguageModelTest,
                         testing::Values("freeze=embedding", "freeze=[embedding, h.0, head]",
                                         "freeze=[embedding, h.0, h.1]", "lora={rank: 2, alpha: 4}",
                                         "lora={rank: 4, modules: linear, layers: [1]}"));

TEST(LoraDropoutTest, StagesChangeNothing) {
  const auto train = [](const char* stages) {
    return TrainPipeline(kLanguageModel, {"lora={rank: 2, dropout: 0.3}", stages});
  };
  const Trained one = train("pipeline.stages=1");
  EXPECT_THAT(one.step_losses, SizeIs(6));
  EXPECT_EQ(one.parameters.count("transformer.h.1.attn.c_attn.lora_B.weight"), 1u);
  ExpectSameTraffic(one, train("pipeline.stages=4"));
}

TEST(UncutLanguageModelTest, WithoutACodecCutsChangeNothing) {
  ExpectSame(TrainPipeline(kLanguageModel, {"pipeline.cuts=[]"}),
             TrainPipeline(kLanguageModel, {"pipeline.stages=4"}));
}

using UncutTest = EquivalenceTest;

TEST_P(UncutTest, WithoutACodecCutsChangeNothing) {
  if (!IsComputed()) GTEST_SKIP() << "this processor does not compute with " << precision();
  ExpectSame(Train({precision(), "pipeline.cuts=[]"}), Train({precision(), "pipeline.stages=4"}));
}

INSTANTIATE_TEST_SUITE_P(Precisions, UncutTest,
                         ::testing::Combine(::testing::Values("fp32", "bf16"),
                                            ::testing::Values(kCodecs[0])));

TEST(WireBytesTest, ACutInsideAProcessCountsWhatAWireWouldCarry) {
  const std::vector<std::string> topk = kCodecs[3].overrides;
  std::vector<std::string> one = topk, four = topk;
  one.push_back("pipeline.stages=1");
  four.push_back("pipeline.stages=4");
  const Trained inside = Train(one), outside = Train(four);
  ASSERT_THAT(inside.boundaries, SizeIs(6));
  for (const auto& [name, sender] : inside.boundaries) {
    const BoundaryReport& other = outside.boundaries.at(name);
    EXPECT_EQ(sender.messages(), other.messages()) << name;
    EXPECT_EQ(sender.payload_bytes(), other.payload_bytes()) << name;
    // The header has a digest of the run's name and the generation, so its size is the same.
    EXPECT_EQ(sender.wire_bytes(), other.wire_bytes()) << name;
  }
}

TEST(WireBytesTest, AgreeWithWhatTheSocketSaw) {
  const Trained outcome = Train({"pipeline.stages=4", "data.limit=0"}, /*tcp=*/true);
  for (const auto& [name, sender] : outcome.boundaries) {
    ASSERT_GT(sender.socket_bytes(), 0u) << name;
    const double ratio =
        static_cast<double>(sender.socket_bytes()) / static_cast<double>(sender.all_wire_bytes());
    EXPECT_GT(ratio, 0.99) << name;
    EXPECT_LT(ratio, 1.01) << name;
  }
}

}  // namespace
}  // namespace thinwire
