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

// One pass of a convolution for a batch of n. Channels-last tensors as in convolution.h, each in
// the role that it has in Forward: dy is a y, dx an x and dw a w.
struct ConvolutionGraph {
  Pass pass = Pass::kForward;
  Conv2dSpec spec;
  int64_t n = 0;
};

enum class TensorCores { kForbidden, kAllowed, kRequired };

// What a plan may do to the numbers. Inputs are never narrowed and sums never less than fp32.
struct PlanRules {
  bool deterministic = true;
  TensorCores tensor_cores = TensorCores::kForbidden;  // which for fp32 mean TF32
  int64_t most_workspace_bytes = 0;
  // A weight gradient of bf16, summed in fp32, is written in bf16, for which cuDNN has fast plans.
  bool rounds = false;
};

// The GPU that plans are for: a handle's, or one that cuDNN only has a description of
// (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) and for which it makes plans that cannot run.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* description = nullptr;  // without a handle
};

class ConvolutionPlan {
 public:
  // `scales`: of a graph with a factor (convolution_plan.cc).
  ConvolutionPlan(CudnnDescriptor config, CudnnDescriptor plan, int64_t workspace_bytes,
                  bool is_rounded, bool scales)
      : config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes),
        is_rounded_(is_rounded),
        scales_(scales) {}

  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether a weight gradient, summed in fp32, is written in the narrower compute type.
  bool is_rounded() const { return is_rounded_; }

  // Submits it. One of x, w, y is the result; `workspace` may be null when it is to have no bytes.
  Error Run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
            void* workspace) const;

 private:
  CudnnDescriptor config_;  // kept as long as the plan that was made from it
  CudnnDescriptor plan_;
  int64_t workspace_bytes_;
  bool is_rounded_, scales_;
};

// Gets a plan that may be used; true if no further one is wanted.
using OfferPlan = std::function<bool(ConvolutionPlan)>;

// Makes and offers plans, one by one and up to `most`, in the order of cuDNN's heuristics, which
// depends on the graph, the device and cuDNN's version only. Unimplemented, with
// cuDNN's last reason, when there is none; ResourceExhausted when memory was short.
Error FindPlans(const PlanTarget& target, const ConvolutionGraph& graph, const PlanRules& rules,
                size_t most, const OfferPlan& offer);

}  // namespace thinwire::cuda
