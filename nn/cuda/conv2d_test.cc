#include "nn/cuda/conv2d_testing.h"

namespace thinwire {
namespace {

void ExpectConvolutions(const std::vector<ConvCase>& cases, const Precision& precision) {
  const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
  const auto make = [&](const Conv2dSpec& spec, Conv2d** conv) {
    return ops->NewConv2d(spec, conv);
  };
  ExpectConvolutions(cases, TestedDevice(), precision, make);
}

TEST(Conv2dTest, IsTheCpusInFP32) { ExpectConvolutions(ConvCases(), FP32()); }
TEST(Conv2dTest, IsCloseInTF32) { ExpectConvolutions(ConvCases(), TF32()); }
TEST(Conv2dTest, RoundsResultsButNoSumsInBF16) {
  ExpectConvolutions(ConvCases(), BF16Convolutions());
}
TEST(Conv2dTest, IsTheCpusInFP32WhenTimed) {
  ExpectConvolutions(FewConvCases(), WhateverIsFastest(FP32()));
}
TEST(Conv2dTest, RoundsResultsButNoSumsInBF16WhenTimed) {
  ExpectConvolutions(FewConvCases(), WhateverIsFastest(BF16Convolutions()));
}

constexpr ConvCase kOne = {3, 16, 32, 8, 3, 1, 1, true};

// A second Ops stands for a second process.
TEST(Conv2dTest, GivesEqualBitsInEveryOps) {
  for (const Precision& precision : {FP32(), TF32(), BF16Convolutions()}) {
    Outputs of_ops[2];
    for (Outputs& outputs : of_ops) {
      const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
      Side side = DeviceSide();
      const auto make = [&](const Conv2dSpec& spec, Conv2d** conv) {
        return ops->NewConv2d(spec, conv);
      };
      outputs = RunConv2d(&side, make, kOne, precision.compute, precision.compute);
    }
    ExpectNear(of_ops[0], of_ops[1], kSameBits);
  }
}

TEST(Conv2dTest, TakesBatchesOfAnySizeInTurn) {
  const std::unique_ptr<Ops> ops = NewTestedOps(OpsOptions());
  Conv2d* made = nullptr;
  ASSERT_TRUE(ops->NewConv2d(SpecOf(kOne, DType::kF32), &made).ok());
  const std::unique_ptr<Conv2d> conv(made);
  for (const int64_t n : {4, 1, 3, 4}) {
    ConvCase of = kOne;
    of.n = n;
    Side cpu = CpuSide(), device = DeviceSide();
    const auto make_on_cpu = [&](const Conv2dSpec& spec, Conv2d** on_cpu) {
      return cpu->NewConv2d(spec, on_cpu);
    };
    const Outputs want = RunConv2d(&cpu, make_on_cpu, of, DType::kF32, DType::kF32);
    ExpectClose(want, RunProduct(&device, conv.get(), ShapesOf(of), DType::kF32, DType::kF32),
                FP32());
  }
}

TEST(Conv2dTest, IsRecordedAndReplayedAndJoined) {
  for (const Precision& precision : {FP32(), BF16Convolutions()}) {
    const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
    Conv2d* made = nullptr;
    ASSERT_TRUE(ops->NewConv2d(SpecOf(kOne, precision.compute), &made).ok());
    const std::unique_ptr<Conv2d> conv(made);
    ExpectReplays(conv.get(), ShapesOf(kOne), precision.compute);
    ExpectJoins(ops.get(), conv.get(), ShapesOf(kOne), precision.compute);
  }
}

TEST(Conv2dTest, RefusesToRecordTheFirstBatchOfASize) {
  const std::unique_ptr<Ops> ops = NewTestedOps(OpsOptions());
  Conv2d* made = nullptr;
  ASSERT_TRUE(ops->NewConv2d(SpecOf(kOne, DType::kF32), &made).ok());
  const std::unique_ptr<Conv2d> conv(made);
  Side side = DeviceSide();
  (void)RunProduct(&side, conv.get(), ShapesOf(kOne), DType::kF32, DType::kF32);
  ConvCase larger = kOne;
  ++larger.n;
  Product<Conv2d> product(&side, conv.get(), ShapesOf(larger), DType::kF32, DType::kF32);
  Recorder* recorder_made = nullptr;
  ExpectOk(side.device()->NewRecorder(&recorder_made));
  const std::unique_ptr<Recorder> recorder(recorder_made);
  ExpectOk(recorder->Start());
  EXPECT_EQ(ToStatus(product.Forward()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStatus(product.Backward()).code(), absl::StatusCode::kFailedPrecondition);
  recorder->Abandon();
  ExpectOk(product.Forward());
}

TEST(Conv2dTest, RefusesMemoryThatIsNotAligned) {
  const std::unique_ptr<Ops> ops = NewTestedOps(OpsOptions());
  Conv2d* made = nullptr;
  ASSERT_TRUE(ops->NewConv2d(SpecOf(kOne, DType::kF32), &made).ok());
  const std::unique_ptr<Conv2d> conv(made);
  Side side = DeviceSide(/*misaligned=*/1);
  Product<Conv2d> product(&side, conv.get(), ShapesOf(kOne), DType::kF32, DType::kF32);
  EXPECT_EQ(ToStatus(product.Forward()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStatus(product.Backward()).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire
