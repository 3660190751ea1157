// Documents that are packed into one sample: results and gradients are those of each alone.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

using Gradients = std::map<std::string, std::vector<double>>;

// Lengths of the documents of a sample of kTinyPositions.
const std::vector<int64_t> kLengths = {2, 1, 3};

Tensor IntsOf(const std::vector<int32_t>& values) {
  Tensor tensor =
      *Tensor::Allocate(CpuDevice(), DType::kI32, {1, static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), static_cast<int32_t*>(tensor.data()));
  return tensor;
}

// Returns positions [first, last) of the documents.
PackedDocuments Packed(int64_t first = 0, int64_t last = kTinyPositions) {
  std::vector<int32_t> starts, places;
  int32_t begin = 0;
  for (const int64_t length : kLengths) {
    for (int32_t place = 0; place < length; ++place) {
      starts.push_back(begin);
      places.push_back(place);
    }
    begin += static_cast<int32_t>(length);
  }
  return {IntsOf({starts.begin() + first, starts.begin() + last}),
          IntsOf({places.begin() + first, places.begin() + last})};
}

Tensor IdsFrom(int64_t first, int64_t last) {
  const Tensor ids = RandomIds({1, kTinyPositions}, kTinyVocabulary, "ids");
  const auto* const all = static_cast<const int32_t*>(ids.data());
  return IntsOf({all + first, all + last});
}

Tensor DyFrom(int64_t first, int64_t last) {
  const Tensor all = RandomTensor({1, kTinyPositions, kTinyVocabulary}, "dy");
  Tensor part = *Tensor::Allocate(CpuDevice(), DType::kF32, {1, last - first, kTinyVocabulary});
  const auto from = all.floats().subspan(first * kTinyVocabulary, part.elements());
  std::copy(from.begin(), from.end(), part.floats().begin());
  return part;
}

Gradients GradientsOf(Segment* segment) {
  Gradients all;
  for (const Parameter& parameter : segment->parameters()) {
    const std::vector<float> values = Values(parameter.gradient);
    all[parameter.spec.name].assign(values.begin(), values.end());
  }
  EXPECT_TRUE(segment->ClearGradients().ok());
  return all;
}

class PackedDocumentsTest : public testing::TestWithParam<const char*> {
 protected:
  PackedDocumentsTest() : ops_(NewCpuOps(1)) {}

  std::unique_ptr<Segment> Make(Recompute recompute = Recompute::kNone) {
    const std::string name = GetParam();
    const Model model = TinyLanguageModel(name, /*dropout=*/0, /*tied=*/false,
                                          /*window=*/name == "mistral" ? 2 : 0);
    SegmentOptions options;
    options.device = CpuDevice();
    options.ops = ops_.get();
    options.init_seed = 3;
    options.recompute = recompute;
    return *BuildSegment(model.blocks, options);
  }

  // Runs the whole sample, in slices that end at these positions.
  Gradients OfPack(Segment* segment, const std::vector<int64_t>& ends, std::vector<float>* logits) {
    KeyValueCache cache;
    std::vector<Saved> saved(ends.size());
    int64_t first = 0;
    for (size_t i = 0; i < ends.size(); first = ends[i++]) {
      Pass pass(Mode::kTrain);
      if (ends.size() > 1) pass.cache = &cache;
      pass.first_position = first;
      pass.documents = Packed(first, ends[i]);
      const std::vector<float> y =
          Values(*segment->Forward(IdsFrom(first, ends[i]), pass, &saved[i]));
      logits->insert(logits->end(), y.begin(), y.end());
    }
    for (size_t i = ends.size(); i-- > 0;) {
      EXPECT_TRUE(segment->Backward(DyFrom(i == 0 ? 0 : ends[i - 1], ends[i]), &saved[i]).ok());
    }
    return GradientsOf(segment);
  }

  // Adds up what the documents give, each in a pass of its own.
  Gradients OfDocuments(Segment* segment, std::vector<float>* logits) {
    Gradients sum;
    int64_t first = 0;
    for (const int64_t length : kLengths) {
      // A cache lets a sample be shorter than the model's.
      KeyValueCache cache;
      Pass pass(Mode::kTrain);
      pass.cache = &cache;
      Saved saved;
      const std::vector<float> y =
          Values(*segment->Forward(IdsFrom(first, first + length), pass, &saved));
      logits->insert(logits->end(), y.begin(), y.end());
      EXPECT_TRUE(segment->Backward(DyFrom(first, first + length), &saved).ok());
      for (const auto& [name, values] : GradientsOf(segment)) {
        std::vector<double>& to = sum[name];
        to.resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) to[i] += values[i];
      }
      first += length;
    }
    return sum;
  }

  const std::unique_ptr<Ops> ops_;
};

void ExpectClose(const Gradients& got, const Gradients& want) {
  for (const auto& [name, values] : want) {
    const std::vector<float> of_pack(got.at(name).begin(), got.at(name).end());
    const std::vector<float> alone(values.begin(), values.end());
    EXPECT_LT(RelativeDistance(of_pack, alone), 1e-5) << name;
  }
}

TEST_P(PackedDocumentsTest, GiveWhatEachGivesAlone) {
  const auto segment = Make();
  std::vector<float> alone, packed, unpacked;
  const Gradients want = OfDocuments(segment.get(), &alone);
  ExpectClose(OfPack(segment.get(), {kTinyPositions}, &packed), want);
  EXPECT_LT(RelativeDistance(packed, alone), 1e-5);
  Saved saved;
  unpacked = Values(*segment->Forward(IdsFrom(0, kTinyPositions), Mode::kTrain, &saved));
  EXPECT_GT(RelativeDistance(unpacked, alone), 1e-3) << "so that it makes a difference";
}

TEST_P(PackedDocumentsTest, GiveThatInSlicesToo) {
  const auto segment = Make();
  std::vector<float> alone;
  const Gradients want = OfDocuments(segment.get(), &alone);
  for (const std::vector<int64_t>& ends :
       {std::vector<int64_t>{3, kTinyPositions}, {1, 4, 5, kTinyPositions}}) {
    std::vector<float> sliced;
    ExpectClose(OfPack(segment.get(), ends, &sliced), want);
    EXPECT_LT(RelativeDistance(sliced, alone), 1e-5);
  }
}

TEST_P(PackedDocumentsTest, HaveTheSameBitsWhereBlocksRunAgain) {
  const auto kept = Make(), again = Make(Recompute::kBlocks);
  std::vector<float> of_kept, of_again;
  EXPECT_EQ(OfPack(kept.get(), {kTinyPositions}, &of_kept),
            OfPack(again.get(), {kTinyPositions}, &of_again));
  EXPECT_EQ(of_kept, of_again);
}

TEST_P(PackedDocumentsTest, OfOtherPositionsAreRefused) {
  Pass pass(Mode::kEvaluate);
  pass.documents = Packed(0, 3);
  const auto y = Make()->Forward(IdsFrom(0, kTinyPositions), pass, nullptr);
  EXPECT_EQ(y.status().message(), "documents of positions [1, 3], want [1, 6]");
}

INSTANTIATE_TEST_SUITE_P(Models, PackedDocumentsTest, testing::Values("gpt2", "llama", "mistral"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace thinwire
