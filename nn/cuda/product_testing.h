// Shared by the tests of convolutions and linear layers: runs all four calls of one layer on the
// CPU, whose results are the definition, and on the device, in every precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "nn/cuda/testing.h"

namespace thinwire {

// Shapes of x, W and y; W in PyTorch's layout.
struct ProductShapes {
  Shape x, weights, y;
  bool bias = false;
};

struct Precision {
  DType compute = DType::kF32;
  OpsOptions options;
  // Greatest error, relative to the greatest value: of y and dx, and of dW and db, which are fp32
  // sums in any case.
  double activations = 0, gradients = 0;
};

inline Precision FP32() { return {DType::kF32, {}, 1e-5, 1e-5}; }
// Products have 11 bits; their errors mostly cancel.
inline Precision TF32() {
  Precision precision{DType::kF32, {}, 2e-3, 2e-3};
  precision.options.tf32 = true;
  return precision;
}
// Half a unit in the last place, and twice that if a bias is added to rounded sums. Tensor cores
// add in fp32 but truncate where others round.
inline Precision BF16() { return {DType::kBF16, {}, 0x1p-7, 5e-5}; }
// Weight gradients are rounded each time.
inline Precision BF16Convolutions() { return {DType::kBF16, {}, 0x1p-7, 0x1p-8}; }
inline Precision WhateverIsFastest(Precision precision) {
  precision.options.deterministic = false;
  return precision;
}

// Returns uniform values of the given standard deviation, rounded to `type`, equal for equal
// arguments.
inline Floats Uniform(int64_t n, uint32_t seed, float deviation, DType type) {
  Floats values(static_cast<size_t>(n));
  uint32_t state = seed;
  for (float& value : values) {
    state = 1664525 * state + 1013904223;  // Knuth's generator; its upper bits are random enough
    value = deviation * 3.4641016f * (static_cast<float>(state >> 8) * 0x1p-24f - 0.5f);
  }
  if (type == DType::kF32) return values;
  Side cpu = CpuSide();
  return cpu.Read(cpu.Of(type, Shape({n}), values));
}

// The tensors of one layer on one side, with the same numbers on every side.
template <typename Op>
struct Product {
  Op* op;
  TensorView x, y, dy, dx;
  float *weights, *bias = nullptr;
  float *weights_gradient, *bias_gradient = nullptr;
  int64_t out;

  // Operands are rounded to `values` and stored in `compute`. Gradients start at 1.
  Product(Side* side, Op* op, const ProductShapes& shapes, DType compute, DType values)
      : op(op), out(shapes.weights[0]) {
    const int64_t fan_in = shapes.weights.elements() / out;
    const float scale = 1 / std::sqrt(static_cast<float>(fan_in));
    const auto random = [&](const Shape& shape, uint32_t seed, float deviation) {
      return Uniform(shape.elements(), seed, deviation, values);
    };
    x = side->Of(compute, shapes.x, random(shapes.x, 1, 1));
    dy = side->Of(compute, shapes.y, random(shapes.y, 2, 1));
    y = side->Unwritten(compute, shapes.y);
    dx = side->Unwritten(compute, shapes.x);
    weights = side->Of(random(shapes.weights, 3, scale));
    weights_gradient = side->Of(Floats(shapes.weights.elements(), 1));
    if (shapes.bias) {
      bias = side->Of(random({out}, 4, 1));
      bias_gradient = side->Of(Floats(out, 1));
    }
  }

  Error Forward() { return op->Forward(x, y); }
  Error Backward() {
    RETURN_ERROR(op->BackwardWeights(x, dy, weights_gradient, bias_gradient));
    return op->BackwardData(dy, dx);
  }
  Outputs Read(const Side& side, const ProductShapes& shapes) const {
    Outputs outputs = {{"y", side.Read(y)},
                       {"dx", side.Read(dx)},
                       {"dW", side.Read(weights_gradient, shapes.weights.elements())}};
    if (shapes.bias) outputs.push_back({"db", side.Read(bias_gradient, out)});
    return outputs;
  }
};

inline void ExpectOk(const Error& error) { EXPECT_TRUE(error.ok()) << error.message; }

// Runs Forward, and Backward twice, so that gradients have something to add to.
template <typename Op>
Outputs RunProduct(Side* side, Op* op, const ProductShapes& shapes, DType compute, DType values) {
  Product<Op> product(side, op, shapes, compute, values);
  ExpectOk(op->LoadWeights(product.weights, product.bias));
  ExpectOk(product.Forward());
  ExpectOk(product.Backward());
  ExpectOk(product.Backward());
  return product.Read(*side, shapes);
}

inline void ExpectClose(const Outputs& want, const Outputs& got, const Precision& precision) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < want.size(); ++k) {
    const Floats &a = want[k].second, &b = got[k].second;
    ASSERT_EQ(a.size(), b.size());
    double greatest = 0, error = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(std::isfinite(b[i])) << want[k].first << "[" << i << "]";
      greatest = std::max(greatest, std::abs(static_cast<double>(a[i])));
      error = std::max(error, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    const bool of_parameter = want[k].first == "dW" || want[k].first == "db";
    EXPECT_LE(error, greatest * (of_parameter ? precision.gradients : precision.activations))
        << want[k].first;
  }
}

// Expects that what is recorded runs only when it is replayed, and then gives the same bits as
// without a recording.
template <typename Op>
void ExpectReplays(Op* op, const ProductShapes& shapes, DType compute) {
  Side side = DeviceSide();
  const Outputs want = RunProduct(&side, op, shapes, compute, compute);  // prepares, too
  Product<Op> product(&side, op, shapes, compute, compute);
  Recorder* made = nullptr;
  ExpectOk(side.device()->NewRecorder(&made));
  const std::unique_ptr<Recorder> recorder(made);
  ASSERT_NE(recorder, nullptr);
  ExpectOk(recorder->Start());
  ExpectOk(op->LoadWeights(product.weights, product.bias));
  ExpectOk(product.Forward());
  ExpectOk(product.Backward());
  int recording = -1;
  ExpectOk(recorder->Stop(&recording));
  EXPECT_TRUE(std::isnan(side.Read(product.y)[0]));
  ExpectOk(recorder->Replay(recording));
  ExpectOk(recorder->Replay(recording));
  ExpectNear(want, product.Read(side, shapes), kSameBits);
}

// Expects the same bits from `op`, made by `ops`, while weights are joined as from single calls.
template <typename Op>
void ExpectJoins(Ops* ops, Op* op, const ProductShapes& shapes, DType compute) {
  Side side = DeviceSide();
  const Outputs want = RunProduct(&side, op, shapes, compute, compute);
  Product<Op> product(&side, op, shapes, compute, compute);
  ops->JoinWeights();
  ExpectOk(op->LoadWeights(product.weights, product.bias));
  ExpectOk(product.Forward());
  ExpectOk(product.Backward());
  ExpectOk(product.Backward());
  ExpectOk(ops->FinishWeights());
  ExpectNear(want, product.Read(side, shapes), kSameBits);
}

}  // namespace thinwire
