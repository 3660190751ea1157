#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/code_choice.h"
#include "compress/codecs/stack.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/frame.h"
#include "compress/entropy/zstd_frame.h"
#include "compress/support.h"

namespace thinwire {
namespace {

// First byte of a payload: kStored, or Lossless as a number.
constexpr uint8_t kStored = 0;

// Make and read frames, in this thread's memory until its next call. Frame is empty if it would not
// be shorter.
absl::StatusOr<absl::Span<const uint8_t>> Frame(Lossless lossless, absl::Span<const uint8_t> bytes,
                                                const CodesPlace& codes) {
  return lossless == Lossless::kEntropy ? EntropyFrame(bytes, codes) : ZstdFrame(bytes);
}
absl::StatusOr<absl::Span<const uint8_t>> ReadFrame(Lossless lossless,
                                                    absl::Span<const uint8_t> frame, size_t most) {
  return lossless == Lossless::kEntropy ? ReadEntropyFrame(frame, most)
                                        : ReadZstdFrame(frame, most);
}

CodesPlace CodesIn(const CodecSpec& spec, const Tensor& x, const MessageContext& context) {
  return CodesOf(spec, spec.needs_support() ? Shape{context.support->count()} : x.shape());
}

class LosslessCodec final : public Codec {
 public:
  LosslessCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner, EntropyKernels* kernels)
      : Codec(spec), inner_(std::move(inner)), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return 1 + inner_->MaxPayloadBytes(shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    if (payload.size() < MaxPayloadBytes(x.shape(), x.dtype())) {
      return absl::InvalidArgumentError(absl::StrCat("lossless: payload memory of ", payload.size(),
                                                     " bytes, want ",
                                                     MaxPayloadBytes(x.shape(), x.dtype())));
    }
    RETURN_IF_ERROR(CheckHost(x));
    if (kernels_ != nullptr) return EncodeOnDevice(x, context, payload);
    ASSIGN_OR_RETURN(const size_t bytes, inner_->Encode(x, context, payload.subspan(1)));
    const CodesPlace codes = CodesIn(spec(), x, context);
    if (ChoosesCodes() && codes.count > 0) {
      ChooseCodes(spec(), x.view(), codes, payload.subspan(1, bytes));
    }
    ASSIGN_OR_RETURN(const auto frame, Frame(spec().lossless, payload.subspan(1, bytes), codes));
    if (frame.empty()) {
      payload[0] = kStored;
      return 1 + bytes;
    }
    payload[0] = form();
    std::copy(frame.begin(), frame.end(), payload.begin() + 1);
    return 1 + frame.size();
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    if (kernels_ != nullptr && !payload.empty() && payload[0] == form()) {
      const absl::Status status = DecodeOnDevice(payload.subspan(1), context, x);
      if (!absl::IsInvalidArgument(status)) return status;  // else the host finds the reason
    }
    ASSIGN_OR_RETURN(const auto inner_payload, InnerPayload(payload, x->shape(), x->dtype()));
    return inner_->Decode(inner_payload, context, x);
  }

  absl::StatusOr<std::shared_ptr<const Carry>> ReadCarry(absl::Span<const StoredTensor> parts,
                                                         const Shape& sample,
                                                         Device* device) const override {
    return inner_->ReadCarry(parts, sample, device);
  }

 private:
  absl::StatusOr<size_t> EncodeOnDevice(const Tensor& x, const MessageContext& context,
                                        absl::Span<uint8_t> payload) const {
    SupportView support;
    ASSIGN_OR_RETURN(const KernelContext kernel_context,
                     KernelContextOf(inner_->spec(), context, x.elements(), &support));
    const CodesPlace codes = CodesIn(spec(), x, context);
    const CodesView view = {codes.begin, codes.count, codes.distances.data(),
                            codes.distances.size()};
    size_t bytes = 0;
    bool is_frame = false;
    const PayloadBuffer behind_form = {payload.data() + 1,
                                       inner_->MaxPayloadBytes(x.shape(), x.dtype()), &bytes};
    RETURN_IF_ERROR(ToStatus(kernels_->EncodeFrame(inner_->spec(), x.view(), kernel_context, view,
                                                   behind_form, &is_frame)));
    payload[0] = is_frame ? form() : kStored;
    return 1 + bytes;
  }

  absl::Status DecodeOnDevice(absl::Span<const uint8_t> frame, const MessageContext& context,
                              Tensor* x) const {
    SupportView support;
    ASSIGN_OR_RETURN(const KernelContext kernel_context,
                     KernelContextOf(inner_->spec(), context, x->elements(), &support));
    return ToStatus(kernels_->DecodeFrame({frame.data(), frame.size()},
                                          inner_->MaxPayloadBytes(x->shape(), x->dtype()),
                                          inner_->spec(), kernel_context, x->view()));
  }

  // Returns the inner codec's payload: a part of `payload`, or this thread's memory until its next
  // message.
  absl::StatusOr<absl::Span<const uint8_t>> InnerPayload(absl::Span<const uint8_t> payload,
                                                         const Shape& shape, DType dtype) const {
    if (payload.empty()) {
      return absl::InvalidArgumentError("lossless: empty payload, want at least 1 byte");
    }
    if (payload[0] == kStored) return payload.subspan(1);
    if (payload[0] != form()) {
      return absl::InvalidArgumentError(
          absl::StrCat("lossless: form ", payload[0], ", want 0 or ", form()));
    }
    return ReadFrame(spec().lossless, payload.subspan(1), inner_->MaxPayloadBytes(shape, dtype));
  }

  bool ChoosesCodes() const { return spec().rounding == Rounding::kRateDistortion; }
  absl::Status CheckHost(const Tensor& x) const {
    if (!ChoosesCodes() || x.device()->is_host()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "ecsq: rounding is rate_distortion of a tensor on a GPU, want one of nearest, dead_zone, "
        "stochastic, dither there");
  }

  uint8_t form() const { return static_cast<uint8_t>(spec().lossless); }

  std::unique_ptr<Codec> inner_;
  EntropyKernels* const kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewLosslessCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                        EntropyKernels* kernels) {
  return std::make_unique<LosslessCodec>(spec, std::move(inner), kernels);
}

}  // namespace thinwire
