// The convolutions that tests run, and their comparison with the CPU's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nn/cuda/product_testing.h"

namespace thinwire {

struct ConvCase {
  int64_t n, in, out, pixels, kernel, stride, padding;
  bool bias = false;
};

// Returns ResNet-18's convolutions on 32 x 32 images, with batches that no tile size divides.
// Others follow: ImageNet's first layer, odd channels, kernels without a centre, and gaps between
// windows.
inline std::vector<ConvCase> ConvCases() {
  return {{3, 3, 64, 32, 3, 1, 1},     {2, 64, 64, 32, 3, 1, 1},    {3, 64, 128, 32, 3, 2, 1},
          {3, 64, 128, 32, 1, 2, 0},   {3, 128, 128, 16, 3, 1, 1},  {3, 128, 256, 16, 3, 2, 1},
          {5, 128, 256, 16, 1, 2, 0},  {3, 256, 256, 8, 3, 1, 1},   {3, 256, 512, 8, 3, 2, 1},
          {7, 256, 512, 8, 1, 2, 0},   {5, 512, 512, 4, 3, 1, 1},   {1, 3, 64, 56, 7, 2, 3, true},
          {3, 5, 7, 9, 2, 3, 1, true}, {2, 8, 3, 7, 1, 1, 0, true}, {2, 16, 24, 6, 5, 1, 2, true}};
}
// Returns a convolution of each kind.
inline std::vector<ConvCase> FewConvCases() {
  return {{3, 3, 64, 32, 3, 1, 1},
          {3, 64, 128, 16, 3, 2, 1},
          {5, 128, 256, 8, 1, 2, 0},
          {3, 5, 7, 9, 2, 3, 1, true}};
}

inline Conv2dSpec SpecOf(const ConvCase& of, DType compute) {
  Conv2dSpec spec;
  spec.in_channels = of.in;
  spec.out_channels = of.out;
  spec.height = of.pixels;
  spec.width = of.pixels + 1;  // not square
  spec.kernel = of.kernel;
  spec.stride = of.stride;
  spec.padding = of.padding;
  spec.bias = of.bias;
  spec.compute = compute;
  return spec;
}

inline ProductShapes ShapesOf(const ConvCase& of) {
  const Conv2dSpec spec = SpecOf(of, DType::kF32);
  const auto output = [&](int64_t extent) {
    return (extent + 2 * of.padding - of.kernel) / of.stride + 1;
  };
  return {{of.n, spec.height, spec.width, of.in},
          {of.out, of.in, of.kernel, of.kernel},
          {of.n, output(spec.height), output(spec.width), of.out},
          of.bias};
}

inline std::string NameOf(const ConvCase& of) {
  return ShapesOf(of).x.ToString() + " * " + ShapesOf(of).weights.ToString() + " stride " +
         std::to_string(of.stride) + " padding " + std::to_string(of.padding);
}

using MakeConv2d = std::function<Error(const Conv2dSpec&, Conv2d**)>;

inline Outputs RunConv2d(Side* side, const MakeConv2d& make, const ConvCase& of, DType compute,
                         DType values) {
  Conv2d* made = nullptr;
  const Error error = make(SpecOf(of, compute), &made);
  EXPECT_TRUE(error.ok()) << error.message;
  const std::unique_ptr<Conv2d> conv(made);
  if (conv == nullptr) return {};
  return RunProduct(side, conv.get(), ShapesOf(of), compute, values);
}

// Expects that, in each case, what `make` makes for `on` gives the CPU's fp32 results for equal
// operands.
inline void ExpectConvolutions(const std::vector<ConvCase>& cases, Device* on,
                               const Precision& precision, const MakeConv2d& make) {
  for (const ConvCase& of : cases) {
    SCOPED_TRACE(NameOf(of));
    Side cpu = CpuSide(), device(on, /*ops=*/nullptr, /*misaligned=*/0);
    const auto make_on_cpu = [&](const Conv2dSpec& spec, Conv2d** conv) {
      return cpu->NewConv2d(spec, conv);
    };
    const Outputs want = RunConv2d(&cpu, make_on_cpu, of, DType::kF32, precision.compute);
    const Outputs got = RunConv2d(&device, make, of, precision.compute, precision.compute);
    ExpectClose(want, got, precision);
  }
}

}  // namespace thinwire
