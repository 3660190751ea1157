#include "base/enum_names.h"
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

const char* Name(Scope value) { return NameIn(kScopeNames, value); }
const char* Name(Range value) { return NameIn(kRangeNames, value); }
const char* Name(Rounding value) { return NameIn(kRoundingNames, value); }
const char* Name(Reconstruction value) { return NameIn(kReconstructionNames, value); }
const char* Name(Zero value) { return NameIn(kZeroNames, value); }
const char* Name(Rotation value) { return NameIn(kRotationNames, value); }
const char* Name(Count value) { return NameIn(kCountNames, value); }
const char* Name(Pad value) { return NameIn(kPadNames, value); }
const char* Name(Values value) { return NameIn(kValuesNames, value); }
const char* Name(Indices value) { return NameIn(kIndicesNames, value); }
const char* Name(Support value) { return NameIn(kSupportNames, value); }
const char* Name(RelativeTo value) { return NameIn(kRelativeToNames, value); }
const char* Name(Fp8Format value) { return NameIn(kFp8FormatNames, value); }
const char* Name(Lossless value) { return NameIn(kLosslessNames, value); }

absl::Status FromName(const std::string& name, Scope* to) {
  return FindName("scope", name, kScopeNames, to);
}
absl::Status FromName(const std::string& name, Range* to) {
  return FindName("range", name, kRangeNames, to);
}
absl::Status FromName(const std::string& name, Rounding* to) {
  return FindName("rounding", name, kRoundingNames, to);
}
absl::Status FromName(const std::string& name, Reconstruction* to) {
  return FindName("reconstruction", name, kReconstructionNames, to);
}
absl::Status FromName(const std::string& name, Zero* to) {
  return FindName("zero", name, kZeroNames, to);
}
absl::Status FromName(const std::string& name, Rotation* to) {
  return FindName("rotation", name, kRotationNames, to);
}
absl::Status FromName(const std::string& name, Count* to) {
  return FindName("count", name, kCountNames, to);
}
absl::Status FromName(const std::string& name, Pad* to) {
  return FindName("pad", name, kPadNames, to);
}
absl::Status FromName(const std::string& name, Values* to) {
  return FindName("values", name, kValuesNames, to);
}
absl::Status FromName(const std::string& name, Indices* to) {
  return FindName("indices", name, kIndicesNames, to);
}
absl::Status FromName(const std::string& name, Support* to) {
  return FindName("support", name, kSupportNames, to);
}
absl::Status FromName(const std::string& name, RelativeTo* to) {
  return FindName("relative_to", name, kRelativeToNames, to);
}
absl::Status FromName(const std::string& name, Fp8Format* to) {
  return FindName("format", name, kFp8FormatNames, to);
}
absl::Status FromName(const std::string& name, Lossless* to) {
  return FindName("lossless", name, kLosslessNames, to);
}

}  // namespace thinwire
