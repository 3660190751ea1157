#include "nn/segment/recorded_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "models/tied_weight.h"
#include "nn/cuda/tested_ops_testing.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/parameters.h"
#include "nn/segment/segment_testing.h"
#include "tensor/copy_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

std::vector<BlockSpec> SmallNetwork() {
  return OneBlock(
      {ConvSpec("conv1", 8, 3, 1, 1), LayerOf(LayerKind::kBatchNorm, "bn1"),
       LayerOf(LayerKind::kReLU),
       ResidualSpec(
           {ConvSpec("conv2", 8, 3, 1, 1, /*bias=*/true), LayerOf(LayerKind::kBatchNorm, "bn2")}),
       LayerOf(LayerKind::kReLU), LayerOf(LayerKind::kGlobalAvgPool), LinearLayerSpec("fc", 5)},
      {1, 6, 6, 3});
}

// One network built twice on the tested backend: `recorded` records batches of 4, `plain` records
// none.
class RecordedSegmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    blocks_ = SmallNetwork();
    ops_ = NewTestedOps();
    device_ = TestedDevice();
    Build(/*splits_backward=*/false);
  }

  void Build(bool splits_backward) {
    optimizers_.clear();
    plain_ = Network(splits_backward);
    recorded_ = RecordSegment(Network(splits_backward), {device_, ops_.get(), 4, 4});
    for (Segment* segment : {plain_.get(), recorded_.get()}) {
      OptimizerSpec sgd;
      sgd.momentum = 0.9;
      optimizers_.push_back(*NewOptimizer(sgd, segment->parameters(), device_, ops_.get()));
    }
  }

  std::unique_ptr<Segment> Network(bool splits_backward) {
    SegmentOptions options;
    options.device = device_;
    options.ops = ops_.get();
    options.init_seed = 3;
    options.splits_backward = splits_backward;
    return *BuildSegment(blocks_, options);
  }

  Tensor Random(const Shape& shape, const std::string& name) {
    return On(device_, RandomTensor(shape, name));
  }
  Tensor X(int64_t batch, int i) { return Random({batch, 6, 6, 3}, "x" + std::to_string(i)); }
  Tensor Dy(int64_t batch, int i) { return Random({batch, 5}, "dy" + std::to_string(i)); }

  // Runs both with the same pass and expects equal results, bit for bit.
  void Forward(const Tensor& x, Saved* plain, Saved* recorded) {
    ExpectEqual(*plain_->Forward(x, Mode::kTrain, plain),
                *recorded_->Forward(x, Mode::kTrain, recorded));
  }
  void Backward(const Tensor& dy, Saved* plain, Saved* recorded) {
    ExpectEqual(*plain_->Backward(dy, plain), *recorded_->Backward(dy, recorded));
  }
  void BackwardWeights(Saved* plain, Saved* recorded) {
    ASSERT_TRUE(plain_->BackwardWeights(plain).ok());
    ASSERT_TRUE(recorded_->BackwardWeights(recorded).ok());
    EXPECT_TRUE(recorded->empty());
    EXPECT_FALSE(recorded->waits());
  }
  void Update(double lr) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(optimizers_[i]->Step(lr).ok());
      ASSERT_TRUE((i == 0 ? plain_ : recorded_)->ParametersChanged().ok());
    }
    for (size_t i = 0; i < plain_->parameters().size(); ++i) {
      ExpectEqual(plain_->parameters()[i].value, recorded_->parameters()[i].value);
    }
  }
  static void ExpectEqual(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_THAT(Values(On(CpuDevice(), a)), ElementsAreArray(Values(On(CpuDevice(), b))));
  }

  std::vector<BlockSpec> blocks_;
  std::unique_ptr<Ops> ops_;
  Device* device_ = nullptr;
  std::unique_ptr<Segment> plain_, recorded_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

TEST_F(RecordedSegmentTest, TrainsBitForBitLikeTheSegmentItself) {
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 5; ++step) {
    Saved plain, recorded;
    Forward(X(4, step), &plain, &recorded);
    Backward(Dy(4, step), &plain, &recorded);
    Update(0.1 / (step + 1));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a recording failed";
}

TEST_F(RecordedSegmentTest, SeveralMicrobatchesAreInFlight) {
  for (int step = 0; step < 4; ++step) {
    Saved plain[3], recorded[3];
    for (int i = 0; i < 3; ++i) Forward(X(4, 3 * step + i), &plain[i], &recorded[i]);
    for (int i = 0; i < 3; ++i) Backward(Dy(4, 3 * step + i), &plain[i], &recorded[i]);
    Update(0.1);
  }
}

