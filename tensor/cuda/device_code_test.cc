#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tensor/cuda/device.h"
#include "tensor/cuda/device_code_test_kernels.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

void Check(const Error& error) {
  if (!error.ok()) throw std::runtime_error(error.message);
}

class DeviceCodeTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    static CudaDevice* opened = nullptr;
    if (opened == nullptr) {
      const Error error = NewCudaDevice(0, &opened);
      if (error.code == static_cast<int>(absl::StatusCode::kUnavailable)) {
        GTEST_SKIP() << error.message;
      }
      Check(error);
    }
    device_ = opened;
  }
  void TearDown() override {
    for (void* const memory : allocated_) device_->Free(memory);
  }

  template <typename T>
  T* New(size_t n) {
    void* memory = nullptr;
    Check(device_->Allocate(n * sizeof(T), &memory));
    allocated_.push_back(memory);
    return static_cast<T*>(memory);
  }
  template <typename T>
  T* Sent(const std::vector<T>& values) {
    T* const memory = New<T>(values.size());
    Check(device_->CopyFromHost(memory, values.data(), values.size() * sizeof(T)));
    return memory;
  }
  template <typename T>
  std::vector<T> Read(const T* memory, size_t n) {
    std::vector<T> values(n);
    Check(device_->CopyToHost(values.data(), memory, n * sizeof(T)));
    return values;
  }

  CudaDevice* device_ = nullptr;
  std::vector<void*> allocated_;
};

uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Returns the nearer of the two neighbours, computed in doubles; in a tie, the even one.
uint16_t NearestBFloat(float x) {
  if (std::isnan(x)) return static_cast<uint16_t>(BitsOf(x) >> 16 | 0x40);
  const auto below = static_cast<uint16_t>(BitsOf(x) >> 16);
  if (std::isinf(x)) return below;
  // Infinity takes the place of the number that would follow the largest one.
  const double low = FloatOf(uint32_t{below} << 16);
  const double step = std::abs(low) < 0x1p-126
                          ? 0x1p-133
                          : std::ldexp(1.0, std::ilogb(FloatOf(uint32_t{below} << 16)) - 7);
  const double above_low = std::abs(static_cast<double>(x)) - std::abs(low);
  if (above_low > step / 2 || (above_low == step / 2 && (below & 1) != 0)) return below + 1;
  return below;
}

TEST_F(DeviceCodeTest, NarrowsToTheNearestBFloat) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x10000; high += high % 0x80 < 2 || high % 0x80 > 0x7D ? 1 : 61) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      x.push_back(FloatOf(high << 16 | low));
    }
  }
  const auto n = static_cast<int64_t>(x.size());
  uint16_t* const narrow = New<uint16_t>(n);
  float* const wide = New<float>(n);
  Check(ConvertAll(device_, Sent(x), n, narrow, wide));
  const auto narrow_met = Read(narrow, n);
  const auto wide_met = Read(wide, n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(narrow_met[i], NearestBFloat(x[i])) << std::hex << BitsOf(x[i]);
    ASSERT_EQ(BitsOf(wide_met[i]), uint32_t{narrow_met[i]} << 16) << std::hex << BitsOf(x[i]);
  }
}

// Small integers have exact products in any order.
TEST_F(DeviceCodeTest, AWarpMultipliesMatrices) {
  std::vector<uint16_t> a, b;
  std::vector<float> product(256), transposed(256);
  const auto number = [](int i) { return static_cast<float>(i * 37 % 23 - 11); };
  for (int i = 0; i < 256; ++i) {
    a.push_back(NearestBFloat(number(i)));
    b.push_back(NearestBFloat(number(i + 1000)));
    for (int k = 0; k < 16; ++k) {
      const float of_a = number(i / 16 * 16 + k);
      product[i] += of_a * number(k * 16 + i % 16 + 1000);
      transposed[i] += of_a * number(i % 16 * 16 + k + 1000);
    }
  }
  float* const product_met = New<float>(256);
  float* const transposed_met = New<float>(256);
  Check(MultiplyMatrices(device_, Sent(a), Sent(b), product_met, transposed_met));
  EXPECT_THAT(Read(product_met, 256), ElementsAreArray(product));
  EXPECT_THAT(Read(transposed_met, 256), ElementsAreArray(transposed));
}

