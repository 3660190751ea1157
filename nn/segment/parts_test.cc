// Tests tensor-parallel parts: a divided model is the whole one, but for the order of additions.
#include "models/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "models/file_tensors.h"
#include "models/sliced_positions.h"
#include "nn/segment/segment_testing.h"
#include "nn/sums_in_memory.h"

namespace thinwire {
namespace {

constexpr int64_t kBatch = 6;

struct Case {
  std::string name;
  Model model;
  Tensor x;
};

// Returns a case for each family; GELU in tanh and in exact form, SwiGLU, shared keys, padding.
std::vector<Case> Cases(double dropout) {
  const Tensor ids = RandomIds({kBatch, kTinyPositions}, kTinyVocabulary, "ids");
  const Model vit = TinyVit(dropout);
  return {{"gpt2", TinyLanguageModel("gpt2", dropout), ids},
          {"llama", TinyLanguageModel("llama", dropout, /*tied=*/false), ids},
          {"bert", TinyBert(BertHead::kClasses, dropout), PaddedIds(kBatch)},
          {"vit", vit, RandomTensor(vit.input.WithBatch(kBatch), "x")}};
}

std::unique_ptr<Segment> Build(const Model& model, Ops* ops, PartialSums* sums = nullptr) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.init_seed = 3;
  options.dropout_seed = 4;
  options.needs_input_gradient = false;
  options.sums = sums;
  auto segment = BuildSegment(model.blocks, options);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

// Tensors by their names in files, where parts of one stand together.
using InFile = std::map<std::string, std::vector<float>>;

void AddToFile(const ParameterSpec& spec, const Tensor& tensor, InFile* file) {
  if (!StandsInFiles(spec)) return;
  const std::vector<float> all = Values(tensor);
  for (const FileTensor& part : FileTensors(spec)) {
    std::vector<float>& stored = (*file)[part.name];
    stored.resize(static_cast<size_t>(part.file_elements()));
    const auto begin = static_cast<size_t>(part.first_row * part.row_elements);
    ToFileOrder(part, absl::MakeSpan(all).subspan(begin, static_cast<size_t>(part.elements())),
                absl::MakeSpan(stored));
  }
}

InFile ValuesOf(Segment* segment) {
  InFile file;
  for (const Parameter& parameter : segment->parameters()) {
    AddToFile(parameter.spec, parameter.value, &file);
  }
  return file;
}

// Returns the result "y" of a pass, and all gradients.
InFile OnePass(Segment* segment, const Case& c) {
  InFile results;
  Pass pass(Mode::kTrain, /*step=*/5, /*first_sample=*/2);
  if (c.model.tokens) pass.ids = c.x;
  Saved saved;
  const Tensor y = *segment->Forward(c.x, pass, &saved);
  results["y"] = Values(y);
  const absl::Status went_back = segment->Backward(RandomTensor(y.shape(), "dy"), &saved).status();
  EXPECT_TRUE(went_back.ok()) << went_back;
  EXPECT_TRUE(saved.empty());
  for (const Parameter& parameter : segment->parameters()) {
    const absl::Span<float> sum = parameter.gradient.floats();
    for (const Tensor& slice : parameter.of_slices) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += slice.floats()[i];
    }
    AddToFile(parameter.spec, parameter.gradient, &results);
  }
  return results;
}

void ExpectAreClose(const InFile& are, const InFile& want, const std::string& what,
                    double distance = 1e-5) {
  for (const auto& [name, values] : want) {
    ASSERT_EQ(are.count(name), 1u) << what << ": " << name;
    ASSERT_EQ(are.at(name).size(), values.size()) << what << ": " << name;
    // A bias of keys adds the same to all scores of a query, so its gradient is nothing but
    // rounding.
    if (absl::EndsWith(name, "key.bias")) continue;
    EXPECT_LE(RelativeDistance(are.at(name), values), distance) << what << ": " << name;
  }
}

TEST(PartsTest, TwoAndFourStartAsTheWholeAndDoWhatItDoes) {
  const auto ops = NewCpuOps(2);
  for (const double dropout : {0.0, 0.2}) {
    for (const Case& c : Cases(dropout)) {
      const auto whole = Build(c.model, ops.get());
      const InFile start = ValuesOf(whole.get()), of_whole = OnePass(whole.get(), c);
      for (const int64_t parts : {2, 4}) {
        if (c.name == "llama" && parts == 4) continue;  // it has two heads of keys
        const auto divided = Build(*DividedIntoParts(c.model, parts), ops.get());
        const std::string what = c.name + " in " + std::to_string(parts) + " parts";
        EXPECT_EQ(ValuesOf(divided.get()), start) << what;
        ExpectAreClose(OnePass(divided.get(), c), of_whole, what);
      }
    }
  }
}

TEST(PartsTest, FilesOfTheWholeGiveEachPartItsRowsAndColumns) {
  const auto ops = NewCpuOps(1);
  for (const Case& c : Cases(0)) {
    const InFile file = ValuesOf(Build(c.model, ops.get()).get());
    const auto divided = Build(*DividedIntoParts(c.model, 2), ops.get());
    for (const Parameter& parameter : divided->parameters()) {
      if (!StandsInFiles(parameter.spec)) continue;
      const std::vector<float> own = Values(parameter.value);
      for (const FileTensor& part : FileTensors(parameter.spec)) {
        std::vector<float> read(static_cast<size_t>(part.elements()));
        FromFileOrder(part, file.at(part.name), absl::MakeSpan(read));
        const auto begin = own.begin() + part.first_row * part.row_elements;
        EXPECT_EQ(read, std::vector<float>(begin, begin + part.elements()))
            << c.name << ": " << parameter.spec.name << " from " << part.name;
      }
    }
  }
}

// Sums that note what they are asked for, and add as nobody would.
class NotedSums final : public PartialSums {
 public:
  explicit NotedSums(Ops* ops) : in_memory_(ops) {}