TEST_F(RecordedSegmentTest, WeightPartsOfSeveralMicrobatchesWait) {
  Build(/*splits_backward=*/true);
  ::testing::internal::CaptureStderr();
  size_t after_four = 0;
  for (int step = 0; step < 6; ++step) {
    Saved plain[4], recorded[4];
    for (int i = 0; i < 4; ++i) {
      Forward(X(4, 4 * step + i), &plain[i], &recorded[i]);
      Backward(Dy(4, 4 * step + i), &plain[i], &recorded[i]);
      if (i >= 2) BackwardWeights(&plain[i - 2], &recorded[i - 2]);
    }
    for (int i = 2; i < 4; ++i) BackwardWeights(&plain[i], &recorded[i]);
    Update(0.1);
    if (step == 3) after_four = device_->bytes_in_use();
  }
  EXPECT_EQ(device_->bytes_in_use(), after_four);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a recording failed";
}

TEST_F(RecordedSegmentTest, OtherBatchSizesRunBetweenRecordedOnes) {
  for (int step = 0; step < 6; ++step) {
    const int64_t batch = step % 3 == 2 ? 3 : 4;
    Saved plain, recorded;
    Forward(X(batch, step), &plain, &recorded);
    Backward(Dy(batch, step), &plain, &recorded);
    Update(0.1);
  }
}

TEST_F(RecordedSegmentTest, ResultsStayAsLongAsTheyAreHeld) {
  std::vector<Tensor> held;
  std::vector<std::vector<float>> then;
  for (int step = 0; step < 4; ++step) {
    Saved saved;
    held.push_back(*recorded_->Forward(X(4, step), Mode::kTrain, &saved));
    then.push_back(Values(On(CpuDevice(), held.back())));
    held.push_back(*recorded_->Backward(Dy(4, step), &saved));
    then.push_back(Values(On(CpuDevice(), held.back())));
  }
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_THAT(Values(On(CpuDevice(), held[i])), ElementsAreArray(then[i])) << i;
  }
}

TEST_F(RecordedSegmentTest, AForwardWithoutItsBackwardIsForgotten) {
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 8; ++step) {
    Saved plain, recorded;
    Forward(X(4, step), &plain, &recorded);
    if (step % 3 == 0) continue;  // the step was broken off
    Backward(Dy(4, step), &plain, &recorded);
    Update(0.1);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a recording failed";
}

TEST_F(RecordedSegmentTest, MemoryDoesNotGrowFromStepToStep) {
  size_t after_three = 0;
  for (int step = 0; step < 8; ++step) {
    Saved saved;
    ASSERT_TRUE(recorded_->Forward(X(4, step), Mode::kTrain, &saved).ok());
    ASSERT_TRUE(recorded_->Backward(Dy(4, step), &saved).ok());
    if (step == 2) after_three = device_->bytes_in_use();
  }
  EXPECT_EQ(device_->bytes_in_use(), after_three);
}

TEST_F(RecordedSegmentTest, EvaluationBetweenStepsChangesNothing) {
  for (int step = 0; step < 3; ++step) {
    Saved plain, recorded;
    Forward(X(4, step), &plain, &recorded);
    ExpectEqual(*plain_->Forward(X(4, 99), Mode::kEvaluate, nullptr),
                *recorded_->Forward(X(4, 99), Mode::kEvaluate, nullptr));
    Backward(Dy(4, step), &plain, &recorded);
    Update(0.1);
  }
}

