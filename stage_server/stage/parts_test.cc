// Tests tensor-parallel parts of the stages of a pipeline. How segments are spread over stages may
// not change a bit of what they learn, nor a byte of what counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/settings_testing.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"(
name: parts
model: {name: gpt2, layers: 3, heads: 4, width: 16, dropout: 0.1}
data: {name: shakespeare, context: 12, batch_size: 6, limit: 16, test_limit: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 2, threads: 1}
tensor: {parts: 2}
optimizer: {name: adamw, lr: 0.01, clip_norm: 1}
epochs: 2
)";

struct Counts {
  uint64_t messages = 0, elements = 0, raw_bytes = 0, wire_bytes = 0;

  friend bool operator==(const Counts& a, const Counts& b) {
    return a.messages == b.messages && a.elements == b.elements && a.raw_bytes == b.raw_bytes &&
           a.wire_bytes == b.wire_bytes;
  }
};

struct Parts : Stages {
  explicit Parts(const std::vector<std::string>& overrides, int carriers = 1,
                 Backend (*backend)(int stage) = CpuBackend)
      : Stages(
            kExperiment, overrides, backend, [](StageSpec*) {}, carriers) {}

  Counts counts(Direction direction) {
    Counts all;
    for (size_t i = 0; i < size(); ++i) {
      const auto train = stage(i).sums()->counts(direction).all().train;
      all.messages += train.messages;
      all.elements += train.elements;
      all.raw_bytes += train.raw_bytes;
      all.wire_bytes += train.wire_bytes;
    }
    return all;
  }
};

struct Codec {
  const char* name;
  const char* entry;
  const char* more = "";
  const char* sequence = "false";
};

class PartsTest : public ::testing::TestWithParam<Codec> {
 protected:
  static std::vector<std::string> With(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = more;
    all.push_back(absl::StrCat("compression.sums={activations: ", GetParam().entry,
                               ", gradients: ", GetParam().entry, GetParam().more, "}"));
    all.push_back("compression.activations={codec: uniform, bits: 8, rounding: stochastic}");
    all.push_back(absl::StrCat("tensor.sequence=", GetParam().sequence));
    return all;
  }
};

TEST_P(PartsTest, StagesTrainLikeOneAndCountTheSameBytes) {
  Parts one(With({"pipeline.stages=1"}));
  const std::vector<double> losses = one.Train();
  ASSERT_THAT(losses, SizeIs(3));
  for (const int stages : Settings({2, 3})) {
    Parts several(With({absl::StrCat("pipeline.stages=", stages)}));
    EXPECT_THAT(several.Train(), ElementsAreArray(losses)) << stages;
    EXPECT_THAT(several.Values(), ElementsAreArray(one.Values())) << stages;
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      EXPECT_EQ(several.counts(direction), one.counts(direction)) << stages;
    }
    for (const bool compressed : {false, true}) {
      EXPECT_EQ(several.Evaluate(compressed).loss(), one.Evaluate(compressed).loss()) << stages;
    }
  }
}

TEST_P(PartsTest, CarriersTrainLikeOneAndCountTheSameBytes) {
  for (const int stages : Settings({1, 2})) {
    const std::string of_stages = absl::StrCat("pipeline.stages=", stages);
    Parts one(With({of_stages, "tensor.parts=4"}));
    const std::vector<double> losses = one.Train();
    for (const int carriers : Settings({2, 4})) {
      SCOPED_TRACE(absl::StrCat(stages, " stages of ", carriers, " carriers"));
      Parts several(With({of_stages, "tensor.parts=4"}), carriers);
      EXPECT_THAT(several.Train(), ElementsAreArray(losses));
      EXPECT_THAT(several.Values(), ElementsAreArray(one.Values()));
      for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
        EXPECT_EQ(several.counts(direction), one.counts(direction));
      }
      for (const bool compressed : {false, true}) {
        EXPECT_EQ(several.Evaluate(compressed).loss(), one.Evaluate(compressed).loss());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, PartsTest,
    ::testing::Values(Codec{"None", "{codec: none}"},
                      Codec{"Uniform", "{codec: uniform, bits: 4, rounding: stochastic}"},
                      Codec{"TopK", "{codec: topk, ratio: 0.2}"},
                      Codec{"Ecsq", "{codec: ecsq, rate: 2}"},
                      Codec{"Encoder", "{codec: none}", ", bottleneck: {kind: linear, width: 5}"},
                      Codec{"NoneOnSlices", "{codec: none}", "", "true"},
                      Codec{"UniformOnSlices", "{codec: uniform, bits: 4, rounding: stochastic}",
                            "", "true"},
                      Codec{"TopKOnSlices", "{codec: topk, ratio: 0.2}", "", "true"},
                      Codec{"EcsqOnSlices", "{codec: ecsq, rate: 2}", ", from_layer: 1", "true"}),
    [](const auto& info) { return info.param.name; });

// Stages take turns, and weights' gradients wait.
TEST(PartsTest, SchedulesGiveTheSameBitsOnAnyCarriers) {
  for (const char* schedule : {"zero_bubble", "interleaved"}) {
    for (const char* sequence : {"false", "true"}) {
      SCOPED_TRACE(absl::StrCat(schedule, ", sequence ", sequence));
      const std::vector<std::string> with = {
          absl::StrCat("pipeline.schedule=", schedule), absl::StrCat("tensor.sequence=", sequence),
          "pipeline.stages=2", "pipeline.cuts=[embedding, h.0, h.1]",
          "compression.sums.gradients={codec: ecsq, rate: 2}"};
      Parts one(with), two(with, /*carriers=*/2);
      const std::vector<double> losses = one.Train();
      EXPECT_THAT(two.Train(), ElementsAreArray(losses));
      EXPECT_THAT(two.Values(), ElementsAreArray(one.Values()));
    }
  }
}

// Three of four machines' slices have two positions of seven, one has one.
TEST(PartsTest, SlicesOfUnequalLengthsGiveTheSameBitsOnAnyCarriers) {
  const std::vector<std::string> with = {"tensor={parts: 4, sequence: true}", "data.context=7",
                                         "compression.sums.activations={codec: topk, ratio: 0.3}"};
  Parts one(with), three(with, /*carriers=*/3), four(with, /*carriers=*/4);
  const std::vector<double> losses = one.Train();
  for (Parts* const several : {&three, &four}) {
    EXPECT_THAT(several->Train(), ElementsAreArray(losses));
    EXPECT_THAT(several->Values(), ElementsAreArray(one.Values()));
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      EXPECT_EQ(several->counts(direction), one.counts(direction));
    }
  }
}

TEST(PartsTest, SlicesOnADeviceThatIsNotTheHostAreTheSame) {
  for (const char* codec : {"none", "fp16"}) {
    const std::vector<std::string> with = {
        "tensor.sequence=true", absl::StrCat("compression.sums={activations: {codec: ", codec,
                                             "}, gradients: {codec: ", codec, "}}")};
    Parts host(with);
    const std::vector<double> losses = host.Train();
    for (const int carriers : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(codec, " on ", carriers, " carriers"));
      Parts late(with, carriers, [](int) { return NewLateBackend(); });
      EXPECT_THAT(late.Train(), ElementsAreArray(losses));
      EXPECT_THAT(late.Values(), ElementsAreArray(host.Values()));
    }
  }
}

