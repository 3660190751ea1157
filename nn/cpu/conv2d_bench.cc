// Runs the 3 x 3 convolutions of a CIFAR ResNet-18 directly by oneDNN and by Winograd's transform.
// Prints the time of a pass and 10^9 operations a second, which count the direct convolution's
// operations in both.
// usage: conv2d_bench [WIDTH=64 [IMAGES=100 [THREADS=2]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/tensors_testing.h"
#include "nn/cpu/weighted.h"

namespace thinwire::cpu {
namespace {

constexpr int kRounds = 9;

template <typename Body>
double MedianSeconds(const Body& body) {
  std::vector<double> seconds;
  body();
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRounds / 2];
}

struct Passes {
  double forward, backward_data, backward_weights;
};

Passes Measure(const Conv2dSpec& spec, int64_t n, Conv2d* conv) {
  const Shape in{n, spec.height, spec.width, spec.in_channels},
      out{n, spec.height, spec.width, spec.out_channels};
  const Floats weights = RandomFloats(spec.out_channels * spec.in_channels * 9, 1);
  TestTensor x(spec.compute, in, RandomFloats(in.elements(), 2)),
      y(spec.compute, out, RandomFloats(out.elements(), 3));
  Floats gradient(weights.size());
  const TensorView x_view = x.view(), y_view = y.view();
  conv->LoadWeights(weights.data(), nullptr);
  return {MedianSeconds([&] { conv->Forward(x_view, y_view); }),
          MedianSeconds([&] { conv->BackwardData(y_view, x_view); }),
          MedianSeconds([&] { conv->BackwardWeights(x_view, y_view, gradient.data(), nullptr); })};
}

void Print(const char* name, double operations, const Passes& passes) {
  std::printf("| %s |", name);
  for (double seconds : {passes.forward, passes.backward_data, passes.backward_weights}) {
    std::printf(" %.2f ms, %.0f |", seconds * 1e3, operations / seconds / 1e9);
  }
  std::printf("\n");
}

void Run(int64_t width, int64_t n, int threads, DType compute) {
  std::printf("| %lld images | forward | backward, data | backward, weights |\n|---|---|---|---|\n",
              static_cast<long long>(n));
  for (int64_t shrink = 1; shrink <= 8; shrink *= 2) {
    Conv2dSpec spec;
    spec.in_channels = spec.out_channels = width * shrink;
    spec.height = spec.width = 32 / shrink;
    spec.kernel = 3;
    spec.padding = 1;
    spec.compute = compute;
    OneDnn onednn(threads);
    Weighted<Conv2d> direct(&onednn, NewConv2dKind(&onednn, spec));
    const double operations =
        2.0 * 9 *
        static_cast<double>(n * spec.height * spec.width * spec.in_channels * spec.out_channels);
    char name[80];
    std::snprintf(name, sizeof name, "%lld channels, %lld x %lld pixels",
                  static_cast<long long>(spec.in_channels), static_cast<long long>(spec.height),
                  static_cast<long long>(spec.width));
    std::printf("| %s | | | |\n", name);
    Print("direct", operations, Measure(spec, n, &direct));
    if (!WinogradPays(spec)) continue;
    Print("Winograd", operations, Measure(spec, n, NewWinogradConv2d(&onednn, spec).get()));
  }
}

}  // namespace
}  // namespace thinwire::cpu

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const bool bf16 = argc > 4 && argv[4] == std::string("bf16");
  thinwire::cpu::Run(number(1, 64), number(2, 100), number(3, 2),
                     bf16 ? thinwire::DType::kBF16 : thinwire::DType::kF32);
}
