// Numbers of an AdamW update that are the same for all elements, as all backends compute them.
#pragma once

#include <cmath>

#include "nn/ops.h"

namespace thinwire {

struct AdamWFactors {
  float beta1, gain1;     // m = beta1 m + gain1 g
  float beta2, gain2;     // v = beta2 v + gain2 g^2
  float rate;             // lr / (1 - beta1^step)
  float deviation_scale;  // 1 / sqrt(1 - beta2^step)
  float epsilon;
};

// Computes them in fp64.
inline AdamWFactors FactorsOf(const AdamWUpdate& u) {
  const double step = static_cast<double>(u.step);
  AdamWFactors f;
  f.beta1 = static_cast<float>(u.beta1);
  f.gain1 = static_cast<float>(1 - u.beta1);
  f.beta2 = static_cast<float>(u.beta2);
  f.gain2 = static_cast<float>(1 - u.beta2);
  f.rate = static_cast<float>(u.lr / (1 - std::pow(u.beta1, step)));
  f.deviation_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(u.beta2, step)));
  f.epsilon = static_cast<float>(u.epsilon);
  return f;
}

// Returns 1 - lr weight_decay of a parameter.
inline float ShrinkOf(const AdamWUpdate& u, const AdamWParameter& parameter) {
  return static_cast<float>(1 - u.lr * static_cast<double>(parameter.weight_decay));
}

}  // namespace thinwire
