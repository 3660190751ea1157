#include "compress/blockwise8.h"

#include "base/status.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

class Blockwise8Codec final : public Codec {
 public:
  Blockwise8Codec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    return Blockwise8PayloadBytes(spec().block, shape.elements());
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& /*context*/,
                                absl::Span<uint8_t> payload) const override {
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->Blockwise8Encode(x.view(), spec().block, payload.data(),
                                                        payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(
        kernels_->Blockwise8Decode(payload.data(), payload.size(), spec().block, x->view()));
  }

 private:
  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewBlockwise8Codec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<Blockwise8Codec>(spec, kernels);
}

}  // namespace thinwire
