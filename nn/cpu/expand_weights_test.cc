#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "nn/cpu/ops.h"
#include "nn/weight_codes.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

class ExpandWeightsTest : public testing::TestWithParam<std::tuple<WeightFormat, int64_t, int>> {};

// Returns the weights that an Ops makes of the codes, as fp32.
std::vector<float> Expanded(Ops* ops, WeightFormat format, int64_t columns,
                            const WeightCodes& codes, int64_t elements, DType type) {
  const Shape shape = {elements / columns, columns};
  const Tensor weights = *Tensor::Allocate(CpuDevice(), type, shape);
  WeightExpansion a;
  a.format = format;
  a.codes = codes.codes.data();
  a.scales = codes.scales.data();
  a.weights = weights.view();
  EXPECT_TRUE(ops->ExpandWeights(a).ok());
  const Tensor wide = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  EXPECT_TRUE(ops->Convert(weights.view(), wide.view()).ok());
  return {wide.floats().begin(), wide.floats().end()};
}

TEST_P(ExpandWeightsTest, IsWhatTheCodesStandFor) {
  const auto [format, columns, threads] = GetParam();
  if (format == WeightFormat::kNF4 && columns % kNF4Block != 0) return;
  const int64_t rows = 40000 / columns;
  std::vector<float> values(rows * columns), want(values.size());
  RandomStream random(RandomKey(5, "weights"));
  for (float& value : values) value = 2 * random.NextFloat() - 1;
  const WeightCodes codes = *Quantized(format, columns, values);
  Expand(format, columns, codes, absl::MakeSpan(want));
  const auto ops = NewCpuOps(threads);
  const auto elements = static_cast<int64_t>(values.size());
  EXPECT_EQ(Expanded(ops.get(), format, columns, codes, elements, DType::kF32), want);
  const Tensor rounded = *Tensor::Allocate(CpuDevice(), DType::kBF16, {elements});
  ASSERT_TRUE(ops->Convert(ViewOf(want.data(), DType::kF32, {elements}), rounded.view()).ok());
  ASSERT_TRUE(ops->Convert(rounded.view(), ViewOf(want.data(), DType::kF32, {elements})).ok());
  EXPECT_EQ(Expanded(ops.get(), format, columns, codes, elements, DType::kBF16), want);
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpandWeightsTest,
                         testing::Combine(testing::Values(WeightFormat::kBF16, WeightFormat::kInt8,
                                                          WeightFormat::kNF4),
                                          testing::Values(1, 64, 67, 192), testing::Values(1, 3)));

}  // namespace
}  // namespace thinwire
