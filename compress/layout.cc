#include "compress/layout.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "compress/codec_table.h"

namespace thinwire {
namespace {

size_t BytesOfBits(uint64_t bits) { return static_cast<size_t>((bits + 7) / 8); }

size_t KeyBytes(const CodecSpec& spec) {
  return spec.rotation == Rotation::kNone ? 0 : kRotationKeyBytes;
}

}  // namespace

Shape ShapeOf(const TensorView& x) {
  Shape shape;
  for (int i = 0; i < x.rank; ++i) shape.Append(x.dims[i]);
  return shape;
}

Scopes ScopesOf(const Shape& shape, Scope scope, uint32_t group) {
  Scopes s;
  s.total = shape.elements();
  if (s.total == 0) return s;
  const int rank = shape.rank();
  const int64_t last = rank > 0 ? shape[rank - 1] : 1;
  switch (scope) {
    case Scope::kTensor:
      s.elements = s.total;
      break;
    case Scope::kSample:
      s.elements = rank > 0 ? s.total / shape[0] : 1;
      break;
    case Scope::kToken:
      s.elements = last;
      break;
    case Scope::kGroup:
      s.elements = std::min<int64_t>(group, s.total);
      break;
    case Scope::kChannel:
      s.elements = s.total / last;
      s.strided = true;
      break;
  }
  s.count = (s.total + s.elements - 1) / s.elements;
  return s;
}

Scopes ScopesOf(const TensorView& x, Scope scope, uint32_t group) {
  return ScopesOf(ShapeOf(x), scope, group);
}

size_t CodecMaxPayloadBytes(const CodecSpec& spec, const Shape& shape, DType dtype) {
  const CodecRow& row = CodecRowOf(spec.kind);
  assert(row.max_payload_bytes != nullptr);
  return row.max_payload_bytes(spec, shape, dtype);
}

int64_t NumKept(const CodecSpec& spec, int64_t n) {
  if (n == 0) return 0;
  double kept;
  if (spec.k > 0) {
    return static_cast<int64_t>(std::min<uint64_t>(spec.k, n));
  } else if (spec.count == Count::kPaper1) {
    kept = n - std::trunc(n * (1 - spec.ratio));
  } else {
    // ratio * n may lie one rounding above the intended whole number: 0.07 * 100 > 7.
    kept = std::ceil(spec.ratio * n * (1 - 0x1p-50));
  }
  return std::clamp<int64_t>(static_cast<int64_t>(kept), 1, n);
}

UniformGrid GridOf(const CodecSpec& spec) {
  const int32_t half = 1 << (spec.bits - 1);
  switch (spec.range) {
    case Range::kMinMax:
      return {2 * half - 1, 0, 2 * half - 1};
    case Range::kMaxAbs:
      return {2 * half - 2, half - 1, half - 1};
    case Range::kFixedPoint:
      return {2 * half - 1, half, half};
  }
  assert(false);
  return {};
}

size_t UniformHeaderBytes(const CodecSpec& spec, const Scopes& scopes) {
  switch (spec.range) {
    case Range::kMinMax:
      return 8 * scopes.count;
    case Range::kMaxAbs:
      return 4 * scopes.count;
    case Range::kFixedPoint:
      return 2 + 2 * scopes.count;
  }
  assert(false);
  return 0;
}

size_t UniformPayloadBytes(const CodecSpec& spec, const Scopes& scopes) {
  return KeyBytes(spec) + UniformHeaderBytes(spec, scopes) +
         BytesOfBits(uint64_t{spec.bits} * scopes.total);
}

size_t UniformMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes) {
  const size_t bytes = UniformPayloadBytes(spec, scopes);
  if (spec.range != Range::kFixedPoint) return bytes;
  return std::max(bytes, KeyBytes(spec) + kConstantTensorBytes);
}

size_t EcsqHeaderBytes(const CodecSpec& spec, const Scopes& scopes) {
  return 2 * scopes.count + (spec.rounding == Rounding::kDither ? kDitherKeyBytes : 0) +
         (spec.has_means() ? kMeans : 0);
}

