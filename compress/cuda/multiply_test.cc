#include <gtest/gtest.h>

#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

std::vector<uint8_t> Product(const Twin& twin, const Tensor& x, const Tensor& factor,
                             const Shape& shape, DType dtype) {
  const Tensor out = On(twin.device, HostTensor(shape, dtype, NormalValues(shape.elements(), 3)));
  const Tensor on_device = On(twin.device, x), of_factor = On(twin.device, factor);
  EXPECT_TRUE(twin.kernels->Multiply(on_device.view(), of_factor.view(), out.view()).ok());
  EXPECT_TRUE(twin.device->Finish().ok());
  return BytesOf(out);
}

TEST(MultiplyTest, TwinsAgreeInEveryShapeAndType) {
  const struct {
    int64_t rows, k, n;
  } cases[] = {{0, 4, 4}, {1, 1, 1}, {5, 3, 7}, {9, 16, 4}, {64, 33, 130}};
  for (const auto& c : cases) {
    const Tensor factor = HostTensor({c.k, c.n}, DType::kF32, NormalValues(c.k * c.n, 2));
    for (const NamedValues& values : FiniteCases(c.rows * c.k)) {
      for (const DType from : kTensorTypes) {
        for (const DType to : kTensorTypes) {
          const Tensor x = HostTensor({c.rows, 1, c.k}, from, values.values);
          const Shape shape = {c.rows, 1, c.n};
          EXPECT_EQ(Product(CpuTwin(), x, factor, shape, to),
                    Product(GpuTwin(), x, factor, shape, to))
              << values.name << ", " << c.rows << " x " << c.k << " x " << c.n << " of "
              << Name(from) << " to " << Name(to);
        }
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