TEST_F(DeviceCodeTest, NarrowsTwoToAWord) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x7F80; high += 61) {
    for (uint32_t low : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u})
      x.push_back(FloatOf(high << 16 | low));
  }
  const auto n = static_cast<int64_t>(x.size());
  uint32_t* const words = New<uint32_t>(n / 2);
  Check(NarrowTwos(device_, Sent(x), n, words));
  const auto met = Read(words, n / 2);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(met[i / 2] >> (16 * (i % 2)) & 0xFFFF, NearestBFloat(x[i])) << x[i];
  }
}

// Copies from and to every alignment, with every length that ends within a vector. What lies behind
// must stay.
template <typename T>
class VectorTest : public DeviceCodeTest {};
using Elements = testing::Types<float, uint16_t>;
TYPED_TEST_SUITE(VectorTest, Elements);

TYPED_TEST(VectorTest, CopiesAnyLengthAtAnyAlignment) {
  constexpr int64_t kElements = 64;
  std::vector<TypeParam> values(kElements);
  for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<TypeParam>(i + 1);
  const TypeParam* const from = this->Sent(values);
  const std::vector<TypeParam> before(kElements, TypeParam{99});
  TypeParam* const to = this->Sent(before);
  for (int width : {4, 8}) {
    for (int64_t from_offset = 0; from_offset < 9; ++from_offset) {
      for (int64_t to_offset : {0, 1, 2, 4, 8}) {
        for (int64_t n : {1, 3, 4, 5, 7, 8, 9, 17, 32}) {
          Check(this->device_->CopyFromHost(to, before.data(), kElements * sizeof(TypeParam)));
          Check(CopyByVectors(this->device_, width, from + from_offset, n, to + to_offset));
          auto expected = before;
          std::copy_n(values.begin() + from_offset, n, expected.begin() + to_offset);
          ASSERT_THAT(this->Read(to, kElements), ElementsAreArray(expected))
              << n << " elements from " << from_offset << " to " << to_offset << " by " << width;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, DeviceCodeTest, testing::Values(32, 64, 96, 256, 1024));

std::vector<float> Values(int threads) {
  std::vector<float> values(threads);
  for (int i = 0; i < threads; ++i) values[i] = std::sin(static_cast<float>(i) + 1.0f);
  return values;
}

// Sums in the order that reduce.cuh promises.
float SumAsATree(std::vector<float> values) {
  for (size_t distance = 16; distance > 0; distance /= 2) {
    for (size_t i = 0; i < distance; ++i) {
      if (i + distance < values.size()) values[i] += values[i + distance];
    }
  }
  return values[0];
}

TEST_P(DeviceCodeTest, EveryThreadGetsTheReductionOfTheBlock) {
  const int threads = GetParam();
  const std::vector<float> values = Values(threads);
  Reduced* const reduced = New<Reduced>(threads);
  Check(ReduceAll(device_, threads, Sent(values), reduced));

  std::vector<float> of_warps;
  for (int begin = 0; begin < threads; begin += 32) {
    of_warps.push_back(SumAsATree({values.begin() + begin, values.begin() + begin + 32}));
  }
  double double_sum = 0;
  int64_t long_least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < threads; ++i) {
    double_sum += values[i];
    long_least = std::min(long_least, static_cast<int64_t>(values[i] * 1e9f));
  }
  for (const Reduced& met : Read(reduced, threads)) {
    ASSERT_EQ(met.sum, SumAsATree(of_warps));
    ASSERT_NEAR(met.double_sum, double_sum, 1e-12);
    ASSERT_EQ(met.least, *std::min_element(values.begin(), values.end()));
    ASSERT_EQ(met.greatest, *std::max_element(values.begin(), values.end()));
    ASSERT_EQ(met.long_least, long_least);
    ASSERT_EQ(met.int_greatest, 0x80000001u);
  }
}

TEST_P(DeviceCodeTest, EachThreadGetsTheSumOfThoseBefore) {
  const int threads = GetParam();
  std::vector<uint32_t> values(threads);
  for (int i = 0; i < threads; ++i) values[i] = (i * 2654435761u) >> 20;
  Scanned* const scanned = New<Scanned>(threads);
  Check(ScanAll(device_, threads, Sent(values), scanned));
  const auto met = Read(scanned, threads);
  uint32_t total = 0;
  for (uint32_t value : values) total += value;
  uint32_t before = 0;
  for (int i = 0; i < threads; ++i) {
    ASSERT_EQ(met[i].before, before) << i;
    ASSERT_EQ(met[i].long_before, int64_t{before} << 20) << i;
    ASSERT_EQ(met[i].total, total);
    ASSERT_EQ(met[i].long_total, int64_t{total} << 20);
    before += values[i];
  }
}

}  // namespace
}  // namespace thinwire
