#include "nn/cpu/weighted.h"

#include <cassert>
#include <utility>

#include "nn/cpu/kernels.h"

namespace thinwire::cpu {

template <typename Interface>
Error Weighted<Interface>::LoadWeights(const float* weights, const float* bias) {
  assert(kind_->bias() == (bias != nullptr));
  weights_ = weights;
  bias_ = bias;
  return Guarded(onednn_, kind_->name(), [&] {
    for (Packed& packed : packed_) {
      packed.fresh = false;
      if (std::exchange(packed.used, false)) Pack(&packed);
    }
  });
}

template <typename Interface>
void Weighted<Interface>::Pack(Packed* packed) {
  dnnl::memory plain(kind_->weights(), onednn_->engine, const_cast<void*>(weights_));
  packed->pack.execute(onednn_->stream, plain, packed->memory);
  onednn_->stream.wait();
  packed->fresh = true;
}

// Returns the weights in layout `layout`. Layouts that were used since the last load are packed in
// LoadWeights, so that no pass waits for it. Others are packed here on demand: a layout that only
// an evaluation needs costs nothing in training.
template <typename Interface>
void* Weighted<Interface>::PackedWeights(const dnnl::memory::desc& layout) {
  assert(weights_ != nullptr);
  const dnnl::memory plain(kind_->weights(), onednn_->engine, const_cast<void*>(weights_));
  if (layout == plain.get_desc()) return plain.get_data_handle();
  size_t i = 0;
  while (i < packed_.size() && packed_[i].memory.get_desc() != layout) ++i;
  if (i == packed_.size()) {
    const dnnl::memory memory(layout, onednn_->engine);
    packed_.push_back({memory, dnnl::reorder(plain, memory), false});
  }
  Packed& packed = packed_[i];
  if (!packed.fresh) Pack(&packed);
  packed.used = true;
  return packed.memory.get_data_handle();
}

template <typename Interface>
Execution* Weighted<Interface>::Find(Executions* executions, int64_t n,
                                     dnnl::primitive_desc (WeightedKind::*describe)(int64_t) const,
                                     std::vector<int> arguments) {
  std::unique_ptr<Execution>& execution = (*executions)[n];
  if (execution == nullptr) {
    execution = std::make_unique<Execution>(onednn_, (kind_.get()->*describe)(n), arguments);
  }
  return execution.get();
}

template <typename Interface>
Error Weighted<Interface>::Forward(const TensorView& x, const TensorView& y) {
  return Guarded(onednn_, kind_->name(), [&] {
    std::vector<int> arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    if (kind_->bias()) arguments.push_back(DNNL_ARG_BIAS);
    Execution* execution = Find(&forward_, x.dims[0], &WeightedKind::Forward, std::move(arguments));
    execution->Bind(DNNL_ARG_SRC, x.data);
    execution->Bind(DNNL_ARG_WEIGHTS, PackedWeights(execution->layout(DNNL_ARG_WEIGHTS)));
    execution->Bind(DNNL_ARG_DST, y.data);
    if (kind_->bias()) execution->Bind(DNNL_ARG_BIAS, bias_);
    execution->Run();
  });
}

template <typename Interface>
Error Weighted<Interface>::BackwardData(const TensorView& dy, const TensorView& dx) {
  return Guarded(onednn_, kind_->name(), [&] {
    Execution* execution = Find(&backward_data_, dy.dims[0], &WeightedKind::BackwardData,
                                {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC});
    execution->Bind(DNNL_ARG_DIFF_DST, dy.data);
    execution->Bind(DNNL_ARG_WEIGHTS, PackedWeights(execution->layout(DNNL_ARG_WEIGHTS)));
    execution->Bind(DNNL_ARG_DIFF_SRC, dx.data);
    execution->Run();
  });
}

template <typename Interface>
Error Weighted<Interface>::BackwardWeights(const TensorView& x, const TensorView& dy,
                                           float* weights_gradient, float* bias_gradient) {
  assert(kind_->bias() == (bias_gradient != nullptr));
  return Guarded(onednn_, kind_->name(), [&] {
    std::vector<int> arguments = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS};
    if (kind_->bias()) arguments.push_back(DNNL_ARG_DIFF_BIAS);
    Execution* execution =
        Find(&backward_weights_, x.dims[0], &WeightedKind::BackwardWeights, std::move(arguments));
    const dnnl::memory::desc layout = execution->layout(DNNL_ARG_DIFF_WEIGHTS);
    auto* gradient = static_cast<float*>(onednn_->gradients.Get(layout.get_size()));
    execution->Bind(DNNL_ARG_SRC, x.data);
    execution->Bind(DNNL_ARG_DIFF_DST, dy.data);
    execution->Bind(DNNL_ARG_DIFF_WEIGHTS, gradient);
    if (kind_->bias()) {
      bias_gradient_.resize(execution->layout(DNNL_ARG_DIFF_BIAS).get_size() / sizeof(float));
      execution->Bind(DNNL_ARG_DIFF_BIAS, bias_gradient_.data());
    }
    execution->Run();
    AddWeightsGradient(layout, gradient, weights_gradient);
    if (kind_->bias()) {
      Accumulate(1, bias_gradient_.data(), bias_gradient_.size(), bias_gradient);
    }
  });
}

template <typename Interface>
void Weighted<Interface>::AddWeightsGradient(const dnnl::memory::desc& layout, const float* from,
                                             float* to) {
  const dnnl::memory::desc plain = kind_->weights();
  if (layout == plain) {
    Accumulate(onednn_->threads, from, plain.get_size() / sizeof(float), to);
    return;
  }
  // A reorder with a sum after it converts the layout and adds to `to` in one pass.
  dnnl::memory source(layout, onednn_->engine, const_cast<float*>(from));
  dnnl::memory target(plain, onednn_->engine, to);
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(sum);
  dnnl::reorder(source, target, attributes).execute(onednn_->stream, source, target);
  onednn_->stream.wait();
}

template class Weighted<Conv2d>;
template class Weighted<Linear>;

}  // namespace thinwire::cpu
