#include "compress/uniform.h"

#include "base/status.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

class UniformCodec final : public Codec {
 public:
  UniformCodec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    return UniformMaxPayloadBytes(spec(), ScopesOf(shape, spec().scope, spec().group));
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->UniformEncode(x.view(), spec(), context.random_key,
                                                     payload.data(), payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(kernels_->UniformDecode(payload.data(), payload.size(), spec(), x->view()));
  }

 private:
  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewUniformCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<UniformCodec>(spec, kernels);
}

}  // namespace thinwire
