#include "compress/spec.h"

namespace thinwire {
namespace {

constexpr Named<Scope> kScopeNames[] = {{Scope::kTensor, "tensor"},
                                        {Scope::kSample, "sample"},
                                        {Scope::kChannel, "channel"},
                                        {Scope::kToken, "token"},
                                        {Scope::kGroup, "group"}};
constexpr Named<Range> kRangeNames[] = {
    {Range::kMinMax, "min_max"}, {Range::kMaxAbs, "max_abs"}, {Range::kFixedPoint, "fixed_point"}};
constexpr Named<Rounding> kRoundingNames[] = {{Rounding::kNearest, "nearest"},
                                              {Rounding::kStochastic, "stochastic"},
                                              {Rounding::kDither, "dither"},
                                              {Rounding::kDeadZone, "dead_zone"},
                                              {Rounding::kRateDistortion, "rate_distortion"},
                                              {Rounding::kNearestNonzero, "nearest_nonzero"}};
constexpr Named<Reconstruction> kReconstructionNames[] = {{Reconstruction::kMean, "mean"},
                                                          {Reconstruction::kCenter, "center"}};
constexpr Named<Zero> kZeroNames[] = {{Zero::kFree, "free"}, {Zero::kOnGrid, "on_grid"}};
constexpr Named<FirstPosition> kFirstPositionNames[] = {{FirstPosition::kCoded, "coded"},
                                                        {FirstPosition::kExact, "exact"}};
constexpr Named<Rotation> kRotationNames[] = {{Rotation::kNone, "none"},
                                              {Rotation::kHadamard, "hadamard"},
                                              {Rotation::kPrincipal, "principal"}};
constexpr Named<Count> kCountNames[] = {{Count::kCeil, "ceil"}, {Count::kPaper1, "paper1"}};
constexpr Named<Pad> kPadNames[] = {{Pad::kNone, "none"}, {Pad::kExactK, "exact_k"}};
constexpr Named<Values> kValuesNames[] = {{Values::kF32, "fp32"},
                                          {Values::kBF16, "bf16"},
                                          {Values::kF16, "fp16"},
                                          {Values::kUniform, "uniform"},
                                          {Values::kMeans, "means"}};
constexpr Named<Indices> kIndicesNames[] = {{Indices::kOwn, "own"}, {Indices::kShared, "shared"}};
constexpr Named<Support> kSupportNames[] = {{Support::kAll, "all"},
                                            {Support::kReceivedNonzero, "received_nonzero"}};
constexpr Named<RelativeTo> kRelativeToNames[] = {
    {RelativeTo::kAbsolute, "absolute"}, {RelativeTo::kRms, "rms"}, {RelativeTo::kMax, "max"}};
constexpr Named<Fp8Format> kFp8FormatNames[] = {{Fp8Format::kE4M3, "e4m3"},
                                                {Fp8Format::kE5M2, "e5m2"}};
constexpr Named<Lossless> kLosslessNames[] = {
    {Lossless::kNone, "none"}, {Lossless::kZstd, "zstd"}, {Lossless::kEntropy, "entropy"}};

}  // namespace

NameTable<Scope> TableOf(Scope) { return {"scope", kScopeNames}; }
NameTable<Range> TableOf(Range) { return {"range", kRangeNames}; }
NameTable<Rounding> TableOf(Rounding) { return {"rounding", kRoundingNames}; }
NameTable<Reconstruction> TableOf(Reconstruction) {
  return {"reconstruction", kReconstructionNames};
}
NameTable<Zero> TableOf(Zero) { return {"zero", kZeroNames}; }
NameTable<FirstPosition> TableOf(FirstPosition) { return {"first_position", kFirstPositionNames}; }
NameTable<Rotation> TableOf(Rotation) { return {"rotation", kRotationNames}; }
NameTable<Count> TableOf(Count) { return {"count", kCountNames}; }
NameTable<Pad> TableOf(Pad) { return {"pad", kPadNames}; }
NameTable<Values> TableOf(Values) { return {"values", kValuesNames}; }
NameTable<Indices> TableOf(Indices) { return {"indices", kIndicesNames}; }
NameTable<Support> TableOf(Support) { return {"support", kSupportNames}; }
NameTable<RelativeTo> TableOf(RelativeTo) { return {"relative_to", kRelativeToNames}; }
NameTable<Fp8Format> TableOf(Fp8Format) { return {"format", kFp8FormatNames}; }
NameTable<Lossless> TableOf(Lossless) { return {"lossless", kLosslessNames}; }

}  // namespace thinwire
