#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

// Placement of the rows of one operand.
enum class Lie { kTogether, kApart, kNowhere, kSomeNowhere, kOverX };

struct Case {
  int64_t count = 1, elements = 1;
  float a = 1, b = 1;
  Lie x = Lie::kTogether, y = Lie::kTogether, out = Lie::kTogether, also = Lie::kNowhere;
  DType x_type = DType::kF32, y_type = DType::kF32, out_type = DType::kF32, also_type = DType::kF32;
  bool zero_nonfinite = false;
};

std::string Spelled(const Case& c) {
  return absl::StrCat(c.count, " x ", c.elements, ", rows ", static_cast<int>(c.x), " ",
                      static_cast<int>(c.y), " ", static_cast<int>(c.out), " ",
                      static_cast<int>(c.also), ", types ", Name(c.x_type), " ", Name(c.y_type),
                      " ", Name(c.out_type), " ", Name(c.also_type));
}

// Operand on a device: its memory, and a view of it.
struct Operand {
  Operand(Device* device, const Case& c, Lie lie, DType dtype, const std::vector<float>& values)
      : memory(On(device, HostTensor({c.count, c.elements}, dtype, values))) {
    view.dtype = dtype;
    if (lie == Lie::kTogether) view.data = memory.data();
    if (lie == Lie::kNowhere || lie == Lie::kTogether) return;
    // In the opposite order.
    for (int64_t i = c.count - 1; i >= 0; --i) {
      const int64_t bytes = c.elements * static_cast<int64_t>(SizeOf(dtype));
      const bool is_somewhere = lie != Lie::kSomeNowhere || i % 3 != 1;
      each.push_back(is_somewhere ? static_cast<uint8_t*>(memory.data()) + i * bytes : nullptr);
    }
    view.each = each.data();
  }

  Tensor memory;
  std::vector<void*> each;
  RowsView view;
};

struct Results {
  std::vector<uint8_t> out, also;
};

Results Combined(const Twin& twin, const Case& c, const std::vector<float>& x_values,
                 const std::vector<float>& y_values) {
  const std::vector<float> before(c.count * c.elements, 0.375f);
  Operand x(twin.device, c, c.x, c.x_type, x_values), y(twin.device, c, c.y, c.y_type, y_values);
  Operand out(twin.device, c, c.out, c.out_type, before);
  Operand also(twin.device, c, c.also, c.also_type, before);
  RowSums sums;
  sums.count = c.count;
  sums.elements = c.elements;
  sums.a = c.a;
  sums.b = c.b;
  sums.x = x.view;
  sums.y = y.view;
  sums.out = c.out == Lie::kOverX ? x.view : out.view;
  sums.also = also.view;
  sums.zero_nonfinite = c.zero_nonfinite;
  const Error error = twin.kernels->CombineRows(sums);
  EXPECT_TRUE(error.ok()) << error.message;
  EXPECT_TRUE(twin.device->Finish().ok());
  return {BytesOf(c.out == Lie::kOverX ? x.memory : out.memory), BytesOf(also.memory)};
}

void ExpectEqualSums(const Case& c, const std::vector<float>& x, const std::vector<float>& y) {
  SCOPED_TRACE(Spelled(c));
  const Results expected = Combined(CpuTwin(), c, x, y), met = Combined(GpuTwin(), c, x, y);
  EXPECT_TRUE(expected.out == met.out) << "out differs";
  EXPECT_TRUE(expected.also == met.also) << "also differs";
}

void ExpectEqualSums(const Case& c) {
  const int64_t n = c.count * c.elements;
  ExpectEqualSums(c, NormalValues(n, 1), NormalValues(n, 2));
}

TEST(CudaCombineTest, OfEveryTypeAndSize) {
  const DType types[] = {DType::kF32, DType::kBF16};
  for (const int64_t elements : {1, 3, 4, 31, 1000, 4096, 4097, 9001}) {
    for (int i = 0; i < 16; ++i) {
      Case c;
      c.count = 2;
      c.elements = elements;
      c.a = 0.9f;
      c.b = -1.7f;
      c.x_type = types[i & 1];
      c.y_type = types[i >> 1 & 1];
      c.out_type = types[i >> 2 & 1];
      c.also_type = types[i >> 3];
      c.also = Lie::kTogether;
      ExpectEqualSums(c);
    }
  }
}

TEST(CudaCombineTest, RowsMayLieAnywhereOrNowhere) {
  const Lie lies[] = {Lie::kTogether, Lie::kApart, Lie::kNowhere, Lie::kSomeNowhere};
  for (const int64_t count : {1, 7, 64, 65, 130}) {
    for (const Lie x : lies) {
      for (const Lie out : {Lie::kTogether, Lie::kApart, Lie::kSomeNowhere, Lie::kOverX}) {
        if (out == Lie::kOverX && x == Lie::kNowhere) continue;
        Case c;
        c.count = count;
        c.elements = 37;
        c.b = -1;
        c.x = x;
        c.y = count % 2 == 0 ? Lie::kSomeNowhere : Lie::kApart;
        c.out = out;
        c.also = count % 2 == 0 ? Lie::kApart : Lie::kNowhere;
        ExpectEqualSums(c);
      }
    }
  }
}

TEST(CudaCombineTest, NothingIsNothing) {
  for (const auto& [count, elements] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}, {0, 0}}) {
    Case c;
    c.count = count;
    c.elements = elements;
    ExpectEqualSums(c);
  }
}

TEST(CudaCombineTest, AtTheEndsOfFp32) {
  constexpr int64_t kElements = 301;
  for (const bool zero_nonfinite : {false, true}) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Case c;
      c.elements = kElements;
      c.a = 2;
      c.b = 0.5f;
      c.out_type = type;
      c.zero_nonfinite = zero_nonfinite;
      c.also = Lie::kTogether;
      for (const NamedValues& named : FiniteCases(kElements)) {
        ExpectEqualSums(c, named.values, NormalValues(kElements, 3));
        std::vector<float> large = named.values;
        for (float& value : large) value = std::copysign(3e38f, value);
        ExpectEqualSums(c, large, named.values);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
