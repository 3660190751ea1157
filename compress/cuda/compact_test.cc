#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compress/cuda/sparse_testing.h"

namespace thinwire {
namespace {

constexpr int64_t kSizes[] = {0, 1, 31, 64, 65, 8192, 8193, 30011};

std::vector<float> Values(int64_t n) {
  std::vector<float> values = NormalValues(n);
  for (int64_t i = 0; i < n; i += 7) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
  for (int64_t i = 3; i < n; i += 101) values[i] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 4; i < n; i += 103) values[i] = -std::numeric_limits<float>::infinity();
  for (int64_t i = 5; i < n; i += 11) values[i] *= 0x1p-130f;
  return values;
}

// Returns what a call makes of `from` on a twin: it fills a tensor of `to_shape` over other bytes.
std::vector<uint8_t> Filled(
    const Twin& twin, const Tensor& from, const Shape& to_shape, DType to_type,
    const std::function<Error(CodecKernels*, const TensorView&, const TensorView&)>& fill) {
  Tensor before = *Tensor::Allocate(CpuDevice(), to_type, to_shape);
  if (before.bytes() > 0) std::memset(before.data(), 0x3F, before.bytes());
  const Tensor x = On(twin.device, from), to = On(twin.device, before);
  EXPECT_TRUE(fill(twin.kernels, x.view(), to.view()).ok());
  EXPECT_TRUE(twin.device->Finish().ok());
  return BytesOf(to);
}

TEST(CudaCompactTest, GathersAndSpreadsAsTheCpuDoes) {
  for (int64_t n : kSizes) {
    for (uint32_t one_in : {1, 2, 40}) {
      const TwinSupport support(SomeOf(n, one_in));
      const auto compact = [&](CodecKernels* kernels, const TensorView& x, const TensorView& to) {
        return kernels->Compact(x, support.Of(kernels), to);
      };
      const auto expand = [&](CodecKernels* kernels, const TensorView& x, const TensorView& to) {
        return kernels->Expand(x, support.Of(kernels), to);
      };
      for (DType from : kTensorTypes) {
        for (DType to : kTensorTypes) {
          SCOPED_TRACE(
              absl::StrCat(n, " elements, one in ", one_in, ", ", Name(from), " to ", Name(to)));
          const Tensor all = HostTensor({n}, from, Values(n));
          const Shape few = {support.count()};
          EXPECT_TRUE(Filled(CpuTwin(), all, few, to, compact) ==
                      Filled(GpuTwin(), all, few, to, compact));
          const Tensor some = HostTensor(few, from, Values(support.count()));
          EXPECT_TRUE(Filled(CpuTwin(), some, {n}, to, expand) ==
                      Filled(GpuTwin(), some, {n}, to, expand));
        }
      }
    }
  }
}

// Words of a bitmap, held by a bf16 tensor, over other bits.
struct Nonzeros {
  std::vector<uint8_t> words;
  int64_t count = -1;
};
Nonzeros FindOn(const Twin& twin, const Tensor& host_x) {
  Tensor before = *Tensor::Allocate(CpuDevice(), DType::kBF16, {(host_x.elements() + 63) / 64 * 4});
  if (before.bytes() > 0) std::memset(before.data(), 0xFF, before.bytes());
  const Tensor x = On(twin.device, host_x), words = On(twin.device, before);
  Nonzeros found;
  EXPECT_TRUE(
      twin.kernels->FindNonzeros(x.view(), static_cast<uint64_t*>(words.data()), &found.count)
          .ok());
  found.words = BytesOf(words);
  return found;
}

TEST(CudaNonzerosTest, FindsThoseOfTheCpu) {
  for (int64_t n : kSizes) {
    for (DType dtype : kTensorTypes) {
      SCOPED_TRACE(absl::StrCat(n, " ", Name(dtype)));
      const Tensor x = HostTensor({n}, dtype, Values(n));
      const Nonzeros expected = FindOn(CpuTwin(), x), met = FindOn(GpuTwin(), x);
      EXPECT_EQ(expected.count, met.count);
      EXPECT_TRUE(expected.words == met.words);
    }
  }
}

}  // namespace
}  // namespace thinwire
