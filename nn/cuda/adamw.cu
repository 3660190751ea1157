#include <cmath>

#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"

namespace thinwire::cuda {
namespace {

enum { kValue, kGradient, kMean, kSquare, kArrays };
constexpr int kMost = 64;
using Arrays = ParameterArrays<kArrays, kMost>;

// The operations of nn/cpu/adamw.cc, each rounded by itself, with factors computed in fp64.
struct Rule {
  GradientFactor factor;
  float beta1, gain1;     // m = beta1 m + gain1 g
  float beta2, gain2;     // v = beta2 v + gain2 g^2
  float rate;             // lr / (1 - beta1^step)
  float deviation_scale;  // 1 / sqrt(1 - beta2^step)
  float epsilon;
  float shrink[kMost];  // 1 - lr weight_decay, of each parameter

  __device__ void operator()(int parameter, float scale, float (&x)[kArrays]) const {
    const float g = scale * x[kGradient];
    x[kMean] = beta1 * x[kMean] + gain1 * g;
    x[kSquare] = beta2 * x[kSquare] + gain2 * (g * g);
    const float deviation = sqrtf(x[kSquare]) * deviation_scale;
    x[kValue] = shrink[parameter] * x[kValue] - rate * x[kMean] / (deviation + epsilon);
    x[kGradient] = 0;
  }
};

Rule RuleOf(const AdamWUpdate& u) {
  const double step = static_cast<double>(u.step);
  Rule rule{};
  rule.factor = {u.gradient_scale, u.clip_factor};
  rule.beta1 = static_cast<float>(u.beta1);
  rule.gain1 = static_cast<float>(1 - u.beta1);
  rule.beta2 = static_cast<float>(u.beta2);
  rule.gain2 = static_cast<float>(1 - u.beta2);
  rule.rate = static_cast<float>(u.lr / (1 - std::pow(u.beta1, step)));
  rule.deviation_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(u.beta2, step)));
  rule.epsilon = static_cast<float>(u.epsilon);
  return rule;
}

}  // namespace

Error AdamW(CudaDevice* device, const AdamWUpdate& update) {
  return UpdateParameters<Arrays>(
      device, update.count, RuleOf(update), [&](int64_t i, int p, Arrays* arrays, Rule* rule) {
        const AdamWParameter& parameter = update.parameters[i];
        arrays->array[kValue][p] = parameter.value;
        arrays->array[kGradient][p] = parameter.gradient;
        arrays->array[kMean][p] = parameter.mean;
        arrays->array[kSquare][p] = parameter.square;
        arrays->narrow[p] = parameter.narrow;
        arrays->n[p] = parameter.n;
        rule->shrink[p] =
            static_cast<float>(1 - update.lr * static_cast<double>(parameter.weight_decay));
      });
}

}  // namespace thinwire::cuda
