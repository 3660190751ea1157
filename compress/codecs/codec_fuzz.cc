// Fuzz test: decodes any bytes as the payload of any codec. They must be refused, or decoded to a
// tensor that the codec could have sent. The first ten bytes choose codec, shape and support.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "compress/codec.h"
#include "compress/codec_table.h"
#include "compress/codecs/new_codec.h"
#include "compress/cpu/kernels.h"
#include "compress/layout.h"
#include "compress/sample_specs_testing.h"
#include "compress/support.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr size_t kChoiceBytes = 10;

struct Choice {
  CodecSpec spec;
  Shape shape;
  DType dtype = DType::kF32;
  uint8_t support = 0;  // which elements are supported
};

bool IsSparse(CodecKind kind) { return CodecRowOf(kind).has_positions; }

// Chooses the parameters that only topk, threshold and randomk have.
void ChooseSparse(const uint8_t* b, CodecSpec* spec) {
  constexpr Values kValues[] = {Values::kF32, Values::kF16, Values::kBF16};
  if (spec->kind == CodecKind::kTopK) spec->pad = static_cast<Pad>(b[3] / 32 % 2);
  const bool shared = spec->kind == CodecKind::kTopK && b[8] % 2;
  if (shared) spec->indices = Indices::kShared;
  if (spec->kind == CodecKind::kThreshold) {
    spec->scope = Scope::kTensor;
    spec->threshold = (1 + b[4]) / 64.0;
    spec->relative_to = static_cast<RelativeTo>(b[8] / 8 % 3);
  } else if (!shared) {
    spec->ratio = (1 + b[4]) / 256.0;
  }
  spec->values = b[8] / 128 ? Values::kUniform : kValues[b[2] % 3];
  if (b[8] / 64 == 1) {
    spec->values = Values::kMeans;
    spec->bits = 1 + b[2] % kMostMeansBits;
  }
  const bool is_coded = b[8] / 64 != 0;
  if (spec->scope != Scope::kGroup) spec->group = is_coded ? b[9] % 16 : 0;
  spec->unbiased = spec->kind == CodecKind::kRandomK && b[8] / 4 % 2;
}

// Chooses the parameters of the codecs that send all elements.
void ChooseDense(const uint8_t* b, CodecSpec* spec) {
  if (spec->kind == CodecKind::kFp8) spec->format = static_cast<Fp8Format>(b[2] % 2);
  if (spec->kind == CodecKind::kBlockwise8) spec->block = 1 + b[4];
  if (spec->kind == CodecKind::kEcsq) {
    spec->step = std::exp2(b[4] % 21 - 10);
    spec->rounding = static_cast<Rounding>(b[3] / 4 % 4);
    spec->reconstruction = static_cast<Reconstruction>(b[3] % 2);
    if (spec->scope == Scope::kChannel) spec->scope = Scope::kToken;
    if (b[0] / 20 % 2 && spec->support == Support::kAll) {
      spec->rotation = Rotation::kPrincipal;
      spec->rotation_every = 1;
    }
  }
  if (spec->kind == CodecKind::kUniform && b[0] / 20 % 2) {
    spec->rotation = Rotation::kHadamard;
    spec->rotation_block = 2u << (b[4] % 15);
  }
}

CodecSpec SampleOf(size_t number) {
  static const auto* const samples = new std::vector<CodecSpec>(SampleSpecsOfAll());
  return (*samples)[number % samples->size()];
}

