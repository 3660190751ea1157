#include "compress/cast.h"

#include "base/status.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

class CastCodec final : public Codec {
 public:
  CastCodec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return CastPayloadBytes(WireType(dtype), shape.elements());
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& /*context*/,
                                absl::Span<uint8_t> payload) const override {
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->CastEncode(x.view(), WireType(x.dtype()), payload.data(),
                                                  payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(
        kernels_->CastDecode(payload.data(), payload.size(), WireType(x->dtype()), x->view()));
  }

 private:
  DType WireType(DType tensor_type) const {
    switch (spec().kind) {
      case CodecKind::kFp16:
        return DType::kF16;
      case CodecKind::kBf16:
        return DType::kBF16;
      default:
        return tensor_type;
    }
  }

  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewCastCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<CastCodec>(spec, kernels);
}

}  // namespace thinwire
