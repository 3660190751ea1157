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
    const PayloadBuffer buffer = {payload.data(), payload.size(), &bytes,
                                  context.payload_is_on_device};
    RETURN_IF_ERROR(ToStatus(kernels_->Encode(spec(), x.view(), kernel_context, buffer)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    SupportView support;
    ASSIGN_OR_RETURN(const KernelContext kernel_context,
                     KernelContextOf(spec(), context, x->elements(), &support));
    const PayloadView view = {payload.data(), payload.size(), context.payload_is_on_device};
    const absl::Status status = ToStatus(kernels_->Decode(view, spec(), kernel_context, x->view()));
    const bool is_refused = absl::IsInvalidArgument(status);
    return is_refused && view.is_on_device ? DecodeCopy(view, kernel_context, *x) : status;
  }

 private:
  // Decodes a refused payload of the device once more, on the host, which says what is wrong.
  absl::Status DecodeCopy(const PayloadView& payload, const KernelContext& context,
                          const Tensor& x) const {
    ASSIGN_OR_RETURN(const auto copy, Buffer::Allocate(x.device()->host(), payload.bytes));
    RETURN_IF_ERROR(ToStatus(x.device()->CopyToHost(copy->data(), payload.data, payload.bytes)));
    const auto* const data = static_cast<const uint8_t*>(copy->data());
    return ToStatus(kernels_->Decode({data, payload.bytes}, spec(), context, x.view()));
  }

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