// Bytes: codec, lossless stage and rotation, scope, bits or value type or rank or format, options,
// ratio or threshold or block or step, three extents, options of sparse codecs, and the support.
// ecsq has no number of its own among the codecs: it is bf16 with a fifth byte from 128 on. With a
// fourth byte from 128 on the first two are the number of a sample of all codecs, new ones too.
Choice ChoiceOf(const uint8_t* b) {
  Choice c;
  c.spec.kind = static_cast<CodecKind>(b[0] % static_cast<int>(CodecKind::kPlugin));
  if (c.spec.kind == CodecKind::kBf16 && b[4] >= 128) c.spec.kind = CodecKind::kEcsq;
  c.spec.scope = static_cast<Scope>(b[1] % 5);
  c.spec.group = c.spec.scope == Scope::kGroup ? 1 + b[1] / 5 : 0;
  c.spec.bits = 1 + b[2] % 8;
  c.spec.range = static_cast<Range>(b[3] % 3);
  c.spec.rounding = static_cast<Rounding>(b[3] / 4 % 2);
  c.spec.zero = static_cast<Zero>(b[3] / 8 % 2);
  c.spec.count = static_cast<Count>(b[3] / 16 % 2);
  if (c.spec.kind == CodecKind::kLowRank) {
    c.spec.rank = 1 + b[2] % 4;
    c.spec.per_sample = b[1] % 2 != 0;
  } else if (b[8] / 2 % 2) {
    c.spec.support = Support::kReceivedNonzero;
  }
  if (IsSparse(c.spec.kind)) {
    ChooseSparse(b, &c.spec);
  } else {
    ChooseDense(b, &c.spec);
  }
  c.spec.lossless = static_cast<Lossless>(b[0] / 10 % 3);
  if (b[3] / 128 != 0) c.spec = SampleOf(b[0] + 256 * b[1]);
  c.dtype = b[3] / 64 % 2 ? DType::kBF16 : DType::kF32;
  c.shape = {b[5] % 5, b[6] % 9, b[7] % 64};
  c.support = b[9];
  return c;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

Tensor NewTensor(const Choice& c) { return *Tensor::Allocate(CpuDevice(), c.dtype, c.shape); }

// Returns whether an element has support. About c.support / 256 of the elements have none: the
// upper byte of a multiplicative hash decides.
bool IsSupported(const Choice& c, int64_t element) {
  return (static_cast<uint32_t>(element + c.support) * 0x9E3779B9u >> 24) >= c.support;
}

SupportMap SupportOf(const Choice& c) {
  const Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, c.shape);
  for (int64_t i = 0; i < x.elements(); ++i) x.floats()[i] = IsSupported(c, i) ? 1.0f : 0.0f;
  return *SupportMap::Of(x, CpuCodecKernels());
}

std::vector<uint8_t> Encoded(const Codec& codec, const Tensor& x, const MessageContext& context) {
  std::vector<uint8_t> payload(codec.MaxPayloadBytes(x.shape(), x.dtype()));
  const auto bytes = codec.Encode(x, context, absl::MakeSpan(payload));
  Require(bytes.ok());
  payload.resize(*bytes);
  return payload;
}

// Requires that sending a tensor that topk decoded in fp32 again loses nothing: it has at most K
// entries per scope.
void RequireTheSameTensor(const Codec& codec, const Choice& c, const MessageContext& context,
                          const Tensor& x) {
  Tensor y = NewTensor(c);
  Require(codec.Decode(Encoded(codec, x, context), context, &y).ok());
  Require(std::equal(x.floats().begin(), x.floats().end(), y.floats().begin()));
}

// Requires that a tensor's payload is the one it was decoded from: positions that both ends know
// leave only one way to say the same. Frames can say it in many ways and are excluded.
void RequireTheSamePayload(const Codec& codec, MessageContext context, const Tensor& x,
                           absl::Span<const uint8_t> payload) {
  if (codec.spec().lossless != Lossless::kNone) return;
  if (codec.spec().kind == CodecKind::kRandomK) {
    std::memcpy(&context.random_key, payload.data(), sizeof(context.random_key));
  }
  Require(absl::MakeConstSpan(Encoded(codec, x, context)) == payload);
}

// Returns whether the codec carries neither NaN nor infinity.
bool IsFinite(const CodecSpec& spec) {
  if (spec.kind == CodecKind::kTopK && spec.indices == Indices::kShared) {
    return spec.values == Values::kUniform;
  }
  return !CodecRowOf(spec.kind).carries_nonfinite && spec.rotation != Rotation::kPrincipal;
}

void CheckDecoded(const Codec& codec, const Choice& c, const MessageContext& context,
                  const Tensor& x, absl::Span<const uint8_t> payload) {
  for (int64_t i = 0; i < x.elements(); ++i) {
    const float value = x.floats()[i];
    if (IsFinite(c.spec)) Require(std::isfinite(value));
    if (c.spec.needs_support() && !IsSupported(c, i)) Require(value == 0);
  }
  if (!IsSparse(c.spec.kind) || c.spec.values != Values::kF32) return;
  const bool shared = c.spec.indices == Indices::kShared;
  if (c.spec.kind == CodecKind::kTopK && !shared) RequireTheSameTensor(codec, c, context, x);
  if (shared || (c.spec.kind == CodecKind::kRandomK && !c.spec.unbiased)) {
    RequireTheSamePayload(codec, context, x, payload);
  }
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thinwire;  // NOLINT: the body below is the whole use
  if (size < kChoiceBytes) return 0;
  const Choice c = ChoiceOf(data);
  const auto codec = NewCodec(c.spec, CpuCodecKernels());
  if (!codec.ok()) return 0;
  const SupportMap support = SupportOf(c);
  MessageContext context;
  if (c.spec.needs_support()) context.support = &support;
  const absl::Span<const uint8_t> payload(data + kChoiceBytes, size - kChoiceBytes);
  Tensor x = NewTensor(c);
  if (!(*codec)->Decode(payload, context, &x).ok() || c.dtype != DType::kF32) return 0;
  CheckDecoded(**codec, c, context, x, payload);
  return 0;
}
