// Tests cuDNN's graph API and its older calls separately; conv2d_test sees whichever takes a
// convolution. Needs a GPU.
#include "nn/cuda/conv2d_testing.h"
#include "nn/cuda/convolution_cudnn.h"
#include "nn/cuda/convolution_widened.h"
#include "nn/cuda/cudnn.h"
#include "nn/cuda/device_testing.h"
#include "nn/cuda/weighted.h"

namespace thinwire {
namespace {

using MakeByCudnn = std::unique_ptr<cuda::Convolution> (*)(cuda::CudnnHandle*, const OpsOptions&,
                                                           const Conv2dSpec&);

void ExpectConvolutionsBy(MakeByCudnn make, const Precision& precision) {
  cuda::CudnnHandle cudnn(OwnDevice());
  cuda::JoinedWork joined(OwnDevice());
  const auto by_cudnn = [&](const OpsOptions& options, const Conv2dSpec& spec) {
    return make(&cudnn, options, spec);
  };
  ExpectConvolutions(
      ConvCases(), OwnDevice(), precision, [&](const Conv2dSpec& spec, Conv2d** conv) {
        auto convolution = cuda::Widened(OwnDevice(), precision.options, spec, by_cudnn);
        return cuda::NewConv2d(OwnDevice(), spec, std::move(convolution), &joined, conv);
      });
}

TEST(GraphConvolutionTest, IsTheCpusInFP32) {
  ExpectConvolutionsBy(&cuda::NewGraphConvolution, FP32());
}
TEST(GraphConvolutionTest, IsCloseInTF32) {
  ExpectConvolutionsBy(&cuda::NewGraphConvolution, TF32());
}
TEST(GraphConvolutionTest, RoundsResultsButNoSumsInBF16) {
  ExpectConvolutionsBy(&cuda::NewGraphConvolution, BF16Convolutions());
}
TEST(GraphConvolutionTest, IsTheCpusInFP32WhenTimed) {
  ExpectConvolutionsBy(&cuda::NewGraphConvolution, WhateverIsFastest(FP32()));
}

// Without plans they are computed in fp32, slowly (convolution_widened.h).
TEST(GraphConvolutionTest, HasWeightGradientsInBF16) {
  cuda::CudnnHandle cudnn(OwnDevice());
  const ConvCase of = {3, 64, 128, 32, 3, 2, 1};
  const Shape x = ShapesOf(of).x, dy = ShapesOf(of).y;
  Side side = OwnSide();
  DType type = DType::kF32;
  const Error error =
      cuda::NewGraphConvolution(&cudnn, {}, SpecOf(of, DType::kBF16))
          ->BackwardWeights(of.n, side.Of(DType::kBF16, x, Floats(x.elements(), 1)).data,
                            side.Of(DType::kBF16, dy, Floats(dy.elements(), 1)).data,
                            side.Unwritten(of.out * 9 * of.in), &type);
  if (cuda::IsUnimplemented(error)) GTEST_SKIP() << error.message;
  EXPECT_TRUE(error.ok()) << error.message;
}

TEST(LegacyConvolutionTest, IsTheCpusInFP32) {
  ExpectConvolutionsBy(&cuda::NewLegacyConvolution, FP32());
}
TEST(LegacyConvolutionTest, IsCloseInTF32) {
  ExpectConvolutionsBy(&cuda::NewLegacyConvolution, TF32());
}
TEST(LegacyConvolutionTest, RoundsResultsButNoSumsInBF16) {
  ExpectConvolutionsBy(&cuda::NewLegacyConvolution, BF16Convolutions());
}

}  // namespace
}  // namespace thinwire
