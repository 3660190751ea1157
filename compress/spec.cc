#include "compress/spec.h"

#include <cstddef>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"

namespace thinwire {
namespace {

constexpr CodecKind kCodecKinds[] = {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16,
                                     CodecKind::kUniform, CodecKind::kTopK};
constexpr Scope kScopes[] = {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken,
                             Scope::kGroup};
constexpr Range kRanges[] = {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint};
constexpr Rounding kRoundings[] = {Rounding::kNearest, Rounding::kStochastic};
constexpr Zero kZeros[] = {Zero::kFree, Zero::kOnGrid};
constexpr Count kCounts[] = {Count::kCeil, Count::kPaper1};
constexpr Pad kPads[] = {Pad::kNone, Pad::kExactK};
constexpr DType kValueTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

template <typename Enum, size_t kNumValues>
absl::StatusOr<Enum> FromName(const char* what, const std::string& name,
                              const Enum (&values)[kNumValues]) {
  std::vector<std::string> names;
  for (Enum value : values) {
    if (name == Name(value)) return value;
    names.push_back(Name(value));
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": unknown \"", name, "\", nearest is \"",
                                                 NearestName(name, names), "\" (want one of ",
                                                 absl::StrJoin(names, ", "), ")"));
}

absl::Status CheckGroup(const CodecSpec& spec) {
  if ((spec.scope == Scope::kGroup) == (spec.group > 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Name(spec.kind), ": group is ", spec.group, " with scope ", Name(spec.scope),
                   ", want a number of elements with scope group and 0 otherwise"));
}

absl::Status CheckUniform(const CodecSpec& spec) {
  // An odd number of levels needs two bits: one bit would leave the level zero alone.
  const uint32_t least_bits = spec.range == Range::kMaxAbs ? 2 : 1;
  if (spec.bits < least_bits || spec.bits > 8) {
    return absl::InvalidArgumentError(absl::StrCat("uniform: bits is ", spec.bits, ", want ",
                                                   least_bits, " to 8 with range ",
                                                   Name(spec.range)));
  }
  return CheckGroup(spec);
}

absl::Status CheckTopK(const CodecSpec& spec) {
  if (!(spec.ratio >= 0 && spec.ratio <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk: ratio is ", spec.ratio, ", want more than 0 and at most 1"));
  }
  if ((spec.ratio > 0) == (spec.k > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("topk: ratio is ", spec.ratio, " and k is ",
                                                   spec.k, ", want exactly one of them set"));
  }
  if (spec.count == Count::kPaper1 && spec.k > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk: count paper1 with k ", spec.k, ", want a ratio"));
  }
  if (spec.scope == Scope::kGroup) {
    return absl::InvalidArgumentError(
        "topk: scope is group, want one of tensor, sample, channel, token");
  }
  if (spec.values != DType::kF32 && spec.values != DType::kF16 && spec.values != DType::kBF16) {
    return absl::InvalidArgumentError(absl::StrCat("topk: values is element type ",
                                                   static_cast<int>(spec.values),
                                                   ", want one of fp32, fp16, bf16"));
  }
  return CheckGroup(spec);
}

auto AllFields(const CodecSpec& s) {
  return std::tie(s.kind, s.scope, s.group, s.bits, s.range, s.rounding, s.zero, s.ratio, s.k,
                  s.count, s.pad, s.values);
}

}  // namespace

const char* Name(CodecKind kind) {
  switch (kind) {
    case CodecKind::kNone:
      return "none";
    case CodecKind::kFp16:
      return "fp16";
    case CodecKind::kBf16:
      return "bf16";
    case CodecKind::kUniform:
      return "uniform";
    case CodecKind::kTopK:
      return "topk";
  }
  return "unknown";
}

const char* Name(Scope scope) {
  switch (scope) {
    case Scope::kTensor:
      return "tensor";
    case Scope::kSample:
      return "sample";
    case Scope::kChannel:
      return "channel";
    case Scope::kToken:
      return "token";
    case Scope::kGroup:
      return "group";
  }
  return "unknown";
}

const char* Name(Range range) {
  switch (range) {
    case Range::kMinMax:
      return "min_max";
    case Range::kMaxAbs:
      return "max_abs";
    case Range::kFixedPoint:
      return "fixed_point";
  }
  return "unknown";
}

const char* Name(Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return "nearest";
    case Rounding::kStochastic:
      return "stochastic";
  }
  return "unknown";
}

const char* Name(Zero zero) {
  switch (zero) {
    case Zero::kFree:
      return "free";
    case Zero::kOnGrid:
      return "on_grid";
  }
  return "unknown";
}

const char* Name(Count count) {
  switch (count) {
    case Count::kCeil:
      return "ceil";
    case Count::kPaper1:
      return "paper1";
  }
  return "unknown";
}

const char* Name(Pad pad) {
  switch (pad) {
    case Pad::kNone:
      return "none";
    case Pad::kExactK:
      return "exact_k";
  }
  return "unknown";
}

absl::StatusOr<CodecKind> CodecKindFromName(const std::string& name) {
  return FromName("codec", name, kCodecKinds);
}
absl::StatusOr<Scope> ScopeFromName(const std::string& name) {
  return FromName("scope", name, kScopes);
}
absl::StatusOr<Range> RangeFromName(const std::string& name) {
  return FromName("range", name, kRanges);
}
absl::StatusOr<Rounding> RoundingFromName(const std::string& name) {
  return FromName("rounding", name, kRoundings);
}
absl::StatusOr<Zero> ZeroFromName(const std::string& name) {
  return FromName("zero", name, kZeros);
}
absl::StatusOr<Count> CountFromName(const std::string& name) {
  return FromName("count", name, kCounts);
}
absl::StatusOr<Pad> PadFromName(const std::string& name) { return FromName("pad", name, kPads); }
absl::StatusOr<DType> ValuesFromName(const std::string& name) {
  return FromName("values", name, kValueTypes);
}

bool operator==(const CodecSpec& a, const CodecSpec& b) { return AllFields(a) == AllFields(b); }

std::string CodecSpec::ToString() const {
  std::string scope_text = absl::StrCat("scope=", Name(scope));
  if (scope == Scope::kGroup) absl::StrAppend(&scope_text, ", group=", group);
  if (kind == CodecKind::kUniform) {
    std::string text = absl::StrCat("uniform(bits=", bits, ", range=", Name(range), ", ",
                                    scope_text, ", rounding=", Name(rounding));
    if (range == Range::kMinMax) absl::StrAppend(&text, ", zero=", Name(zero));
    return text + ")";
  }
  if (kind == CodecKind::kTopK) {
    std::string text = k > 0 ? absl::StrCat("topk(k=", k) : absl::StrCat("topk(ratio=", ratio);
    absl::StrAppend(&text, ", ", scope_text, ", values=", Name(values));
    if (count != Count::kCeil) absl::StrAppend(&text, ", count=", Name(count));
    if (pad != Pad::kNone) absl::StrAppend(&text, ", pad=", Name(pad));
    return text + ")";
  }
  return Name(kind);
}

absl::Status CheckSpec(const CodecSpec& spec) {
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return absl::OkStatus();
    case CodecKind::kUniform:
      return CheckUniform(spec);
    case CodecKind::kTopK:
      return CheckTopK(spec);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec: unknown number ", static_cast<int>(spec.kind), ", want 0 to 4"));
}

}  // namespace thinwire
