// Helpers for tests of GPU codec kernels: each call is made on the CPU and on the GPU under test
// (twin_testing.h), and errors, payloads and tensors must be equal to the last bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compress/cuda/twin_testing.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "tensor/copy_testing.h"
#include "tensor/tensor.h"

namespace thinwire {

constexpr DType kTensorTypes[] = {DType::kF32, DType::kBF16};

// Returns `values` (as many as `shape` has) in host memory, as fp32 or rounded to bf16.
inline Tensor HostTensor(const Shape& shape, DType dtype, const std::vector<float>& values) {
  Tensor x = *Tensor::Allocate(CpuDevice(), dtype, shape);
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (dtype == DType::kF32) {
      static_cast<float*>(x.data())[i] = values[i];
    } else {
      static_cast<uint16_t*>(x.data())[i] = ToBFloat(values[i]);
    }
  }
  return x;
}

// Returns nearly normally distributed values, which the seed determines.
inline std::vector<float> NormalValues(int64_t n, uint64_t seed = 1) {
  RandomStream random(RandomKey(seed, "values"));
  std::vector<float> values(n);
  for (float& value : values) {
    value = random.NextFloat() + random.NextFloat() + random.NextFloat() - 1.5f;
  }
  return values;
}

struct NamedValues {
  std::string name;
  std::vector<float> values;
};

// Returns finite tensors of n elements at which encoders have to be careful.
inline std::vector<NamedValues> FiniteCases(int64_t n) {
  const auto made = [n](const char* name, const std::function<float(int64_t)>& value) {
    NamedValues named{name, std::vector<float>(n)};
    for (int64_t i = 0; i < n; ++i) named.values[i] = value(i);
    return named;
  };
  const std::vector<float> normal = NormalValues(n);
  return {
      {"normal", normal},
      made("zeros", [](int64_t i) { return i % 3 == 0 ? -0.0f : 0.0f; }),
      made("constant", [](int64_t) { return 2.75f; }),
      made("negative constant", [](int64_t) { return -0.1f; }),
      made("ReLU", [&](int64_t i) { return std::fmax(normal[i], 0.0f); }),
      made("denormal", [&](int64_t i) { return normal[i] * 0x1p-130f; }),
      made("least", [](int64_t i) { return i % 2 == 0 ? 0x1p-149f : -0x1p-149f; }),
      made("tiny", [&](int64_t i) { return normal[i] * 1e-25f; }),
      made("large", [&](int64_t i) { return normal[i] * 1e37f; }),
      made("unlike sizes", [&](int64_t i) { return std::ldexp(normal[i], i % 200 - 100); }),
      made("ties", [](int64_t i) { return static_cast<float>(i % 17) * 0.5f; }),
  };
}

// Returns tensors with values for which some codecs return an error; n > 0.
inline std::vector<NamedValues> ExtremeCases(int64_t n) {
  std::vector<NamedValues> cases;
  const auto add = [&](const char* name, float first, float last) {
    NamedValues named{name, NormalValues(n)};
    named.values[n / 2] = first;
    named.values[n - 1] = last;
    cases.push_back(named);
  };
  const float most = std::numeric_limits<float>::max();
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add("largest", most, most);
  add("overflowing range", most, -most);
  add("infinity", infinity, 1);
  add("negative infinity last", 1, -infinity);
  add("NaN", nan, 2);
  add("negative NaN last", 3, -nan);
  add("two that are not finite", infinity, nan);
  return cases;
}

// Returns all cases for n >= 0; only normal values if n is too large for tests of every case.
inline std::vector<NamedValues> CasesOf(int64_t n) {
  if (n > 5000) return {{"normal", NormalValues(n)}};
  std::vector<NamedValues> cases = FiniteCases(n);
  if (n == 0) return cases;
  for (NamedValues& c : ExtremeCases(n)) cases.push_back(c);
  return cases;
}

