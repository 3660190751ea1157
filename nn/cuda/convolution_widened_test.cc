#include "nn/cuda/convolution_widened.h"

#include "nn/cuda/convolution.h"
#include "nn/cuda/device_testing.h"

namespace thinwire::cuda {
namespace {

// A library without a weight gradient in bf16, which records what it was asked for.
class WithoutWeightGradient final : public Convolution {
 public:
  explicit WithoutWeightGradient(std::shared_ptr<Convolution> rest) : rest_(std::move(rest)) {}
  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    return rest_->Forward(n, x, w, y);
  }
  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    return rest_->BackwardData(n, dy, w, dx);
  }
  Error BackwardWeights(int64_t, const void*, const void*, void*, DType*) override {
    return MakeError(absl::StatusCode::kUnimplemented, "not in bf16");
  }

 private:
  const std::shared_ptr<Convolution> rest_;
};

class WidenedTest : public testing::Test {
 protected:
  WidenedTest() {
    spec_.in_channels = 3;
    spec_.out_channels = 5;
    spec_.height = spec_.width = 6;
    spec_.kernel = 3;
    spec_.stride = 2;
    spec_.padding = 1;
    spec_.compute = DType::kBF16;
    library_ = NewConvolutionLibrary(OwnDevice(), OpsOptions());
  }

  // Returns the gradient for operands that are the same each time.
  Floats WeightGradient(Convolution* convolution) {
    Side side = OwnSide();
    const TensorView x = side.Of(DType::kBF16, {2, 6, 6, 3}, RandomFloats(2 * 6 * 6 * 3, 1));
    const TensorView dy = side.Of(DType::kBF16, {2, 3, 3, 5}, RandomFloats(2 * 3 * 3 * 5, 2));
    TensorView dw = side.Unwritten(DType::kF32, Shape({5 * 9 * 3}));
    EXPECT_TRUE(convolution->BackwardWeights(2, x.data, dy.data, dw.data, &dw.dtype).ok());
    return side.Read(dw);
  }

  Conv2dSpec spec_;
  std::unique_ptr<ConvolutionLibrary> library_;
};

TEST_F(WidenedTest, ComputesTheWeightGradientInFP32WhereBF16HasNone) {
  std::vector<DType> made;
  std::vector<bool> tf32;
  const auto widened = Widened(
      OwnDevice(), OpsOptions(), spec_, [&](const OpsOptions& options, const Conv2dSpec& spec) {
        made.push_back(spec.compute);
        tf32.push_back(options.tf32);
        std::shared_ptr<Convolution> convolution = library_->New(spec);
        if (spec.compute == DType::kF32) return convolution;
        return std::shared_ptr<Convolution>(
            std::make_shared<WithoutWeightGradient>(std::move(convolution)));
      });
  EXPECT_EQ(made, std::vector<DType>({DType::kBF16, DType::kF32}));
  EXPECT_EQ(tf32, std::vector<bool>({false, true}));
  const Floats want = WeightGradient(library_->New(spec_).get());
  const Floats got = WeightGradient(widened.get());
  // The wanted values were rounded to bf16.
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 0x1p-8 * std::abs(want[i]) + 1e-5);
  }
}

TEST_F(WidenedTest, LeavesFP32AsItIs) {
  spec_.compute = DType::kF32;
  int made = 0;
  Convolution* fp32 = nullptr;
  const auto widened =
      Widened(OwnDevice(), OpsOptions(), spec_, [&](const OpsOptions&, const Conv2dSpec& spec) {
        ++made;
        std::shared_ptr<Convolution> convolution = library_->New(spec);
        fp32 = convolution.get();
        return convolution;
      });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(widened.get(), fp32);
}

}  // namespace
}  // namespace thinwire::cuda
