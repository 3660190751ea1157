// Every bit is the CPU's, as the operations on each element are the same and rounded one by one.
// Sums of squares are the exception: their order differs.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "nn/cuda/testing.h"
#include "nn/moment_codes.h"

namespace thinwire {
namespace {

// Returns memory for a copy of every parameter but each third.
uint16_t* NarrowOf(Side* side, int64_t n, size_t parameter) {
  if (parameter % 3 == 0) return nullptr;
  return static_cast<uint16_t*>(side->Unwritten(DType::kBF16, Shape({n})).data);
}
void AddNarrow(const Side& side, uint16_t* narrow, int64_t n, Outputs* outputs) {
  if (narrow == nullptr) return;
  TensorView view;
  view.data = narrow;
  view.dtype = DType::kBF16;
  view.rank = 1;
  view.dims[0] = n;
  outputs->push_back({"narrow", side.Read(view)});
}

// Makes two steps of parameters of these sizes, with a new learning rate in the second.
Outputs TwoSteps(Side* side, const std::vector<int64_t>& sizes, SgdUpdate update) {
  std::vector<SgdParameter> parameters;
  uint64_t seed = 1;
  for (int64_t n : sizes) {
    SgdParameter parameter;
    parameter.value = side->Of(RandomFloats(n, seed++));
    parameter.gradient = side->Of(RandomFloats(n, seed++));
    if (update.momentum != 0) parameter.velocity = side->Of(Floats(n));
    parameter.n = n;
    parameter.narrow = NarrowOf(side, n, parameters.size());
    parameters.push_back(parameter);
  }
  update.parameters = parameters.data();
  update.count = static_cast<int64_t>(parameters.size());
  EXPECT_TRUE((*side)->Sgd(update).ok());
  update.lr *= 0.5f;
  EXPECT_TRUE((*side)->Sgd(update).ok());
  Outputs outputs;
  for (const SgdParameter& parameter : parameters) {
    outputs.push_back({"value", side->Read(parameter.value, parameter.n)});
    outputs.push_back({"gradient", side->Read(parameter.gradient, parameter.n)});
    if (parameter.velocity != nullptr) {
      outputs.push_back({"velocity", side->Read(parameter.velocity, parameter.n)});
    }
    AddNarrow(*side, parameter.narrow, parameter.n, &outputs);
  }
  return outputs;
}

// Empty parameters, less than a vector, exactly a block's share, and more than that.
const std::vector<int64_t> kSizes = {0, 1, 3, 64, 4096, 0, 0, 4097, 10000, 0};

SgdUpdate Update(float momentum, bool nesterov) {
  SgdUpdate update;
  update.lr = 0.1f;
  update.momentum = momentum;
  update.weight_decay = 0.01f;
  update.nesterov = nesterov;
  return update;
}

TEST(SgdTest, PlainIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0, false)); });
}

TEST(SgdTest, MomentumIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0.9f, false)); });
}

TEST(SgdTest, NesterovIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0.9f, true)); });
}

TEST(SgdTest, ScaledGradientsAreTheCpus) {
  SgdUpdate update = Update(0.9f, true);
  update.gradient_scale = 0.3f;
  ExpectTwins(kSameBits, [&](Side* side) { return TwoSteps(side, kSizes, update); });
}

TEST(SgdTest, MoreParametersThanALaunchTakes) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 200; ++i) sizes.push_back(i % 7 * 5);
  ExpectTwins(kSameBits, [&](Side* side) { return TwoSteps(side, sizes, Update(0.9f, false)); });
}