TEST(RecordedLanguageModelTest, TokensToLogitsAreThoseOfTheSegmentItself) {
  const auto ops = NewTestedOps();
  for (const char* name : {"gpt2", "llama"}) {
    const Model model = TinyLanguageModel(name);
    SegmentOptions options;
    options.device = TestedDevice();
    options.ops = ops.get();
    const auto plain = *BuildSegment(model.blocks, options);
    const auto recorded =
        RecordSegment(*BuildSegment(model.blocks, options), {options.device, ops.get(), 2, 2});
    ::testing::internal::CaptureStderr();
    for (int step = 0; step < 4; ++step) {
      const std::string seed = std::to_string(step);
      const Tensor ids =
          On(options.device, RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids" + seed));
      const Tensor dy =
          On(options.device, RandomTensor({2, kTinyPositions, kTinyVocabulary}, "dy" + seed));
      std::vector<std::vector<float>> logits;
      for (Segment* segment : {plain.get(), recorded.get()}) {
        Saved saved;
        const Tensor y = *segment->Forward(ids, Mode::kTrain, &saved);
        logits.push_back(Values(On(CpuDevice(), y)));
        EXPECT_TRUE(segment->Backward(dy, &saved)->empty());
      }
      EXPECT_EQ(logits[0], logits[1]) << name << ", step " << step;
    }
    for (size_t i = 0; i < plain->parameters().size(); ++i) {
      EXPECT_EQ(Values(On(CpuDevice(), plain->parameters()[i].gradient)),
                Values(On(CpuDevice(), recorded->parameters()[i].gradient)))
          << plain->parameters()[i].spec.name;
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a recording failed";
  }
}

// Returns the bits of the result and of gradients after a pass of `x` through `chain` on the tested
// device.
std::vector<std::vector<float>> PassThrough(absl::Span<const std::unique_ptr<Segment>> chain,
                                            const Tensor& input, DType compute, Ops* ops) {
  Device* const device = TestedDevice();
  const auto converted = [&](const Tensor& from, DType type) {
    Tensor to = *Tensor::Allocate(device, type, from.shape());
    EXPECT_TRUE(ops->Convert(from.view(), to.view()).ok());
    return to;
  };
  std::vector<Saved> saved(chain.size());
  Tensor x = On(device, input);
  if (x.dtype() == DType::kF32) x = converted(x, compute);
  for (size_t i = 0; i < chain.size(); ++i) x = *chain[i]->Forward(x, Mode::kTrain, &saved[i]);
  std::vector<std::vector<float>> results = {Values(On(CpuDevice(), converted(x, DType::kF32)))};
  Tensor gradient = converted(On(device, RandomTensor(x.shape(), "dy")), compute);
  for (size_t i = chain.size(); i-- > 0;) gradient = *chain[i]->Backward(gradient, &saved[i]);
  for (const auto& segment : chain) {
    for (const Parameter& parameter : segment->parameters()) {
      const bool trained = parameter.spec.is_trained();
      const Tensor& tensor = trained ? parameter.gradient : parameter.value;
      results.push_back(Values(On(CpuDevice(), tensor)));
    }
  }
  return results;
}

// What is joined into one launch must not depend on where a model is cut.
TEST(DeviceChainTest, AChainOfSegmentsEqualsOneBitForBit) {
  const auto ops = NewTestedOps();
  ModelOptions resnet = *OptionsOf("resnet8");
  resnet.width = 8;
  resnet.input = {1, 8, 8, 3};
  const Tensor ids = RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids");
  const std::pair<Model, Tensor> cases[] = {{TinyLanguageModel("gpt2"), ids},
                                            {TinyLanguageModel("llama"), ids},
                                            {*NamedModel(resnet), RandomTensor({3, 8, 8, 3}, "x")}};
  for (const auto& [model, x] : cases) {
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      SegmentOptions options;
      options.device = TestedDevice();
      options.ops = ops.get();
      options.compute = compute;
      std::vector<std::unique_ptr<Segment>> whole, chain;
      whole.push_back(*BuildSegment(model.blocks, options));
      for (size_t i = 0; i < model.blocks.size(); ++i) {
        const auto block = absl::MakeSpan(model.blocks).subspan(i, 1);
        chain.push_back(*BuildSegment(block, options));
      }
      EXPECT_EQ(PassThrough(whole, x, compute, ops.get()),
                PassThrough(chain, x, compute, ops.get()))
          << model.blocks[1].name << " in " << Name(compute);
    }
  }
}

Tensor OfType(DType type, const Tensor& from, Ops* ops) {
  Tensor to = *Tensor::Allocate(TestedDevice(), type, from.shape());
  EXPECT_TRUE(ops->Convert(from.view(), to.view()).ok());
  return to;
}

// A model that trains in bf16 on the tested device.
class Trained {
 public:
  Trained(const Model& model, const OptimizerSpec& spec, const Tensor& input, Ops* ops)
      : ops_(ops), x_(On(TestedDevice(), input)) {
    if (input.dtype() == DType::kF32) x_ = OfType(DType::kBF16, x_, ops);
    SegmentOptions options;
    options.device = TestedDevice();
    options.ops = ops;
    options.compute = DType::kBF16;
    segment_ = *BuildSegment(model.blocks, options);
    const std::optional<TiedWeight> tied = FindTiedWeight(model);
    if (tied) {
      EXPECT_TRUE(ShareTiedValue(*tied, segment_.get()).ok());
    }
    optimizer_ = *NewOptimizer(spec, segment_->parameters(), options.device, ops);
    segment_ = RecordSegment(std::move(segment_), {options.device, ops, 2, 2});
  }

  // Takes a step; what the optimizer does not write is left as it was.
  void Step(int number) {
    Saved saved;
    const Tensor y = *segment_->Forward(x_, Mode::kTrain, &saved);
    const Tensor dy = On(TestedDevice(), RandomTensor(y.shape(), "dy" + std::to_string(number)));
    EXPECT_TRUE(segment_->Backward(OfType(DType::kBF16, dy, ops_), &saved).ok());
    EXPECT_TRUE(optimizer_->Step(0.05).ok());
  }
  std::vector<float> Result() {
    const Tensor y = *segment_->Forward(x_, Mode::kEvaluate, nullptr);
    return Values(On(CpuDevice(), OfType(DType::kF32, y, ops_)));
  }
  int copies() {
    int copies = 0;
    for (const Parameter& parameter : segment_->parameters()) copies += parameter.narrow_is_updated;
    return copies;
  }
  Segment* segment() const { return segment_.get(); }

 private:
  Ops* const ops_;
  Tensor x_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Optimizer> optimizer_;
};

class UpdatedCopiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelOptions options = *OptionsOf("resnet8");
    options.width = 8;
    options.input = {1, 8, 8, 3};
    resnet_ = *NamedModel(options);
    ids_ = RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids");
    images_ = RandomTensor({2, 8, 8, 3}, "x");
  }

  const std::unique_ptr<Ops> ops_ = NewTestedOps();
  const Model gpt2_ = TinyLanguageModel("gpt2"), llama_ = TinyLanguageModel("llama");
  Model resnet_;
  Tensor ids_, images_;
};

