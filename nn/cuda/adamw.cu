#include "nn/adamw_factors.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"

namespace thinwire::cuda {
namespace {

enum { kValue, kGradient, kMean, kSquare, kArrays };
constexpr int kMost = 64;
using Arrays = ParameterArrays<kArrays, kMost>;

// The operations of nn/cpu/elementwise.cc, each rounded by itself.
struct Rule {
  GradientFactor factor;
  AdamWFactors f;
  float shrink[kMost];  // of each parameter

  __device__ void operator()(int parameter, float scale, float (&x)[kArrays]) const {
    const float g = scale * x[kGradient];
    x[kMean] = f.beta1 * x[kMean] + f.gain1 * g;
    x[kSquare] = f.beta2 * x[kSquare] + f.gain2 * (g * g);
    const float deviation = sqrtf(x[kSquare]) * f.deviation_scale;
    x[kValue] = shrink[parameter] * x[kValue] - f.rate * x[kMean] / (deviation + f.epsilon);
    x[kGradient] = 0;
  }
};

}  // namespace

Error Kernels::AdamW(const AdamWUpdate& update) {
  const Rule first{{update.gradient_scale, update.clip_factor}, FactorsOf(update), {}};
  return UpdateParameters<Arrays>(device_, update.count, first,
                                  [&](int64_t i, int p, Arrays* arrays, Rule* rule) {
                                    const AdamWParameter& parameter = update.parameters[i];
                                    arrays->array[kValue][p] = parameter.value;
                                    arrays->array[kGradient][p] = parameter.gradient;
                                    arrays->array[kMean][p] = parameter.mean;
                                    arrays->array[kSquare][p] = parameter.square;
                                    arrays->narrow[p] = parameter.narrow;
                                    arrays->n[p] = parameter.n;
                                    rule->shrink[p] = ShrinkOf(update, parameter);
                                  });
}

}  // namespace thinwire::cuda
