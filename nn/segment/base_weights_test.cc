// Tests segments whose frozen linear weights are held in few bits.
#include "models/base_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "models/lora.h"
#include "nn/coded_parameter.h"
#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

// Returns a model with adapters of which all are alike but the format of the base.
Model BaseModel(const std::string& name, WeightFormat format) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, kTinyPositions};
  options.classes = kTinyVocabulary;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = options.family == ModelFamily::kLlama ? 2 : 0;
  options.width = 64;
  options.hidden = 128;
  LoraSpec lora;
  lora.rank = 4;
  lora.modules = {kAllLinear};
  lora.layers = {1};  // the first block has a base alone
  return *WithBase(*WithAdapters(*NamedModel(options), lora), format);
}

std::unique_ptr<Segment> BaseSegment(absl::Span<const BlockSpec> blocks, Ops* ops, bool needs_dx,
                                     Recompute recompute = Recompute::kNone) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.init_seed = 3;
  options.needs_input_gradient = needs_dx;
  options.recompute = recompute;
  return *BuildSegment(blocks, options);
}

// Gives B, which starts as zeros, small random values.
void FillAdapters(Segment* segment) {
  for (Parameter& parameter : segment->parameters()) {
    if (!parameter.spec.is_trained()) continue;
    const Tensor random = RandomTensor(parameter.spec.shape, parameter.spec.name);
    for (int64_t i = 0; i < random.elements(); ++i) {
      parameter.value.floats()[i] = random.floats()[i] / 8;
    }
  }
  ASSERT_TRUE(segment->ParametersChanged().ok());
}

std::vector<float> ReadBack(const Parameter& parameter) {
  std::vector<float> values(parameter.spec.shape.elements());
  EXPECT_TRUE(ReadRows(parameter, 0, absl::MakeSpan(values)).ok());
  return values;
}

struct BasePass {
  std::vector<float> y;
  std::map<std::string, std::vector<float>> gradients;
};

Tensor BaseIds() { return RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids"); }
Tensor BaseDy() { return RandomTensor({2, kTinyPositions, kTinyVocabulary}, "dy"); }

void AddGradients(Segment* segment, BasePass* to) {
  for (const Parameter& parameter : segment->parameters()) {
    if (parameter.spec.is_trained())
      to->gradients[parameter.spec.name] = Values(parameter.gradient);
  }
}

BasePass PassOf(Segment* segment) {
  BasePass done;
  Saved saved;
  done.y = Values(*segment->Forward(BaseIds(), Mode::kTrain, &saved));
  EXPECT_TRUE(segment->Backward(BaseDy(), &saved).ok());
  EXPECT_TRUE(saved.empty());
  AddGradients(segment, &done);
  return done;
}

class BaseSegmentTest : public testing::TestWithParam<std::tuple<const char*, WeightFormat>> {
 protected:
  const std::unique_ptr<Ops> ops_ = NewCpuOps(2);
  const Model model_ = BaseModel(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

TEST_P(BaseSegmentTest, ComputesWithWhatTheCodesStandFor) {
  const auto segment = BaseSegment(model_.blocks, ops_.get(), false);
  const Model plain_model = BaseModel(std::get<0>(GetParam()), WeightFormat::kFP32);
  const auto plain = BaseSegment(plain_model.blocks, ops_.get(), false);
  int held = 0;
  for (const Parameter& parameter : segment->parameters()) {
    if (!parameter.is_coded()) continue;
    ++held;
    EXPECT_TRUE(parameter.value.empty()) << parameter.spec.name;
    const std::vector<float> values = ReadBack(parameter);
    const Parameter* const same = FindParameter(plain->parameters(), parameter.spec.name);
    EXPECT_LT(RelativeDistance(values, ReadBack(*same)), 0.12) << parameter.spec.name;
    ASSERT_TRUE(WriteRows(*same, 0, values).ok());
  }
  EXPECT_EQ(held, 2 * 4);
  FillAdapters(segment.get());
  FillAdapters(plain.get());
  const BasePass got = PassOf(segment.get()), want = PassOf(plain.get());
  EXPECT_LT(RelativeDistance(got.y, want.y), 2e-6);
  ASSERT_FALSE(got.gradients.empty());
  for (const auto& [name, gradient] : got.gradients) {
    EXPECT_LT(RelativeDistance(gradient, want.gradients.at(name)), 5e-6) << name;
  }
}

TEST_P(BaseSegmentTest, AChainOfSegmentsEqualsOneBitForBit) {
  const auto whole = BaseSegment(model_.blocks, ops_.get(), false);
  FillAdapters(whole.get());
  const BasePass want = PassOf(whole.get());
  std::vector<std::unique_ptr<Segment>> chain;
  for (size_t i = 0; i < model_.blocks.size(); ++i) {
    chain.push_back(BaseSegment(absl::MakeSpan(model_.blocks).subspan(i, 1), ops_.get(), i > 2));
    FillAdapters(chain.back().get());
  }
  std::vector<Saved> saved(chain.size());
  Tensor x = BaseIds(), back = BaseDy();
  for (size_t i = 0; i < chain.size(); ++i) x = *chain[i]->Forward(x, Mode::kTrain, &saved[i]);
  EXPECT_EQ(Values(x), want.y);
  for (size_t i = chain.size(); i-- > 2;) back = *chain[i]->Backward(back, &saved[i]);
  BasePass got;
  for (const auto& segment : chain) AddGradients(segment.get(), &got);
  EXPECT_EQ(got.gradients, want.gradients);
}

TEST_P(BaseSegmentTest, RecomputingAndThreadsChangeNothing) {
  const auto once = BaseSegment(model_.blocks, ops_.get(), false);
  const auto one_thread = NewCpuOps(1);
  const auto again = BaseSegment(model_.blocks, ops_.get(), false, Recompute::kBlocks);
  FillAdapters(once.get());
  FillAdapters(again.get());
  const BasePass want = PassOf(once.get());
  EXPECT_EQ(PassOf(again.get()).gradients, want.gradients);
  const auto alone = BaseSegment(model_.blocks, one_thread.get(), false);
  for (const Parameter& parameter : alone->parameters()) {
    if (parameter.spec.is_trained()) continue;  // FillAdapters has not written these
    EXPECT_EQ(ReadBack(parameter),
              ReadBack(*FindParameter(once->parameters(), parameter.spec.name)))
        << parameter.spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, BaseSegmentTest,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(WeightFormat::kBF16, WeightFormat::kInt8,
                                                          WeightFormat::kNF4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  Name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace thinwire
