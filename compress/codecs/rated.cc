#include <utility>

#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/rates.h"
#include "compress/codecs/stack.h"

namespace thinwire {
namespace {

CodecSpec AtStep(CodecSpec spec, double step) {
  spec.rate = 0;
  spec.step = step;
  return spec;
}

class RatedCodec final : public Codec {
 public:
  // Encodes with the step that a search finds. `longest` is the codec of the least step, which
  // reads what any step wrote.
  RatedCodec(const CodecSpec& spec, std::unique_ptr<Codec> longest, CodecKernels* kernels)
      : Codec(spec), longest_(std::move(longest)), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return longest_->MaxPayloadBytes(shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    if (x.elements() == 0) return longest_->Encode(x, context, payload);
    StepSearch search(spec().rate, x.elements());
    double step = 0;
    size_t bytes = 0;
    do {
      step = search.step();
      ASSIGN_OR_RETURN(bytes, EncodeAtStep(step, x, context, payload));
    } while (search.Next(bytes));
    return step == search.best() ? bytes : EncodeAtStep(search.best(), x, context, payload);
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    return longest_->Decode(payload, context, x);
  }

 private:
  absl::StatusOr<size_t> EncodeAtStep(double step, const Tensor& x, const MessageContext& context,
                                      absl::Span<uint8_t> payload) const {
    ASSIGN_OR_RETURN(const auto codec, NewCodec(AtStep(spec(), step), kernels_));
    return codec->Encode(x, context, payload);
  }

  const std::unique_ptr<Codec> longest_;
  CodecKernels* const kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewRatedCodec(const CodecSpec& spec, CodecKernels* kernels) {
  ASSIGN_OR_RETURN(auto longest, NewCodec(AtStep(spec, kLeastStep), kernels));
  return std::make_unique<RatedCodec>(spec, std::move(longest), kernels);
}

}  // namespace thinwire
