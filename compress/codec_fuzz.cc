// Any bytes as the payload of any codec: refused, or decoded to a tensor that the codec could have
// sent. The first eight bytes choose codec and shape.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "compress/codec.h"
#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr size_t kChoiceBytes = 8;

struct Choice {
  CodecSpec spec;
  Shape shape;
  DType dtype = DType::kF32;
};

// Bytes: codec, scope, bits or value type or rank, options, ratio, and three extents.
Choice ChoiceOf(const uint8_t* b) {
  constexpr Values kValues[] = {Values::kF32, Values::kF16, Values::kBF16};
  Choice c;
  c.spec.kind = static_cast<CodecKind>(b[0] % 10);
  c.spec.scope = static_cast<Scope>(b[1] % 5);
  c.spec.group = c.spec.scope == Scope::kGroup ? 1 + b[1] / 5 : 0;
  c.spec.bits = 1 + b[2] % 8;
  c.spec.range = static_cast<Range>(b[3] % 3);
  c.spec.rounding = static_cast<Rounding>(b[3] / 4 % 2);
  c.spec.zero = static_cast<Zero>(b[3] / 8 % 2);
  if (c.spec.kind == CodecKind::kTopK) c.spec.ratio = (1 + b[4]) / 256.0;
  c.spec.values = kValues[b[2] % 3];
  c.spec.count = static_cast<Count>(b[3] / 16 % 2);
  c.spec.pad = static_cast<Pad>(b[3] / 32 % 2);
  if (c.spec.kind == CodecKind::kLowRank) c.spec.rank = 1 + b[2] % 4;
  c.spec.per_sample = b[1] % 2 != 0;
  c.dtype = b[3] / 64 % 2 ? DType::kBF16 : DType::kF32;
  c.shape = {b[5] % 5, b[6] % 9, b[7] % 64};
  return c;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

Tensor NewTensor(const Choice& c) { return *Tensor::Allocate(CpuDevice(), c.dtype, c.shape); }

// What topk decoded in fp32 has at most K entries per scope, so sending it again loses nothing.
void RequireTheSameAgain(const Codec& codec, const Choice& c, const Tensor& x) {
  std::vector<uint8_t> payload(codec.MaxPayloadBytes(c.shape, c.dtype));
  const auto bytes = codec.Encode(x, {}, absl::MakeSpan(payload));
  Require(bytes.ok());
  Tensor y = NewTensor(c);
  Require(codec.Decode(absl::MakeConstSpan(payload.data(), *bytes), {}, &y).ok());
  Require(std::equal(x.floats().begin(), x.floats().end(), y.floats().begin()));
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thinwire;  // NOLINT: the body below is the whole use
  if (size < kChoiceBytes) return 0;
  const Choice c = ChoiceOf(data);
  const auto codec = NewCodec(c.spec, CpuCodecKernels());
  if (!codec.ok()) return 0;
  Tensor x = NewTensor(c);
  if (!(*codec)->Decode({data + kChoiceBytes, size - kChoiceBytes}, {}, &x).ok()) return 0;
  const bool is_cast = c.spec.kind != CodecKind::kUniform && c.spec.kind != CodecKind::kTopK &&
                       c.spec.kind != CodecKind::kLowRank;
  if (is_cast || c.dtype != DType::kF32) return 0;
  for (float value : x.floats()) Require(std::isfinite(value));
  if (c.spec.kind == CodecKind::kTopK && c.spec.values == Values::kF32) {
    RequireTheSameAgain(**codec, c, x);
  }
  return 0;
}
