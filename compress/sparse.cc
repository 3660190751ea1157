#include "compress/sparse.h"

#include "base/status.h"
#include "compress/layout.h"
#include "compress/supported.h"

namespace thinwire {
namespace {

using EncodeKernel = Error (CodecKernels::*)(const TensorView& x, const CodecSpec& spec,
                                             const SparseContext& context, uint8_t* payload,
                                             size_t capacity, size_t* bytes);
using DecodeKernel = Error (CodecKernels::*)(const uint8_t* payload, size_t bytes,
                                             const CodecSpec& spec, const SparseContext& context,
                                             const TensorView& x);

class SparseCodec final : public Codec {
 public:
  SparseCodec(const CodecSpec& spec, CodecKernels* kernels, EncodeKernel encode,
              DecodeKernel decode)
      : Codec(spec), kernels_(kernels), encode_(encode), decode_(decode) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    const Scopes scopes = ScopesOf(shape, spec().scope, spec().group);
    return spec().kind == CodecKind::kRandomK ? RandomKMaxPayloadBytes(spec(), scopes)
                                              : EntriesMaxPayloadBytes(spec(), scopes);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    SupportView support;
    SparseContext sparse = {context.random_key, nullptr};
    if (spec().needs_support()) {
      ASSIGN_OR_RETURN(support, SupportOf(spec(), context, x.elements()));
      sparse.support = &support;
    }
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(
        (kernels_->*encode_)(x.view(), spec(), sparse, payload.data(), payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    SupportView support;
    SparseContext sparse;
    if (spec().needs_support()) {
      ASSIGN_OR_RETURN(support, SupportOf(spec(), context, x->elements()));
      sparse.support = &support;
    }
    return ToStatus(
        (kernels_->*decode_)(payload.data(), payload.size(), spec(), sparse, x->view()));
  }

 private:
  CodecKernels* kernels_;
  EncodeKernel encode_;
  DecodeKernel decode_;
};

}  // namespace

std::unique_ptr<Codec> NewSparseCodec(const CodecSpec& spec, CodecKernels* kernels) {
  switch (spec.kind) {
    case CodecKind::kThreshold:
      return std::make_unique<SparseCodec>(spec, kernels, &CodecKernels::ThresholdEncode,
                                           &CodecKernels::EntriesDecode);
    case CodecKind::kRandomK:
      return std::make_unique<SparseCodec>(spec, kernels, &CodecKernels::RandomKEncode,
                                           &CodecKernels::RandomKDecode);
    default:
      return std::make_unique<SparseCodec>(spec, kernels, &CodecKernels::TopKEncode,
                                           &CodecKernels::EntriesDecode);
  }
}

}  // namespace thinwire