// Makes two steps of AdamW; all parameters but the second have weight decay.
Outputs TwoStepsOfAdamW(Side* side, const std::vector<int64_t>& sizes) {
  std::vector<AdamWParameter> parameters;
  uint64_t seed = 1;
  for (int64_t n : sizes) {
    AdamWParameter& parameter = parameters.emplace_back();
    parameter.value = side->Of(RandomFloats(n, seed++));
    parameter.gradient = side->Of(RandomFloats(n, seed++));
    parameter.mean = side->Of(Floats(n));
    parameter.square = side->Of(Floats(n));
    parameter.n = n;
    parameter.weight_decay = parameters.size() % 2 == 0 ? 0.0f : 0.1f;
    parameter.narrow = NarrowOf(side, n, parameters.size());
  }
  AdamWUpdate update;
  update.parameters = parameters.data();
  update.count = static_cast<int64_t>(parameters.size());
  update.beta1 = 0.9;
  update.beta2 = 0.999;
  update.epsilon = 1e-8;
  update.gradient_scale = 0.3f;
  for (update.step = 1; update.step <= 2; ++update.step) {
    update.lr = 0.1 / static_cast<double>(update.step);
    EXPECT_TRUE((*side)->AdamW(update).ok());
  }
  Outputs outputs;
  for (const AdamWParameter& p : parameters) {
    for (float* array : {p.value, p.gradient, p.mean, p.square}) {
      outputs.push_back({"array " + std::to_string(outputs.size()), side->Read(array, p.n)});
    }
    AddNarrow(*side, p.narrow, p.n, &outputs);
  }
  return outputs;
}

TEST(AdamWTest, IsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoStepsOfAdamW(side, kSizes); });
}

TEST(AdamWTest, MoreParametersThanALaunchTakes) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 150; ++i) sizes.push_back(i % 7 * 5);
  ExpectTwins(kSameBits, [&](Side* side) { return TwoStepsOfAdamW(side, sizes); });
}

// Appends the bytes of codes and scales.
void AddWords(const Side& side, float* words, int64_t n, Outputs* outputs) {
  Floats bytes;
  for (const int32_t word : side.ReadInts(ViewOf(words, DType::kI32, {MomentWords(n)}))) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<float>(static_cast<uint32_t>(word) >> shift & 0xFF));
    }
  }
  outputs->push_back({"words of " + std::to_string(n), bytes});
}

// Makes three steps with codes. Of the gradients of each parameter some are zero, tiny or, in the
// last step, infinite.
Outputs StepsWithCodes(Side* side, const std::vector<int64_t>& sizes) {
  AdamWUpdate update;
  update.beta1 = 0.9;
  update.beta2 = 0.999;
  update.epsilon = 1e-8;
  update.lr = 0.1;
  Outputs outputs;
  for (const int64_t n : sizes) {
    AdamWParameter parameter;
    parameter.value = side->Of(RandomFloats(n, 1));
    parameter.gradient = side->Of(Floats(n));
    parameter.n = n;
    parameter.weight_decay = 0.1f;
    parameter.narrow = NarrowOf(side, n, static_cast<size_t>(n));
    float *const mean = side->Of(Floats(MomentWords(n))), *const square =
                                                              side->Of(Floats(MomentWords(n)));
    parameter.coded_mean = CodedMeanIn(mean, n);
    parameter.coded_square = CodedMeanIn(square, n);
    update.parameters = &parameter;
    update.count = 1;
    for (update.step = 1; update.step <= 3; ++update.step) {
      Floats gradient = RandomFloats(n, static_cast<uint64_t>(update.step + n));
      for (int64_t i = 0; i < n; ++i) {
        if (i / kMomentBlock % 4 == 1) gradient[i] = 0;
        if (i / kMomentBlock % 4 == 2) gradient[i] *= 1e-32f;
        if (i % 3 == 0) gradient[i] *= 1e-4f;
      }
      if (update.step == 3 && n > 5 * kMomentBlock) {
        gradient[4 * kMomentBlock + 3] = std::numeric_limits<float>::infinity();
      }
      EXPECT_TRUE(side->device()
                      ->CopyFromHost(parameter.gradient, gradient.data(), sizeof(float) * n)
                      .ok());
      EXPECT_TRUE((*side)->AdamW(update).ok());
    }
    outputs.push_back({"value", side->Read(parameter.value, n)});
    outputs.push_back({"gradient", side->Read(parameter.gradient, n)});
    AddNarrow(*side, parameter.narrow, n, &outputs);
    AddWords(*side, mean, n, &outputs);
    AddWords(*side, square, n, &outputs);
  }
  return outputs;
}

