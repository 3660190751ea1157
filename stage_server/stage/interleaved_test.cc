// Checks that stages that hold several chunks each, as threads of one process, train what one stage
// trains, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

// An experiment of eight segments. The last batch of an epoch has ten of twenty samples.
constexpr char kImages[] = R"(
name: interleaved
model: {name: resnet18, width: 4}
data: {name: digits, batch_size: 20, limit: 50, test_limit: 90}
pipeline:
  cuts: [layer1.0, layer1.1, layer2.0, layer2.1, layer3.0, layer3.1, layer4.0]
  schedule: interleaved
  stages: 2
  microbatches: 4
  threads: 1
optimizer: {name: sgd, lr: 0.1, momentum: 0.9, clip_norm: 1}
epochs: 2
)";

struct ImageStages : Stages {
  explicit ImageStages(
      const std::vector<std::string>& overrides, const BackendOf& backend_of = CpuBackend,
      const std::function<void(StageSpec*)>& change = [](StageSpec*) {})
      : Stages(kImages, overrides, backend_of, change) {}
};

// Expects equal results of all training and evaluation.
void ExpectSame(const std::vector<std::string>& codecs, const std::vector<std::string>& stages,
                const BackendOf& backend_of = CpuBackend) {
  std::vector<std::string> all = codecs, whole = codecs;
  all.insert(all.end(), stages.begin(), stages.end());
  whole.insert(whole.end(), stages.begin(), stages.end());
  whole.push_back("pipeline.stages=1");
  ImageStages one(whole), several(all, backend_of);
  EXPECT_GT(several.stage(0).spec().chunks(), 1);
  for (uint32_t epoch : {1, 2}) {
    EXPECT_THAT(several.Train(epoch), ElementsAreArray(one.Train(epoch)));
  }
  for (bool compressed : {true, false}) {
    const EvaluationReport want = one.Evaluate(compressed), got = several.Evaluate(compressed);
    EXPECT_EQ(got.samples(), 90u);
    EXPECT_EQ(got.loss(), want.loss());
    EXPECT_EQ(got.correct(), want.correct());
  }
  const EvaluationReport want = one.Evaluate(false, 50), got = several.Evaluate(false, 50);
  EXPECT_EQ(got.loss(), want.loss());
  EXPECT_NE(got.loss(), one.Evaluate(false).loss());
  EXPECT_THAT(several.Values(), ElementsAreArray(one.Values()));
}

class InterleavedTest : public ::testing::TestWithParam<const char*> {};

// Two stages of four chunks, and four of two. Three microbatches do not fill a group of stages.
TEST_P(InterleavedTest, TrainsAndEvaluatesLikeOneStage) {
  const std::string both = std::string("{") + GetParam() + "}";
  const std::vector<std::string> codecs = {"compression.activations=" + both,
                                           "compression.gradients=" + both};
  for (const char* stages : {"pipeline.stages=2", "pipeline.stages=4"}) {
    for (const char* microbatches : {"pipeline.microbatches=4", "pipeline.microbatches=3"}) {
      SCOPED_TRACE(absl::StrCat(stages, " ", microbatches));
      ExpectSame(codecs, {stages, microbatches});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, InterleavedTest,
    ::testing::Values("codec: none",
                      "codec: topk, ratio: 0.3, feedback: {kind: ef21, digest_every: 1}",
                      "codec: uniform, bits: 4, rounding: stochastic, feedback: ef",
                      "codec: low_rank, rank: 1, feedback: {kind: aq_sgd, digest_every: 1}",
                      "codec: ecsq, rotation: principal, rotation_every: 2, feedback: lazy"));

TEST(InterleavedStagesTest, SharedIndicesAndTheEpilogueArePlacesInTheModel) {
  ExpectSame({"compression.activations={codec: topk, ratio: 0.2, feedback: ef}",
              "compression.gradients={codec: topk, indices: shared}"},
             {"pipeline.stages=4"});
  ExpectSame(
      {"compression.gradients={codec: topk, ratio: 0.1, feedback: lazy, epilogue_only: true}"},
      {"pipeline.stages=4"});
}

TEST(InterleavedStagesTest, ADeviceThatIsNotTheHostDoesTheSame) {
  ExpectSame({"compression.activations={codec: topk, ratio: 0.3}"}, {"pipeline.stages=4"},
             [](int) { return NewLateBackend(); });
}

TEST(InterleavedStagesTest, GradientsAreThoseOfOneStage) {
  const std::vector<std::string> codecs = {"compression.activations={codec: topk, ratio: 0.3}"};
  ImageStages several(codecs);
  const std::vector<float> before = several.Values();
  const std::vector<float> first = several.Gradients(1, true);
  EXPECT_THAT(several.Values(), ElementsAreArray(before));
  EXPECT_THAT(several.Gradients(1, true), ElementsAreArray(first));
  EXPECT_NE(several.Gradients(1, false), first);
}

TEST(InterleavedStagesTest, StagesAreARing) {
  ImageStages stages({"pipeline.stages=4"});
  const auto cuts = [&](size_t stage) {
    std::vector<std::string> names;
    for (const NeighbourEnd& neighbour : NeighbourEnds(stages.stage(stage).spec())) {
      names.push_back(absl::StrCat(neighbour.end.cut, " to ", neighbour.end.peer));
    }
    return names;
  };
  EXPECT_THAT(cuts(0), ElementsAre("0 to stage 1", "3 to stage 3", "4 to stage 1"));
  EXPECT_THAT(cuts(3), ElementsAre("2 to stage 2", "3 to stage 0", "6 to stage 2"));
}

TEST(InterleavedStagesTest, TracesNameTheSegments) {
  std::vector<std::shared_ptr<StepTrace>> traces;
  ImageStages stages({}, CpuBackend, [&](StageSpec* spec) {
    traces.push_back(std::make_shared<StepTrace>(2, 2, 10000));
    spec->trace = traces.back();
  });
  stages.Train();
  for (size_t stage = 0; stage < 2; ++stage) {
    std::map<std::string, std::map<int, int>> passes;  // of each name and segment
    for (const Slice& slice : traces[stage]->Take().slices) {
      if (slice.segment != Slice::kNone) ++passes[slice.name][slice.segment];
    }
    for (const char* name : {"forward", "backward"}) {
      EXPECT_THAT(passes[name], SizeIs(4));
      for (const auto& [segment, count] : passes[name]) {
        EXPECT_EQ(segment % 2, static_cast<int>(stage));
        EXPECT_EQ(count, 4);  // microbatches
      }
    }
  }
}

TEST(InterleavedStagesTest, ASilentNeighbourIsNamedAtTheDeadline) {
  ImageStages stages({"pipeline.deadline_seconds=0.05"});
  const absl::Status status = stages.executor(1).Train(stages.Epoch(1), [](const StepReport&) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace thinwire
