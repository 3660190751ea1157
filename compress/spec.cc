#include "compress/spec.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "compress/spec_parameters.h"

namespace thinwire {
namespace {

constexpr struct {
  CodecKind value;
  const char* name;
  const char* what;
} kCodecs[] = {
    {CodecKind::kNone, "none", "the tensor's own bytes"},
    {CodecKind::kFp16, "fp16", "16-bit floats, scaled by a power of two per message"},
    {CodecKind::kBf16, "bf16", "the upper half of each fp32"},
    {CodecKind::kFp8, "fp8", "8-bit floats, scaled by a power of two per message"},
    {CodecKind::kUniform, "uniform", "codes of 1 to 8 bits on a uniform grid"},
    {CodecKind::kEcsq, "ecsq", "whole multiples of a step in root mean squares, entropy-coded"},
    {CodecKind::kTopK, "topk", "the K entries of largest magnitude, and where they stood"},
    {CodecKind::kRandomK, "randomk", "K random entries; both ends draw the same positions"},
    {CodecKind::kThreshold, "threshold", "entries of at least some magnitude"},
    {CodecKind::kBlockwise8, "blockwise8",
     "8-bit codebook with one absolute maximum per block (SWARM)"},
    {CodecKind::kLowRank, "low_rank", "two factors of a warm-started power iteration (PowerSGD)"},
    {CodecKind::kPlugin, "plugin", "your own library, see docs/add_a_codec.md"},
};

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

absl::Status CheckRounding(const CodecSpec& spec) {
  if (spec.rounding == Rounding::kNearest || spec.rounding == Rounding::kStochastic) {
    return absl::OkStatus();
  }
  return Refuse(spec, "rounding is ", Name(spec.rounding), ", want nearest or stochastic");
}

absl::Status CheckScopeOfSupported(const CodecSpec& spec) {
  if (spec.support == Support::kAll || spec.scope == Scope::kTensor ||
      spec.scope == Scope::kGroup) {
    return absl::OkStatus();
  }
  return Refuse(spec, "scope is ", Name(spec.scope),
                " with support received_nonzero, want one of tensor, group");
}

absl::Status CheckUniform(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckBits(spec));
  RETURN_IF_ERROR(CheckRounding(spec));
  const bool rotates = spec.rotation == Rotation::kHadamard;
  const uint32_t block = spec.rotation_block;
  if (spec.rotation == Rotation::kPrincipal) {
    return Refuse(spec, "rotation is principal, want none or hadamard");
  }
  if (rotates && (!IsPowerOfTwo(block) || block < 2 || block > (1u << 15))) {
    return Refuse(spec, "rotation_block is ", block, ", want a power of two from 2 to 32768");
  }
  if (!rotates && block != 0) {
    return Refuse(spec, "rotation_block is ", block, " without rotation, want 0");
  }
  RETURN_IF_ERROR(CheckScopeOfSupported(spec));
  return CheckGroup(spec);
}

absl::Status CheckValues(const CodecSpec& spec) {
  if (spec.values == Values::kUniform) {
    if (spec.range == Range::kFixedPoint) {
      return Refuse(spec, "range is fixed_point with values uniform, want min_max or max_abs");
    }
    RETURN_IF_ERROR(CheckRounding(spec));
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

absl::Status CheckRate(const CodecSpec& spec) {
  if (spec.rate == 0) return absl::OkStatus();
  if (!(spec.rate >= kLeastRate && spec.rate <= kMostRate)) {
    return Refuse(spec, "rate is ", spec.rate, ", want ", kLeastRate, " to ", kMostRate,
                  " bits per element");
  }
  if (spec.lossless != Lossless::kNone) return absl::OkStatus();
  return Refuse(spec, "rate is ", spec.rate, " with lossless none, want entropy or zstd");
}

absl::Status CheckPrincipal(const CodecSpec& spec) {
  const bool rotates = spec.rotation == Rotation::kPrincipal;
  if (!rotates && spec.rotation != Rotation::kNone) {
    return Refuse(spec, "rotation is ", Name(spec.rotation), ", want none or principal");
  }
  if (rotates != (spec.rotation_every > 0)) {
    return Refuse(spec, "rotation_every is ", spec.rotation_every, " with rotation ",
                  Name(spec.rotation),
                  ", want a number of messages with principal and 0 otherwise");
  }
  if (!rotates || spec.support == Support::kAll) return absl::OkStatus();
  return Refuse(spec, "rotation is principal with support ", Name(spec.support),
                ", want support all: entries of a support have no channels");
}

// Checks rate_distortion, which needs the entropy coder: it knows what a code costs.
absl::Status CheckRateDistortion(const CodecSpec& spec) {
  if (spec.rounding != Rounding::kRateDistortion) return absl::OkStatus();
  if (spec.lossless != Lossless::kEntropy) {
    return Refuse(spec, "rounding is rate_distortion with lossless ", Name(spec.lossless),
                  ", want entropy");
  }
  if (spec.support == Support::kAll) return absl::OkStatus();
  return Refuse(spec, "rounding is rate_distortion with support ", Name(spec.support),
                ", want all");
}

absl::Status CheckEcsq(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckRate(spec));
  RETURN_IF_ERROR(CheckPrincipal(spec));
  RETURN_IF_ERROR(CheckRateDistortion(spec));
  if (!(spec.step >= kLeastStep && spec.step <= kMostStep)) {
    return Refuse(spec, "step is ", spec.step, ", want ", kLeastStep, " to ", kMostStep,
                  " root mean squares");
  }
  if (spec.scope == Scope::kChannel) {
    return Refuse(spec, "scope is channel, want one of tensor, sample, token, group");
  }
  RETURN_IF_ERROR(CheckScopeOfSupported(spec));
  return CheckGroup(spec);
}

auto AllFields(const CodecSpec& s) {
  return std::tie(s.kind, s.scope, s.group, s.bits, s.range, s.rounding, s.zero, s.rotation,
                  s.rotation_block, s.rotation_every, s.ratio, s.k, s.count, s.pad, s.unbiased,
                  s.values, s.threshold, s.relative_to, s.indices, s.support, s.rate, s.step,
                  s.reconstruction, s.format, s.block, s.rank, s.per_sample, s.lossless, s.plugin);
}

}  // namespace

bool operator==(const CodecSpec& a, const CodecSpec& b) { return AllFields(a) == AllFields(b); }

std::string CodecSpec::ToString() const {
  std::vector<std::string> parameters;
  VisitParameters(*this, [&](const char* name, const auto& value, const auto& use) {
    if (IsRare(use.presence) && value == use.fallback) return;
    parameters.push_back(absl::StrCat(name, "=", Spelled(value)));
  });
  if (parameters.empty()) return Name(kind);
  return absl::StrCat(Name(kind), "(", absl::StrJoin(parameters, ", "), ")");
}

const char* Name(CodecKind kind) { return NameIn(kCodecs, kind); }

absl::Status FromName(const std::string& name, CodecKind* to) {
  return FindName("codec", name, kCodecs, to);
}

const char* Description(CodecKind kind) {
  for (const auto& codec : kCodecs) {
    if (codec.value == kind) return codec.what;
  }
  return "";
}

std::vector<CodecKind> AllCodecs() { return ValuesIn(kCodecs); }

CodecSpec DefaultSpec(CodecKind kind) {
  CodecSpec spec;
  spec.kind = kind;
  VisitParameters(spec, [](const char*, auto& value, const auto& use) { value = use.fallback; });
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
    case CodecKind::kEcsq:
      return CheckEcsq(spec);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec: unknown number ", static_cast<int>(spec.kind), ", want 0 to 11"));
}

bool IsCausal(const CodecSpec& spec, int64_t width) {
  const auto divides = [width](uint32_t elements) { return elements > 0 && width % elements == 0; };
  const bool by_rows =
      spec.scope == Scope::kToken || (spec.scope == Scope::kGroup && divides(spec.group));
  // Kept values share ranges across rows.
  const bool by_values = spec.values != Values::kUniform;
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
    case CodecKind::kFp8:
      return true;
    case CodecKind::kUniform:
      return by_rows && (spec.rotation == Rotation::kNone || divides(spec.rotation_block));
    case CodecKind::kEcsq:  // means, bit costs and a rate's step follow from the whole message
      return by_rows && !spec.has_means() && spec.rate == 0 &&
             spec.rounding != Rounding::kRateDistortion;
    case CodecKind::kTopK:
    case CodecKind::kRandomK:
      return by_rows && by_values;
    case CodecKind::kThreshold:
      return spec.relative_to == RelativeTo::kAbsolute && by_values;
    case CodecKind::kBlockwise8:
      return divides(spec.block);
    case CodecKind::kLowRank:
    case CodecKind::kPlugin:
      return false;
  }
  return false;
}

}  // namespace thinwire
