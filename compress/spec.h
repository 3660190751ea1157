// Specification of a codec and its parameters: the checked form of an experiment's `compression`
// entries. Two ends agree on a codec iff their specifications are equal.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/enum_names.h"

namespace thinwire {

// Kind of a codec. The numbers of all enums here travel in frames (proto/boundary.proto): never
// reuse one.
enum class CodecKind : uint8_t {
  kNone = 0,
  kFp16 = 1,
  kBf16 = 2,
  kUniform = 3,
  kTopK = 4,
  kFp8 = 5,
  kRandomK = 6,
  kThreshold = 7,
  kBlockwise8 = 8,  // SWARM's wire: absmax per block and a codebook of 256 entries
  kLowRank = 9,     // PowerSGD: P^ and Q of a warm-started power iteration
  kPlugin = 10,     // a user's own library (codec_plugin.h)
  kEcsq = 11,       // entropy-coded scalar quantisation: unbounded integers, step in rms
};

// Elements over which one threshold or one range is taken. Tensors are [batch, ..., channels].
enum class Scope : uint8_t {
  kTensor = 0,   // the whole message
  kSample = 1,   // each [...] of one sample
  kChannel = 2,  // each index of the last axis
  kToken = 3,    // each row of the last axis
  kGroup = 4,    // stretches of `group` elements in memory order
};

// Layout of uniform's grid (papers: 1 = min-max per tensor; AC-SGD = fixed point).
enum class Range : uint8_t {
  kMinMax = 0,      // [min, max] of the scope
  kMaxAbs = 1,      // [-max|x|, max|x|], symmetric, odd number of levels
  kFixedPoint = 2,  // AC-SGD: fp16 scale s = max|x|, q = clip(round(2^(b-1) x / s))
};
// Rounding of a value to a code.
enum class Rounding : uint8_t {
  kNearest = 0,
  kStochastic = 1,  // up with the probability of the fraction: unbiased
  // ecsq only
  kDither = 2,          // x plus noise to nearest; the decoder subtracts the noise: unbiased
  kDeadZone = 3,        // fractions below 2/3 towards zero: fewer bits
  kRateDistortion = 4,  // to the code that costs least in error and bits together
  kNearestNonzero = 5,  // to nearest, but only zero becomes zero: keeps the support
};
constexpr bool IsUnbiased(Rounding rounding) {
  return rounding == Rounding::kStochastic || rounding == Rounding::kDither;
}
// Point of its cell at which ecsq decodes a value.
enum class Reconstruction : uint8_t {
  kMean = 0,    // at the mean of the values that were rounded to the code
  kCenter = 1,  // at the whole number of steps
};
// Treatment of the first row of each sample, position 0 of a sequence, by uniform and ecsq.
enum class FirstPosition : uint8_t {
  kCoded = 0,  // like all others
  kExact = 1,  // sent as it is, apart from the others (compress/codecs/division.h)
};
// Treatment of zero by a min_max grid.
enum class Zero : uint8_t {
  kFree = 0,    // zero need not be a level
  kOnGrid = 1,  // the range is moved so that zero is a level
};

// Rotation of the tensor before uniform or ecsq quantises it.
enum class Rotation : uint8_t {
  kNone = 0,
  kHadamard = 1,   // uniform: random signs and an orthonormal Hadamard transform of each block
  kPrincipal = 2,  // ecsq: into principal axes of the channels (compress/codecs/stack.h)
};

// Rule by which K follows from the ratio under topk and randomk.
enum class Count : uint8_t {
  kCeil = 0,    // K = ceil(ratio n), capped to n
  kPaper1 = 1,  // K = n - int(n (1 - ratio)) as in the released code of arXiv 2401.07788
};
// Padding of topk's K entries with zeros.
enum class Pad : uint8_t {
  kNone = 0,    // zeros are never sent
  kExactK = 1,  // exactly K entries, zeros included, for comparisons
};

// Type of the kept values of topk, randomk and threshold on the wire. The numbers are those of
// DType.
enum class Values : uint8_t {
  kF32 = 1,
  kBF16 = 2,
  kF16 = 3,
  kUniform = 4,  // bits, range, rounding, zero, group as for codec uniform; range over all values
  kMeans = 5,    // a sign and one of 2^(bits - 1) cells of magnitudes, decoded at the cell's mean
};

// Source of the places of topk's kept entries, for gradients.
enum class Indices : uint8_t {
  kOwn = 0,     // the message
  kShared = 1,  // the received activation's non-zeros: all of them are sent, values only
};

// Entries of gradients that can be sent at all.
enum class Support : uint8_t {
  kAll = 0,
  kReceivedNonzero = 1,  // where the received activation is not zero; no index says so
};

// Unit of `threshold` in each message.
enum class RelativeTo : uint8_t { kAbsolute = 0, kRms = 1, kMax = 2 };

enum class Fp8Format : uint8_t { kE4M3 = 0, kE5M2 = 1 };  // OCP 8-bit floating point

// Lossless stage behind the codec.
enum class Lossless : uint8_t { kNone = 0, kZstd = 1, kEntropy = 2 };

// Bounds of ecsq's step and rate. A value is at most 2^16 root mean squares of 2^32 elements, so
// codes fit 32 bits.
constexpr double kLeastStep = 0x1p-14, kMostStep = 0x1p10;
constexpr double kLeastRate = 0x1p-5, kMostRate = 0x1p4;

// Specification of one codec. A member's initial value is the default of its parameter, except for
// those that compress/spec_parameters.h names.
struct CodecSpec {
  CodecKind kind = CodecKind::kNone;
  Scope scope = Scope::kTensor;
  // Elements of Scope::kGroup; or kept values that share a range or means (0: all of them).
  uint32_t group = 0;

