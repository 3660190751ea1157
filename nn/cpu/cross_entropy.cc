#include "nn/cpu/cross_entropy.h"

#include <cmath>
#include <vector>

#include "nn/cpu/bf16.h"

namespace thinwire::cpu {
namespace {

// One thread and fp64: a row of logits is small beside the network that made it.
template <typename T>
void Typed(const CrossEntropy& a, double* loss, int64_t* correct) {
  const int64_t n = a.logits.dims[0], classes = a.logits.dims[1];
  const T* logits = static_cast<const T*>(a.logits.data);
  T* dlogits = static_cast<T*>(a.dlogits.data);
  std::vector<double> exponentials(classes);
  *loss = 0;
  *correct = 0;
  for (int64_t i = 0; i < n; ++i, logits += classes) {
    int64_t top = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (LoadOne(logits + c) > LoadOne(logits + top)) top = c;
    }
    const double greatest = static_cast<double>(LoadOne(logits + top));
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      exponentials[c] = std::exp(static_cast<double>(LoadOne(logits + c)) - greatest);
      sum += exponentials[c];
    }
    const int64_t label = a.labels[i];
    *loss += std::log(sum) + greatest - static_cast<double>(LoadOne(logits + label));
    *correct += top == label;
    if (dlogits == nullptr) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const double gradient = exponentials[c] / sum - (c == label ? 1.0 : 0.0);
      StoreOne(static_cast<float>(gradient / static_cast<double>(a.batch_size)), dlogits++);
    }
  }
}

}  // namespace

void SoftmaxCrossEntropy(const CrossEntropy& arguments, double* loss, int64_t* correct) {
  if (arguments.logits.dtype == DType::kF32) {
    Typed<float>(arguments, loss, correct);
  } else {
    Typed<uint16_t>(arguments, loss, correct);
  }
}

}  // namespace thinwire::cpu
