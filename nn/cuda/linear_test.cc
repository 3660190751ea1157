#include "nn/cuda/product_testing.h"

namespace thinwire {
namespace {

struct LinearCase {
  int64_t n, in, out;
  bool bias;
};

// ResNet-18's sizes, a language model's, and sizes that nothing divides.
constexpr LinearCase kCases[] = {{100, 512, 10, true}, {3, 512, 10, true},   {1, 1, 1, true},
                                 {64, 256, 256, true}, {129, 257, 63, true}, {7, 33, 5, false},
                                 {128, 768, 96, false}};

LinearSpec SpecOf(const LinearCase& of, DType compute) {
  LinearSpec spec;
  spec.in_features = of.in;
  spec.out_features = of.out;
  spec.bias = of.bias;
  spec.compute = compute;
  return spec;
}

ProductShapes ShapesOf(const LinearCase& of) {
  return {{of.n, of.in}, {of.out, of.in}, {of.n, of.out}, of.bias};
}

Outputs RunLinear(Side* side, Ops* ops, const LinearCase& of, DType compute, DType values) {
  Linear* made = nullptr;
  const Error error = ops->NewLinear(SpecOf(of, compute), &made);
  EXPECT_TRUE(error.ok()) << error.message;
  const std::unique_ptr<Linear> linear(made);
  if (linear == nullptr) return {};
  return RunProduct(side, linear.get(), ShapesOf(of), compute, values);
}

void ExpectLinears(const Precision& precision) {
  const std::unique_ptr<Ops> ops = NewTestedOps(precision.options), on_cpu = NewCpuOps(1);
  for (const LinearCase& of : kCases) {
    SCOPED_TRACE(ShapesOf(of).x.ToString() + " -> " + ShapesOf(of).y.ToString());
    Side cpu = CpuSide(), device = DeviceSide(), misaligned = DeviceSide(/*misaligned=*/1);
    const Outputs want = RunLinear(&cpu, on_cpu.get(), of, DType::kF32, precision.compute);
    const DType compute = precision.compute;
    ExpectClose(want, RunLinear(&device, ops.get(), of, compute, compute), precision);
    ExpectClose(want, RunLinear(&misaligned, ops.get(), of, compute, compute), precision);
  }
}

TEST(LinearTest, IsTheCpusInFP32) { ExpectLinears(FP32()); }
TEST(LinearTest, IsCloseInTF32) { ExpectLinears(TF32()); }
TEST(LinearTest, RoundsResultsButNoSumsInBF16) { ExpectLinears(BF16()); }

// Returns [n, row] of [n, columns], with zeros behind.
Floats Longer(const Floats& tight, int64_t columns, int64_t row) {
  const auto n = static_cast<int64_t>(tight.size()) / columns;
  Floats longer(n * row);
  for (int64_t i = 0; i < n * columns; ++i) longer[i / columns * row + i % columns] = tight[i];
  return longer;
}

TEST(LinearTest, LongerRowsHaveZerosBehindTheResults) {
  for (const Precision& precision : {FP32(), BF16()}) {
    for (const LinearCase& of : {LinearCase{7, 33, 10, true}, LinearCase{5, 64, 129, false}}) {
      const DType compute = precision.compute;
      const std::unique_ptr<Ops> ops = NewTestedOps(precision.options), on_cpu = NewCpuOps(1);
      Side cpu = CpuSide(), side = DeviceSide();
      Outputs want = RunLinear(&cpu, on_cpu.get(), of, DType::kF32, compute);
      LinearSpec spec = SpecOf(of, compute);
      const int64_t row = spec.row = ops->RowOfLogits(of.out);
      EXPECT_EQ(row, (of.out + 63) / 64 * 64);
      want[0].second = Longer(want[0].second, of.out, row);
      Linear* made = nullptr;
      ExpectOk(ops->NewLinear(spec, &made));
      const std::unique_ptr<Linear> linear(made);
      Product<Linear> product(&side, linear.get(), ShapesOf(of), compute, compute);
      const Floats dy = side.Read(product.dy);
      product.y = side.Unwritten(compute, {of.n, row});
      product.dy = side.Of(compute, {of.n, row}, Longer(dy, of.out, row));
      ExpectOk(linear->LoadWeights(product.weights, product.bias));
      ExpectOk(product.Forward());
      ExpectOk(product.Backward());
      ExpectOk(product.Backward());
      const Outputs got = product.Read(side, ShapesOf(of));
      ExpectClose(want, got, precision);
      for (int64_t i = 0; i < of.n * row; ++i) {
        if (i % row < of.out) continue;
        ASSERT_EQ(got[0].second[i], 0) << i;
      }
    }
  }
}

// Runs the passes that have GELU in them. Behind them stand those that have it apart.
Outputs RunGelu(Side* side, Ops* ops, const LinearCase& of, DType compute, DType values) {
  Linear* made = nullptr;
  ExpectOk(ops->NewLinear(SpecOf(of, compute), &made));
  const std::unique_ptr<Linear> linear(made);
  Product<Linear> product(side, linear.get(), ShapesOf(of), compute, values);
  const TensorView y = side->Unwritten(compute, {of.n, of.out});
  const TensorView u = side->Of(compute, {of.n, of.in}, Uniform(of.n * of.in, 5, 2, values));
  const TensorView du = side->Unwritten(compute, {of.n, of.in});
  ExpectOk(linear->LoadWeights(product.weights, product.bias));
  ExpectOk(linear->ForwardGelu(product.x, product.y, y));
  ExpectOk(linear->BackwardGelu(product.dy, u, du));
  const Floats of_forward = side->Read(product.y);
  const TensorView alone = side->Unwritten(compute, {of.n, of.out});
  ExpectOk(linear->ForwardGelu(product.x, TensorView(), alone));
  ExpectOk(linear->Forward(product.x, product.y));
  ExpectOk(linear->BackwardData(product.dy, product.dx));
  return {{"u", of_forward},
          {"y", side->Read(y)},
          {"du", side->Read(du)},
          {"u again", side->Read(product.y)},
          {"dx", side->Read(product.dx)},
          {"y without u", side->Read(alone)}};
}

// Rows are, and are not, as long as libraries want them.
TEST(LinearTest, GeluInAProductIsGeluBehindIt) {
  for (const Precision& precision : {FP32(), TF32(), BF16()}) {
    const std::unique_ptr<Ops> ops = NewTestedOps(precision.options), on_cpu = NewCpuOps(1);
    for (const LinearCase& of :
         {LinearCase{100, 64, 256, true}, LinearCase{64, 256, 96, false}, kCases[4], kCases[5],
          LinearCase{9, 20, 32, true}, LinearCase{9, 32, 20, true}}) {
      SCOPED_TRACE(ShapesOf(of).x.ToString() + " -> " + ShapesOf(of).y.ToString());
      const DType compute = precision.compute;
      Side cpu = CpuSide(), device = DeviceSide(), again = DeviceSide(), misaligned = DeviceSide(1);
      const Outputs want = RunGelu(&cpu, on_cpu.get(), of, DType::kF32, compute);
      const Outputs got = RunGelu(&device, ops.get(), of, compute, compute);
      ExpectClose(want, got, precision);
      ExpectNear(got, RunGelu(&again, ops.get(), of, compute, compute), kSameBits);
      ExpectClose(want, RunGelu(&misaligned, ops.get(), of, compute, compute), precision);
    }
  }
}

// Rows are not as long as the library wants them, in one direction or in both.
TEST(LinearTest, WithoutGeluInAProductItIsThatOfTheRoundedProduct) {
  const std::unique_ptr<Ops> ops = NewTestedOps();
  for (const LinearCase& of :
       {LinearCase{9, 20, 36, true}, LinearCase{9, 20, 32, false}, kCases[4]}) {
    SCOPED_TRACE(ShapesOf(of).x.ToString() + " -> " + ShapesOf(of).y.ToString());
    Side side = DeviceSide();
    const Outputs got = RunGelu(&side, ops.get(), of, DType::kBF16, DType::kBF16);
    const TensorView y = side.Of(DType::kBF16, {of.n, of.out}, got[3].second);
    ExpectOk(ops->Apply(Pointwise::kTanhGelu, y, y));
    const TensorView u =
        side.Of(DType::kBF16, {of.n, of.in}, Uniform(of.n * of.in, 5, 2, DType::kBF16));
    const TensorView du = side.Of(DType::kBF16, {of.n, of.in}, got[4].second);
    ExpectOk(ops->ApplyBackward(Pointwise::kTanhGelu, u, du, du));
    EXPECT_EQ(got[2].second, side.Read(du));
    if (of.out % 8 == 0) continue;
    EXPECT_EQ(got[1].second, side.Read(y));
    EXPECT_EQ(got[5].second, side.Read(y));
  }
}

// The CPU does one after the other.
TEST(LinearTest, OnTheCpuGeluInAProductHasTheBitsOfGeluBehindIt) {
  const LinearCase of = kCases[4];
  const std::unique_ptr<Ops> ops = NewCpuOps(2);
  Side cpu = CpuSide();
  const Outputs got = RunGelu(&cpu, ops.get(), of, DType::kF32, DType::kF32);
  const Shape out({of.n, of.out}), in({of.n, of.in});
  const TensorView y = cpu.Of(DType::kF32, out, got[3].second);
  ExpectOk(ops->Apply(Pointwise::kTanhGelu, y, y));
  const TensorView u = cpu.Of(DType::kF32, in, Uniform(of.n * of.in, 5, 2, DType::kF32));
  const TensorView du = cpu.Of(DType::kF32, in, got[4].second);
  ExpectOk(ops->ApplyBackward(Pointwise::kTanhGelu, u, du, du));
  ExpectNear({{"u", got[3].second}, {"y", cpu.Read(y)}, {"du", cpu.Read(du)}, {"y", cpu.Read(y)}},
             {got[0], got[1], got[2], got[5]}, kSameBits);
}

TEST(LinearTest, GeluInAProductIsRecordedAndReplayed) {
  const LinearCase of = {9, 16, 24, true};
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    const std::unique_ptr<Ops> ops = NewTestedOps();
    Linear* made = nullptr;
    ExpectOk(ops->NewLinear(SpecOf(of, compute), &made));
    const std::unique_ptr<Linear> linear(made);
    Side side = DeviceSide();
    Product<Linear> product(&side, linear.get(), ShapesOf(of), compute, compute);
    const TensorView y = side.Unwritten(compute, {of.n, of.out});
    ExpectOk(linear->LoadWeights(product.weights, product.bias));
    const auto submit = [&] {
      ExpectOk(linear->ForwardGelu(product.x, product.y, y));
      ExpectOk(linear->BackwardGelu(y, product.x, product.dx));
    };
    submit();
    const Floats want = side.Read(product.dx);
    Recorder* made_recorder = nullptr;
    ExpectOk(side.device()->NewRecorder(&made_recorder));
    const std::unique_ptr<Recorder> recorder(made_recorder);
    int recording = -1;
    ExpectOk(recorder->Start());
    submit();
    ExpectOk(recorder->Stop(&recording));
    ExpectOk(side->Convert(side.Unwritten(compute, {of.n, of.in}), product.dx));
    ExpectOk(recorder->Replay(recording));
    EXPECT_EQ(side.Read(product.dx), want);
  }
}

TEST(LinearTest, GivesEqualBitsInEveryOps) {
  for (const Precision& precision : {FP32(), TF32(), BF16()}) {
    Outputs of_ops[2];
    for (Outputs& outputs : of_ops) {
      const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
      Side side = DeviceSide();
      outputs = RunLinear(&side, ops.get(), kCases[4], precision.compute, precision.compute);
    }
    ExpectNear(of_ops[0], of_ops[1], kSameBits);
  }
}

TEST(LinearTest, IsRecordedAndReplayedAndJoined) {
  for (const Precision& precision : {FP32(), BF16()}) {
    const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
    Linear* made = nullptr;
    ASSERT_TRUE(ops->NewLinear(SpecOf(kCases[1], precision.compute), &made).ok());
    const std::unique_ptr<Linear> linear(made);
    ExpectReplays(linear.get(), ShapesOf(kCases[1]), precision.compute);
    ExpectJoins(ops.get(), linear.get(), ShapesOf(kCases[1]), precision.compute);
  }
}

// Returns y, y with GELU, dx and dx with GELU of a layer whose weights are loaded, or borrowed.
Outputs RunBorrowed(Side* side, Ops* ops, const LinearCase& of, DType compute, bool borrows) {
  LinearSpec spec = SpecOf(of, compute);
  spec.borrows_weights = borrows;
  Linear* made = nullptr;
  ExpectOk(ops->NewLinear(spec, &made));
  const std::unique_ptr<Linear> linear(made);
  const int64_t elements = of.out * of.in;
  Product<Linear> product(side, linear.get(), ShapesOf(of), compute, compute);
  const TensorView u = side->Of(compute, {of.n, of.in}, Uniform(of.n * of.in, 5, 2, compute));
  const TensorView gelu = side->Unwritten(compute, {of.n, of.out});
  const TensorView du = side->Unwritten(compute, {of.n, of.in});
  ExpectOk(linear->LoadWeights(borrows ? nullptr : product.weights, product.bias));
  const auto borrow = [&](const Floats& values) {
    if (!borrows) return;
    ExpectOk(linear->UseWeights(side->Of(compute, {of.out, of.in}, values).data));
  };
  const Floats weights = side->Read(product.weights, elements);
  borrow(Floats(elements, 7));
  borrow(weights);
  ExpectOk(linear->Forward(product.x, product.y));
  ExpectOk(linear->ForwardGelu(product.x, TensorView(), gelu));
  borrow(weights);
  ExpectOk(linear->BackwardData(product.dy, product.dx));
  ExpectOk(linear->BackwardGelu(product.dy, u, du));
  return {{"y", side->Read(product.y)},
          {"gelu", side->Read(gelu)},
          {"dx", side->Read(product.dx)},
          {"du", side->Read(du)}};
}

TEST(LinearTest, BorrowedWeightsAreAsGoodAsLoadedOnes) {
  for (const Precision& precision : {FP32(), BF16()}) {
    const std::unique_ptr<Ops> ops = NewTestedOps(precision.options);
    for (const LinearCase& of : {LinearCase{64, 256, 256, true}, LinearCase{7, 64, 40, false}}) {
      Side loaded = DeviceSide(), borrowed = DeviceSide();
      ExpectNear(RunBorrowed(&loaded, ops.get(), of, precision.compute, false),
                 RunBorrowed(&borrowed, ops.get(), of, precision.compute, true), kSameBits);
    }
  }
}

}  // namespace
}  // namespace thinwire
