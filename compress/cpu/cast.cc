#include <algorithm>
#include <cassert>
#include <cstring>

#include "compress/bytes.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

// Returns fp16's pre-scale exponent for the largest finite value of x.
int16_t PreScaleOf(const TensorView& x, const Parts& parts) {
  const uint32_t largest = LargestOfParts(parts, [&](int64_t begin, int64_t end) {
    uint32_t of_part = 0;
    ReadBlocks(x, begin, end, [&](int64_t, size_t n, const float* values) {
      of_part = std::max(of_part, LargestFiniteMagnitude(values, n));
    });
    return of_part;
  });
  return PreScaleFor(FloatOf(largest));
}

void CopyBytes(const void* from, int64_t element_bytes, const Parts& parts, void* to) {
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    if (begin == end) return;
    std::memcpy(static_cast<uint8_t*>(to) + begin * element_bytes,
                static_cast<const uint8_t*>(from) + begin * element_bytes,
                (end - begin) * element_bytes);
  });
}

void Narrow(const float* from, size_t n, DType to, float scale, uint8_t* out) {
  switch (to) {
    case DType::kF32:
      std::memcpy(out, from, 4 * n);
      return;
    case DType::kBF16:
      NarrowToBFloat(from, n, out);
      return;
    case DType::kF16:
      NarrowToHalf(from, n, scale, out);
      return;
    case DType::kI32:
      assert(false);  // no codec's type
      return;
  }
}

void Widen(const uint8_t* from, size_t n, DType type, float scale, float* out) {
  switch (type) {
    case DType::kF32:
      CopyFloats(from, n, out);
      return;
    case DType::kBF16:
      WidenBFloat(from, n, out);
      return;
    case DType::kF16:
      WidenHalf(from, n, scale, out);
      return;
    case DType::kI32:
      assert(false);
      return;
  }
}

}  // namespace

Error CpuKernels::CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) {
  const int64_t elements = x.elements();
  *payload.bytes = CastPayloadBytes(wire, elements);
  RETURN_ERROR(CheckCapacity(Name(wire), payload.capacity, *payload.bytes));
  uint8_t* out = payload.data;
  const Parts parts(elements, threads_);
  if (wire == x.dtype) {
    CopyBytes(x.data, SizeOf(wire), parts, out);
    return Error{};
  }
  float scale = 1;
  if (wire == DType::kF16) {
    const int16_t exponent = PreScaleOf(x, parts);
    StoreAs<int16_t>(exponent, out);
    out += 2;
    scale = PowerOfTwo(exponent);
  }
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* values) {
      Narrow(values, n, wire, scale, out + i * SizeOf(wire));
    });
  });
  return Error{};
}

Error CpuKernels::CastFrom(const PayloadView& payload, DType wire, const TensorView& x) {
  const int64_t elements = x.elements();
  RETURN_ERROR(CheckPayloadBytes(Name(wire), payload.bytes, CastPayloadBytes(wire, elements)));
  const uint8_t* in = payload.data;
  const Parts parts(elements, threads_);
  if (wire == x.dtype) {
    CopyBytes(in, SizeOf(wire), parts, x.data);
    return Error{};
  }
  float scale = 1;
  if (wire == DType::kF16) {
    const int16_t exponent = LoadAs<int16_t>(in);
    RETURN_ERROR(CheckPreScale(Name(wire), exponent, kLeastPreScale, kMostPreScale));
    in += 2;
    scale = PowerOfTwo(-exponent);
  }
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    WriteBlocks(x, begin, end, [&](int64_t i, size_t n, float* to) {
      Widen(in + i * SizeOf(wire), n, wire, scale, to);
    });
  });
  return Error{};
}

Error CpuCastEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& /*context*/,
                    const PayloadBuffer& payload, int threads) {
  return CpuKernels(threads).CastTo(WireType(spec, x.dtype), x, payload);
}

Error CpuCastDecode(const PayloadView& payload, const CodecSpec& spec,
                    const KernelContext& /*context*/, const TensorView& x, int threads) {
  return CpuKernels(threads).CastFrom(payload, WireType(spec, x.dtype), x);
}

}  // namespace thinwire
