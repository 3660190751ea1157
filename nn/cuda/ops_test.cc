#include <gtest/gtest.h>

#include <memory>

#include "nn/cuda/testing.h"
#include "nn/rotary_testing.h"

namespace thinwire {
namespace {

TEST(CudaOpsTest, ComputesInFp32AndBf16Only) {
  Side side = DeviceSide();
  EXPECT_TRUE(side->CheckComputeType(DType::kF32).ok());
  EXPECT_TRUE(side->CheckComputeType(DType::kBF16).ok());
  EXPECT_EQ(ToStatus(side->CheckComputeType(DType::kF16)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CudaOpsTest, RefusesShapesInTheCpusWords) {
  Side device = DeviceSide(), cpu = CpuSide();
  Conv2dSpec spec;
  spec.in_channels = spec.out_channels = 1;
  spec.height = spec.width = 4;
  spec.kernel = 7;
  spec.padding = 1;
  Conv2d* conv = nullptr;
  EXPECT_EQ(ToStatus(device->NewConv2d(spec, &conv)), ToStatus(cpu->NewConv2d(spec, &conv)));
  EXPECT_EQ(conv, nullptr);
  Linear* linear = nullptr;
  EXPECT_EQ(ToStatus(device->NewLinear({}, &linear)), ToStatus(cpu->NewLinear({}, &linear)));
  EXPECT_EQ(linear, nullptr);
  AttentionSpec odd, groups, always;
  odd.heads = odd.kv_heads = always.heads = always.kv_heads = groups.kv_heads = 2;
  odd.head_size = groups.heads = 3;
  groups.head_size = always.head_size = 4;
  SetRopeTheta(100, &odd);
  always.dropout = 1;
  for (const AttentionSpec& bad : {AttentionSpec{}, odd, groups, always}) {
    Attention* attention = nullptr;
    EXPECT_EQ(ToStatus(device->NewAttention(bad, &attention)),
              ToStatus(cpu->NewAttention(bad, &attention)));
    EXPECT_EQ(attention, nullptr);
  }
}

TEST(CudaOpsTest, AWorkTimerSaysWhatTheDeviceTookEachTime) {
  Side side = DeviceSide();
  constexpr int64_t kElements = 1 << 20;
  float* const values = side.Of(Floats(kElements, 1));
  WorkTimer* made = nullptr;
  ASSERT_TRUE(side->NewWorkTimer(&made).ok());
  const std::unique_ptr<WorkTimer> timer(made);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(timer->Start().ok());
    ASSERT_TRUE(side->Zero(values, kElements).ok());
    ASSERT_TRUE(timer->Stop().ok());
    ASSERT_TRUE(side.device()->Finish().ok());
    double seconds = -1;
    ASSERT_TRUE(timer->Seconds(&seconds).ok());
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 60);
  }
}

// Nothing is written but dscale and dbias, to which nothing is added.
TEST(CudaOpsTest, NoSamplesAreNoError) {
  Side side = DeviceSide();
  const Shape none({0, 2, 2, 8});
  const TensorView x = side.Unwritten(DType::kF32, none), y = side.Unwritten(DType::kF32, none),
                   flat = side.Unwritten(DType::kF32, Shape({0, 8}));
  BatchNormForward inference;
  inference.x = x;
  inference.y = y;
  EXPECT_TRUE(side->NormalizeBatch(inference).ok());
  BatchNormBackward batch;
  batch.x = batch.dy = x;
  batch.dx = y;
  batch.scale = batch.bias = batch.mean = batch.rstd = side.Of(Floats(8, 1));
  batch.dscale = side.Of(Floats(8, 3));
  batch.dbias = side.Of(Floats(8, 4));
  EXPECT_TRUE(side->NormalizeBatchBackward(batch).ok());
  LayerNormForward rows;
  rows.x = x;
  rows.y = y;
  EXPECT_TRUE(side->NormalizeRows(rows).ok());
  LayerNormBackward rows_backward;
  rows_backward.x = rows_backward.dy = x;
  rows_backward.dx = y;
  rows_backward.dscale = batch.dscale;
  rows_backward.dbias = batch.dbias;
  EXPECT_TRUE(side->NormalizeRowsBackward(rows_backward).ok());
  rows.centred = false;
  EXPECT_TRUE(side->NormalizeRows(rows).ok());
  EXPECT_TRUE(side->Apply(Pointwise::kTanhGelu, x, y).ok());
  EXPECT_TRUE(side->Swiglu(x, side.Unwritten(DType::kF32, Shape({0, 2, 2, 4}))).ok());
  Dropout dropout;
  dropout.x = dropout.y = x;
  EXPECT_TRUE(side->Drop(dropout).ok());
  Embedding embedding;
  embedding.y = y;
  embedding.features = 8;
  EXPECT_TRUE(side->Embed(embedding).ok());
  EmbeddingBackward embedding_backward;
  embedding_backward.dy = x;
  embedding_backward.features = 8;
  EXPECT_TRUE(side->EmbedBackward(embedding_backward).ok());
  EXPECT_TRUE(side->MaxPool({1, 1, 0}, x, y).ok());
  EXPECT_TRUE(side->MaxPoolBackward({1, 1, 0}, x, y, y).ok());
  EXPECT_TRUE(side->Maxout(1, x, y).ok());
  EXPECT_TRUE(side->MaxoutBackward(1, x, x, y).ok());
  EXPECT_TRUE(side->GlobalAvgPool(x, flat).ok());
  EXPECT_TRUE(side->GlobalAvgPoolBackward(flat, x).ok());
  EXPECT_EQ(side.Read(batch.dscale, 8), Floats(8, 3));
  EXPECT_EQ(side.Read(batch.dbias, 8), Floats(8, 4));
}

// Makes every call that can be recorded, on fixed tensors.
class EveryCall {
 public:
  explicit EveryCall(Side* side) : ops_(*side) {
    const auto tensor = [&](uint64_t seed) {
      return side->Of(DType::kF32, kImages, RandomFloats(kImages.elements(), seed));
    };
    const auto channels = [&](float value) { return side->Of(Floats(kImages[3], value)); };
    batch_.x = rows_.x = tensor(1);
    batch_.residual = tensor(2);
    batch_.y = Output(side, "batch norm", kImages);
    rows_.y = Output(side, "layer norm", kImages);
    batch_.scale = rows_.scale = channels(1.5f);
    batch_.bias = rows_.bias = channels(0.25f);
    batch_.running_mean = channels(0);
    batch_.running_var = channels(1);
    batch_.mean = channels(0);
    batch_.rstd = channels(0);
    batch_.relu = true;
    rows_.mean = side->Unwritten(kImages.elements() / kImages[3]);
    rows_.rstd = side->Unwritten(kImages.elements() / kImages[3]);
    batch_dx_ = Output(side, "batch norm's dx", kImages);
    batch_dresidual_ = Output(side, "dresidual", kImages);
    rows_dx_ = Output(side, "layer norm's dx", kImages);
    // These add up over all submissions.
    gradients_ = side->Of(DType::kF32, Shape({2, kImages[3]}), Floats(2 * kImages[3]));
    outputs_.push_back({"dscale, dbias", gradients_});
    sum_ = Output(side, "sum", kImages);
    narrow_ = side->Unwritten(DType::kBF16, kImages);
    outputs_.push_back({"narrow", narrow_});
    pooled_ = Output(side, "max pool", Shape({kImages[0], 3, 3, kImages[3]}));
    pooled_dx_ = Output(side, "max pool's dx", kImages);
    half_ = Output(side, "maxout", Shape({kImages.elements() / 2}));
    half_dx_ = Output(side, "maxout's dx", kImages);
    means_ = Output(side, "means", Shape({kImages[0], kImages[3]}));
    means_dx_ = Output(side, "means' dx", kImages);
    channels_first_ = Output(side, "channels first", kImages);
    value_ = side->Of(DType::kF32, kImages, RandomFloats(kImages.elements(), 3));
    outputs_.push_back({"value", value_});
    MakeAttention(side);
  }