// The first step's forward pass has the bits of whole positions.
TEST(PartsTest, ExactSlicesLearnWhatWholePositionsLearn) {
  Parts whole({}), sliced({"tensor.sequence=true"});
  const std::vector<double> want = whole.Train(), are = sliced.Train();
  EXPECT_EQ(are[0], want[0]);
  for (size_t i = 1; i < want.size(); ++i) EXPECT_NEAR(are[i], want[i], 1e-4 * want[i]);
}

// In each of three segments slices begin and end. Each of their six sums is gathered before and
// scattered behind, by two parts of which each has half of the positions.
TEST(PartsTest, SlicesAreCountedOnceForEachReceiver) {
  Parts parts({"tensor.sequence=true"});
  parts.Train();
  const Counts activations = parts.counts(DIRECTION_ACTIVATION);
  EXPECT_EQ(activations.messages, (6 * 2 + 3) * 2 * 2 * 3u);
  EXPECT_EQ(activations.elements, (6 * 2 + 3) * 16 * 12 * 16u);
  // In each step there are also the gradients that slices add up: those of 18 vectors.
  const Counts gradients = parts.counts(DIRECTION_GRADIENT);
  EXPECT_EQ(gradients.messages, activations.messages + 3 * 2 * 3);
  EXPECT_EQ(gradients.elements, activations.elements + 3 * 2 * 18 * 16);
}

// Six sums of two parts, in two microbatches of three steps; each part has one other to send to.
TEST(PartsTest, EachPartialSumIsCountedOnceForEachOtherPart) {
  Parts parts({});
  parts.Train();
  for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
    const Counts counts = parts.counts(direction);
    EXPECT_EQ(counts.messages, 6 * 2 * 2 * 3u);
    EXPECT_EQ(counts.elements, 6 * 2 * 16 * 12 * 16u);  // all 16 samples
    EXPECT_EQ(counts.raw_bytes, 4 * counts.elements);
    EXPECT_GT(counts.wire_bytes, counts.raw_bytes);
  }
}

TEST(PartsTest, ExactSumsLearnWhatTheUndividedModelLearns) {
  const auto undivided = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = more;
    all.push_back("tensor.parts=1");
    return all;
  };
  Stages whole(kExperiment, undivided({"optimizer={name: sgd, lr: 0.1}"}));
  Parts parts({"optimizer={name: sgd, lr: 0.1}"});
  const std::vector<double> want = whole.Train(), losses = parts.Train();
  ASSERT_THAT(losses, SizeIs(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(std::abs(losses[i] - want[i]), 1e-5 * want[i]) << "step " << i;
  }
}

TEST(PartsTest, WarmUpAndTheFirstBlocksGoExactly) {
  const std::string coded = "compression.sums={activations: {codec: uniform, bits: 2}}";
  Parts exact({}), warm({coded, "compression.warmup_epochs=1"});
  EXPECT_THAT(warm.Train(), ElementsAreArray(exact.Train()));
  EXPECT_EQ(warm.counts(DIRECTION_ACTIVATION), exact.counts(DIRECTION_ACTIVATION));
  // Two of three blocks are coded, with 2 bits for 32 and some bytes of headers.
  Parts half({coded, "compression.sums.from_layer=half"});
  half.Train();
  const auto bytes = static_cast<double>(half.counts(DIRECTION_ACTIVATION).wire_bytes);
  const auto raw = static_cast<double>(half.counts(DIRECTION_ACTIVATION).raw_bytes);
  EXPECT_GT(bytes, (1 / 3.0 + 2 / 3.0 / 16) * raw);
  EXPECT_LT(bytes, 0.5 * raw);
}

}  // namespace
}  // namespace thinwire
