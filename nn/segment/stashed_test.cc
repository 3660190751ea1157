// Tests that a segment trains the same when what its blocks keep is put away and made again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Keeps copies of bytes, and what it was told.
class CopyingStash final : public Stash {
 public:
  struct Copy {
    std::string bytes;
    DType dtype;
    Shape shape;
    Needed needed;
  };
  struct Copies final : StashedTensors {
    size_t bytes() const override {
      size_t bytes = 0;
      for (const Copy& copy : all) bytes += copy.bytes.size();
      return bytes;
    }
    std::vector<Copy> all;
  };

  absl::StatusOr<std::shared_ptr<StashedTensors>> Put(const std::string& block, const Pass& pass,
                                                      std::vector<KeptTensor> tensors) override {
    EXPECT_EQ(pass.step, 5u);
    put.push_back(block);
    auto copies = std::make_shared<Copies>();
    for (const auto& [tensor, why] : tensors) {
      needed[why] += tensor.elements();
      copies->all.push_back({std::string(static_cast<const char*>(tensor.data()), tensor.bytes()),
                             tensor.dtype(), tensor.shape(), why});
    }
    return copies;
  }
  absl::StatusOr<std::vector<KeptTensor>> Take(const std::string& block,
                                               StashedTensors* stashed) override {
    taken.push_back(block);
    std::vector<KeptTensor> tensors;
    for (const Copy& copy : static_cast<Copies*>(stashed)->all) {
      Tensor tensor = *Tensor::Allocate(CpuDevice(), copy.dtype, copy.shape);
      std::copy(copy.bytes.begin(), copy.bytes.end(), static_cast<char*>(tensor.data()));
      tensors.push_back({std::move(tensor), copy.needed});
    }
    return tensors;
  }

  std::vector<std::string> put, taken;
  std::map<Needed, int64_t> needed;  // elements
};

// Runs one training pass, and returns its results and gradients.
std::vector<std::vector<float>> Trained(const Model& model, const Tensor& x, SegmentOptions options,
                                        Stash* stash, size_t* kept = nullptr) {
  const auto ops = NewCpuOps(1);
  options.device = CpuDevice();
  options.ops = ops.get();
  options.init_seed = 3;
  options.stash = stash;
  const auto segment = *BuildSegment(model.blocks, options);
  Saved saved;
  const Pass pass(Mode::kTrain, /*step=*/5);
  const Tensor y = *segment->Forward(x, pass, &saved);
  if (kept != nullptr) *kept = saved.bytes();
  std::vector<std::vector<float>> values = {Values(y)};
  const Tensor dx = *segment->Backward(RandomTensor(y.shape(), "dy"), &saved);
  if (options.splits_backward) {
    EXPECT_TRUE(segment->BackwardWeights(&saved).ok());
  }
  EXPECT_TRUE(saved.empty());
  if (!dx.empty()) values.push_back(Values(dx));
  for (const Parameter& parameter : segment->parameters()) {
    if (parameter.spec.is_trained()) values.push_back(Values(parameter.gradient));
  }
  return values;
}

Model Images() {
  Model model;
  model.input = {1, 8, 8, 3};
  model.blocks.resize(3);
  const LayerSpec relu = LayerOf(LayerKind::kReLU);
  model.blocks[0].name = "stem";
  model.blocks[0].layers = {ConvSpec("conv", 8, 3, 1, 1), LayerOf(LayerKind::kBatchNorm, "bn"),
                            relu};
  model.blocks[1].name = "body";
  model.blocks[1].layers = {
      ResidualSpec({ConvSpec("conv1", 8, 3, 1, 1), relu, ConvSpec("conv2", 8, 3, 1, 1),
                    LayerOf(LayerKind::kBatchNorm, "bn2")}),
      relu};
  model.blocks[2].name = "head";
  model.blocks[2].layers = {LayerOf(LayerKind::kGlobalAvgPool), LinearLayerSpec("fc", 10)};
  EXPECT_TRUE(FillShapes(&model).ok());
  return model;
}

void ExpectSame(const Model& model, const Tensor& x) {
  for (const bool splits : {false, true}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kBlocks}) {
      SegmentOptions options;
      options.splits_backward = splits;
      options.recompute = recompute;
      CopyingStash stash;
      EXPECT_EQ(Trained(model, x, options, &stash), Trained(model, x, options, nullptr));
      std::vector<std::string> backward = stash.put;
      std::reverse(backward.begin(), backward.end());
      EXPECT_EQ(stash.taken, backward);
    }
  }
}

TEST(StashedTest, ImagesTrainTheSame) { ExpectSame(Images(), RandomTensor({3, 8, 8, 3}, "x")); }

TEST(StashedTest, LanguageModelsTrainTheSame) {
  const Tensor ids = RandomIds({3, kTinyPositions}, kTinyVocabulary, "ids");
  ExpectSame(TinyLanguageModel("gpt2", /*dropout=*/0.1), ids);
  ExpectSame(TinyLanguageModel("llama"), ids);
}

TEST(StashedTest, EachBlockDoesAsItIsTold) {
  const Tensor x = RandomTensor({3, 8, 8, 3}, "x");
  const std::vector<std::vector<float>> plain = Trained(Images(), x, {}, nullptr);
  for (const bool splits : {false, true}) {
    SegmentOptions options;
    options.splits_backward = splits;
    options.keeping = {Only(Keeping::kSwap), Only(Keeping::kRecompute), Only(Keeping::kStash)};
    CopyingStash stash;
    EXPECT_EQ(Trained(Images(), x, options, &stash), plain);
    EXPECT_THAT(stash.put, ElementsAre("stem", "head"));
    options.keeping[1] = {/*recompute=*/true, /*stash=*/true, /*swap=*/false};
    options.keeping[2] = Only(Keeping::kKeep);
    CopyingStash other;
    EXPECT_EQ(Trained(Images(), x, options, &other), plain);
    EXPECT_THAT(other.put, ElementsAre("stem", "body"));
  }
}

TEST(StashedTest, BlocksPutTheirTensorsAwayOneByOne) {
  CopyingStash stash;
  size_t plain = 0, stashed = 0;
  const Tensor x = RandomTensor({3, 8, 8, 3}, "x");
  Trained(Images(), x, {}, nullptr, &plain);
  Trained(Images(), x, {}, &stash, &stashed);
  EXPECT_THAT(stash.put, ElementsAre("stem", "body", "head"));
  EXPECT_EQ(stashed, plain);
  // Two results of ReLU within batch norm's pass, and one on its own.
  constexpr int64_t kTensor = 3 * 8 * 8 * 8;
  EXPECT_EQ(stash.needed[Needed::kSigns], 3 * kTensor);
  EXPECT_EQ(stash.needed[Needed::kExact], 2 * 2 * 8);
}

}  // namespace
}  // namespace thinwire