  void Submit() {
    EXPECT_TRUE(ops_->NormalizeBatch(batch_).ok());
    EXPECT_TRUE(ops_->NormalizeRows(rows_).ok());
    SubmitBackward();
    EXPECT_TRUE(ops_->Relu(rows_.y, sum_).ok());
    EXPECT_TRUE(ops_->ReluBackward(batch_.y, sum_, sum_).ok());
    EXPECT_TRUE(ops_->Add(sum_, batch_.y, sum_).ok());
    EXPECT_TRUE(ops_->Convert(sum_, narrow_).ok());
    const PoolSpec pool{2, 3, 1};
    EXPECT_TRUE(ops_->MaxPool(pool, sum_, pooled_).ok());
    EXPECT_TRUE(ops_->MaxPoolBackward(pool, sum_, pooled_, pooled_dx_).ok());
    EXPECT_TRUE(ops_->Maxout(2, sum_, half_).ok());
    EXPECT_TRUE(ops_->MaxoutBackward(2, sum_, half_, half_dx_).ok());
    EXPECT_TRUE(ops_->GlobalAvgPool(sum_, means_).ok());
    EXPECT_TRUE(ops_->GlobalAvgPoolBackward(means_, means_dx_).ok());
    EXPECT_TRUE(ops_->ToChannelsFirst(sum_, channels_first_).ok());
    SubmitAttention();
    SgdParameter parameter;
    parameter.value = static_cast<float*>(value_.data);
    parameter.gradient = static_cast<float*>(channels_first_.data);
    parameter.n = kImages.elements();
    SgdUpdate update;
    update.parameters = &parameter;
    update.count = 1;
    update.lr = 0.5f;
    EXPECT_TRUE(ops_->Sgd(update).ok());
    EXPECT_TRUE(ops_->Zero(static_cast<float*>(channels_first_.data), 7).ok());
  }