  // For uniform and, except the rotation, for Values::kUniform. ecsq has the rotation too, and
  // Values::kMeans the bits.
  uint32_t bits = 8;  // 1 to 8; Values::kMeans: 1 to 4
  Range range = Range::kMinMax;
  Rounding rounding = Rounding::kNearest;
  Zero zero = Zero::kFree;
  Rotation rotation = Rotation::kNone;
  uint32_t rotation_block = 0;  // kHadamard: elements, a power of two from 2 to 2^15; otherwise 0
  uint64_t rotation_every = 0;  // kPrincipal: messages with the same axes; otherwise 0

  // topk, randomk
  double ratio = 0;  // in (0, 1], or 0 when `k` is set
  uint64_t k = 0;    // entries per scope, or 0 when `ratio` is set
  Count count = Count::kCeil;
  Pad pad = Pad::kNone;
  bool unbiased = false;  // randomk: kept values are multiplied by n / K

  // topk, randomk, threshold
  Values values = Values::kF32;

  // For threshold: entries of at least this magnitude are kept, zeros never.
  double threshold = 0;
  RelativeTo relative_to = RelativeTo::kAbsolute;

  // For gradients: indices of topk; support of every codec but low_rank and plugins.
  Indices indices = Indices::kOwn;
  Support support = Support::kAll;

  double rate = 0;  // ecsq: bits per element that a message takes, or 0 if `step` is given
  double step = 1;  // ecsq: in root mean squares of the scope
  Reconstruction reconstruction = Reconstruction::kMean;  // ecsq

  // uniform, ecsq: number of channels of the largest mean square, which are sent as bf16, apart
  // from the others (compress/codecs/division.h); 0: none. And what becomes of the first position.
  uint32_t outliers = 0;
  FirstPosition first_position = FirstPosition::kCoded;

  Fp8Format format = Fp8Format::kE4M3;  // fp8
  uint32_t block = 0;                   // blockwise8: elements per absmax
  uint32_t rank = 0;                    // low_rank
  bool per_sample = false;              // low_rank: a matrix per sample, not one per message

  Lossless lossless = Lossless::kNone;  // any codec

  uint64_t plugin = 0;  // kPlugin: digest of library name, version and parameters; see LoadPlugin

  // True if both ends need the non-zeros of the received activation (MessageContext::support).
  bool needs_support() const {
    return indices == Indices::kShared || support == Support::kReceivedNonzero;
  }

  // True if some elements are sent apart from the others, which are then what the codec gets.
  bool divides() const { return outliers > 0 || first_position == FirstPosition::kExact; }
  // Returns true if messages leave something to the next ones (Carry in codec.h).
  bool leaves_carry() const {
    return outliers > 0 || rotation == Rotation::kPrincipal || kind == CodecKind::kLowRank;
  }

  // For ecsq: returns whether values are decoded at the means of their cells. Means would make an
  // unbiased rounding biased.
  bool has_means() const {
    return !IsUnbiased(rounding) && reconstruction == Reconstruction::kMean;
  }

  friend bool operator==(const CodecSpec& a, const CodecSpec& b);
  friend bool operator!=(const CodecSpec& a, const CodecSpec& b) { return !(a == b); }

  // Returns true for codec none, which sends the tensor's own bytes and carries exact messages.
  bool is_exact() const { return *this == CodecSpec(); }

  // Returns e.g. "topk(ratio=0.1, scope=sample, values=fp32)": the name and the parameters that
  // matter to it, without rarely changed ones that have their defaults.
  std::string ToString() const;
};

// Return the names as experiment files spell them (base/enum_names.h).
NameTable<Scope> TableOf(Scope);
NameTable<Range> TableOf(Range);
NameTable<Rounding> TableOf(Rounding);
NameTable<Reconstruction> TableOf(Reconstruction);
NameTable<Zero> TableOf(Zero);
NameTable<FirstPosition> TableOf(FirstPosition);
NameTable<Rotation> TableOf(Rotation);
NameTable<Count> TableOf(Count);
NameTable<Pad> TableOf(Pad);
NameTable<Values> TableOf(Values);
NameTable<Indices> TableOf(Indices);
NameTable<Support> TableOf(Support);
NameTable<RelativeTo> TableOf(RelativeTo);
NameTable<Fp8Format> TableOf(Fp8Format);
NameTable<Lossless> TableOf(Lossless);
// Convert a kind of codec to its name, "topk", and back, as these functions do for all other enums.
const char* Name(CodecKind kind);
absl::Status FromName(const std::string& name, CodecKind* to);

// Returns `kind` with the default of every parameter. This need not be a valid specification: topk
// needs a ratio or k.
CodecSpec DefaultSpec(CodecKind kind);

// Checks a specification. InvalidArgument names codec, parameter, the value met and the values
// wanted.
absl::Status CheckSpec(const CodecSpec& spec);

// Returns true if the codec is causal. That is, what it decodes at a position of a sequence, a row
// of `width` elements, follows from that row alone, so positions can be coded one after the other.
// The power of two by which fp16 and fp8 scale a message is disregarded, because it affects only
// values that are negligible beside the greatest. So are messages that choose outliers, the first
// one and those without training. False for a plugin, of which this is not known.
bool IsCausal(const CodecSpec& spec, int64_t width);

}  // namespace thinwire
