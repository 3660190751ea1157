#include <vector>

#include "nn/adamw_factors.h"
#include "nn/cuda/adamw_element.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"

namespace thinwire::cuda {
namespace {

enum { kValue, kGradient, kMean, kSquare, kArrays };
constexpr int kMost = 64;
using Arrays = ParameterArrays<kArrays, kMost>;

struct Rule {
  GradientFactor factor;
  AdamWFactors f;
  float shrink[kMost];  // of each parameter

  __device__ void operator()(int parameter, float scale, float (&x)[kArrays]) const {
    UpdateByAdamW(f, shrink[parameter], scale * x[kGradient], &x[kValue], &x[kMean], &x[kSquare]);
    x[kGradient] = 0;
  }
};

}  // namespace

Error Kernels::AdamW(const AdamWUpdate& update) {
  std::vector<AdamWParameter> plain;
  for (int64_t i = 0; i < update.count; ++i) {
    const AdamWParameter& parameter = update.parameters[i];
    if (parameter.is_coded()) {
      RETURN_ERROR(CodedAdamW(device_, update, parameter));
    } else {
      plain.push_back(parameter);
    }
  }
  const Rule first{{update.gradient_scale, update.clip_factor}, FactorsOf(update), {}};
  return UpdateParameters<Arrays>(device_, static_cast<int64_t>(plain.size()), first,
                                  [&](int64_t i, int p, Arrays* arrays, Rule* rule) {
                                    const AdamWParameter& parameter = plain[i];
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
