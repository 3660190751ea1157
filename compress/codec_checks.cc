#include "compress/codec_checks.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/layout.h"

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

absl::Status CheckValues(const CodecSpec& spec) {
  if (spec.values == Values::kUniform) {
    if (spec.range == Range::kFixedPoint) {
      return Refuse(spec, "range is fixed_point with values uniform, want min_max or max_abs");
    }
    RETURN_IF_ERROR(CheckRounding(spec));
    return CheckBits(spec);
  }
  if (spec.values == Values::kMeans) {
    if (spec.bits >= 1 && spec.bits <= kMostMeansBits) return absl::OkStatus();
    return Refuse(spec, "bits is ", spec.bits, ", want 1 to ", kMostMeansBits,
                  " with values means");
  }
  if (spec.group == 0 || spec.scope == Scope::kGroup) return absl::OkStatus();
  return Refuse(spec, "group is ", spec.group, " with values ", Name(spec.values),
                ", want it with values uniform or means only");
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
  return CheckValues(spec);
}

absl::Status CheckNoPad(const CodecSpec& spec) {
  if (spec.pad == Pad::kNone) return absl::OkStatus();
  return Refuse(spec, "pad is ", Name(spec.pad), ", want none");
}

absl::Status CheckDivision(const CodecSpec& spec) {
  if (!spec.divides() || spec.support == Support::kAll) return absl::OkStatus();
  return Refuse(spec, spec.outliers > 0 ? "outliers" : "first_position exact", " with support ",
                Name(spec.support),
                ", want support all: entries of a support have no channels and positions");
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

}  // namespace

absl::Status CheckScope(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckScopeOfSupported(spec));
  return CheckGroup(spec);
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
  RETURN_IF_ERROR(CheckDivision(spec));
  return CheckScope(spec);
}

absl::Status CheckTopK(const CodecSpec& spec) {
  if (spec.needs_support() && spec.pad == Pad::kExactK) {
    return Refuse(spec, "pad is exact_k with ",
                  spec.indices == Indices::kShared ? "indices shared" : "support received_nonzero",
                  ", want none");
  }
  if (spec.indices == Indices::kOwn) {
    if (spec.scope == Scope::kGroup && spec.group == 0) {
      return Refuse(spec, "group is 0 with scope group, want a number of elements");
    }
    return CheckKept(spec);
  }
  if (spec.ratio > 0 || spec.k > 0 || spec.support != Support::kAll) {
    return Refuse(spec, "ratio is ", spec.ratio, ", k is ", spec.k, ", support is ",
                  Name(spec.support), " with indices shared, want none of them set");
  }
  if (spec.values == Values::kMeans) {
    return Refuse(spec, "values is means with indices shared, want fp32, fp16, bf16 or uniform");
  }
  return CheckValues(spec);
}

absl::Status CheckRandomK(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckNoPad(spec));
  if (spec.scope == Scope::kGroup) {
    return Refuse(spec, "scope is group, want one of tensor, sample, channel, token");
  }
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

absl::Status CheckBlockwise8(const CodecSpec& spec) {
  if (spec.block > 0) return absl::OkStatus();
  return Refuse(spec, "block is 0, want at least 1 element");
}

absl::Status CheckLowRank(const CodecSpec& spec) {
  if (spec.rank > 0) return absl::OkStatus();
  return Refuse(spec, "rank is 0, want at least 1");
}

absl::Status CheckPlugin(const CodecSpec& spec) {
  if (spec.plugin != 0) return absl::OkStatus();
  return Refuse(spec, "no library, want one that was loaded");
}

absl::Status CheckEcsq(const CodecSpec& spec) {
  RETURN_IF_ERROR(CheckRate(spec));
  RETURN_IF_ERROR(CheckPrincipal(spec));
  RETURN_IF_ERROR(CheckDivision(spec));
  RETURN_IF_ERROR(CheckRateDistortion(spec));
  if (!(spec.step >= kLeastStep && spec.step <= kMostStep)) {
    return Refuse(spec, "step is ", spec.step, ", want ", kLeastStep, " to ", kMostStep,
                  " root mean squares");
  }
  if (spec.scope == Scope::kChannel) {
    return Refuse(spec, "scope is channel, want one of tensor, sample, token, group");
  }
  return CheckScope(spec);
}

}  // namespace thinwire
