// Execution plans of cuDNN's graph API for one pass of a convolution.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "nn/cuda/cudnn.h"
#include "nn/ops.h"

namespace thinwire::cuda {

enum class Pass { kForward, kBackwardData, kBackwardWeights };

// One pass of a convolution for a batch of n. Tensors are channels-last as in convolution.h. Each
// is named by its role in Forward: dy is a y, dx an x and dw a w.
struct ConvolutionGraph {
  Pass pass = Pass::kForward;
  Conv2dSpec spec;
  int64_t n = 0;
};

enum class TensorCores { kForbidden, kAllowed, kRequired };

// Limits of what a plan may do to numbers. Inputs are never narrowed, and sums are at least fp32.
struct PlanRules {
  bool deterministic = true;
  TensorCores tensor_cores = TensorCores::kForbidden;  // for fp32 these mean TF32
  int64_t most_workspace_bytes = 0;
  // Write a weight gradient of bf16, summed in fp32, as bf16; cuDNN has fast plans for that.
  bool rounds = false;
};

// The GPU that plans are for: that of a handle, or one that cuDNN only has a description of
// (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Plans for the latter cannot run.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* description = nullptr;  // used without a handle
};

class ConvolutionPlan {
 public:
  // `scales` says that the graph has a factor (convolution_plan.cc).
  ConvolutionPlan(CudnnDescriptor config, CudnnDescriptor plan, int64_t workspace_bytes,
                  bool is_rounded, bool scales)
      : config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes),
        is_rounded_(is_rounded),
        scales_(scales) {}

  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Returns whether a weight gradient, summed in fp32, is written in the narrower compute type.
  bool is_rounded() const { return is_rounded_; }

  // Submits the plan. One of x, w, y is the result; `workspace` may be null if it needs no bytes.
  Error Run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
            void* workspace) const;

 private:
  CudnnDescriptor config_;  // must live as long as the plan made from it
  CudnnDescriptor plan_;
  int64_t workspace_bytes_;
  bool is_rounded_, scales_;
};

// Takes a plan that may be used; returns true if no further one is wanted.
using OfferPlan = std::function<bool(ConvolutionPlan)>;

// Makes and offers up to `most` plans, one by one, in the order of cuDNN's heuristics. That order
// depends only on the graph, the device and cuDNN's version. Unimplemented, with cuDNN's last
// reason, if there is no plan; ResourceExhausted if memory was short.
Error FindPlans(const PlanTarget& target, const ConvolutionGraph& graph, const PlanRules& rules,
                size_t most, const OfferPlan& offer);

}  // namespace thinwire::cuda
