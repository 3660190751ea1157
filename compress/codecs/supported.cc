#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/host_view.h"
#include "compress/codecs/stack.h"
#include "compress/cpu/nonfinite.h"

namespace thinwire {
namespace {

class SupportedCodec final : public Codec {
 public:
  SupportedCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner, CodecKernels* kernels)
      : Codec(spec), inner_(std::move(inner)), kernels_(kernels) {}

  // No payload is longer than with all entries supported.
  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return inner_->MaxPayloadBytes({shape.elements()}, InnerType(dtype));
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    ASSIGN_OR_RETURN(const SupportView support, SupportOf(spec(), context, x.elements()));
    ASSIGN_OR_RETURN(const Tensor compact, CompactTensor(x, support));
    RETURN_IF_ERROR(ToStatus(kernels_->Compact(x.view(), support, compact.view())));
    const absl::StatusOr<size_t> bytes = inner_->Encode(compact, {context.random_key}, payload);
    if (!absl::IsOutOfRange(bytes.status())) return bytes;
    return Refusal(x, support, bytes.status());
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    ASSIGN_OR_RETURN(const SupportView support, SupportOf(spec(), context, x->elements()));
    ASSIGN_OR_RETURN(Tensor compact, CompactTensor(*x, support));
    RETURN_IF_ERROR(inner_->Decode(payload, {}, &compact));
    return ToStatus(kernels_->Expand(compact.view(), support, x->view()));
  }

 private:
  DType InnerType(DType dtype) const {
    return spec().indices == Indices::kShared ? DType::kF32 : dtype;
  }
  absl::StatusOr<Tensor> CompactTensor(const Tensor& x, const SupportView& support) const {
    return Tensor::Allocate(x.device(), InnerType(x.dtype()), {support.count});
  }

  // Returns the error for a refused tensor: `of_inner`, unless that was about a value. Then the
  // element is named anew, because the inner codec counts supported elements only.
  absl::Status Refusal(const Tensor& x, const SupportView& support,
                       const absl::Status& of_inner) const {
    std::vector<uint8_t> values;
    std::vector<uint64_t> words((x.elements() + 63) / 64);
    ASSIGN_OR_RETURN(const TensorView on_host, OnHost(x, &values));
    RETURN_IF_ERROR(
        ToStatus(x.device()->CopyToHost(words.data(), support.words, 8 * words.size())));
    const SupportView supported = {words.data(), support.elements, support.count};
    if (FirstNonFinite(on_host, &supported) == x.elements()) return of_inner;
    return ToStatus(NonFiniteError(Name(spec().kind), on_host, &supported));
  }

  std::unique_ptr<Codec> inner_;
  CodecKernels* kernels_;
};

}  // namespace

absl::StatusOr<SupportView> SupportOf(const CodecSpec& spec, const MessageContext& context,
                                      int64_t elements) {
  if (context.support == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(spec.kind), ": no support, want the received activation's non-zeros"));
  }
  if (context.support->elements() != elements) {
    return absl::InvalidArgumentError(absl::StrCat(Name(spec.kind), ": support of ",
                                                   context.support->elements(), " elements, want ",
                                                   elements));
  }
  return context.support->view();
}

std::unique_ptr<Codec> NewSupportedCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels) {
  return std::make_unique<SupportedCodec>(spec, std::move(inner), kernels);
}

}  // namespace thinwire
