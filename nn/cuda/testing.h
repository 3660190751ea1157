// Shared by the tests of kernels: makes the same calls on the CPU, whose results are the
// definition, and on the device under test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "nn/cpu/ops.h"
#include "nn/cuda/tested_ops_testing.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"

namespace thinwire {

using Floats = std::vector<float>;

// Returns numbers with this mean and standard deviation, as sums of uniform ones; equal for equal
// arguments.
inline Floats RandomFloats(int64_t n, uint64_t seed, float mean = 0, float deviation = 1) {
  RandomStream random(RandomKey(seed, "test"));
  Floats values(n);
  for (float& value : values) {
    float sum = -1.5f;
    for (int i = 0; i < 3; ++i) sum += random.NextFloat();
    value = mean + 2 * deviation * sum;  // a uniform number has variance 1 / 12
  }
  return values;
}

// A backend's Ops with its own tensors, outside of which nothing may be written.
class Side {
 public:
  // Tensors begin `misaligned` elements after aligned memory.
  Side(Device* device, Ops* ops, int64_t misaligned)
      : device_(device), ops_(ops), misaligned_(misaligned) {}
  Side(Side&&) = default;
  ~Side() {
    for (const auto& [memory, view] : tensors_) ExpectGuardsAround(view, memory);
  }

  Ops* operator->() const { return ops_; }
  Device* device() const { return device_; }

  // Returns a tensor of `values` rounded to `dtype`.
  TensorView Of(DType dtype, const Shape& shape, const Floats& values) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), shape.elements());
    const TensorView view = Allocate(dtype, shape);
    if (values.empty()) return view;
    const std::vector<char> bytes = Converted(values.data(), DType::kF32, values.size(), dtype);
    EXPECT_TRUE(device_->CopyFromHost(view.data, bytes.data(), bytes.size()).ok());
    return view;
  }
  // Returns a tensor of NaN, which remains where a kernel leaves something out.
  TensorView Unwritten(DType dtype, const Shape& shape) {
    return Of(dtype, shape, Floats(shape.elements(), std::nanf("")));
  }
  TensorView Ints(const Shape& shape, const std::vector<int32_t>& values) {
    const TensorView view = Allocate(DType::kI32, shape);
    EXPECT_TRUE(
        device_->CopyFromHost(view.data, values.data(), values.size() * sizeof(int32_t)).ok());
    return view;
  }
  std::vector<int32_t> ReadInts(const TensorView& view) const {
    std::vector<int32_t> values(view.elements());
    EXPECT_TRUE(
        device_->CopyToHost(values.data(), view.data, values.size() * sizeof(int32_t)).ok());
    return values;
  }
  float* Of(const Floats& values) {
    const Shape shape({static_cast<int64_t>(values.size())});
    return static_cast<float*>(Of(DType::kF32, shape, values).data);
  }
  float* Unwritten(int64_t n) { return Of(Floats(n, std::nanf(""))); }

  Floats Read(const TensorView& view) const {
    if (view.elements() == 0) return {};
    std::vector<char> bytes(view.elements() * SizeOf(view.dtype));
    EXPECT_TRUE(device_->CopyToHost(bytes.data(), view.data, bytes.size()).ok());
    const std::vector<char> wide =
        Converted(bytes.data(), view.dtype, view.elements(), DType::kF32);
    Floats values(view.elements());
    std::memcpy(values.data(), wide.data(), wide.size());
    return values;
  }
  Floats Read(float* values, int64_t n) const { return Read(ViewOf(values, DType::kF32, {n})); }

 private:
  TensorView Allocate(DType dtype, const Shape& shape) {
    const int64_t guarded = shape.elements() + misaligned_ + kGuardElements;
    const Tensor memory = *Tensor::Allocate(device_, dtype, {guarded});
    const std::vector<char> guards(memory.bytes(), kGuard);
    EXPECT_TRUE(device_->CopyFromHost(memory.data(), guards.data(), guards.size()).ok());
    char* const data = static_cast<char*>(memory.data()) + misaligned_ * SizeOf(dtype);
    tensors_.push_back({memory, ViewOf(data, dtype, shape)});
    return tensors_.back().second;
  }
  void ExpectGuardsAround(const TensorView& view, const Tensor& memory) const {
    std::vector<char> bytes(memory.bytes());
    EXPECT_TRUE(device_->CopyToHost(bytes.data(), memory.data(), bytes.size()).ok());
    const auto begin =
        bytes.begin() + (static_cast<char*>(view.data) - static_cast<char*>(memory.data()));
    const auto end = begin + view.elements() * static_cast<int64_t>(SizeOf(view.dtype));
    const auto is_guard = [](char byte) { return byte == kGuard; };
    EXPECT_TRUE(std::all_of(bytes.begin(), begin, is_guard)) << "written before a tensor";
    EXPECT_TRUE(std::all_of(end, bytes.end(), is_guard)) << "written behind a tensor";
  }
  static std::vector<char> Converted(const void* from, DType from_type, int64_t n, DType to_type) {
    std::vector<char> to(n * SizeOf(to_type));
    EXPECT_TRUE(
        NewCpuOps(1)->Convert(ViewOf(from, from_type, {n}), ViewOf(to.data(), to_type, {n})).ok());
    return to;
  }

  static constexpr char kGuard = 0x5A;
  static constexpr int64_t kGuardElements = 32;

  Device* const device_;
  Ops* const ops_;
  const int64_t misaligned_;
  std::vector<std::pair<Tensor, TensorView>> tensors_;
};

