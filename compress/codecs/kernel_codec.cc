#include "base/status.h"
#include "compress/codecs/stack.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

class KernelCodec final : public Codec {
 public:
  KernelCodec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return CodecMaxPayloadBytes(spec(), shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    SupportView support;
    ASSIGN_OR_RETURN(const KernelContext kernel_context,
                     KernelContextOf(spec(), context, x.elements(), &support));
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->Encode(spec(), x.view(), kernel_context,
                                              {payload.data(), payload.size(), &bytes})));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    SupportView support;
    ASSIGN_OR_RETURN(const KernelContext kernel_context,
                     KernelContextOf(spec(), context, x->elements(), &support));
    return ToStatus(
        kernels_->Decode({payload.data(), payload.size()}, spec(), kernel_context, x->view()));
  }

 private:
  CodecKernels* kernels_;
};

}  // namespace

absl::StatusOr<KernelContext> KernelContextOf(const CodecSpec& spec, const MessageContext& context,
                                              int64_t elements, SupportView* support) {
  KernelContext kernel_context;
  kernel_context.random_key = context.random_key;
  if (spec.needs_support()) {
    ASSIGN_OR_RETURN(*support, SupportOf(spec, context, elements));
    kernel_context.support = support;
  }
  return kernel_context;
}

std::unique_ptr<Codec> NewKernelCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<KernelCodec>(spec, kernels);
}

}  // namespace thinwire