TEST(CodedAdamWTest, IsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) {
    return StepsWithCodes(side, {1, 255, 256, 257, 1000, 4096, 10007});
  });
}

TEST(CodedAdamWTest, StandsBesideParametersWithNumbers) {
  ExpectTwins(kSameBits, [](Side* side) {
    AdamWParameter parameters[2];
    for (AdamWParameter& parameter : parameters) {
      parameter.n = 300;
      parameter.value = side->Of(RandomFloats(300, 1));
      parameter.gradient = side->Of(RandomFloats(300, 2));
    }
    parameters[0].coded_mean = CodedMeanIn(side->Of(Floats(MomentWords(300))), 300);
    parameters[0].coded_square = CodedMeanIn(side->Of(Floats(MomentWords(300))), 300);
    parameters[1].mean = side->Of(Floats(300));
    parameters[1].square = side->Of(Floats(300));
    const float factor = 0.5f;
    AdamWUpdate update;
    update.parameters = parameters;
    update.count = 2;
    update.step = 1;
    update.lr = 0.1;
    update.epsilon = 1e-8;
    update.clip_factor = side->Of({factor});
    EXPECT_TRUE((*side)->AdamW(update).ok());
    return Outputs{{"coded", side->Read(parameters[0].value, 300)},
                   {"numbers", side->Read(parameters[1].value, 300)}};
  });
}

std::vector<double> SumsOfSquares(Side* side, const std::vector<int64_t>& sizes) {
  std::vector<FloatRange> ranges;
  for (const int64_t n : sizes) {
    ranges.push_back({side->Of(RandomFloats(n, ranges.size() + 1, 0, 1e15f)), n});
  }
  std::vector<double> sums(sizes.size(), -1);
  EXPECT_TRUE(
      (*side)->SumsOfSquares(ranges.data(), static_cast<int64_t>(sizes.size()), sums.data()).ok());
  return sums;
}

TEST(SumsOfSquaresTest, AreTheCpusInAnotherOrder) {
  std::vector<int64_t> sizes = {0, 1, 0, 100, 8192, 30001, 0};
  for (int64_t i = 0; i < 200; ++i) sizes.push_back(i % 7 * 5);  // more than a launch takes
  Side cpu = CpuSide(), device = DeviceSide(), misaligned = DeviceSide(1);
  const std::vector<double> want = SumsOfSquares(&cpu, sizes);
  for (Side* side : {&device, &misaligned}) {
    const std::vector<double> got = SumsOfSquares(side, sizes);
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14 * want[i]) << i;
  }
  EXPECT_TRUE(device->SumsOfSquares(nullptr, 0, nullptr).ok());
}

TEST(CombineTest, IsTheCpusInPlaceAndWithoutASecondTerm) {
  for (const int64_t n : {1, 3, 4096, 10001}) {
    ExpectTwins(kSameBits, [n](Side* side) -> Outputs {
      float* const a = side->Of(RandomFloats(n, 1));
      float* const b = side->Of(RandomFloats(n, 2));
      float* const apart = side->Unwritten(n);
      EXPECT_TRUE((*side)->Combine({-0.3f, a, 1.7f, b, apart, n}).ok());
      EXPECT_TRUE((*side)->Combine({0.9f, a, -0.1f, b, a, n}).ok());
      EXPECT_TRUE((*side)->Combine({0.7f, b, 0, nullptr, b, n}).ok());
      return {{"apart", side->Read(apart, n)}, {"a", side->Read(a, n)}, {"b", side->Read(b, n)}};
    });
  }
}

TEST(SgdTest, NoParametersAreNoError) { EXPECT_TRUE(DeviceSide()->Sgd(Update(0.9f, false)).ok()); }

}  // namespace
}  // namespace thinwire
