#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/axes.h"
#include "compress/codecs/stack.h"

namespace thinwire {
namespace {

// First byte of a payload.
enum Form : uint8_t {
  kPlain = 0,     // not rotated
  kKeptAxes = 1,  // rotated into axes that both ends have
  kNewAxes = 2,   // rotated into the axes that follow
};

class PrincipalCodec final : public Codec {
 public:
  PrincipalCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner, CodecKernels* kernels)
      : Codec(spec), inner_(std::move(inner)), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    return 1 + Axes::Bytes(ChannelsOf(shape)) + inner_->MaxPayloadBytes(shape, DType::kF32);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const size_t capacity = MaxPayloadBytes(x.shape(), x.dtype());
    if (payload.size() < capacity) {
      return absl::InvalidArgumentError(absl::StrCat("rotation principal: payload memory of ",
                                                     payload.size(), " bytes, want ", capacity));
    }
    RETURN_IF_ERROR(CheckChannels(x.shape()));
    std::shared_ptr<const Axes> made;
    const Axes* axes = context.axes;
    if (context.takes_axes && x.elements() > 0) {
      auto bytes = Axes::Of(x);
      if (!bytes.ok()) return RefusalOf(x, context, bytes.status(), payload);
      ASSIGN_OR_RETURN(made, Axes::Read(*bytes, ChannelsOf(x.shape()), x.device(), kernels_));
      axes = made.get();
    }
    payload[0] = made != nullptr ? kNewAxes : axes != nullptr ? kKeptAxes : kPlain;
    if (made != nullptr) std::copy(made->bytes().begin(), made->bytes().end(), &payload[1]);
    const size_t header = 1 + (made != nullptr ? made->bytes().size() : 0);
    if (axes == nullptr) return Behind(header, inner_->Encode(x, context, payload.subspan(header)));
    RETURN_IF_ERROR(CheckAxes(*axes, x.shape()));
    ASSIGN_OR_RETURN(const Tensor rotated, Tensor::Allocate(x.device(), DType::kF32, x.shape()));
    RETURN_IF_ERROR(ToStatus(kernels_->Multiply(x.view(), axes->to().view(), rotated.view())));
    const auto bytes = inner_->Encode(rotated, context, payload.subspan(header));
    if (absl::IsOutOfRange(bytes.status())) return RefusalOf(x, context, bytes.status(), payload);
    return Behind(header, bytes);
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    RETURN_IF_ERROR(CheckChannels(x->shape()));
    ASSIGN_OR_RETURN(const std::shared_ptr<const Axes> met,
                     NewAxes(payload, x->shape(), x->device()));
    const Axes* const axes = met != nullptr ? met.get() : context.axes;
    if (payload[0] == kPlain) return inner_->Decode(payload.subspan(1), context, x);
    if (axes == nullptr) {
      return absl::InvalidArgumentError(
          "rotation principal: a payload in the axes of a message before, which this end does not "
          "have");
    }
    RETURN_IF_ERROR(CheckAxes(*axes, x->shape()));
    ASSIGN_OR_RETURN(Tensor rotated, Tensor::Allocate(x->device(), DType::kF32, x->shape()));
    const size_t header = 1 + (met != nullptr ? met->bytes().size() : 0);
    RETURN_IF_ERROR(inner_->Decode(payload.subspan(header), context, &rotated));
    return ToStatus(kernels_->Multiply(rotated.view(), axes->from().view(), x->view()));
  }

  absl::StatusOr<std::shared_ptr<const Axes>> NewAxes(absl::Span<const uint8_t> payload,
                                                      const Shape& shape,
                                                      Device* device) const override {
    if (payload.empty() || payload[0] > kNewAxes) {
      return absl::InvalidArgumentError(
          payload.empty() ? "rotation principal: empty payload, want at least 1 byte"
                          : absl::StrCat("rotation principal: form ", payload[0], ", want 0 to 2"));
    }
    if (payload[0] != kNewAxes) return std::shared_ptr<const Axes>();
    const int64_t channels = ChannelsOf(shape);
    return Axes::Read(payload.subspan(1, Axes::Bytes(channels)), channels, device, kernels_);
  }

 private:
  absl::Status CheckChannels(const Shape& shape) const {
    if (ChannelsOf(shape) <= Axes::kMostChannels) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("rotation principal: ", ChannelsOf(shape),
                                                   " channels, want at most ",
                                                   Axes::kMostChannels));
  }
  absl::Status CheckAxes(const Axes& axes, const Shape& shape) const {
    if (axes.channels() == ChannelsOf(shape)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("rotation principal: axes of ", axes.channels(),
                                                   " channels, want ", ChannelsOf(shape)));
  }

  static absl::StatusOr<size_t> Behind(size_t header, const absl::StatusOr<size_t>& bytes) {
    if (!bytes.ok()) return bytes;
    return header + *bytes;
  }

  // Returns the error for a refused tensor: preferably what the inner codec says of the tensor
  // itself, whose elements people know, otherwise `of_rotated`.
  absl::Status RefusalOf(const Tensor& x, const MessageContext& context,
                         const absl::Status& of_rotated, absl::Span<uint8_t> payload) const {
    const absl::Status of_x = inner_->Encode(x, context, payload).status();
    return of_x.ok() ? of_rotated : of_x;
  }

  std::unique_ptr<Codec> inner_;
  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewPrincipalCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels) {
  return std::make_unique<PrincipalCodec>(spec, std::move(inner), kernels);
}

}  // namespace thinwire
