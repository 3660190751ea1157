// What codec, with which parameters: the checked form of an experiment's `compression` entries.
// Two ends agree on a codec iff their specs are equal.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/dtype.h"

namespace thinwire {

// The numbers travel in frames: never reuse one.
enum class CodecKind : uint8_t { kNone = 0, kFp16 = 1, kBf16 = 2, kUniform = 3, kTopK = 4 };

// Over which elements one threshold or one range is taken. Tensors are [batch, ..., channels].
enum class Scope : uint8_t {
  kTensor = 0,   // the whole message
  kSample = 1,   // each [...] of one sample
  kChannel = 2,  // each index of the last axis
  kToken = 3,    // each row of the last axis
  kGroup = 4,    // runs of `group` elements in memory order
};

// uniform: how the grid is laid (papers: 1 = min-max per tensor; AC-SGD = fixed point).
enum class Range : uint8_t {
  kMinMax = 0,      // [min, max] of the scope
  kMaxAbs = 1,      // [-max|x|, max|x|], symmetric, odd number of levels
  kFixedPoint = 2,  // AC-SGD: fp16 scale s = max|x|, q = clip(round(2^(b-1) x / s))
};
enum class Rounding : uint8_t { kNearest = 0, kStochastic = 1 };
enum class Zero : uint8_t {
  kFree = 0,    // zero need not be a level
  kOnGrid = 1,  // the range is moved so that zero is a level
};

// topk: how K follows from the ratio.
enum class Count : uint8_t {
  kCeil = 0,    // K = ceil(ratio n), capped to n
  kPaper1 = 1,  // K = n - int(n (1 - ratio)) as in the released code of arXiv 2401.07788
};
enum class Pad : uint8_t {
  kNone = 0,    // zeros are never sent
  kExactK = 1,  // exactly K entries, zeros included, for comparisons
};

struct CodecSpec {
  CodecKind kind = CodecKind::kNone;
  Scope scope = Scope::kTensor;
  uint32_t group = 0;  // elements, for Scope::kGroup

  // uniform
  uint32_t bits = 8;  // 1 to 8
  Range range = Range::kMinMax;
  Rounding rounding = Rounding::kNearest;
  Zero zero = Zero::kFree;

  // topk
  double ratio = 0;  // in (0, 1], or 0 when `k` is set
  uint64_t k = 0;    // absolute entries per scope, or 0 when `ratio` is set
  Count count = Count::kCeil;
  Pad pad = Pad::kNone;
  DType values = DType::kF32;  // of what is kept

  friend bool operator==(const CodecSpec& a, const CodecSpec& b);
  friend bool operator!=(const CodecSpec& a, const CodecSpec& b) { return !(a == b); }

  // "topk(ratio=0.1, scope=sample, values=fp32)": name and every parameter that matters to it.
  std::string ToString() const;
};

// Names as experiment files spell them.
const char* Name(CodecKind kind);  // "topk"
const char* Name(Scope scope);
const char* Name(Range range);
const char* Name(Rounding rounding);
const char* Name(Zero zero);
const char* Name(Count count);
const char* Name(Pad pad);

// The inverse of Name. InvalidArgument gives the name met, the nearest valid one and all valid
// ones.
absl::StatusOr<CodecKind> CodecKindFromName(const std::string& name);
absl::StatusOr<Scope> ScopeFromName(const std::string& name);
absl::StatusOr<Range> RangeFromName(const std::string& name);
absl::StatusOr<Rounding> RoundingFromName(const std::string& name);
absl::StatusOr<Zero> ZeroFromName(const std::string& name);
absl::StatusOr<Count> CountFromName(const std::string& name);
absl::StatusOr<Pad> PadFromName(const std::string& name);
absl::StatusOr<DType> ValuesFromName(const std::string& name);  // topk's `values`

// InvalidArgument naming codec, parameter, the value met and the values wanted.
absl::Status CheckSpec(const CodecSpec& spec);

}  // namespace thinwire