  Outputs Read() const {
    Outputs outputs;
    for (const auto& [name, view] : outputs_) outputs.push_back({name, ops_.Read(view)});
    return outputs;
  }

 private:
  const Shape kImages{2, 6, 6, 16};

  TensorView Output(Side* side, const char* name, const Shape& shape) {
    outputs_.push_back({name, side->Unwritten(DType::kF32, shape)});
    return outputs_.back().second;
  }

  // Makes an attention of 2 samples, 9 positions, 4 heads of 32 that share 2 keys.
  void MakeAttention(Side* side) {
    AttentionSpec spec;
    spec.heads = 4;
    spec.kv_heads = 2;
    spec.head_size = 32;
    SetRopeTheta(100, &spec);
    spec.compute = DType::kBF16;
    Attention* attention = nullptr;
    EXPECT_TRUE((*side)->NewAttention(spec, &attention).ok());
    attention_.reset(attention);
    const Shape wide({2, 9, 256}), narrow({2, 9, 128});
    attended_.qkv = side->Of(DType::kBF16, wide, RandomFloats(wide.elements(), 4));
    attended_.y = side->Unwritten(DType::kBF16, narrow);
    attended_.log_sum_exp = side->Unwritten(2 * 4 * 9);
    differentiated_.qkv = attended_.qkv;
    differentiated_.y = differentiated_.dy = attended_.y;
    differentiated_.dqkv = side->Unwritten(DType::kBF16, wide);
    differentiated_.log_sum_exp = attended_.log_sum_exp;
    outputs_.push_back({"attention", attended_.y});
    outputs_.push_back({"dqkv", differentiated_.dqkv});
  }
  void SubmitAttention() {
    EXPECT_TRUE(attention_->Forward(attended_).ok());
    EXPECT_TRUE(attention_->Backward(differentiated_).ok());
    EXPECT_TRUE(ops_->Apply(Pointwise::kTanhGelu, differentiated_.dqkv, attended_.qkv).ok());
    Dropout dropout;
    dropout.rate = 0.5f;
    dropout.x = dropout.y = attended_.y;
    EXPECT_TRUE(ops_->Drop(dropout).ok());
  }

  void SubmitBackward() {
    BatchNormBackward batch;
    batch.x = batch_.x;
    batch.y = batch_.y;
    batch.dy = rows_.y;
    batch.dx = batch_dx_;
    batch.dresidual = batch_dresidual_;
    batch.scale = batch_.scale;
    batch.bias = batch_.bias;
    batch.mean = batch_.mean;
    batch.rstd = batch_.rstd;
    batch.dscale = static_cast<float*>(gradients_.data);
    batch.dbias = batch.dscale + kImages[3];
    batch.relu = true;
    EXPECT_TRUE(ops_->NormalizeBatchBackward(batch).ok());
    LayerNormBackward rows;
    rows.x = rows_.x;
    rows.dy = batch_.y;
    rows.dx = rows_dx_;
    rows.scale = rows_.scale;
    rows.mean = rows_.mean;
    rows.rstd = rows_.rstd;
    rows.dscale = batch.dscale;
    rows.dbias = batch.dbias;
    EXPECT_TRUE(ops_->NormalizeRowsBackward(rows).ok());
  }

  Side& ops_;
  BatchNormForward batch_;
  LayerNormForward rows_;
  TensorView batch_dx_, batch_dresidual_, rows_dx_, gradients_, sum_, narrow_, pooled_, pooled_dx_,
      half_, half_dx_, means_, means_dx_, channels_first_, value_;
  std::unique_ptr<Attention> attention_;
  AttentionForward attended_;
  AttentionBackward differentiated_;
  std::vector<std::pair<std::string, TensorView>> outputs_;
};

TEST(CudaOpsTest, WhatIsRecordedAndReplayedIsWhatWasCalled) {
  Side plain_side = DeviceSide(), recorded_side = DeviceSide();
  EveryCall plain(&plain_side), recorded(&recorded_side);
  for (int i = 0; i < 3; ++i) plain.Submit();

  Recorder* made = nullptr;
  ASSERT_TRUE(recorded_side.device()->NewRecorder(&made).ok());
  const std::unique_ptr<Recorder> recorder(made);
  int recording = -1;
  recorded.Submit();
  ASSERT_TRUE(recorder->Start().ok());
  recorded.Submit();
  ASSERT_TRUE(recorder->Stop(&recording).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(recorder->Replay(recording).ok());
  ExpectNear(plain.Read(), recorded.Read(), kSameBits);
}

}  // namespace
}  // namespace thinwire
