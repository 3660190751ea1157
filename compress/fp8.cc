#include "compress/fp8.h"

#include "base/status.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

class Fp8Codec final : public Codec {
 public:
  Fp8Codec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    return Fp8PayloadBytes(shape.elements());
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& /*context*/,
                                absl::Span<uint8_t> payload) const override {
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(
        kernels_->Fp8Encode(x.view(), spec().format, payload.data(), payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(kernels_->Fp8Decode(payload.data(), payload.size(), spec().format, x->view()));
  }

 private:
  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewFp8Codec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<Fp8Codec>(spec, kernels);
}

}  // namespace thinwire