// Support with a bit per element, in the memory of each twin.
class TwinSupport {
 public:
  explicit TwinSupport(const std::vector<bool>& set) {
    const int64_t n = static_cast<int64_t>(set.size());
    // A bf16 tensor of four elements per word holds the words.
    const Tensor words = *Tensor::Allocate(CpuDevice(), DType::kBF16, {(n + 63) / 64 * 4});
    if (n > 0) std::memset(words.data(), 0, words.bytes());
    auto* const bits = static_cast<uint64_t*>(words.data());
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (!set[i]) continue;
      bits[i / 64] |= uint64_t{1} << (i % 64);
      ++count;
    }
    host_ = words;
    device_ = On(GpuTwin().device, words);
    views_[0] = {bits, n, count};
    views_[1] = {static_cast<const uint64_t*>(device_.data()), n, count};
  }

  const SupportView& Of(const CodecKernels* kernels) const {
    return views_[kernels == CpuTwin().kernels ? 0 : 1];
  }
  int64_t count() const { return views_[0].count; }

 private:
  Tensor host_, device_;
  SupportView views_[2];
};

using EncodeCall =
    std::function<Error(CodecKernels* kernels, const TensorView& x, const PayloadBuffer& payload)>;
using DecodeCall =
    std::function<Error(CodecKernels* kernels, const PayloadView& payload, const TensorView& x)>;

// Random key of every message.
constexpr uint64_t kRandomKey = 0x1234567890ABCDEF;

// Return calls of the codec's own kernels. `support` and `warm_start` may be null and outlive the
// call that is returned.
inline EncodeCall EncodeBy(const CodecSpec& spec, const TwinSupport* support = nullptr,
                           const float* warm_start = nullptr) {
  return [=](CodecKernels* kernels, const TensorView& x, const PayloadBuffer& payload) {
    const SupportView* const supported = support == nullptr ? nullptr : &support->Of(kernels);
    return kernels->Encode(spec, x, {kRandomKey, supported, warm_start}, payload);
  };
}
inline DecodeCall DecodeBy(const CodecSpec& spec, const TwinSupport* support = nullptr) {
  return [=](CodecKernels* kernels, const PayloadView& payload, const TensorView& x) {
    KernelContext context;
    if (support != nullptr) context.support = &support->Of(kernels);
    return kernels->Decode(payload, spec, context, x);
  };
}

inline size_t Capacity(const CodecSpec& spec, const Shape& shape) {
  return CodecMaxPayloadBytes(spec, shape, DType::kF32);
}

struct Encoded {
  Error error;
  std::vector<uint8_t> payload;
};

// Encodes into `capacity` bytes; expects that bytes behind them stay as they were.
inline Encoded EncodeOn(const Twin& twin, const Tensor& host_x, size_t capacity,
                        const EncodeCall& encode) {
  constexpr size_t kGuard = 64;
  const Tensor x = On(twin.device, host_x);
  Encoded encoded;
  encoded.payload.assign(capacity + kGuard, 0xA5);
  size_t bytes = 0;
  encoded.error = encode(twin.kernels, x.view(), {encoded.payload.data(), capacity, &bytes});
  for (size_t i = capacity; i < capacity + kGuard; ++i) EXPECT_EQ(encoded.payload[i], 0xA5);
  EXPECT_LE(encoded.error.ok() ? bytes : 0, capacity);
  encoded.payload.resize(encoded.error.ok() ? bytes : 0);
  EXPECT_EQ(BytesOf(x), BytesOf(host_x)) << "the encoder changed its tensor";
  return encoded;
}

struct Decoded {
  Error error;
  std::vector<uint8_t> bytes;  // of the tensor; none after an error
};

// Decodes into a tensor filled with arbitrary bytes, so that an element left alone shows.
inline Decoded DecodeOn(const Twin& twin, const std::vector<uint8_t>& payload, const Shape& shape,
                        DType dtype, const DecodeCall& decode) {
  Tensor before = *Tensor::Allocate(CpuDevice(), dtype, shape);
  if (before.bytes() > 0) std::memset(before.data(), 0x3F, before.bytes());
  const Tensor x = On(twin.device, before);
  // A copy of exactly its size, so that the address sanitizer sees a byte read behind it.
  const std::vector<uint8_t> exact(payload.begin(), payload.end());
  Decoded decoded;
  decoded.error = decode(twin.kernels, {exact.data(), exact.size()}, x.view());
  EXPECT_TRUE(twin.device->Finish().ok());
  if (decoded.error.ok()) decoded.bytes = BytesOf(x);
  return decoded;
}

inline void ExpectSameError(const Error& expected, const Error& met) {
  EXPECT_EQ(expected.code, met.code);
  EXPECT_STREQ(expected.message, met.message);
}

