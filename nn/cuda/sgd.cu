#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"

namespace thinwire::cuda {
namespace {

enum { kValue, kGradient, kVelocity, kArrays };
using Arrays = ParameterArrays<kArrays, /*kMost=*/80>;

// Each multiplication and addition is rounded by itself, as on the CPU.
struct Rule {
  float lr, momentum, weight_decay;
  GradientFactor factor;
  bool nesterov;

  __device__ void operator()(int, float scale, float (&x)[kArrays]) const {
    float g = scale * x[kGradient] + weight_decay * x[kValue];
    if (momentum != 0) {
      x[kVelocity] = momentum * x[kVelocity] + g;
      g = nesterov ? g + momentum * x[kVelocity] : x[kVelocity];
    }
    x[kValue] -= lr * g;
    x[kGradient] = 0;
  }
};

}  // namespace

Error Kernels::Sgd(const SgdUpdate& update) {
  const Rule rule{update.lr,
                  update.momentum,
                  update.weight_decay,
                  {update.gradient_scale, update.clip_factor},
                  update.nesterov};
  return UpdateParameters<Arrays>(device_, update.count, rule,
                                  [&](int64_t i, int p, Arrays* arrays, Rule*) {
                                    const SgdParameter& parameter = update.parameters[i];
                                    arrays->array[kValue][p] = parameter.value;
                                    arrays->array[kGradient][p] = parameter.gradient;
                                    arrays->array[kVelocity][p] = parameter.velocity;
                                    arrays->narrow[p] = parameter.narrow;
                                    arrays->n[p] = parameter.n;
                                  });
}

}  // namespace thinwire::cuda
