#include <gtest/gtest.h>

#include "compress/cuda/sparse_testing.h"

namespace thinwire {
namespace {

CodecSpec Threshold(double threshold, RelativeTo relative_to) {
  CodecSpec spec;
  spec.kind = CodecKind::kThreshold;
  spec.threshold = threshold;
  spec.relative_to = relative_to;
  return spec;
}

constexpr RelativeTo kUnits[] = {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax};

TEST(CudaThresholdTest, EveryUnitHasTheCpusBytes) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{3, 5, 37}}) {
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      for (RelativeTo unit : kUnits) {
        for (double threshold : {0.3, 1.0, 2.5}) ExpectTwins(Threshold(threshold, unit), shape, c);
      }
    }
  }
}

// Tests the sum for rms, which depends on its order: stretches of 4096 elements, the last of any
// length.
TEST(CudaThresholdTest, StretchesOfEveryLengthHaveTheCpusBytes) {
  for (int64_t n : {4095, 4096, 4097, 4096 + 17, 20003}) {
    for (RelativeTo unit : kUnits) {
      ExpectTwins(Threshold(1, unit), {n}, {"normal", NormalValues(n)});
    }
  }
}

TEST(CudaThresholdTest, ExtremeThresholdsHaveTheCpusBytes) {
  for (const NamedValues& c : FiniteCases(300)) {
    for (RelativeTo unit : kUnits) {
      for (double threshold : {1e-300, 1e-45, 0x1p-149, 3e38}) {
        ExpectTwins(Threshold(threshold, unit), {300}, c);
      }
    }
  }
}

TEST(CudaThresholdTest, EveryKindOfValuesHasTheCpusBytes) {
  for (const NamedValues& c : FiniteCases(5000)) {
    for (const CodecSpec& spec : EveryKindOfValues(Threshold(1, RelativeTo::kRms))) {
      ExpectTwins(spec, {5000}, c);
    }
  }
}

TEST(CudaThresholdTest, OnlyWhatHasSupportCounts) {
  for (const Shape& shape : {Shape{1}, Shape{20, 300}, Shape{30011}}) {
    for (uint32_t one_in : {1, 3, 50}) {
      const TwinSupport support(SomeOf(shape.elements(), one_in));
      for (RelativeTo unit : kUnits) {
        CodecSpec spec = Threshold(0.7, unit);
        spec.support = Support::kReceivedNonzero;
        ExpectTwins(spec, shape, {"normal", NormalValues(shape.elements())}, &support);
      }
    }
  }
  const TwinSupport none{std::vector<bool>(100)};
  for (RelativeTo unit : kUnits) {
    CodecSpec spec = Threshold(0.7, unit);
    spec.support = Support::kReceivedNonzero;
    ExpectTwins(spec, {100}, {"normal", NormalValues(100)}, &none);
  }
}

TEST(CudaThresholdTest, NaNAndInfinityAreRefusedWhereTheyHaveSupport) {
  const TwinSupport support(SomeOf(10000, 2));
  for (const NamedValues& c : ExtremeCases(10000)) {
    for (RelativeTo unit : kUnits) {
      CodecSpec spec = Threshold(0.7, unit);
      ExpectTwins(spec, {10000}, c);
      spec.support = Support::kReceivedNonzero;
      ExpectTwins(spec, {10000}, c, &support);
    }
  }
}

}  // namespace
}  // namespace thinwire
