#include "stage_server/codec_parameters.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Sets *to, an enum whose values are [first, last] without gaps.
template <typename Enum>
absl::Status Number(const char* field, uint32_t value, Enum first, Enum last, Enum* to) {
  if (value < static_cast<uint32_t>(first) || value > static_cast<uint32_t>(last)) {
    return absl::InvalidArgumentError(absl::StrCat("codec.", field, " is ", value, ", want ",
                                                   static_cast<uint32_t>(first), " to ",
                                                   static_cast<uint32_t>(last)));
  }
  *to = static_cast<Enum>(value);
  return absl::OkStatus();
}

absl::Status ReadScope(const CodecParameters& from, CodecSpec* spec) {
  spec->group = from.group();
  return Number("scope", from.scope(), Scope::kTensor, Scope::kGroup, &spec->scope);
}

absl::Status ReadUniform(const CodecParameters& from, CodecSpec* spec) {
  RETURN_IF_ERROR(ReadScope(from, spec));
  spec->bits = from.bits();
  RETURN_IF_ERROR(Number("range", from.range(), Range::kMinMax, Range::kFixedPoint, &spec->range));
  RETURN_IF_ERROR(Number("rounding", from.rounding(), Rounding::kNearest, Rounding::kStochastic,
                         &spec->rounding));
  return Number("zero", from.zero(), Zero::kFree, Zero::kOnGrid, &spec->zero);
}

absl::Status ReadTopK(const CodecParameters& from, CodecSpec* spec) {
  RETURN_IF_ERROR(ReadScope(from, spec));
  spec->ratio = from.ratio();
  spec->k = from.k();
  RETURN_IF_ERROR(Number("count", from.count(), Count::kCeil, Count::kPaper1, &spec->count));
  RETURN_IF_ERROR(Number("pad", from.pad(), Pad::kNone, Pad::kExactK, &spec->pad));
  return Number("values", from.values(), DType::kF32, DType::kF16, &spec->values);
}

}  // namespace

CodecParameters ToParameters(const CodecSpec& spec) {
  CodecParameters to;
  to.set_kind(static_cast<uint32_t>(spec.kind));
  if (spec.kind != CodecKind::kUniform && spec.kind != CodecKind::kTopK) return to;
  to.set_scope(static_cast<uint32_t>(spec.scope));
  to.set_group(spec.group);
  if (spec.kind == CodecKind::kUniform) {
    to.set_bits(spec.bits);
    to.set_range(static_cast<uint32_t>(spec.range));
    to.set_rounding(static_cast<uint32_t>(spec.rounding));
    to.set_zero(static_cast<uint32_t>(spec.zero));
  } else {
    to.set_ratio(spec.ratio);
    to.set_k(spec.k);
    to.set_count(static_cast<uint32_t>(spec.count));
    to.set_pad(static_cast<uint32_t>(spec.pad));
    to.set_values(static_cast<uint32_t>(spec.values));
  }
  return to;
}

absl::StatusOr<CodecSpec> FromParameters(const CodecParameters& parameters) {
  CodecSpec spec;
  RETURN_IF_ERROR(
      Number("kind", parameters.kind(), CodecKind::kNone, CodecKind::kTopK, &spec.kind));
  if (spec.kind == CodecKind::kUniform) RETURN_IF_ERROR(ReadUniform(parameters, &spec));
  if (spec.kind == CodecKind::kTopK) RETURN_IF_ERROR(ReadTopK(parameters, &spec));
  return spec;
}

}  // namespace thinwire
