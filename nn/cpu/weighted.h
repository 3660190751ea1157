// Shared by convolution and the linear layer: a forward and two backward primitives per batch size,
// weights packed into the layouts that these prefer, and weight gradients unpacked.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "nn/cpu/onednn.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire::cpu {

// Describes one oneDNN operation for a batch of n. Activations are plain (the last axis
// contiguous), weights `format_tag::any`.
class WeightedKind {
 public:
  virtual ~WeightedKind() = default;
  virtual const char* name() const = 0;
  virtual bool bias() const = 0;
  // Returns the plain layout in which parameters are kept, fp32 unless the layer borrows them.
  virtual dnnl::memory::desc weights() const = 0;
  virtual dnnl::primitive_desc Forward(int64_t n) const = 0;
  virtual dnnl::primitive_desc BackwardData(int64_t n) const = 0;
  virtual dnnl::primitive_desc BackwardWeights(int64_t n) const = 0;
};

// Runs the operation that a WeightedKind describes: Conv2d, or the functions of Linear that are the
// same.
template <typename Interface>
class Weighted : public Interface {
 public:
  Weighted(OneDnn* onednn, std::unique_ptr<WeightedKind> kind)
      : onednn_(onednn), kind_(std::move(kind)) {}

  Error LoadWeights(const float* weights, const float* bias) override;
  NarrowCopies narrow_copies() const override { return {}; }
  Error Forward(const TensorView& x, const TensorView& y) override;
  Error BackwardData(const TensorView& dy, const TensorView& dx) override;
  Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                        float* bias_gradient) override;

 protected:
  // Sets weights that are used where they stand, in the plain layout.
  void Borrow(const void* weights) { weights_ = weights; }

 private:
  using Executions = std::unordered_map<int64_t, std::unique_ptr<Execution>>;  // by batch size

  // The weights in one layout, which batch sizes and directions may share.
  struct Packed {
    dnnl::memory memory;
    dnnl::reorder pack;
    bool fresh = false;  // has the weights that were loaded last
    bool used = false;   // has been used since then
  };

  void Pack(Packed* packed);
  void* PackedWeights(const dnnl::memory::desc& layout);
  void AddWeightsGradient(const dnnl::memory::desc& layout, const float* from, float* to);
  Execution* Find(Executions* executions, int64_t n,
                  dnnl::primitive_desc (WeightedKind::*describe)(int64_t) const,
                  std::vector<int> arguments);

  OneDnn* const onednn_;
  const std::unique_ptr<WeightedKind> kind_;
  const void* weights_ = nullptr;
  const float* bias_ = nullptr;
  Executions forward_, backward_data_, backward_weights_;
  std::vector<Packed> packed_;
  std::vector<float> bias_gradient_;
};

// Convolution on oneDNN; contract in nn/ops.h.
std::unique_ptr<WeightedKind> NewConv2dKind(OneDnn* onednn, const Conv2dSpec& spec);

// The linear layer on oneDNN; contract in nn/ops.h.
std::unique_ptr<WeightedKind> NewLinearKind(OneDnn* onednn, const LinearSpec& spec);

}  // namespace thinwire::cpu
