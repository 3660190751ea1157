#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/resolve.h"
#include "config/resolve_testing.h"
#include "config/specs.h"
#include "google/protobuf/util/message_differencer.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLlama[] = R"(
model: {name: llama, layers: 2, heads: 4, width: 16, hidden: 24}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [embedding, layers.0]}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";

Experiment Lora(const std::string& lora, std::vector<std::string> more = {}) {
  more.push_back("lora=" + lora);
  return With(more, kLlama);
}

std::string LoraError(const std::string& lora, std::vector<std::string> more = {}) {
  more.push_back("lora=" + lora);
  return ErrorWith(more, kLlama);
}

TEST(LoraConfigTest, DefaultsAreThoseOfPeft) {
  const Experiment e = Lora("{rank: 4}");
  EXPECT_EQ(e.lora().alpha(), 8);
  EXPECT_THAT(e.lora().modules(), ElementsAre("q_proj", "v_proj"));
  EXPECT_THAT(e.lora().layers(), ElementsAre("all"));
  EXPECT_EQ(e.lora().scaling(), "standard");
  const absl::StatusOr<Partition> partition = PartitionFrom(e);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(TrainableParameters(partition->model), 2 * 4 * 4 * 16);
  EXPECT_EQ(FirstTrainedBlock(partition->model), 1);
  Experiment again = e;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(e, again));
}

TEST(LoraConfigTest, TakesModulesAndLayers) {
  const Experiment e = Lora("{rank: 4, modules: linear, layers: [1]}");
  EXPECT_EQ(FirstTrainedBlock(PartitionFrom(e)->model), 2);
  EXPECT_EQ(DirectionOf(e, "layers.0", /*gradient=*/true).codec(), "none");
}

TEST(LoraConfigTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(LoraError("{modules: c_attn}"), HasSubstr("lora: modules: c_attn, want one of"));
  EXPECT_THAT(LoraError("{modules: lm_head}"), HasSubstr("between embedding and head"));
  EXPECT_THAT(LoraError("{layers: [9]}"), HasSubstr("lora: layers: 9"));
  EXPECT_THAT(LoraError("{layers: [x]}"), HasSubstr("lora.layers: x, want all or numbers"));
  EXPECT_THAT(LoraError("{rank: 0}"), HasSubstr("lora.rank: 0, want 1 to"));
  EXPECT_THAT(LoraError("{alpha: 0}"), HasSubstr("lora.alpha: 0, want"));
  EXPECT_THAT(LoraError("{dropout: 1}"), HasSubstr("lora.dropout: 1, want"));
  EXPECT_THAT(LoraError("{scaling: odd}"), HasSubstr("lora.scaling"));
  EXPECT_THAT(LoraError("{rank: 4}", {"freeze=embedding"}), HasSubstr("freeze: embedding, want"));
  EXPECT_THAT(LoraError("{rank: 4}", {"tensor.parts=2"}), HasSubstr("tensor.parts: 2, want 1"));
  EXPECT_THAT(LoraError("{dropout: 0.5}", {"pipeline.schedule=terapipe"}),
              HasSubstr("terapipe with dropout 0.5"));
  EXPECT_THAT(ErrorWith({"lora={rank: 4}"}), HasSubstr("lora.modules: is required"));
}

}  // namespace
}  // namespace thinwire
