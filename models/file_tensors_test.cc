#include "models/file_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

ParameterSpec Weight(const Shape& shape) {
  ParameterSpec weight;
  weight.name = "h.0.c_attn.weight";
  weight.shape = shape;
  return weight;
}

TEST(FileTensorsTest, AParameterStandsAsItIsUnlessItSaysOtherwise) {
  const auto tensors = FileTensors(Weight({8, 4, 3, 3}));
  ASSERT_THAT(tensors, SizeIs(1));
  EXPECT_EQ(tensors[0].name, "h.0.c_attn.weight");
  EXPECT_THAT(tensors[0].shape, ElementsAre(8, 4, 3, 3));
  EXPECT_EQ(tensors[0].elements(), 288);
  EXPECT_FALSE(tensors[0].transposed);
}

TEST(FileTensorsTest, ATransposedOneHasItsInputsFirst) {
  ParameterSpec weight = Weight({3, 2});
  weight.transposed = true;
  const FileTensor tensor = FileTensors(weight)[0];
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));
  std::vector<float> file(6), back(6);
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  ToFileOrder(tensor, rows, absl::MakeSpan(file));
  EXPECT_THAT(file, ElementsAre(1, 3, 5, 2, 4, 6));
  FromFileOrder(tensor, file, absl::MakeSpan(back));
  EXPECT_EQ(back, rows);
}

TEST(FileTensorsTest, TransposingTwiceGivesAnyMatrixBack) {
  for (const auto& [rows, columns] : {std::pair<int, int>{1, 70}, {33, 1}, {65, 97}, {64, 32}}) {
    ParameterSpec weight = Weight({rows, columns});
    weight.transposed = true;
    const FileTensor tensor = FileTensors(weight)[0];
    std::vector<float> values(static_cast<size_t>(rows * columns)), file = values, back = values;
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    ToFileOrder(tensor, values, absl::MakeSpan(file));
    EXPECT_EQ(file[static_cast<size_t>(columns > 1 ? rows : 0)], columns > 1 ? 1 : 0);
    FromFileOrder(tensor, file, absl::MakeSpan(back));
    EXPECT_EQ(back, values) << rows << " x " << columns;
  }
}

TEST(FileTensorsTest, PartsStandBelowOneAnother) {
  ParameterSpec weight = Weight({8, 4});
  weight.parts = {{"q.weight", 4}, {"k.weight", 2}, {"v.weight", 2}};
  const auto tensors = FileTensors(weight);
  ASSERT_THAT(tensors, SizeIs(3));
  EXPECT_EQ(tensors[1].name, "k.weight");
  EXPECT_THAT(tensors[1].shape, ElementsAre(2, 4));
  EXPECT_EQ(tensors[2].first_row, 6);
  EXPECT_EQ(tensors[2].elements(), 8);
}

TEST(FileTensorsTest, ATiedCopyIsReadFromTheOtherAndNotWritten) {
  ParameterSpec head = Weight({65, 8});
  EXPECT_TRUE(StandsInFiles(head));
  head.tied_to = "wte.weight";
  EXPECT_FALSE(StandsInFiles(head));
  EXPECT_EQ(FileTensors(head)[0].name, "wte.weight");
}

TEST(FileTensorsTest, ANameWithoutTheTrunkMayMeanOneWithIt) {
  EXPECT_THAT(MeaningsOf("wte.weight"),
              ElementsAre("wte.weight", "transformer.wte.weight", "model.wte.weight",
                          "bert.wte.weight", "vit.wte.weight"));
}

TEST(FileTensorsTest, GammaAndBetaOfANormAreItsWeightAndBias) {
  EXPECT_THAT(MeaningsOf(std::string(kAdapterPrefix) + "model.q.lora_A.weight"),
              Contains("model.q.lora_A.weight"));
  EXPECT_THAT(MeaningsOf("bert.embeddings.LayerNorm.gamma"),
              Contains("bert.embeddings.LayerNorm.weight"));
  EXPECT_THAT(MeaningsOf("embeddings.LayerNorm.beta"), Contains("bert.embeddings.LayerNorm.bias"));
  EXPECT_THAT(MeaningsOf("block.bn.gamma"), Not(Contains("block.bn.weight")));
}

TEST(FileTensorsTest, BuffersAreKnownByTheirNames) {
  for (const char* name :
       {"h.11.attn.bias", "transformer.h.0.attn.masked_bias",
        "model.layers.3.self_attn.rotary_emb.inv_freq", "layer1.0.bn1.num_batches_tracked"}) {
    EXPECT_TRUE(IsKnownBuffer(name)) << name;
  }
  EXPECT_FALSE(IsKnownBuffer("h.11.attn.c_attn.bias"));
}

}  // namespace
}  // namespace thinwire