TEST_F(UpdatedCopiesTest, AreThoseThatAreMadeAnew) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdamW, OptimizerKind::kMuon}) {
    for (const Model* model : std::vector<const Model*>{&gpt2_, &llama_, &resnet_}) {
      SCOPED_TRACE(model->blocks[1].name);
      const OptimizerSpec spec = DefaultOptimizer(kind);
      const Tensor& x = model == &resnet_ ? images_ : ids_;
      Trained anew(*model, spec, x, ops_.get()), updated(*model, spec, x, ops_.get());
      for (int step = 0; step < 3; ++step) {
        anew.Step(step);
        ASSERT_TRUE(anew.segment()->ParametersChanged().ok());
        updated.Step(step);
        ASSERT_TRUE(updated.segment()->ParametersUpdated().ok());
        EXPECT_EQ(updated.Result(), anew.Result());
      }
    }
  }
}

// All weights of a language model are multiplied as they are, the tied one among them.
TEST_F(UpdatedCopiesTest, AreWrittenByTheStepItself) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdamW}) {
    for (const Model* model : {&gpt2_, &llama_}) {
      Trained trained(*model, DefaultOptimizer(kind), ids_, ops_.get());
      EXPECT_GT(trained.copies(), 6);
      const std::vector<float> before = trained.Result();
      trained.Step(0);
      const std::vector<float> by_step = trained.Result();
      EXPECT_NE(by_step, before);
      ASSERT_TRUE(trained.segment()->ParametersChanged().ok());
      EXPECT_EQ(by_step, trained.Result());
    }
  }
}

TEST_F(UpdatedCopiesTest, AreNotTakenForWhatComesFromOutside) {
  Trained trained(gpt2_, DefaultOptimizer(OptimizerKind::kAdamW), ids_, ops_.get());
  const std::vector<float> start = trained.Result();
  std::vector<Tensor> values;
  for (const Parameter& parameter : trained.segment()->parameters()) {
    values.push_back(OfType(DType::kF32, parameter.value, ops_.get()));
  }
  trained.Step(0);
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& value = trained.segment()->parameters()[i].value;
    ASSERT_TRUE(ops_->Convert(values[i].view(), value.view()).ok());
  }
  ASSERT_TRUE(trained.segment()->ParametersChanged().ok());
  EXPECT_EQ(trained.Result(), start);
}