inline Side CpuSide() {
  static Ops* const ops = NewCpuOps(2).release();
  return Side(CpuDevice(), ops, 0);
}

inline Side DeviceSide(int64_t misaligned = 0) {
  static Ops* const ops = NewTestedOps().release();
  return Side(TestedDevice(), ops, misaligned);
}

// The results of a call, by name.
using Outputs = std::vector<std::pair<std::string, Floats>>;

// Accepts |got - want| <= relative |want| + absolute; NaN equals NaN.
struct Tolerance {
  double relative = 0, absolute = 0;
};
constexpr Tolerance kSameBits{};

inline bool IsNear(float want, float got, const Tolerance& tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (want == got) return std::signbit(want) == std::signbit(got) || tolerance.absolute > 0;
  return std::abs(static_cast<double>(got) - want) <=
         tolerance.relative * std::abs(static_cast<double>(want)) + tolerance.absolute;
}

inline void ExpectNear(const Outputs& want, const Outputs& got, const Tolerance& tolerance) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < want.size(); ++k) {
    const Floats &a = want[k].second, &b = got[k].second;
    ASSERT_EQ(a.size(), b.size()) << want[k].first;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(IsNear(a[i], b[i], tolerance))
          << want[k].first << "[" << i << "]: " << b[i] << ", want " << a[i];
    }
  }
}

// Expects the CPU's results from the device, whether or not memory allows wide accesses, and the
// same bits each time. run(&side) makes a call on one side and returns its results.
template <typename Run>
void ExpectTwins(const Tolerance& tolerance, const Run& run) {
  Side cpu = CpuSide(), device = DeviceSide(), again = DeviceSide(), misaligned = DeviceSide(1);
  const Outputs want = run(&cpu), got = run(&device);
  ExpectNear(want, got, tolerance);
  ExpectNear(got, run(&again), kSameBits);
  ExpectNear(want, run(&misaligned), tolerance);
}

// Returns the tolerance of results that are rounded to `type` at the end. Half a unit in the last
// place of bf16 is 2^-9, and values on either side of a tie differ by a unit.
inline Tolerance Rounded(DType type, double relative, double absolute) {
  return {type == DType::kBF16 ? 0x1p-7 : relative, absolute};
}

}  // namespace thinwire
