#include <gtest/gtest.h>

#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

constexpr Rounding kRoundings[] = {Rounding::kNearest, Rounding::kStochastic, Rounding::kDither,
                                   Rounding::kDeadZone, Rounding::kNearestNonzero};

// Returns every rounding, with means and without.
std::vector<CodecSpec> SpecsOf(double step, Scope scope, uint32_t group = 0) {
  std::vector<CodecSpec> specs;
  for (Rounding rounding : kRoundings) {
    for (Reconstruction reconstruction : {Reconstruction::kMean, Reconstruction::kCenter}) {
      CodecSpec& spec = specs.emplace_back();
      spec.kind = CodecKind::kEcsq;
      spec.step = step;
      spec.scope = scope;
      spec.group = group;
      spec.rounding = rounding;
      spec.reconstruction = reconstruction;
    }
  }
  return specs;
}

TEST(CudaEcsqTest, EveryShapeAndScopeHasTheCpusBytes) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{2, 0, 3}, Shape{127}, Shape{129, 1},
                             Shape{2, 9, 9, 64}, Shape{4, 1025}, Shape{2, 9001}}) {
    const NamedValues normal{"normal", NormalValues(shape.elements())};
    for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kToken}) {
      for (const CodecSpec& spec : SpecsOf(1, scope)) ExpectTwins(spec, shape, normal);
    }
    for (uint32_t group : {1, 3, 64, 5000}) {
      for (const CodecSpec& spec : SpecsOf(1, Scope::kGroup, group)) {
        ExpectTwins(spec, shape, normal);
      }
    }
  }
}

TEST(CudaEcsqTest, EveryStepHasTheCpusBytesWithManyCodesThatHaveNone) {
  const Shape shape = {3, 4099};
  const NamedValues normal{"normal", NormalValues(shape.elements())};
  for (double step : {0x1p-10, 0.004, 0.01, 0.3, 5.0, 1024.0}) {
    for (const CodecSpec& spec : SpecsOf(step, Scope::kSample)) ExpectTwins(spec, shape, normal);
  }
}

TEST(CudaEcsqTest, SpecialValuesHaveTheCpusBytesAndErrors) {
  const Shape shape = {3, 5, 33};
  for (const NamedValues& c : CasesOf(shape.elements())) {
    for (double step : {0.01, 1.0}) {
      for (const CodecSpec& spec : SpecsOf(step, Scope::kToken)) ExpectTwins(spec, shape, c);
    }
  }
}

}  // namespace
}  // namespace thinwire
