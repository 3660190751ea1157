#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/bytes.h"
#include "compress/codecs/division.h"
#include "compress/codecs/host_view.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/stack.h"
#include "compress/half.h"

namespace thinwire {
namespace {

using Part = DividedPart;

constexpr size_t kChannelBytes = sizeof(uint32_t);

// First byte of a payload: which outliers, in its lower two bits, first rows in the next two, and
// above whether they are those of documents alone, as positions of samples are later ones.
enum Outliers : uint8_t { kNoOutliers = 0, kKeptOutliers = 1, kNewOutliers = 2 };
enum FirstRows : uint8_t { kNoFirstRows = 0, kF32FirstRows = 1, kBF16FirstRows = 2 };
struct Form {
  uint8_t outliers = kNoOutliers, first_rows = kNoFirstRows, of_documents = 0;

  static Form Of(uint8_t byte) {
    return {static_cast<uint8_t>(byte & 3), static_cast<uint8_t>(byte >> 2 & 3),
            static_cast<uint8_t>(byte >> 4)};
  }
  uint8_t byte() const {
    return static_cast<uint8_t>(outliers | first_rows << 2 | of_documents << 4);
  }
  DType type_of_first_rows() const {
    return first_rows == kBF16FirstRows ? DType::kBF16 : DType::kF32;
  }
};

CodecSpec Undivided(CodecSpec spec) {
  spec.outliers = 0;
  spec.first_position = FirstPosition::kCoded;
  return spec;
}

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("outliers: ", parts...));
}

// Outlier channels of the first message, and what the inner codec has left.
class OutliersCarry final : public Carry {
 public:
  OutliersCarry(std::vector<uint32_t> channels, std::shared_ptr<const Carry> inner)
      : channels_(std::move(channels)), inner_(std::move(inner)) {}

  const std::vector<uint32_t>& channels() const { return channels_; }
  const std::shared_ptr<const Carry>& inner() const { return inner_; }

  std::vector<StoredTensor> Parts() const override {
    std::vector<StoredTensor> parts;
    if (inner_ != nullptr) parts = inner_->Parts();
    const size_t count = channels_.size();
    const auto* const data = reinterpret_cast<const char*>(channels_.data());
    if (count > 0) {
      parts.push_back({kPart, "U32", {static_cast<int64_t>(count)}, {data, kChannelBytes * count}});
    }
    return parts;
  }

  static constexpr char kPart[] = "outliers";

 private:
  const std::vector<uint32_t> channels_;
  const std::shared_ptr<const Carry> inner_;
};

// Reads `count` channels of a tensor with `width`. InvalidArgument unless they ascend below it.
absl::StatusOr<std::vector<uint32_t>> ReadChannels(const uint8_t* bytes, int64_t count,
                                                   int64_t width) {
  std::vector<uint32_t> channels(count);
  for (int64_t i = 0; i < count; ++i) {
    channels[i] = LoadAs<uint32_t>(bytes + kChannelBytes * i);
    const bool ascends = i == 0 || channels[i] > channels[i - 1];
    if (ascends && channels[i] < width) continue;
    return Refuse("channel ", channels[i], ", want ascending ones below ", width);
  }
  return channels;
}

// Returns whether n numbers of type `dtype` are finite.
bool AreFinite(const uint8_t* bytes, int64_t n, DType dtype) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = dtype == DType::kF32 ? LoadAs<float>(bytes + 4 * i)
                                             : FromBFloat(LoadAs<uint16_t>(bytes + 2 * i));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Replaces what has been rounded to infinity by the largest finite numbers.
void ClampBFloats(int64_t n, uint8_t* bytes) {
  constexpr uint16_t kSign = 0x8000, kInfinity = 0x7F80;
  for (int64_t i = 0; i < n; ++i) {
    const auto value = LoadAs<uint16_t>(bytes + 2 * i);
    if ((value & ~kSign) != kInfinity) continue;
    StoreAs<uint16_t>((value & kSign) | (kInfinity - 1), bytes + 2 * i);
  }
}

