#include <algorithm>
#include <cstring>
#include <string>
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

// Axes of the last message that carried some.
class AxesCarry final : public Carry {
 public:
  AxesCarry(std::shared_ptr<const Axes> axes, uint64_t messages)
      : axes_(std::move(axes)), messages_(messages) {}

  const std::shared_ptr<const Axes>& axes() const { return axes_; }
  // Returns how many messages the sender has coded in these axes; 0 at the receiver.
  uint64_t messages() const { return messages_; }

  std::vector<StoredTensor> Parts() const override {
    const auto* const bytes = reinterpret_cast<const char*>(axes_->bytes().data());
    const auto* const messages = reinterpret_cast<const char*>(&messages_);
    const size_t size = axes_->bytes().size();
    return {{kAxesPart, "U8", {static_cast<int64_t>(size)}, {bytes, size}},
            {kMessagesPart, "U64", {1}, {messages, sizeof(messages_)}}};
  }

  static constexpr char kAxesPart[] = "axes", kMessagesPart[] = "axes_messages";

 private:
  const std::shared_ptr<const Axes> axes_;
  const uint64_t messages_;
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
    const auto* const kept = dynamic_cast<const AxesCarry*>(context.carry);
    std::shared_ptr<const Axes> axes = kept != nullptr ? kept->axes() : nullptr;
    const bool renews = context.next_carry != nullptr && x.elements() > 0 &&
                        (kept == nullptr || kept->messages() >= spec().rotation_every);
    if (renews) {
      auto bytes = Axes::Of(x);
      if (!bytes.ok()) return RefusalOf(x, context, bytes.status(), payload);
      ASSIGN_OR_RETURN(axes, Axes::Read(*bytes, ChannelsOf(x.shape()), x.device(), kernels_));
      std::copy(bytes->begin(), bytes->end(), &payload[1]);
    }
    payload[0] = renews ? kNewAxes : axes != nullptr ? kKeptAxes : kPlain;
    const size_t header = 1 + (renews ? axes->bytes().size() : 0);
    if (axes == nullptr) return Behind(header, inner_->Encode(x, context, payload.subspan(header)));
    RETURN_IF_ERROR(CheckAxes(*axes, x.shape()));
    ASSIGN_OR_RETURN(const Tensor rotated, Tensor::Allocate(x.device(), DType::kF32, x.shape()));
    RETURN_IF_ERROR(ToStatus(kernels_->Multiply(x.view(), axes->to().view(), rotated.view())));
    const auto bytes = inner_->Encode(rotated, context, payload.subspan(header));
    if (absl::IsOutOfRange(bytes.status())) return RefusalOf(x, context, bytes.status(), payload);
    if (context.next_carry != nullptr && bytes.ok()) {
      *context.next_carry = std::make_shared<AxesCarry>(axes, renews ? 1 : kept->messages() + 1);
    }
    return Behind(header, bytes);
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    RETURN_IF_ERROR(CheckChannels(x->shape()));
    RETURN_IF_ERROR(CheckForm(payload));
    if (payload[0] == kPlain) return inner_->Decode(payload.subspan(1), context, x);
    const auto* const kept = dynamic_cast<const AxesCarry*>(context.carry);
    std::shared_ptr<const Axes> axes = kept != nullptr ? kept->axes() : nullptr;
    size_t header = 1;
    if (payload[0] == kNewAxes) {
      const int64_t channels = ChannelsOf(x->shape());
      const auto bytes = payload.subspan(1, Axes::Bytes(channels));
      ASSIGN_OR_RETURN(axes, Axes::Read(bytes, channels, x->device(), kernels_));
      header += bytes.size();
    }
    if (axes == nullptr) {
      return absl::InvalidArgumentError(
          "rotation principal: a payload in the axes of a message before, which this end does not "
          "have");
    }
    RETURN_IF_ERROR(CheckAxes(*axes, x->shape()));
    ASSIGN_OR_RETURN(Tensor rotated, Tensor::Allocate(x->device(), DType::kF32, x->shape()));
    RETURN_IF_ERROR(inner_->Decode(payload.subspan(header), context, &rotated));
    if (payload[0] == kNewAxes && context.next_carry != nullptr) {
      *context.next_carry = std::make_shared<AxesCarry>(axes, /*messages=*/0);
    }
    return ToStatus(kernels_->Multiply(rotated.view(), axes->from().view(), x->view()));
  }

  absl::StatusOr<std::shared_ptr<const Carry>> ReadCarry(absl::Span<const StoredTensor> parts,
                                                         const Shape& sample,
                                                         Device* device) const override {
    const StoredTensor *bytes = nullptr, *messages = nullptr;
    for (const StoredTensor& part : parts) {
      if (part.name == AxesCarry::kAxesPart && part.dtype == "U8") bytes = &part;
      if (part.name == AxesCarry::kMessagesPart && part.dtype == "U64") messages = &part;
    }
    uint64_t count = 0;
    if (parts.size() != 2 || bytes == nullptr || messages == nullptr ||
        messages->data.size() != sizeof(count)) {
      return RefuseParts(parts);
    }
    std::memcpy(&count, messages->data.data(), sizeof(count));
    const auto* const data = reinterpret_cast<const uint8_t*>(bytes->data.data());
    ASSIGN_OR_RETURN(auto axes,
                     Axes::Read({data, bytes->data.size()}, ChannelsOf(sample), device, kernels_));
    return std::make_shared<AxesCarry>(std::move(axes), count);
  }

 private:
  static absl::Status CheckForm(absl::Span<const uint8_t> payload) {
    if (!payload.empty() && payload[0] <= kNewAxes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        payload.empty() ? "rotation principal: empty payload, want at least 1 byte"
                        : absl::StrCat("rotation principal: form ", payload[0], ", want 0 to 2"));
  }
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
