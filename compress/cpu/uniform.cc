#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/quantize.h"
#include "compress/cpu/range_header.h"
#include "compress/cpu/ranges.h"
#include "compress/cpu/segments.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Returns an encoder of blocks of strided scopes, with the parameters of one period laid out in
// arrays of the thread.
auto StridedEncoder(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header) {
  const int64_t period = PeriodOf(scopes);
  const UniformGrid grid = GridOf(spec);
  static thread_local Scratch<float> memory;
  float* const offset = memory.Get(3 * period);
  float* const lift = offset + period;
  float* const inverse = lift + period;
  for (int64_t i = 0; i < period; ++i) {
    const EncodeLine line = EncodeLineOf(ReadRange(spec, header, i % scopes.count), grid.divisor);
    offset[i] = line.offset;
    lift[i] = line.lift;
    inverse[i] = line.inverse;
  }
  return [=](const float* x, int64_t begin, size_t n, const uint32_t* random, uint8_t* codes) {
    ForEachSegment(begin, n, period, [&](size_t at, size_t length, int64_t, int64_t phase) {
      QuantizeEach(x + at, length, {offset + phase, lift + phase, inverse + phase}, grid.zero_code,
                   grid.max_code, random ? random + at : nullptr, codes + at);
    });
  };
}

// Returns an encoder of blocks of other scopes. It uses the arguments.
auto ContiguousEncoder(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header) {
  return [&spec, header, elements = scopes.elements, grid = GridOf(spec)](
             const float* x, int64_t begin, size_t n, const uint32_t* random, uint8_t* codes) {
    ForEachSegment(begin, n, elements, [&](size_t at, size_t length, int64_t scope, int64_t) {
      const EncodeLine line = EncodeLineOf(ReadRange(spec, header, scope), grid.divisor);
      Quantize(x + at, length, line, grid.zero_code, grid.max_code, random ? random + at : nullptr,
               codes + at);
    });
  };
}

template <typename Encoder>
void EncodeCodes(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                 const Encoder& encoder, int threads, uint8_t* out) {
  const bool by_chance = spec.rounding == Rounding::kStochastic;
  ForEachPart(Parts(x.elements(), threads), [&](int, int64_t begin, int64_t end) {
    alignas(64) uint32_t random[kBlock];
    alignas(64) uint8_t codes[kBlock];
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* values) {
      if (by_chance) PhiloxNumbers(random_key, i, n, random);
      encoder(values, i, n, by_chance ? random : nullptr, codes);
      PackCodes(codes, n, spec.bits, out + i / 8 * spec.bits);
    });
  });
}

auto StridedDecoder(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header) {
  const int64_t period = PeriodOf(scopes);
  const UniformGrid grid = GridOf(spec);
  static thread_local Scratch<float> memory;
  float* const offset = memory.Get(2 * period);
  float* const range = offset + period;
  for (int64_t i = 0; i < period; ++i) {
    const DecodeLine line = ReadRange(spec, header, i % scopes.count);
    offset[i] = line.offset;
    range[i] = line.range;
  }
  return [=](const uint8_t* codes, int64_t begin, size_t n, float* x) {
    const float reciprocal = 1.0f / static_cast<float>(grid.divisor);
    ForEachSegment(begin, n, period, [&](size_t at, size_t length, int64_t, int64_t phase) {
      DequantizeEach(codes + at, length, {offset + phase, range + phase}, grid.zero_code,
                     reciprocal, x + at);
    });
  };
}

auto ContiguousDecoder(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header) {
  return [&spec, header, elements = scopes.elements, grid = GridOf(spec)](
             const uint8_t* codes, int64_t begin, size_t n, float* x) {
    const float reciprocal = 1.0f / static_cast<float>(grid.divisor);
    ForEachSegment(begin, n, elements, [&](size_t at, size_t length, int64_t scope, int64_t) {
      Dequantize(codes + at, length, ReadRange(spec, header, scope), grid.zero_code, reciprocal,
                 x + at);
    });
  };
}

uint8_t LargestCode(const uint8_t* codes, size_t n) {
  uint8_t largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, codes[i]);
  return largest;
}

template <typename Decoder>
Error DecodeCodes(const uint8_t* in, const CodecSpec& spec, const Decoder& decoder, int threads,
                  const TensorView& x) {
  const uint32_t max_code = GridOf(spec).max_code;
  const bool has_unused_code = max_code != (1u << spec.bits) - 1;
  const Parts parts(x.elements(), threads);
  const uint32_t largest = LargestOfParts(parts, [&](int64_t begin, int64_t end) {
    alignas(64) uint8_t codes[kBlock];
    uint8_t of_part = 0;
    WriteBlocks(x, begin, end, [&](int64_t i, size_t n, float* to) {
      UnpackCodes(in + i / 8 * spec.bits, n, spec.bits, codes);
      if (has_unused_code) of_part = std::max(of_part, LargestCode(codes, n));
      decoder(codes, i, n, to);
    });
    return of_part;
  });
  if (largest <= max_code) return Error{};
  return MakeError(kRefused, "uniform: code %u, want at most %u", largest, max_code);
}

void Fill(const TensorView& x, float value, int threads) {
  ForEachPart(Parts(x.elements(), threads), [&](int, int64_t begin, int64_t end) {
    WriteBlocks(x, begin, end, [&](int64_t, size_t n, float* to) { std::fill(to, to + n, value); });
  });
}

Error DecodeConstant(const uint8_t* payload, const TensorView& x, int threads) {
  float value;
  const Error error = ReadConstant(payload, &value);
  if (error.ok()) Fill(x, value, threads);
  return error;
}

}  // namespace

Error CpuUniformEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                       const PayloadBuffer& payload, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  *payload.bytes = UniformPayloadBytes(spec, scopes);
  RETURN_ERROR(CheckCapacity("uniform", payload.capacity, UniformMaxPayloadBytes(spec, scopes)));
  bool constant = false;
  RETURN_ERROR(WriteRanges(x, spec, scopes, payload.data, &constant, threads));
  if (constant) {
    *payload.bytes = kConstantTensorBytes;
    return Error{};
  }
  uint8_t* codes = payload.data + UniformHeaderBytes(spec, scopes);
  if (scopes.strided) {
    EncodeCodes(x, spec, context.random_key, StridedEncoder(spec, scopes, payload.data), threads,
                codes);
  } else {
    EncodeCodes(x, spec, context.random_key, ContiguousEncoder(spec, scopes, payload.data), threads,
                codes);
  }
  return Error{};
}

Error CpuUniformDecode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& /*context*/, const TensorView& x, int threads) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  if (IsConstant(spec, scopes, payload.data, payload.bytes))
    return DecodeConstant(payload.data, x, threads);
  RETURN_ERROR(CheckPayloadBytes("uniform", payload.bytes, UniformPayloadBytes(spec, scopes)));
  RETURN_ERROR(CheckRanges(spec, scopes, payload.data));
  const uint8_t* codes = payload.data + UniformHeaderBytes(spec, scopes);
  if (scopes.count == 0) return Error{};
  RETURN_ERROR(CheckLastByte(payload.data[payload.bytes - 1], spec, scopes.total));
  if (scopes.strided) {
    return DecodeCodes(codes, spec, StridedDecoder(spec, scopes, payload.data), threads, x);
  }
  return DecodeCodes(codes, spec, ContiguousDecoder(spec, scopes, payload.data), threads, x);
}

}  // namespace thinwire
