#include "coordinator/run/restore.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Experiment With(const std::vector<std::string>& overrides) {
  return *ParseExperiment(R"(
model: {name: resnet8, width: 4}
data: {name: digits}
pipeline: {cuts: [stem, layer2]}
compression: {activations: {codec: topk, ratio: 0.1, feedback: ef21}}
optimizer: {lr: 0.1}
epochs: 1
)",
                          "f.yaml", overrides);
}

void Add(const std::string& cut, const std::string& end, CheckpointManifest* manifest) {
  CheckpointFile* file = manifest->add_files();
  file->set_cut(cut);
  file->set_direction("activation");
  file->set_end(end);
}

CheckpointManifest BothCuts() {
  CheckpointManifest manifest;
  manifest.add_files()->set_tensors("model");
  for (const char* cut : {"stem", "layer2"}) {
    for (const char* end : {"sender", "receiver"}) Add(cut, end, &manifest);
  }
  return manifest;
}

// Returns "stem sender" and the like, by stage.
std::vector<std::vector<std::string>> Ends(const RestorePlan& plan) {
  std::vector<std::vector<std::string>> stages;
  for (const auto& files : plan.ends) {
    std::vector<std::string>& names = stages.emplace_back();
    for (const CheckpointFile& file : files) names.push_back(file.cut() + " " + file.end());
  }
  return stages;
}

TEST(RestoreTest, EachEndGoesToTheStageThatHasItNow) {
  const Experiment then = With({});
  auto plan = PlanRestore(then, then, BothCuts());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Ends(*plan),
              ElementsAre(ElementsAre("stem sender"), ElementsAre("stem receiver", "layer2 sender"),
                          ElementsAre("layer2 receiver")));
  EXPECT_THAT(plan->resets, IsEmpty());
  plan = PlanRestore(then, With({"pipeline.stages=1"}), BothCuts());
  EXPECT_THAT(Ends(*plan), ElementsAre(ElementsAre("stem sender", "stem receiver", "layer2 sender",
                                                   "layer2 receiver")));
}

TEST(RestoreTest, WhatBeginsAnewIsNamed) {
  const Experiment then = With({});
  auto plan = PlanRestore(then, With({"pipeline.cuts=[layer1, layer2]"}), BothCuts());
  EXPECT_THAT(plan->resets,
              ElementsAre("cut stem, activations: the cut is no more, what was remembered there is "
                          "dropped",
                          "cut layer1, activations: what it remembers begins anew, the checkpoint "
                          "has nothing of it"));
  EXPECT_THAT(Ends(*plan),
              ElementsAre(IsEmpty(), ElementsAre("layer2 sender"), ElementsAre("layer2 receiver")));
  plan = PlanRestore(then, With({"compression.activations.ratio=0.2"}), BothCuts());
  EXPECT_EQ(plan->resets.size(), 4u);
  EXPECT_THAT(plan->ends[0], IsEmpty());
  const char* const lazy = "compression.activations.feedback=lazy";
  plan = PlanRestore(With({lazy}), With({lazy, "pipeline.microbatches=2"}), BothCuts());
  EXPECT_EQ(plan->resets.size(), 4u);
  plan = PlanRestore(then, With({"pipeline.microbatches=2"}), BothCuts());
  EXPECT_THAT(plan->resets, IsEmpty());
  plan = PlanRestore(then, then, CheckpointManifest());
  EXPECT_EQ(plan->resets.size(), 2u);
  const Experiment outliers =
      With({"compression.activations={codec: uniform, outliers: 1, feedback: none}"});
  plan = PlanRestore(outliers, outliers, CheckpointManifest());
  EXPECT_EQ(plan->resets.size(), 2u);
}

CheckpointFile OfPiece(uint32_t piece, uint32_t replica) {
  CheckpointFile file;
  file.set_cut("replicas");
  file.set_direction("gradient");
  file.set_end("sender");
  file.set_piece(piece);
  file.set_replica(replica);
  return file;
}

TEST(RestoreTest, WhatReplicasRememberGoesToTheSegmentsStage) {
  const char* const replicas =
      "replicas={count: 2, contributions: {codec: topk, ratio: 0.1, feedback: ef}}";
  CheckpointManifest manifest;
  *manifest.add_files() = OfPiece(1, 0);
  *manifest.add_files() = OfPiece(2 * 65536 + 3, 1);
  const Experiment then = With({replicas, "compression.activations={codec: none, feedback: none}"});
  auto plan = PlanRestore(then, then, manifest);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->resets, IsEmpty());
  EXPECT_THAT(Ends(*plan), ElementsAre(ElementsAre("replicas sender"), IsEmpty(),
                                       ElementsAre("replicas sender")));
  EXPECT_EQ(plan->ends[2][0].replica(), 1u);
  const std::vector<std::pair<const char*, const char*>> changes = {
      {"replicas.count=3", "the number of replicas is another"},
      {"pipeline.cuts=[layer2]", "the cuts are others, and with them the pieces"},
      {"replicas.contributions.ratio=0.2", "its compression is another"}};
  for (const auto& [change, why] : changes) {
    plan = PlanRestore(
        then, With({replicas, "compression.activations={codec: none, feedback: none}", change}),
        manifest);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->resets,
                ::testing::IsSupersetOf({absl::StrCat("replicas, contributions: ", why,
                                                      ", what was remembered there is dropped"),
                                         std::string("replicas, contributions: what it remembers "
                                                     "begins anew")}));
  }
}