// Runs two microbatches at a time.
TEST_F(RecordedSegmentTest, TheGradientOfLogitsTakesTheirMemory) {
  SegmentOptions options;
  options.device = device_;
  options.ops = ops_.get();
  options.ends_model = true;
  const auto plain = *BuildSegment(blocks_, options);
  const auto recorded =
      RecordSegment(*BuildSegment(blocks_, options), {device_, ops_.get(), 4, 4, true});
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 4; ++step) {
    for (Segment* segment : {plain.get(), recorded.get()}) {
      Saved saved[2];
      Tensor dlogits[2];
      for (int i = 0; i < 2; ++i) {
        Tensor logits = *segment->Forward(X(4, 2 * step + i), Mode::kTrain, &saved[i]);
        EXPECT_EQ(logits.shape(), (Shape{4, ops_->RowOfLogits(5)}));
        const void* const memory = logits.data();
        ASSERT_TRUE(
            SoftmaxCrossEntropy(std::move(logits), 5, {0, 1, 2, 4}, 8, ops_.get(), &dlogits[i])
                .ok());
        EXPECT_EQ(dlogits[i].data(), memory);
      }
      EXPECT_NE(dlogits[0].data(), dlogits[1].data());
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(segment->Backward(dlogits[i], &saved[i]).ok());
        dlogits[i] = Tensor();
      }
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a recording failed";
  for (size_t i = 0; i < plain->parameters().size(); ++i) {
    if (!plain->parameters()[i].spec.is_trained()) continue;
    ExpectEqual(plain->parameters()[i].gradient, recorded->parameters()[i].gradient);
  }
}

// Host memory whose recordings fail.
class FailingToRecord final : public Device {
 public:
  class Fails final : public Recorder {
   public:
    Error Start() override { return MakeError(absl::StatusCode::kInternal, "no graphs today"); }
    Error Stop(int* /*recording*/) override { return Start(); }
    void Abandon() override {}
    Error Replay(int /*recording*/) override { return Start(); }
  };

  const char* name() const override { return "forgetful"; }
  bool is_host() const override { return true; }
  Device* host() override { return this; }
  Error Allocate(size_t bytes, void** memory) override {
    return CpuDevice()->Allocate(bytes, memory);
  }
  void Free(void* memory) override { CpuDevice()->Free(memory); }
  size_t bytes_in_use() const override { return CpuDevice()->bytes_in_use(); }
  void Trim() override { CpuDevice()->Trim(); }
  Error CopyFromHost(void* device, const void* host, size_t bytes) override {
    return CpuDevice()->CopyFromHost(device, host, bytes);
  }
  Error CopyToHost(void* host, const void* device, size_t bytes) override {
    return CpuDevice()->CopyToHost(host, device, bytes);
  }
  Error Finish() override { return Error{}; }
  Error NewRecorder(Recorder** recorder) override {
    *recorder = new Fails;
    return Error{};
  }
  Error Usage(DeviceUsage* usage) override { return CpuDevice()->Usage(usage); }
};

TEST(RecordSegmentTest, AFailedRecordingIsSaidOnceAndCostsNothing) {
  const auto ops = NewCpuOps(1);
  FailingToRecord device;
  const auto plain = Built(SmallNetwork(), ops.get());
  const auto recorded = RecordSegment(Built(SmallNetwork(), ops.get()), {&device, ops.get(), 4, 4});
  ::testing::internal::CaptureStderr();
  size_t after_first = 0;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) after_first = device.bytes_in_use();
    const Tensor x = RandomTensor({4, 6, 6, 3}, "x"), dy = RandomTensor({4, 5}, "dy");
    Saved of_plain, of_recorded;
    EXPECT_EQ(Values(*plain->Forward(x, Mode::kTrain, &of_plain)),
              Values(*recorded->Forward(x, Mode::kTrain, &of_recorded)));
    EXPECT_EQ(Values(*plain->Backward(dy, &of_plain)),
              Values(*recorded->Backward(dy, &of_recorded)));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "forgetful: passes run layer by layer, recording failed: no graphs today\n");
  EXPECT_EQ(device.bytes_in_use(), after_first);
}

TEST(RecordSegmentTest, LeavesASegmentAloneWhereTheDeviceDoesNotRecord) {
  const auto ops = NewCpuOps(1);
  auto segment = Built(SmallNetwork(), ops.get());
  const Segment* const itself = segment.get();
  EXPECT_EQ(RecordSegment(std::move(segment), {CpuDevice(), ops.get(), 4, 4}).get(), itself);
}

}  // namespace
}  // namespace thinwire
