// Tests segments of encoders, whose attention sees whole samples up to their padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string name;
  Model model;
  Tensor x;

  Pass pass(int64_t first_sample = 0) const {
    Pass pass(Mode::kTrain, /*step=*/5, first_sample);
    if (model.tokens) pass.ids = x;
    return pass;
  }
  Tensor dy() const { return RandomTensor(model.blocks.back().out.WithBatch(x.shape()[0]), "dy"); }
};

std::vector<Case> Cases(int64_t batch) {
  const Model vit = TinyVit(/*dropout=*/0.2);
  return {{"masked", TinyBert(BertHead::kMasked, 0.2), PaddedIds(batch)},
          {"classes", TinyBert(BertHead::kClasses, 0.2), PaddedIds(batch)},
          {"vit", vit, RandomTensor(vit.input.WithBatch(batch), "x")}};
}

std::unique_ptr<Segment> Build(absl::Span<const BlockSpec> blocks, Ops* ops,
                               Recompute recompute = Recompute::kNone) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.init_seed = 3;
  options.dropout_seed = 4;
  options.recompute = recompute;
  auto segment = BuildSegment(blocks, options);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

// Results and gradients by name.
using Results = std::map<std::string, std::vector<float>>;

void AddGradients(Segment* segment, Results* results) {
  for (const Parameter& parameter : segment->parameters()) {
    (*results)[parameter.spec.name] = Values(parameter.gradient);
  }
}

Results OnePass(Segment* segment, const Case& c) {
  Results results;
  Saved saved;
  results["y"] = Values(*segment->Forward(c.x, c.pass(), &saved));
  EXPECT_TRUE(segment->Backward(c.dy(), &saved).ok());
  EXPECT_TRUE(saved.empty());
  AddGradients(segment, &results);
  return results;
}

TEST(EncoderModelTest, AChainOfSegmentsEqualsOneBitForBit) {
  const auto ops = NewCpuOps(2);
  for (const Case& c : Cases(6)) {
    const auto whole = Build(c.model.blocks, ops.get());
    const Results of_whole = OnePass(whole.get(), c);
    std::vector<std::unique_ptr<Segment>> chain;
    for (size_t i = 0; i < c.model.blocks.size(); ++i) {
      chain.push_back(Build(absl::MakeSpan(c.model.blocks).subspan(i, 1), ops.get()));
    }
    std::vector<Saved> saved(chain.size());
    Tensor x = c.x, dy = c.dy();
    for (size_t i = 0; i < chain.size(); ++i) x = *chain[i]->Forward(x, c.pass(), &saved[i]);
    Results of_chain;
    of_chain["y"] = Values(x);
    for (size_t i = chain.size(); i-- > 0;) dy = *chain[i]->Backward(dy, &saved[i]);
    for (const auto& segment : chain) AddGradients(segment.get(), &of_chain);
    EXPECT_EQ(of_chain, of_whole) << c.name;
  }
}

TEST(EncoderModelTest, BlocksThatRunAgainGiveTheSameBits) {
  const auto ops = NewCpuOps(2);
  for (const Case& c : Cases(6)) {
    const auto once = Build(c.model.blocks, ops.get());
    const auto again = Build(c.model.blocks, ops.get(), Recompute::kBlocks);
    EXPECT_EQ(OnePass(again.get(), c), OnePass(once.get(), c)) << c.name;
  }
}

// Takes the ids of one sample with more and more padding in place of nothing.
TEST(EncoderModelTest, PaddingDoesNotChangeTheClasses) {
  const auto ops = NewCpuOps(1);
  const Model model = TinyBert(BertHead::kClasses);
  const auto segment = Build(model.blocks, ops.get());
  Tensor ids = PaddedIds(1), other = PaddedIds(1);
  auto* const of_ids = static_cast<int32_t*>(ids.data());
  auto* const of_other = static_cast<int32_t*>(other.data());
  of_ids[5] = static_cast<int32_t>(kTinyPad);  // from which no other position takes anything
  of_other[5] = 7;
  const auto logits = [&](const Tensor& x) {
    Pass pass = Mode::kEvaluate;
    pass.ids = x;
    return Values(*segment->Forward(x, pass, nullptr));
  };
  EXPECT_NE(logits(ids), logits(other));
  // A padded position's own embedding has no influence either.
  Parameter* const words =
      FindParameter(segment->parameters(), "bert.embeddings.word_embeddings.weight");
  const std::vector<float> before = logits(ids);
  for (int64_t j = 0; j < 16; ++j) words->value.floats()[kTinyPad * 16 + j] = 3;
  ASSERT_TRUE(segment->ParametersChanged().ok());
  EXPECT_EQ(logits(ids), before);
}

TEST(EncoderModelTest, NamesIdsThatDoNotFit) {
  const auto ops = NewCpuOps(1);
  const Model model = TinyBert(BertHead::kMasked);
  const auto block = Build(absl::MakeSpan(model.blocks).subspan(1, 1), ops.get());
  const Tensor x = RandomTensor(model.blocks[1].in.WithBatch(2), "x");
  EXPECT_THAT(block->Forward(x, Mode::kEvaluate, nullptr).status().message(),
              HasSubstr("token ids are missing, want [2, 6]"));
  Pass pass = Mode::kEvaluate;
  pass.ids = PaddedIds(3);
  EXPECT_THAT(block->Forward(x, pass, nullptr).status().message(),
              HasSubstr("token ids [3, 6], want [2, 6]"));
}

TEST(EncoderModelTest, RefusesPositionsOneAfterAnother) {
  const auto ops = NewCpuOps(1);
  const auto segment =
      Build(OneBlock({WithoutCausality(AttentionOf(2, 0))}, {1, 7, 48}), ops.get());
  KeyValueCache cache;
  Pass pass = Mode::kEvaluate;
  pass.cache = &cache;
  EXPECT_THAT(segment->Forward(RandomTensor({1, 2, 48}, "x"), pass, nullptr).status().message(),
              HasSubstr("causal is false with a cache, want true"));
}

}  // namespace
}  // namespace thinwire
