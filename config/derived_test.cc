#include "config/derived.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kImages[] = R"(
model: {name: resnet8}
data: {name: digits}
optimizer: {lr: 0.1}
lr_schedule: {name: cosine}
epochs: 4
)";

constexpr char kGpt[] = "\nmodel: {name: gpt2, width: 32, layers: 4, heads: 2}";
constexpr char kRest[] = R"(
data: {name: shakespeare, context: 16}
pipeline: {cuts: [h.1]}
compression:
  gradients: {codec: ecsq, feedback: ef}
  activations: {codec: uniform, bits: 8}
  boundaries: {h.1: {activations: {bits: 4}}}
optimizer: {lr: 0.1}
epochs: 4
)";

const std::string kText = std::string(kGpt) + kRest;

using Overrides = std::vector<std::string>;

Experiment Read(const std::string& text, const Overrides& overrides,
                const Surroundings& surroundings = {}) {
  const auto e = ParseExperiment(text, "f.yaml", overrides, surroundings);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *e : Experiment();
}

std::vector<std::string> DerivedOf(const Experiment& e) {
  return {e.derived().begin(), e.derived().end()};
}

TEST(DerivedTest, NamesWhatNobodyGaveAndNothingElse) {
  const std::vector<std::string> derived =
      DerivedOf(Read(kImages, {"lr_schedule.min_lr=0.01", "pipeline.cuts=auto"}));
  EXPECT_THAT(derived, IsSupersetOf({"lr_schedule.t_max", "pipeline.cuts", "pipeline.stages",
                                     "model.classes", "evaluation.uncompressed",
                                     "compression.activations.codec"}));
  for (const char* given :
       {"epochs", "lr_schedule.min_lr", "lr_schedule.name", "data.batch_size"}) {
    EXPECT_THAT(derived, Not(Contains(given)));
  }
}

// A resolved file with an override gives the same as its original file with that override.
TEST(DerivedTest, WhatFollowsFromAFieldFollowsItInAResolvedFile) {
  for (const Overrides& overrides : std::vector<Overrides>{
           {"epochs=8"},
           {"pipeline.stages=2"},
           {"lr_schedule.name=linear"},
           {"lr_schedule.t_max=6", "epochs=8"},
           {"compression.bottleneck={kind: linear, width: 4}"},
           {"pipeline.schedule=interleaved", "pipeline.stages=2"},
           {"model.name=resnet20"},
           {"optimizer.name=muon"},
       }) {
    const Experiment fresh = Read(kImages, overrides);
    EXPECT_EQ(ToYaml(Read(ToYaml(Read(kImages, {})), overrides)), ToYaml(fresh)) << overrides[0];
  }
  for (const Overrides& overrides : std::vector<Overrides>{
           {"data.tokens=bytes"},
           {"data.context=32"},
           {"compression.gradients.feedback=none"},
           {"compression.activations.scope=tensor"},
           {"compression.activations.bits=2"},
           {"compression.activations.range=max_abs"},
           {"pipeline.schedule=terapipe", "compression.gradients={codec: none, feedback: none}"},
           {"model.width=64"},
           {"model.tied=false"},  // the tied weight's exchange has an entry of its own
       }) {
    const Experiment fresh = Read(kText, overrides);
    EXPECT_EQ(ToYaml(Read(ToYaml(Read(kText, {})), overrides)), ToYaml(fresh)) << overrides[0];
  }
}

TEST(DerivedTest, WithoutAnOverrideAFileIsReadAsItStands) {
  const std::string resolved = ToYaml(Read(kImages, {}));
  EXPECT_EQ(ToYaml(Read(resolved, {})), resolved);
}

TEST(DerivedTest, AValueThatWasGivenStaysThoughItSaysWhatTheDefaultSays) {
  const Experiment given = Read(kImages, {"lr_schedule.t_max=4"});
  EXPECT_EQ(Read(ToYaml(given), {"epochs=8"}).lr_schedule().t_max(), 4u);
}

TEST(DerivedTest, AnEditedValueCountsAsGiven) {
  Experiment edited = Read(kImages, {});
  edited.mutable_lr_schedule()->set_t_max(6);
  const Experiment longer = Read(ToYaml(edited), {"epochs=8"});
  EXPECT_EQ(longer.lr_schedule().t_max(), 6u);
  EXPECT_FALSE(IsDerived(longer, "lr_schedule.t_max"));
  EXPECT_TRUE(IsDerived(longer, "pipeline.cuts"));
}

TEST(DerivedTest, NullIsTheDefault) {
  EXPECT_EQ(Read(kImages, {"lr_schedule.t_max=2", "lr_schedule.t_max=null"}).lr_schedule().t_max(),
            4u);
  const std::string given = ToYaml(Read(kImages, {"lr_schedule.t_max=2", "epochs=5"}));
  EXPECT_EQ(Read(given, {"lr_schedule.t_max="}).lr_schedule().t_max(), 5u);
}

TEST(DerivedTest, ServersSayHowManyStagesWhereNobodyElseDoes) {
  const Experiment two = Read(kImages, {}, {/*stages=*/2});
  EXPECT_EQ(two.pipeline().cuts_size(), 1);
  EXPECT_TRUE(IsDerived(two, "pipeline.stages"));
  EXPECT_EQ(Read(ToYaml(Read(kImages, {})), {}, {/*stages=*/2}).pipeline().cuts_size(), 1);
  EXPECT_EQ(
      Read(ToYaml(Read(kImages, {"pipeline.stages=4"})), {}, {/*stages=*/2}).pipeline().stages(),
      4u);
}

TEST(PastTest, ARunKeepsItsCutsOnOtherMachines) {
  const Experiment past = Read(kImages, {});
  ASSERT_EQ(past.pipeline().cuts_size(), 3);
  for (const std::string& text : {std::string(kImages), ToYaml(past)}) {
    for (const uint32_t servers : {1u, 2u, 9u}) {
      const Experiment now = Read(text, {"epochs=8"}, {servers, &past});
      EXPECT_EQ(now.pipeline().cuts_size(), 3) << servers;
      EXPECT_EQ(now.pipeline().stages(), std::min(servers, 4u));
    }
    EXPECT_EQ(Read(text, {"pipeline.stages=2"}, {0, &past}).pipeline().cuts_size(), 3);
    EXPECT_EQ(Read(text, {"pipeline.cuts=[layer1]"}, {0, &past}).pipeline().cuts_size(), 1);
  }
}

TEST(PastTest, TheModelIsKnownWithoutTheFolderThatItBeganFrom) {
  Experiment past = Read(kText, {"model.hidden=48"});
  const std::string text = std::string("\ninit: gone") + kRest;
  const Experiment now = Read(text, {}, {0, &past});
  EXPECT_EQ(now.model().hidden(), 48u);
  EXPECT_EQ(now.model().width(), 32u);
}

}  // namespace
}  // namespace thinwire