// Expects both twins to give the same error, or the same bits, for one payload.
inline void ExpectSameDecoding(const std::vector<uint8_t>& payload, const Shape& shape, DType dtype,
                               const DecodeCall& decode) {
  const Decoded expected = DecodeOn(CpuTwin(), payload, shape, dtype, decode);
  const Decoded met = DecodeOn(GpuTwin(), payload, shape, dtype, decode);
  ExpectSameError(expected.error, met.error);
  EXPECT_TRUE(expected.bytes == met.bytes) << "the decoded tensors differ";
}

// Expects both twins to give the same payload, or error, for one tensor. Returns the CPU's.
inline Encoded ExpectSameEncoding(const Tensor& x, size_t capacity, const EncodeCall& encode) {
  const Encoded expected = EncodeOn(CpuTwin(), x, capacity, encode);
  const Encoded met = EncodeOn(GpuTwin(), x, capacity, encode);
  ExpectSameError(expected.error, met.error);
  EXPECT_TRUE(expected.payload == met.payload)
      << "payloads of " << expected.payload.size() << " and " << met.payload.size()
      << " bytes differ at byte "
      << std::mismatch(expected.payload.begin(), expected.payload.end(), met.payload.begin(),
                       met.payload.end())
                 .first -
             expected.payload.begin();
  return expected;
}

// Expects equal encoding and decoding. Returns the CPU's payload, empty after an error.
inline std::vector<uint8_t> ExpectTwins(const Tensor& x, size_t capacity, const EncodeCall& encode,
                                        const DecodeCall& decode) {
  const Encoded encoded = ExpectSameEncoding(x, capacity, encode);
  if (encoded.error.ok()) ExpectSameDecoding(encoded.payload, x.shape(), x.dtype(), decode);
  return encoded.payload;
}
inline std::vector<uint8_t> ExpectTwins(const CodecSpec& spec, const Shape& shape, DType dtype,
                                        const NamedValues& c,
                                        const TwinSupport* support = nullptr) {
  SCOPED_TRACE(
      absl::StrCat(spec.ToString(), " of ", c.name, " ", shape.ToString(), " ", Name(dtype)));
  return ExpectTwins(HostTensor(shape, dtype, c.values), Capacity(spec, shape),
                     EncodeBy(spec, support), DecodeBy(spec, support));
}
// Does the same for a tensor of each type; returns the CPU's payload of the fp32 one.
inline std::vector<uint8_t> ExpectTwins(const CodecSpec& spec, const Shape& shape,
                                        const NamedValues& c,
                                        const TwinSupport* support = nullptr) {
  ExpectTwins(spec, shape, DType::kBF16, c, support);
  return ExpectTwins(spec, shape, DType::kF32, c, support);
}

// Expects the same verdicts on the payload cut at each byte, and with one byte too many.
inline void ExpectSameVerdictsWhenCut(const std::vector<uint8_t>& payload, const Shape& shape,
                                      DType dtype, const DecodeCall& decode) {
  for (size_t bytes = 0; bytes <= payload.size() + 1; ++bytes) {
    SCOPED_TRACE(absl::StrCat("cut to ", bytes, " of ", payload.size(), " bytes"));
    std::vector<uint8_t> cut = payload;
    cut.resize(bytes);
    ExpectSameDecoding(cut, shape, dtype, decode);
  }
}

// Expects the same verdicts on payloads in which each byte in turn is overwritten by values that
// fields of a header dislike, and on payloads of random bytes.
inline void ExpectSameVerdictsWhenDamaged(const std::vector<uint8_t>& payload, const Shape& shape,
                                          DType dtype, const DecodeCall& decode) {
  for (size_t i = 0; i < payload.size(); ++i) {
    for (uint8_t value : {0x00, 0x01, 0x7C, 0x7F, 0x80, 0xFF}) {
      SCOPED_TRACE(absl::StrCat("byte ", i, " is ", value));
      std::vector<uint8_t> damaged = payload;
      damaged[i] = value;
      ExpectSameDecoding(damaged, shape, dtype, decode);
    }
  }
  RandomStream random(RandomKey(1, "damage"));
  for (int turn = 0; turn < 50; ++turn) {
    SCOPED_TRACE(absl::StrCat("random bytes, turn ", turn));
    std::vector<uint8_t> noise = payload;
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.Next());
    ExpectSameDecoding(noise, shape, dtype, decode);
  }
}

}  // namespace thinwire