  absl::StatusOr<Tensor> Add(PassDirection direction, const std::string& layer,
                             std::vector<Tensor> partials) override {
    EXPECT_EQ(partials.size(), 2u);
    Note("sum", direction, layer);
    return std::move(partials.back());
  }
  absl::StatusOr<Tensor> Scatter(PassDirection direction, const std::string& layer,
                                 const PositionSlices& slices,
                                 std::vector<Tensor> partials) override {
    Note("scatter", direction, layer);
    return in_memory_.Scatter(direction, layer, slices, std::move(partials));
  }
  absl::StatusOr<Tensor> Gather(PassDirection direction, const std::string& layer,
                                const PositionSlices& slices, Tensor rows) override {
    Note("gather", direction, layer);
    return in_memory_.Gather(direction, layer, slices, std::move(rows));
  }
  std::vector<std::string> noted;

 private:
  void Note(const char* what, PassDirection direction, const std::string& layer) {
    const char* const of = direction == PassDirection::kForward ? " of y of " : " of dx of ";
    noted.push_back(what + (of + layer));
  }
  SumsInMemory in_memory_;
};

TEST(PartsTest, WhoAddsThemUpIsAskedInTheOrderOfThePasses) {
  const auto ops = NewCpuOps(1);
  const Case c = Cases(0)[0];
  NotedSums sums(ops.get());
  const auto divided = Build(*DividedIntoParts(c.model, 2), ops.get(), &sums);
  const InFile other = OnePass(divided.get(), c);
  EXPECT_THAT(
      sums.noted,
      testing::ElementsAre(
          "sum of y of transformer.h.0.attn.c_proj", "sum of y of transformer.h.0.mlp.c_proj",
          "sum of y of transformer.h.1.attn.c_proj", "sum of y of transformer.h.1.mlp.c_proj",
          "sum of dx of transformer.h.1.mlp.c_proj", "sum of dx of transformer.h.1.attn.c_proj",
          "sum of dx of transformer.h.0.mlp.c_proj", "sum of dx of transformer.h.0.attn.c_proj"));
  const auto plain = Build(*DividedIntoParts(c.model, 2), ops.get());
  EXPECT_GT(RelativeDistance(OnePass(plain.get(), c).at("y"), other.at("y")), 1e-3);
}

Model Sliced(const Model& model, int parts) {
  return *WithSlicedPositions(*DividedIntoParts(model, parts), /*cuts=*/{}, parts);
}

// The seven positions of the ViT make slices of three and of four.
TEST(SlicedPositionsTest, GiveTheBitsOfWholeSamplesAndTheirGradients) {
  const auto ops = NewCpuOps(2);
  for (const double dropout : {0.0, 0.2}) {
    for (const Case& c : Cases(dropout)) {
      for (const int parts : {2, 4}) {
        if (c.name == "llama" && parts == 4) continue;
        const std::string what = c.name + " in " + std::to_string(parts) + " slices";
        const auto whole = Build(*DividedIntoParts(c.model, parts), ops.get());
        const auto sliced = Build(Sliced(c.model, parts), ops.get());
        const InFile want = OnePass(whole.get(), c), are = OnePass(sliced.get(), c);
        EXPECT_EQ(are.at("y"), want.at("y")) << what;
        ExpectAreClose(are, want, what, 1e-6);
      }
    }
  }
}

TEST(SlicedPositionsTest, EvaluationsHaveTheBitsOfWholeSamples) {
  const auto ops = NewCpuOps(1);
  for (const Case& c : Cases(0.2)) {
    Pass pass(Mode::kEvaluate);
    if (c.model.tokens) pass.ids = c.x;
    const auto whole = Build(*DividedIntoParts(c.model, 2), ops.get());
    const auto sliced = Build(Sliced(c.model, 2), ops.get());
    EXPECT_EQ(Values(*sliced->Forward(c.x, pass, nullptr)),
              Values(*whole->Forward(c.x, pass, nullptr)))
        << c.name;
  }
}

TEST(SlicedPositionsTest, FewPositionsOfATextHaveNoSlices) {
  const auto ops = NewCpuOps(1);
  const Case c = Cases(0)[0];
  NotedSums sums(ops.get());
  const auto sliced = Build(Sliced(c.model, 2), ops.get(), &sums);
  KeyValueCache cache;
  Pass pass(Mode::kEvaluate);
  pass.cache = &cache;
  const Tensor ids = RandomIds({1, 3}, kTinyVocabulary, "ids");
  EXPECT_TRUE(sliced->Forward(ids, pass, nullptr).ok());
  EXPECT_THAT(sums.noted, testing::ElementsAre("sum of y of transformer.h.0.attn.c_proj",
                                               "sum of y of transformer.h.0.mlp.c_proj",
                                               "sum of y of transformer.h.1.attn.c_proj",
                                               "sum of y of transformer.h.1.mlp.c_proj"));
}

TEST(SlicedPositionsTest, AreGatheredBeforePartsAndScatteredBehindThem) {
  const auto ops = NewCpuOps(1);
  const Case c = Cases(0)[1];
  NotedSums sums(ops.get());
  Model model = c.model;
  model.blocks.erase(model.blocks.begin() + 1);  // one of the two blocks
  OnePass(Build(Sliced(model, 2), ops.get(), &sums).get(), c);
  const std::string attention = "model.layers.1.self_attn.o_proj",
                    mlp = "model.layers.1.mlp.down_proj";
  EXPECT_THAT(sums.noted,
              testing::ElementsAre("gather of y of " + attention, "scatter of y of " + attention,
                                   "gather of y of " + mlp, "scatter of y of " + mlp,
                                   "gather of y of layers.1.to_whole.2", "gather of dx of " + mlp,
                                   "scatter of dx of " + mlp, "gather of dx of " + attention,
                                   "scatter of dx of " + attention,
                                   "gather of dx of layers.1.to_slices.0"));
}

TEST(SlicedPositionsTest, EachSliceAddsToAGradientOfItsOwn) {
  const auto ops = NewCpuOps(1);
  const Case c = Cases(0)[0];
  const auto sliced = Build(Sliced(c.model, 2), ops.get());
  OnePass(sliced.get(), c);
  int on_slices = 0;
  for (const Parameter& parameter : sliced->parameters()) {
    if (parameter.of_slices.empty()) continue;
    ++on_slices;
    ASSERT_EQ(parameter.of_slices.size(), 2u);
    EXPECT_NE(Values(parameter.of_slices[0]), Values(parameter.of_slices[1]));
  }
  EXPECT_EQ(on_slices, 2 * (2 + 1 + 2 + 1));  // two norms and two biases of two blocks
  ASSERT_TRUE(sliced->ClearGradients().ok());
  EXPECT_EQ(sliced->parameters()[2].of_slices[1].floats()[0], 0);
}

}  // namespace
}  // namespace thinwire