// Codes without a byte are those of 127 steps or more. The squares of n elements add up to n
// squared root mean squares, so no more than this can be so large. The step may be off by its
// rounding to bf16.
int64_t MostEscapes(const CodecSpec& spec, int64_t elements) {
  constexpr double kRoundedStep = 1.01;
  const double least = 127 * spec.step;
  const double most = kRoundedStep * static_cast<double>(elements) / (least * least);
  return std::min(elements, static_cast<int64_t>(most));
}

size_t EcsqMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes) {
  return EcsqHeaderBytes(spec, scopes) + scopes.total + 4 * MostEscapes(spec, scopes.total);
}

uint32_t PackedIndexBits(int64_t n) {
  uint32_t bits = 0;
  while ((int64_t{1} << bits) < n) ++bits;
  return bits;
}

int64_t MostEntriesOfScope(const CodecSpec& spec, int64_t n) {
  return CodecRowOf(spec.kind).has(CodecRow::kKept) ? NumKept(spec, n) : n;
}

int64_t MostEntries(const CodecSpec& spec, const Scopes& scopes) {
  if (scopes.count == 0) return 0;
  return MostEntriesOfScope(spec, scopes.elements) * (scopes.count - 1) +
         MostEntriesOfScope(spec, scopes.of_last());
}

size_t EntriesMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes) {
  const uint64_t entries = MostEntries(spec, scopes);
  // The smallest coding is chosen, so neither of these two can be exceeded.
  const size_t index_bytes =
      std::min(BytesOfBits(scopes.total), BytesOfBits(entries * PackedIndexBits(scopes.total)));
  return kEntriesHeaderBytes + ValueBytes(spec, entries) + index_bytes;
}

size_t RandomKHeaderBytes(const CodecSpec& spec) {
  return kSeedBytes + (spec.values == Values::kF16 ? 2 : 0);
}

size_t RandomKMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes) {
  return RandomKHeaderBytes(spec) + ValueBytes(spec, NumKept(spec, scopes.elements) * scopes.count);
}

size_t ValueBytes(const CodecSpec& spec, int64_t n) {
  switch (spec.values) {
    case Values::kF32:
      return 4 * n;
    case Values::kBF16:
    case Values::kF16:
      return 2 * n;
    case Values::kUniform: {
      const CodecSpec uniform = CodecOfValues(spec);
      return UniformPayloadBytes(uniform, ScopesOf(Shape({n}), uniform.scope, uniform.group));
    }
    case Values::kMeans:
      return MeansHeaderBytes(spec, n) + BytesOfBits(uint64_t{spec.bits} * n);
  }
  assert(false);
  return 0;
}

size_t MeansHeaderBytes(const CodecSpec& spec, int64_t n) {
  if (n == 0) return 0;
  const int64_t groups = spec.group > 0 ? (n + spec.group - 1) / spec.group : 1;
  return 4 * static_cast<size_t>(groups) * CellsOf(spec.bits);
}

CodecSpec CodecOfValues(const CodecSpec& spec) {
  CodecSpec codec;
  switch (spec.values) {
    case Values::kF32:
      break;
    case Values::kBF16:
      codec.kind = CodecKind::kBf16;
      break;
    case Values::kF16:
      codec.kind = CodecKind::kFp16;
      break;
    case Values::kUniform:
      codec.kind = CodecKind::kUniform;
      codec.scope = spec.group > 0 ? Scope::kGroup : Scope::kTensor;
      codec.group = spec.group;
      codec.bits = spec.bits;
      codec.range = spec.range;
      codec.rounding = spec.rounding;
      codec.zero = spec.zero;
      break;
    case Values::kMeans:
      assert(false);
      break;
  }
  return codec;
}

DType WireType(const CodecSpec& spec, DType tensor_type) {
  switch (spec.kind) {
    case CodecKind::kFp16:
      return DType::kF16;
    case CodecKind::kBf16:
      return DType::kBF16;
    default:
      return tensor_type;
  }
}

size_t CastPayloadBytes(DType to, int64_t elements) {
  return (to == DType::kF16 ? 2 : 0) + elements * SizeOf(to);
}

size_t Fp8PayloadBytes(int64_t elements) { return kFp8HeaderBytes + elements; }

size_t Blockwise8PayloadBytes(uint32_t block, int64_t elements) {
  return 4 * ((elements + block - 1) / block) + elements;
}

}  // namespace thinwire
