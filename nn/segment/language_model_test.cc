// Tests segments of language models: tied weights, dropout, and blocks that run forward again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

SegmentOptions Options(Ops* ops) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.init_seed = 3;
  options.dropout_seed = 4;
  return options;
}

std::unique_ptr<Segment> Build(absl::Span<const BlockSpec> blocks, const SegmentOptions& options) {
  auto segment = BuildSegment(blocks, options);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

Tensor Ids(int64_t batch) { return RandomIds({batch, kTinyPositions}, kTinyVocabulary, "ids"); }
Tensor Dy(int64_t batch) { return RandomTensor({batch, kTinyPositions, kTinyVocabulary}, "dy"); }

// By name: values of parameters that are not trained, and gradients of the others.
using Results = std::map<std::string, std::vector<float>>;

void AddParameters(Segment* segment, Results* results) {
  for (const Parameter& parameter : segment->parameters()) {
    (*results)[parameter.spec.name] =
        Values(parameter.spec.is_trained() ? parameter.gradient : parameter.value);
  }
}

Results OnePass(Segment* segment, const Tensor& x, const Pass& pass, const Tensor& dy) {
  Results results;
  Saved saved;
  results["y"] = Values(*segment->Forward(x, pass, &saved));
  const Tensor dx = *segment->Backward(dy, &saved);
  if (!dx.empty()) results["dx"] = Values(dx);
  EXPECT_TRUE(saved.empty());
  AddParameters(segment, &results);
  return results;
}

// Returns samples [begin, end) of `values`; each sample has equally many values.
std::vector<float> Samples(const std::vector<float>& values, size_t samples, size_t begin,
                           size_t end) {
  const size_t each = values.size() / samples;
  return {values.begin() + begin * each, values.begin() + end * each};
}

TEST(LanguageModelTest, TiedCopiesStartEqualWhereverTheyStand) {
  const auto ops = NewCpuOps(1);
  const Model model = TinyLanguageModel("gpt2");
  const auto first = Build(absl::MakeSpan(model.blocks).subspan(0, 1), Options(ops.get()));
  const auto last = Build(absl::MakeSpan(model.blocks).subspan(3), Options(ops.get()));
  EXPECT_EQ(first->parameters()[0].spec.name, last->parameters()[2].spec.tied_to);
  EXPECT_EQ(Values(first->parameters()[0].value), Values(last->parameters()[2].value));
  EXPECT_NE(Values(first->parameters()[0].value), Values(first->parameters()[1].value));
}

TEST(LanguageModelTest, NormalWeightsHaveTheirDeviation) {
  LayerSpec embedding = DefaultLayer(LayerKind::kEmbedding);
  embedding.name = "e";
  embedding.vocabulary = 1000;
  embedding.out_features = 201;
  embedding.deviation = 0.5;
  const auto ops = NewCpuOps(1);
  const auto segment = Build(OneBlock({embedding}, {1, 2}), Options(ops.get()));
  const std::vector<float> values = Values(segment->parameters()[0].value);
  double sum = 0, squares = 0, beyond = 0;
  for (const float value : values) {
    const double v = static_cast<double>(value) / 0.5;
    sum += v;
    squares += v * v;
    beyond += std::abs(v) > 2 ? 1 : 0;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(beyond / n, 0.0455, 0.003);
}

TEST(LanguageModelTest, AChainOfSegmentsEqualsOneBitForBit) {
  const auto ops = NewCpuOps(2);
  for (const char* name : {"gpt2", "llama"}) {
    const Model model = TinyLanguageModel(name, /*dropout=*/0.2);
    const Pass pass(Mode::kTrain, /*step=*/5, /*first_sample=*/2);
    const auto whole = Build(model.blocks, Options(ops.get()));
    const Results of_whole = OnePass(whole.get(), Ids(3), pass, Dy(3));

    std::vector<std::unique_ptr<Segment>> chain;
    for (size_t i = 0; i < model.blocks.size(); ++i) {
      chain.push_back(Build(absl::MakeSpan(model.blocks).subspan(i, 1), Options(ops.get())));
    }
    std::vector<Saved> saved(chain.size());
    Tensor x = Ids(3), dy = Dy(3);
    for (size_t i = 0; i < chain.size(); ++i) x = *chain[i]->Forward(x, pass, &saved[i]);
    Results of_chain;
    of_chain["y"] = Values(x);
    for (size_t i = chain.size(); i-- > 0;) dy = *chain[i]->Backward(dy, &saved[i]);
    EXPECT_TRUE(dy.empty());
    for (const auto& segment : chain) AddParameters(segment.get(), &of_chain);
    EXPECT_EQ(of_chain, of_whole) << name;
  }
}

// A tied weight gets gradients through the rows looked up and through the logits.
TEST(LanguageModelTest, BothGradientsOfATiedWeightAddUpToThatOfOneWeight) {
  const auto ops = NewCpuOps(1);
  const auto segment = Build(TinyLanguageModel("gpt2").blocks, Options(ops.get()));
  const Tensor dy = Dy(2);
  const Results results = OnePass(segment.get(), Ids(2), Mode::kTrain, dy);
  const auto loss_at = [&](size_t element, float change) {
    for (const size_t copy : {size_t{0}, segment->parameters().size() - 1}) {
      segment->parameters()[copy].value.floats()[element] += change;
    }
    EXPECT_TRUE(segment->ParametersChanged().ok());
    const Tensor y = *segment->Forward(Ids(2), Mode::kEvaluate, nullptr);
    double loss = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      loss += static_cast<double>(y.floats()[i]) * static_cast<double>(dy.floats()[i]);
    }
    return loss;
  };
  const std::vector<float>& embedding = results.at("transformer.wte.weight");
  const std::vector<float>& head = results.at("lm_head.weight");
  constexpr float kStep = 1e-3f;
  double greatest = 0;
  for (const float value : head)
    greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  for (size_t i = 0; i < embedding.size(); i += 7) {
    const double above = loss_at(i, kStep), below = loss_at(i, -2 * kStep);
    loss_at(i, kStep);
    const double sum = static_cast<double>(embedding[i]) + static_cast<double>(head[i]);
    EXPECT_NEAR((above - below) / (2 * static_cast<double>(kStep)), sum, 0.02 * greatest) << i;
  }
}

TEST(LanguageModelTest, BlocksThatRunAgainGiveTheSameBitsAndKeepLess) {
  const auto ops = NewCpuOps(2);
  SegmentOptions options = Options(ops.get());
  for (const char* name : {"gpt2", "llama"}) {
    const Model model = TinyLanguageModel(name, /*dropout=*/0.2);
    const Pass pass(Mode::kTrain, /*step=*/7, /*first_sample=*/1);
    options.recompute = Recompute::kNone;
    const auto keeps = Build(model.blocks, options);
    options.recompute = Recompute::kBlocks;
    const auto again = Build(model.blocks, options);
    Saved much, little;
    ASSERT_TRUE(keeps->Forward(Ids(3), pass, &much).ok());
    ASSERT_TRUE(again->Forward(Ids(3), pass, &little).ok());
    EXPECT_LT(3 * little.bytes(), much.bytes());
    EXPECT_EQ(OnePass(again.get(), Ids(3), pass, Dy(3)), OnePass(keeps.get(), Ids(3), pass, Dy(3)))
        << name;
  }
}

TEST(LanguageModelTest, ASplitBackwardPassHasTheBitsOfAWholeOne) {
  const auto ops = NewCpuOps(2);
  for (const char* name : {"gpt2", "llama"}) {
    for (const Recompute recompute : AllOf<Recompute>()) {
      SCOPED_TRACE(testing::Message() << name << ", recompute " << Name(recompute));
      const Model model = TinyLanguageModel(name, /*dropout=*/0.2);
      SegmentOptions options = Options(ops.get());
      options.recompute = recompute;
      const auto whole = Build(model.blocks, options);
      options.splits_backward = true;
      const auto split = Build(model.blocks, options);
      Saved of_whole[2], of_split[2];
      for (int m = 0; m < 2; ++m) {
        const Pass pass(Mode::kTrain, /*step=*/7, /*first_sample=*/3 * m);
        ASSERT_TRUE(whole->Forward(Ids(3), pass, &of_whole[m]).ok());
        ASSERT_TRUE(whole->Backward(Dy(3), &of_whole[m]).ok());
        ASSERT_TRUE(split->Forward(Ids(3), pass, &of_split[m]).ok());
        ASSERT_TRUE(split->Backward(Dy(3), &of_split[m]).ok());
      }
      for (Saved& saved : of_split) {
        EXPECT_EQ(saved.bytes(),
                  4 * 3 * static_cast<size_t>(SegmentCosts(model, {})[0].waiting_elements));
        ASSERT_TRUE(split->BackwardWeights(&saved).ok());
      }
      for (size_t i = 0; i < whole->parameters().size(); ++i) {
        EXPECT_EQ(Values(split->parameters()[i].gradient), Values(whole->parameters()[i].gradient))
            << whole->parameters()[i].spec.name;
      }
    }
  }
}

TEST(LanguageModelTest, BatchNormThatRunsAgainCountsABatchOnce) {
  ModelOptions named = *OptionsOf("resnet8");
  named.width = 4;
  named.input = {1, 8, 8, 3};
  const Model model = *NamedModel(named);
  const Tensor x = RandomTensor({3, 8, 8, 3}, "x"), dy = RandomTensor({3, 10}, "dy");
  const auto ops = NewCpuOps(2);
  SegmentOptions options = Options(ops.get());
  const auto keeps = Build(model.blocks, options);
  options.recompute = Recompute::kBlocks;
  const auto again = Build(model.blocks, options);
  for (int batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(OnePass(again.get(), x, Mode::kTrain, dy), OnePass(keeps.get(), x, Mode::kTrain, dy));
  }
}

TEST(LanguageModelTest, DropoutDoesNotDependOnMicrobatches) {
  const auto ops = NewCpuOps(2);
  const auto segment = Build(OneBlock({AttentionOf(2, 1, 100, 0.3), DropoutOf(0.4)}, {1, 5, 24}),
                             Options(ops.get()));
  const Tensor x = RandomTensor({6, 5, 24}, "x"), dy = RandomTensor({6, 5, 12}, "dy");
  const Results whole = OnePass(segment.get(), x, Pass(Mode::kTrain, 3, 0), dy);
  const auto part_of = [](const Tensor& tensor, int64_t begin, int64_t end) {
    Tensor part =
        *Tensor::Allocate(CpuDevice(), DType::kF32, tensor.shape().WithBatch(end - begin));
    const auto values = Samples(Values(tensor), 6, begin, end);
    std::copy(values.begin(), values.end(), part.floats().begin());
    return part;
  };
  for (int64_t begin = 0; begin < 6; begin += 2) {
    const Results part = OnePass(segment.get(), part_of(x, begin, begin + 2),
                                 Pass(Mode::kTrain, 3, begin), part_of(dy, begin, begin + 2));
    EXPECT_EQ(part.at("y"), Samples(whole.at("y"), 6, begin, begin + 2)) << begin;
    EXPECT_EQ(part.at("dx"), Samples(whole.at("dx"), 6, begin, begin + 2)) << begin;
  }
}

TEST(LanguageModelTest, DropoutChangesWithStepLayerAndSeedAndStopsInEvaluation) {
  const auto ops = NewCpuOps(1);
  const Tensor x = RandomTensor({2, 64}, "x");
  const auto output = [&](const std::string& name, uint64_t seed, const Pass& pass) {
    SegmentOptions options = Options(ops.get());
    options.dropout_seed = seed;
    const auto segment = Build(OneBlock({DropoutOf(0.5, name)}, {1, 64}), options);
    Saved saved;
    return Values(*segment->Forward(x, pass, &saved));
  };
  const std::vector<float> one = output("drop", 1, {Mode::kTrain, 1, 0});
  EXPECT_EQ(one, output("drop", 1, {Mode::kTrain, 1, 0}));
  EXPECT_NE(one, output("drop", 1, {Mode::kTrain, 2, 0}));
  EXPECT_NE(one, output("drop", 1, {Mode::kTrain, 1, 2}));
  EXPECT_NE(one, output("other", 1, {Mode::kTrain, 1, 0}));
  EXPECT_NE(one, output("drop", 2, {Mode::kTrain, 1, 0}));
  EXPECT_EQ(output("drop", 1, Mode::kEvaluate), Values(x));
  EXPECT_EQ(output("drop", 1, Mode::kRecalibrate), Values(x));
}

TEST(LanguageModelTest, AnInputIsNotOverwritten) {
  const auto ops = NewCpuOps(1);
  LayerSpec positions = DefaultLayer(LayerKind::kPositionEmbedding);
  positions.name = "p";
  const auto segment = Build(OneBlock({DropoutOf(0.5), positions}, {1, 3, 4}), Options(ops.get()));
  const Tensor x = RandomTensor({2, 3, 4}, "x"), dy = RandomTensor({2, 3, 4}, "dy");
  const std::vector<float> x_before = Values(x), dy_before = Values(dy);
  OnePass(segment.get(), x, Mode::kTrain, dy);
  EXPECT_EQ(Values(x), x_before);
  EXPECT_EQ(Values(dy), dy_before);
}

TEST(LanguageModelTest, EvaluationWithoutDropoutGivesTheBitsOfTraining) {
  const auto ops = NewCpuOps(2);
  for (const char* name : {"gpt2", "llama"}) {
    const auto segment = Build(TinyLanguageModel(name).blocks, Options(ops.get()));
    Saved saved;
    EXPECT_EQ(Values(*segment->Forward(Ids(2), Mode::kEvaluate, nullptr)),
              Values(*segment->Forward(Ids(2), Mode::kTrain, &saved)));
  }
}

TEST(LanguageModelTest, APositionDoesNotSeeThoseBehindIt) {
  const auto ops = NewCpuOps(1);
  for (const char* name : {"gpt2", "llama"}) {
    const auto segment = Build(TinyLanguageModel(name).blocks, Options(ops.get()));
    const Tensor ids = Ids(1);
    const std::vector<float> before = Values(*segment->Forward(ids, Mode::kEvaluate, nullptr));
    auto* const last = static_cast<int32_t*>(ids.data()) + kTinyPositions - 1;
    *last = (*last + 1) % kTinyVocabulary;
    const std::vector<float> after = Values(*segment->Forward(ids, Mode::kEvaluate, nullptr));
    const auto split = before.end() - kTinyVocabulary;
    EXPECT_TRUE(std::equal(before.begin(), split, after.begin())) << name;
    EXPECT_FALSE(std::equal(before.begin(), before.end(), after.begin())) << name;
  }
}

// Returns the logits of all positions, computed in steps of the given number of positions.
std::vector<float> Continued(Segment* segment, const Tensor& ids,
                             const std::vector<int64_t>& steps) {
  KeyValueCache cache;
  Pass pass(Mode::kEvaluate);
  pass.cache = &cache;
  std::vector<float> logits;
  for (const int64_t count : steps) {
    Tensor part = *Tensor::Allocate(CpuDevice(), DType::kI32, {1, count});
    const auto* const first = static_cast<const int32_t*>(ids.data()) + pass.first_position;
    std::copy_n(first, count, static_cast<int32_t*>(part.data()));
    const std::vector<float> some = Values(*segment->Forward(part, pass, nullptr));
    logits.insert(logits.end(), some.begin(), some.end());
    pass.first_position += count;
  }
  return logits;
}

// oneDNN adds up products of few rows in another order than those of many, so results are only
// close.
TEST(LanguageModelTest, PositionsWithACacheHaveTheLogitsOfTheWholeSequence) {
  const auto ops = NewCpuOps(2);
  for (const char* name : {"gpt2", "llama"}) {
    const auto segment = Build(TinyLanguageModel(name, /*dropout=*/0.2).blocks, Options(ops.get()));
    const std::vector<float> whole = Values(*segment->Forward(Ids(1), Mode::kEvaluate, nullptr));
    for (const std::vector<int64_t>& steps :
         {std::vector<int64_t>{6}, {4, 2}, {1, 1, 1, 1, 1, 1}, {2, 1, 3}}) {
      EXPECT_LT(RelativeDistance(Continued(segment.get(), Ids(1), steps), whole), 1e-6) << name;
    }
  }
}

TEST(LanguageModelTest, APositionSeesNoFurtherBackThanItsLayersWindows) {
  const auto ops = NewCpuOps(1);
  // With a window of two in two layers, a position depends on the two before it.
  const Model model = TinyLanguageModel("mistral", /*dropout=*/0, /*tied=*/true, /*window=*/2);
  const auto segment = Build(model.blocks, Options(ops.get()));
  const Tensor ids = Ids(1);
  const std::vector<float> before = Values(*segment->Forward(ids, Mode::kEvaluate, nullptr));
  auto* const first = static_cast<int32_t*>(ids.data());
  *first = (*first + 1) % kTinyVocabulary;
  const std::vector<float> after = Values(*segment->Forward(ids, Mode::kEvaluate, nullptr));
  const auto logits = [&](const std::vector<float>& of, int64_t position) {
    return std::vector<float>(of.begin() + position * kTinyVocabulary,
                              of.begin() + (position + 1) * kTinyVocabulary);
  };
  for (int64_t t = 0; t < kTinyPositions; ++t) {
    EXPECT_EQ(logits(before, t) == logits(after, t), t > 2) << t;
  }
  EXPECT_LT(RelativeDistance(Continued(segment.get(), ids, {2, 1, 3}), after), 1e-6);
}

TEST(LanguageModelTest, PositionsBeyondTheContextAreRefused) {
  const auto ops = NewCpuOps(1);
  const auto segment = Build(TinyLanguageModel("gpt2").blocks, Options(ops.get()));
  KeyValueCache cache;
  Pass pass(Mode::kEvaluate);
  pass.cache = &cache;
  pass.first_position = kTinyPositions - 1;
  const Tensor two = RandomIds({1, 2}, kTinyVocabulary, "two");
  EXPECT_THAT(std::string(segment->Forward(two, pass, nullptr).status().message()),
              HasSubstr("x is int32 [1, 2], want int32 [1, 6]"));
}

TEST(LanguageModelTest, InputsOtherThanTokenIdsWithinTheVocabularyAreRefused) {
  const auto ops = NewCpuOps(1);
  const auto segment = Build(TinyLanguageModel("gpt2").blocks, Options(ops.get()));
  const auto refusal = [&](const Tensor& x) {
    const auto status = segment->Forward(x, Mode::kEvaluate, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(RandomTensor({2, kTinyPositions}, "x")),
              HasSubstr("x is fp32 [2, 6], want int32 [1, 6]"));
  EXPECT_THAT(refusal(RandomIds({2, 7}, kTinyVocabulary, "x")), HasSubstr("x is int32 [2, 7]"));
  EXPECT_THAT(refusal(RandomIds({2, kTinyPositions}, 1000, "x")), HasSubstr("11"));
}

}  // namespace
}  // namespace thinwire
