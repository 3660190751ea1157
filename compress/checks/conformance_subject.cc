#include "compress/checks/conformance_subject.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr uint8_t kGuard = 0xA5;
constexpr size_t kGuardBytes = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<ConformanceSubject>> ConformanceSubject::New(const CodecSpec& spec,
                                                                            CodecKernels* kernels) {
  ASSIGN_OR_RETURN(std::unique_ptr<Codec> codec, NewCodec(spec, kernels));
  std::shared_ptr<ConformanceSubject> subject(new ConformanceSubject(std::move(codec), kernels));
  absl::Status refusal;
  for (const Shape& shape :
       {Shape{2, 5, 7}, Shape{9, 40}, Shape{2, 6, 5, 16}, Shape{3, 12, 12, 96}}) {
    ASSIGN_OR_RETURN(const TrialMessage m, subject->Random(shape, /*relu=*/false));
    const absl::Status status = subject->Encode(m).status();
    if (status.ok()) {
      subject->shapes_.push_back(shape);
    } else {
      refusal = status;
    }
  }
  if (subject->shapes_.empty()) return refusal;
  return subject;
}

absl::StatusOr<TrialMessage> ConformanceSubject::Make(
    const std::string& name, const Shape& shape, const std::function<float(int64_t)>& value) const {
  TrialMessage m;
  m.name = absl::StrCat(name, " ", shape.ToString());
  ASSIGN_OR_RETURN(m.x, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  for (int64_t i = 0; i < m.x.elements(); ++i) m.x.floats()[i] = value(i);
  if (spec().needs_support()) {
    ASSIGN_OR_RETURN(const Tensor activation, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
    for (int64_t i = 0; i < m.x.elements(); ++i) activation.floats()[i] = i % 3 == 1 ? 0.0f : 1.0f;
    ASSIGN_OR_RETURN(m.support, SupportMap::Of(activation, kernels_));
  }
  return m;
}

absl::StatusOr<TrialMessage> ConformanceSubject::Random(const Shape& shape, bool relu) const {
  RandomStream random(RandomKey(1, "conformance"));
  return Make(relu ? "ReLU" : "random", shape, [&](int64_t) {
    float sum = -2;
    for (int i = 0; i < 4; ++i) sum += random.NextFloat();
    return relu ? std::max(sum, 0.0f) : sum;
  });
}

MessageContext ConformanceSubject::ContextOf(const TrialMessage& m, uint64_t key) const {
  MessageContext context;
  context.random_key = key;
  if (spec().needs_support()) context.support = &m.support;
  return context;
}

absl::StatusOr<std::vector<uint8_t>> ConformanceSubject::Encode(const TrialMessage& m,
                                                                uint64_t key) const {
  const size_t bound = codec_->MaxPayloadBytes(m.x.shape(), m.x.dtype());
  std::vector<uint8_t> memory(bound + kGuardBytes, kGuard);
  MessageContext context = ContextOf(m, key);
  std::shared_ptr<const Carry> next;
  context.next_carry = &next;
  ASSIGN_OR_RETURN(const size_t bytes,
                   codec_->Encode(m.x, context, absl::MakeSpan(memory.data(), bound)));
  if (bytes > bound) {
    return absl::InternalError(
        absl::StrCat(m.name, ": payload of ", bytes, " bytes, the bound is ", bound));
  }
  if (std::count(memory.begin() + static_cast<ptrdiff_t>(bound), memory.end(), kGuard) !=
      kGuardBytes) {
    return absl::InternalError(absl::StrCat(m.name, ": bytes behind the bound were written"));
  }
  memory.resize(bytes);
  return memory;
}

absl::StatusOr<Tensor> ConformanceSubject::Decode(absl::Span<const uint8_t> payload,
                                                  const TrialMessage& m, uint8_t fill) const {
  // A copy of exactly its size, so that a memory checker sees reads behind it.
  const std::vector<uint8_t> own(payload.begin(), payload.end());
  ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(CpuDevice(), m.x.dtype(), m.x.shape()));
  if (y.bytes() > 0) std::memset(y.data(), fill, y.bytes());
  RETURN_IF_ERROR(codec_->Decode(own, ContextOf(m, /*key=*/0), &y));
  return y;
}

absl::StatusOr<Tensor> ConformanceSubject::DecodeOverAnything(absl::Span<const uint8_t> payload,
                                                              const TrialMessage& m) const {
  ASSIGN_OR_RETURN(const Tensor y, Decode(payload, m, 0xFF));
  ASSIGN_OR_RETURN(const Tensor z, Decode(payload, m, 0x3F));
  if (y.bytes() > 0 && std::memcmp(y.data(), z.data(), y.bytes()) != 0) {
    return absl::InternalError(absl::StrCat(
        m.name, ": what decode gives depends on what lay there before, or changes by itself"));
  }
  return y;
}

}  // namespace thinwire