class DividedCodec final : public Codec {
 public:
  DividedCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner, CodecKernels* kernels)
      : Codec(spec), inner_(std::move(inner)), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    const bool may_have_first_rows = spec().first_position == FirstPosition::kExact;
    size_t beside = 0;
    for (const bool has_first_rows : {false, may_have_first_rows}) {
      const Division division(shape, FirstRowsOf(shape, has_first_rows), AnyChannels(shape));
      beside = std::max(beside, BytesBeside(division, dtype));
    }
    return 1 + Division::ChannelBytes(spec(), shape) + beside +
           inner_->MaxPayloadBytes(shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const auto documents = static_cast<int64_t>(context.document_rows.size());
    const size_t capacity =
        MaxPayloadBytes(x.shape(), x.dtype()) + MaxDocumentBytes(spec(), x.shape(), documents);
    if (payload.size() < capacity) {
      return Refuse("payload memory of ", payload.size(), " bytes, want ", capacity);
    }
    const absl::StatusOr<size_t> bytes = EncodeParts(x, context, payload);
    if (!absl::IsOutOfRange(bytes.status())) return bytes;
    return NonFiniteIn(x, Name(spec().kind), bytes.status());
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                      Tensor* x) const override {
    ASSIGN_OR_RETURN(const Form form, ReadForm(payload, x->shape(), context));
    const OutliersCarry* const kept = KeptIn(context);
    size_t at = 1;
    ASSIGN_OR_RETURN(std::vector<uint32_t> channels,
                     ChannelsIn(payload, form, kept, x->shape(), &at));
    const Division division(x->shape(), FirstRowsIn(form, x->shape(), context), channels);
    const size_t beside = BytesBeside(division, form.type_of_first_rows());
    if (payload.size() < at + beside) {
      return Refuse("payload of ", payload.size(), " bytes, want at least ", at + beside);
    }
    MessageContext inner_context = context;
    std::shared_ptr<const Carry> next = EnterInner(kept, &inner_context);
    if (inner_context.next_carry != nullptr) inner_context.next_carry = &next;
    RETURN_IF_ERROR(inner_->Decode(payload.subspan(at + beside), inner_context, x));
    RETURN_IF_ERROR(KeepRest(division, *x, *x));
    const DType first_rows = form.type_of_first_rows();
    const size_t of_first = division.Count(Part::kFirstRows) * SizeOf(first_rows);
    RETURN_IF_ERROR(AddPart(division, Part::kFirstRows, first_rows, payload.subspan(at), *x));
    RETURN_IF_ERROR(
        AddPart(division, Part::kOutliers, DType::kBF16, payload.subspan(at + of_first), *x));
    Keep(context, kept, Chosen(division, kept, std::move(channels)), std::move(next));
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Carry>> ReadCarry(absl::Span<const StoredTensor> parts,
                                                         const Shape& sample,
                                                         Device* device) const override {
    const size_t count = Division::NumOutliers(spec(), sample);
    std::vector<uint32_t> channels;
    std::vector<StoredTensor> of_inner;
    for (const StoredTensor& part : parts) {
      if (part.name != OutliersCarry::kPart) {
        of_inner.push_back(part);
      } else if (part.dtype == "U32" && part.data.size() == kChannelBytes * count) {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(part.data.data());
        ASSIGN_OR_RETURN(channels, ReadChannels(bytes, count, sample[sample.rank() - 1]));
      }
    }
    const size_t parts_read = of_inner.size() + (channels.empty() ? 0 : 1);
    if ((channels.size() != count && !channels.empty()) || parts_read != parts.size()) {
      return RefuseParts(parts);
    }
    std::shared_ptr<const Carry> inner;
    if (!of_inner.empty()) {
      ASSIGN_OR_RETURN(inner, inner_->ReadCarry(of_inner, sample, device));
    }
    return std::make_shared<OutliersCarry>(std::move(channels), std::move(inner));
  }

 private:
  // Returns channels in a number that tensors of `shape` have, for sizes.
  std::vector<uint32_t> AnyChannels(const Shape& shape) const {
    return std::vector<uint32_t>(Division::NumOutliers(spec(), shape));
  }
  static size_t BytesBeside(const Division& division, DType first_rows) {
    return division.Count(Part::kFirstRows) * SizeOf(first_rows) +
           division.Count(Part::kOutliers) * SizeOf(DType::kBF16);
  }

  // Returns the carry that a message has, or null.
  static const OutliersCarry* KeptIn(const MessageContext& context) {
    return dynamic_cast<const OutliersCarry*>(context.carry);
  }
  // Sets the inner codec's carry, and returns what it keeps if the message leaves it nothing.
  static std::shared_ptr<const Carry> EnterInner(const OutliersCarry* kept,
                                                 MessageContext* context) {
    std::shared_ptr<const Carry> inner = kept == nullptr ? nullptr : kept->inner();
    context->carry = inner.get();
    return inner;
  }
  // Returns the channels to keep: a message of first rows alone has nothing to choose them by.
  static std::vector<uint32_t> Chosen(const Division& division, const OutliersCarry* kept,
                                      std::vector<uint32_t> channels) {
    if (division.Count(Part::kOutliers) > 0) return channels;
    return kept == nullptr ? std::vector<uint32_t>() : kept->channels();
  }
  static void Keep(const MessageContext& context, const OutliersCarry* kept,
                   std::vector<uint32_t> channels, std::shared_ptr<const Carry> inner) {
    if (context.next_carry == nullptr || (channels.empty() && inner == nullptr)) return;
    if (kept != nullptr && kept->channels() == channels && kept->inner() == inner) return;
    *context.next_carry = std::make_shared<OutliersCarry>(std::move(channels), std::move(inner));
  }

  // Parts of a message, as its sender chooses them.
  struct Choice {
    Form form;
    std::vector<uint32_t> first_rows, channels;
  };
  absl::StatusOr<Choice> Choose(const Tensor& x, const MessageContext& context,
                                const OutliersCarry* kept) const {
    Choice choice;
    if (spec().first_position == FirstPosition::kExact) {
      choice.first_rows = FirstRowsOf(x.shape(), context.begins_sequences, context.document_rows);
    }
    if (!choice.first_rows.empty()) {
      choice.form.first_rows = x.dtype() == DType::kF32 ? kF32FirstRows : kBF16FirstRows;
      choice.form.of_documents = context.begins_sequences ? 0 : 1;
    }
    const int64_t count = Division::NumOutliers(spec(), x.shape());
    if (count == 0) return choice;
    if (kept != nullptr && !kept->channels().empty()) {
      choice.form.outliers = kKeptOutliers;
      choice.channels = kept->channels();
      RETURN_IF_ERROR(CheckKept(choice.channels, x.shape()));
    } else {
      choice.form.outliers = kNewOutliers;
      ASSIGN_OR_RETURN(choice.channels, LargestChannels(x, count, choice.first_rows));
    }
    return choice;
  }

  // Writes all that stands before the inner codec's payload, and returns its bytes.
  absl::StatusOr<size_t> PutBeside(const Choice& choice, const Division& division, const Tensor& x,
                                   absl::Span<uint8_t> payload) const {
    payload[0] = choice.form.byte();
    size_t at = 1;
    if (choice.form.outliers == kNewOutliers) {
      for (const uint32_t channel : choice.channels) {
        StoreAs(channel, &payload[at]);
        at += kChannelBytes;
      }
    }
    ASSIGN_OR_RETURN(const size_t of_first,
                     PutPart(division, Part::kFirstRows, x.dtype(), x, payload.subspan(at)));
    at += of_first;
    ASSIGN_OR_RETURN(const size_t of_outliers,
                     PutPart(division, Part::kOutliers, DType::kBF16, x, payload.subspan(at)));
    ClampBFloats(division.Count(Part::kOutliers), payload.data() + at);
    return at + of_outliers;
  }

  absl::StatusOr<size_t> EncodeParts(const Tensor& x, const MessageContext& context,
                                     absl::Span<uint8_t> payload) const {
    const OutliersCarry* const kept = KeptIn(context);
    ASSIGN_OR_RETURN(Choice choice, Choose(x, context, kept));
    const Division division(x.shape(), choice.first_rows, choice.channels);
    ASSIGN_OR_RETURN(const size_t at, PutBeside(choice, division, x, payload));
    Tensor rest = x;
    if (!division.is_whole()) {
      ASSIGN_OR_RETURN(rest, Tensor::Allocate(x.device(), x.dtype(), x.shape()));
      RETURN_IF_ERROR(KeepRest(division, x, rest));
    }
    MessageContext inner_context = context;
    std::shared_ptr<const Carry> next = EnterInner(kept, &inner_context);
    if (inner_context.next_carry != nullptr) inner_context.next_carry = &next;
    ASSIGN_OR_RETURN(const size_t of_rest, EncodeRest(rest, inner_context, at, payload));
    Keep(context, kept, Chosen(division, kept, std::move(choice.channels)), std::move(next));
    return at + of_rest;
  }

  // Encodes `rest` behind the first `at` bytes. With a rate it gets the bits that these leave.
  absl::StatusOr<size_t> EncodeRest(const Tensor& rest, const MessageContext& context, size_t at,
                                    absl::Span<uint8_t> payload) const {
    if (spec().rate == 0 || rest.elements() == 0) {
      return inner_->Encode(rest, context, payload.subspan(at));
    }
    const double taken = 8 * static_cast<double>(at) / static_cast<double>(rest.elements());
    CodecSpec left = inner_->spec();
    left.rate = std::max(spec().rate - taken, kLeastRate);
    ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec, NewCodec(left, kernels_));
    return codec->Encode(rest, context, payload.subspan(at));
  }

  // Sets `to`, which may be x, to the rest of x and to zeros elsewhere.
  absl::Status KeepRest(const Division& division, const Tensor& x, const Tensor& to) const {
    if (division.is_whole()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const Tensor rest, Compacted(division, Part::kRest, x));
    return Spread(division, Part::kRest, rest, to);
  }

  // Returns the elements of a part of x, flat and of its type.
  absl::StatusOr<Tensor> Compacted(const Division& division, Part part, const Tensor& x) const {
    ASSIGN_OR_RETURN(const auto bits, division.BitsOf(part, x.device()));
    ASSIGN_OR_RETURN(Tensor compact,
                     Tensor::Allocate(x.device(), x.dtype(), {division.Count(part)}));
    RETURN_IF_ERROR(ToStatus(
        kernels_->Compact(x.view(), ViewOf(*bits, x.elements(), compact), compact.view())));
    return compact;
  }

  // Writes a part as numbers of type `wire` and returns their bytes. OutOfRange if it holds NaN or
  // infinity.
  absl::StatusOr<size_t> PutPart(const Division& division, Part part, DType wire, const Tensor& x,
                                 absl::Span<uint8_t> payload) const {
    if (division.Count(part) == 0) return 0;
    ASSIGN_OR_RETURN(const Tensor compact, Compacted(division, part, x));
    CodecKernels::Sums sums;
    RETURN_IF_ERROR(ToStatus(kernels_->Compare(compact.view(), compact.view(), &sums)));
    if (!std::isfinite(sums.x)) return absl::OutOfRangeError("outliers of NaN or infinity");
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->CastTo(
        wire, compact.view(), {payload.data(), payload.size(), &bytes, /*is_on_device=*/false})));
    return bytes;
  }

  // Adds a part, whose numbers of type `wire` `payload` begins with, to x, which has zeros there.
  absl::Status AddPart(const Division& division, Part part, DType wire,
                       absl::Span<const uint8_t> payload, const Tensor& x) const {
    const int64_t count = division.Count(part);
    if (count == 0) return absl::OkStatus();
    if (!AreFinite(payload.data(), count, wire)) {
      return Refuse("NaN or infinity in the payload, want finite numbers");
    }
    ASSIGN_OR_RETURN(const Tensor compact, Tensor::Allocate(x.device(), wire, {count}));
    ASSIGN_OR_RETURN(const Tensor spread, Tensor::Allocate(x.device(), x.dtype(), x.shape()));
    const PayloadView numbers = {payload.data(), count * SizeOf(wire), /*is_on_device=*/false};
    RETURN_IF_ERROR(ToStatus(kernels_->CastFrom(numbers, wire, compact.view())));
    RETURN_IF_ERROR(Spread(division, part, compact, spread));
    return ToStatus(kernels_->Combine(1, x.view(), 1, spread.view(), x.view()));
  }

  // Puts the elements of a part at their places in x, and zeros elsewhere.
  absl::Status Spread(const Division& division, Part part, const Tensor& compact,
                      const Tensor& x) const {
    ASSIGN_OR_RETURN(const auto bits, division.BitsOf(part, x.device()));
    return ToStatus(
        kernels_->Expand(compact.view(), ViewOf(*bits, x.elements(), compact), x.view()));
  }
  static SupportView ViewOf(const Buffer& bits, int64_t elements, const Tensor& compact) {
    return {static_cast<const uint64_t*>(bits.data()), elements, compact.elements()};
  }

  // Returns the rows that go beside the others in a payload of this form.
  static std::vector<uint32_t> FirstRowsIn(const Form& form, const Shape& shape,
                                           const MessageContext& context) {
    if (form.first_rows == kNoFirstRows) return {};
    return FirstRowsOf(shape, form.of_documents == 0, context.document_rows);
  }

  // Returns the form of a payload that is for a tensor of this shape.
  absl::StatusOr<Form> ReadForm(absl::Span<const uint8_t> payload, const Shape& shape,
                                const MessageContext& context) const {
    if (payload.empty()) return Refuse("empty payload, want at least 1 byte");
    const Form form = Form::Of(payload[0]);
    const bool has_outliers = Division::NumOutliers(spec(), shape) > 0;
    const bool may_have_first_rows =
        spec().first_position == FirstPosition::kExact && Division::HasFirstRows(shape);
    const bool fits = (form.outliers != kNoOutliers) == has_outliers &&
                      form.outliers <= kNewOutliers &&
                      form.first_rows <= (may_have_first_rows ? kBF16FirstRows : kNoFirstRows);
    const bool may_be_of_documents =
        form.first_rows != kNoFirstRows && !context.document_rows.empty();
    if (fits && form.of_documents <= (may_be_of_documents ? 1 : 0)) return form;
    return Refuse("form ", payload[0], ", want ", has_outliers ? "1 or 2" : "0",
                  may_have_first_rows ? ", or 4 or 8 more" : "",
                  may_have_first_rows && !context.document_rows.empty() ? ", or 20 or 24" : "");
  }

  // Returns the channels of a message, and moves *at behind those that it has.
  absl::StatusOr<std::vector<uint32_t>> ChannelsIn(absl::Span<const uint8_t> payload,
                                                   const Form& form, const OutliersCarry* kept,
                                                   const Shape& shape, size_t* at) const {
    if (form.outliers == kNoOutliers) return std::vector<uint32_t>();
    if (form.outliers == kNewOutliers) {
      const size_t bytes = Division::ChannelBytes(spec(), shape);
      if (payload.size() < *at + bytes) {
        return Refuse("payload of ", payload.size(), " bytes, want at least ", *at + bytes);
      }
      const uint8_t* const data = payload.data() + *at;
      *at += bytes;
      return ReadChannels(data, Division::NumOutliers(spec(), shape), shape[shape.rank() - 1]);
    }
    if (kept == nullptr || kept->channels().empty()) {
      return Refuse(
          "a payload with the channels of a message before, which this end does not have");
    }
    RETURN_IF_ERROR(CheckKept(kept->channels(), shape));
    return kept->channels();
  }

  // Checks that kept channels are those of a tensor of this shape.
  absl::Status CheckKept(const std::vector<uint32_t>& channels, const Shape& shape) const {
    const int64_t count = Division::NumOutliers(spec(), shape), width = shape[shape.rank() - 1];
    if (static_cast<int64_t>(channels.size()) == count && channels.back() < width) {
      return absl::OkStatus();
    }
    return Refuse(channels.size(), " kept channels up to ", channels.back(), ", want ", count,
                  " below ", width);
  }

  const std::unique_ptr<Codec> inner_;
  CodecKernels* const kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewDividedCodec(const CodecSpec& spec,
                                                       CodecKernels* kernels) {
  ASSIGN_OR_RETURN(std::unique_ptr<Codec> inner, NewCodec(Undivided(spec), kernels));
  return std::make_unique<DividedCodec>(spec, std::move(inner), kernels);
}

}  // namespace thinwire
