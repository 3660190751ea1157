#include "compress/spec.h"

#include <charconv>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/spec_parameters.h"

namespace thinwire {
namespace {

template <typename... Parts>
absl::Status Refuse(const CodecSpec& spec, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(Name(spec.kind), ": ", parts...));
}

bool IsPowerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

absl::Status CheckGroup(const CodecSpec& spec) {
  if ((spec.scope == Scope::kGroup) == (spec.group > 0)) return absl::OkStatus();
  return Refuse(spec, "group is ", spec.group, " with scope ", Name(spec.scope),
                ", want a number of elements with scope group and 0 otherwise");
}

absl::Status CheckBits(const CodecSpec& spec) {
  // An odd number of levels needs two bits: one bit would leave the level zero alone.
  const uint32_t least = spec.range == Range::kMaxAbs ? 2 : 1;
  if (spec.bits >= least && spec.bits <= 8) return absl::OkStatus();
  return Refuse(spec, "bits is ", spec.bits, ", want ", least, " to 8 with range ",
                Name(spec.range));
}

absl::Status CheckUniform(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckBits(spec));
  const bool rotates = spec.rotation == Rotation::kHadamard;
  const uint32_t block = spec.rotation_block;
  if (rotates && (!IsPowerOfTwo(block) || block < 2 || block > (1u << 15))) {
    return Refuse(spec, "rotation_block is ", block, ", want a power of two from 2 to 32768");
  }
  if (!rotates && block != 0) {
    return Refuse(spec, "rotation_block is ", block, " without rotation, want 0");
  }
  if (spec.support == Support::kReceivedNonzero && spec.scope != Scope::kTensor &&
      spec.scope != Scope::kGroup) {
    return Refuse(spec, "scope is ", Name(spec.scope),
                  " with support received_nonzero, want one of tensor, group");
  }
  return CheckGroup(spec);
}

absl::Status CheckValues(const CodecSpec& spec) {
  if (spec.values == Values::kUniform) {
    if (spec.range == Range::kFixedPoint) {
      return Refuse(spec, "range is fixed_point with values uniform, want min_max or max_abs");
    }
    return CheckBits(spec);
  }
  if (spec.group == 0) return absl::OkStatus();
  return Refuse(spec, "group is ", spec.group, " with values ", Name(spec.values),
                ", want it with values uniform only");
}

absl::Status CheckKept(const CodecSpec& spec) {
  if (!(spec.ratio >= 0 && spec.ratio <= 1)) {
    return Refuse(spec, "ratio is ", spec.ratio, ", want more than 0 and at most 1");
  }
  if ((spec.ratio > 0) == (spec.k > 0)) {
    return Refuse(spec, "ratio is ", spec.ratio, " and k is ", spec.k,
                  ", want exactly one of them set");
  }
  if (spec.count == Count::kPaper1 && spec.k > 0) {
    return Refuse(spec, "count paper1 with k ", spec.k, ", want a ratio");
  }
  if (spec.scope == Scope::kGroup) {
    return Refuse(spec, "scope is group, want one of tensor, sample, channel, token");
  }
  return CheckValues(spec);
}

absl::Status CheckTopK(const CodecSpec& spec) {
  if (spec.needs_support() && spec.pad == Pad::kExactK) {
    return Refuse(spec, "pad is exact_k with ",
                  spec.indices == Indices::kShared ? "indices shared" : "support received_nonzero",
                  ", want none");
  }
  if (spec.indices == Indices::kOwn) return CheckKept(spec);
  if (spec.ratio > 0 || spec.k > 0 || spec.support != Support::kAll) {
    return Refuse(spec, "ratio is ", spec.ratio, ", k is ", spec.k, ", support is ",
                  Name(spec.support), " with indices shared, want none of them set");
  }
  return CheckValues(spec);
}

absl::Status CheckNoPad(const CodecSpec& spec) {
  if (spec.pad == Pad::kNone) return absl::OkStatus();
  return Refuse(spec, "pad is ", Name(spec.pad), ", want none");
}

absl::Status CheckRandomK(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckNoPad(spec));
  return CheckKept(spec);
}

absl::Status CheckThreshold(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckNoPad(spec));
  if (!(spec.threshold > 0 && spec.threshold <= 3e38)) {
    return Refuse(spec, "threshold is ", spec.threshold, ", want a finite number above 0");
  }
  if (spec.scope != Scope::kTensor) {
    return Refuse(spec, "scope is ", Name(spec.scope), ", want tensor");
  }
  return CheckValues(spec);
}

auto AllFields(const CodecSpec& s) {
  return std::tie(s.kind, s.scope, s.group, s.bits, s.range, s.rounding, s.zero, s.rotation,
                  s.rotation_block, s.ratio, s.k, s.count, s.pad, s.unbiased, s.values, s.threshold,
                  s.relative_to, s.indices, s.support, s.format, s.block, s.rank, s.per_sample,
                  s.lossless, s.plugin);
}

template <typename T>
std::string Spelled(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return Name(value);
  } else if constexpr (std::is_same_v<T, double>) {  // the shortest text that reads back to it
    char text[32];
    return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::general).ptr};
  } else {
    return absl::StrCat(value);
  }
}

}  // namespace

bool operator==(const CodecSpec& a, const CodecSpec& b) { return AllFields(a) == AllFields(b); }

std::string CodecSpec::ToString() const {
  std::vector<std::string> parameters;
  VisitParameters(*this, [&](const char* name, const auto& value, bool is_rare) {
    if (is_rare && value == std::decay_t<decltype(value)>{}) return;
    parameters.push_back(absl::StrCat(name, "=", Spelled(value)));
  });
  if (parameters.empty()) return Name(kind);
  return absl::StrCat(Name(kind), "(", absl::StrJoin(parameters, ", "), ")");
}

CodecSpec DefaultSpec(CodecKind kind) {
  CodecSpec spec;
  spec.kind = kind;
  if (kind == CodecKind::kTopK || kind == CodecKind::kRandomK) spec.scope = Scope::kSample;
  if (kind == CodecKind::kBlockwise8) spec.block = 4096;
  return spec;
}

absl::Status CheckSpec(const CodecSpec& spec) {
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
    case CodecKind::kFp8:
      return absl::OkStatus();
    case CodecKind::kUniform:
      return CheckUniform(spec);
    case CodecKind::kTopK:
      return CheckTopK(spec);
    case CodecKind::kRandomK:
      return CheckRandomK(spec);
    case CodecKind::kThreshold:
      return CheckThreshold(spec);
    case CodecKind::kBlockwise8:
      if (spec.block > 0) return absl::OkStatus();
      return Refuse(spec, "block is 0, want at least 1 element");
    case CodecKind::kLowRank:
      if (spec.rank > 0) return absl::OkStatus();
      return Refuse(spec, "rank is 0, want at least 1");
    case CodecKind::kPlugin:
      if (spec.plugin != 0) return absl::OkStatus();
      return Refuse(spec, "no library, want one that was loaded");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec: unknown number ", static_cast<int>(spec.kind), ", want 0 to 10"));
}

}  // namespace thinwire