// A segment's own entry concerns its pieces. The last segment may have a tied weight's copy, which
// has the entries of the first one.
TEST(RestoreTest, WhatReplicasRememberOfASegmentGoesOnWithItsCompression) {
  CheckpointManifest manifest;
  for (const uint32_t segment : {0, 1, 2}) *manifest.add_files() = OfPiece(segment * 65536, 0);
  const auto with = [](const std::string& stages) {
    return With({"replicas={count: 2, contributions: {codec: topk, ratio: 0.1, feedback: ef}}",
                 absl::StrCat("replicas.stages={", stages, "}"),
                 "compression.activations={codec: none, feedback: none}"});
  };
  const Experiment then = with("stem: {contributions: {ratio: 0.1}}");
  const auto kept = [&](const std::string& stages) {
    const auto plan = PlanRestore(then, with(stages), manifest);
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<size_t> files;
    for (const auto& end : plan->ends) files.push_back(end.size());
    return files;
  };
  EXPECT_THAT(kept("stem: {contributions: {ratio: 0.1}}"), ElementsAre(1, 1, 1));
  EXPECT_THAT(kept("layer2: {contributions: {codec: none}}"), ElementsAre(1, 0, 1));
  EXPECT_THAT(kept("head: {contributions: {ratio: 0.2}}"), ElementsAre(1, 1, 0));
  EXPECT_THAT(kept("stem: {contributions: {ratio: 0.2}}"), ElementsAre(0, 1, 0));
  // What begins to remember says so.
  const auto plan = PlanRestore(
      With({"replicas={count: 2}"}),
      With({"replicas={count: 2, stages: {head: {contributions: {codec: topk, ratio: 0.1, "
            "feedback: ef}}}}"}),
      BothCuts());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->resets, ElementsAre("replicas, contributions: what it remembers begins anew, "
                                        "the checkpoint has nothing of it"));
}

CheckpointFile OfTensors(const std::string& tensors, int replica = -1) {
  CheckpointFile file;
  file.set_tensors(tensors);
  if (replica >= 0) file.set_replica(static_cast<uint32_t>(replica));
  return file;
}

// Returns "model", "exp_avg 1" and the like.
std::vector<std::string> Tensors(const RestorePlan& plan) {
  std::vector<std::string> all;
  for (const StatePart& part : plan.tensors) {
    all.push_back(part.tensors());
    if (part.has_replica()) absl::StrAppend(&all.back(), " ", part.replica());
  }
  return all;
}

TEST(RestoreTest, WhatReplicasHaveEachForItselfGoesOnWithTheirNumberOnly) {
  const auto local = [](const std::string& more) {
    return With({absl::StrCat("replicas={count: 2, sync: local, every: 4}"), more,
                 "compression.activations={codec: none, feedback: none}"});
  };
  const Experiment then = local("epochs=2");
  CheckpointManifest manifest;
  for (int stage = 0; stage < 2; ++stage) {
    *manifest.add_files() = OfTensors("model");
    for (const int replica : {0, 1}) *manifest.add_files() = OfTensors("momentum_buffer", replica);
    for (const int replica : {0, 1}) *manifest.add_files() = OfTensors("replica_model", replica);
    *manifest.add_files() = OfTensors("outer_momentum_buffer");
  }
  auto plan = PlanRestore(then, local("pipeline.stages=1"), manifest);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Tensors(*plan),
              ElementsAre("model", "momentum_buffer 0", "momentum_buffer 1", "replica_model 0",
                          "replica_model 1", "outer_momentum_buffer"));
  EXPECT_THAT(plan->resets, IsEmpty());
  plan = PlanRestore(then, local("replicas.count=3"), manifest);
  EXPECT_THAT(Tensors(*plan), ElementsAre("model", "outer_momentum_buffer"));
  EXPECT_THAT(plan->resets,
              ::testing::Contains("momentum_buffer: the number of replicas is another, what was "
                                  "remembered there is dropped"));
  plan = PlanRestore(then, local("replicas.outer={name: sgd}"), manifest);
  EXPECT_THAT(plan->resets, ElementsAre("outer_momentum_buffer: replicas.outer.momentum is 0 now, "
                                        "what was remembered there is dropped"));
  plan = PlanRestore(then, local("replicas.sync=step"), manifest);
  EXPECT_THAT(Tensors(*plan), ElementsAre("model"));
  EXPECT_EQ(plan->resets.size(), 3u);
}

}  // namespace
}  // namespace thinwire
