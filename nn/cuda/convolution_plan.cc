#include "nn/cuda/convolution_plan.h"

#include <algorithm>
#include <utility>

#include "nn/cuda/convolution.h"

namespace thinwire::cuda {
namespace {

enum Role : int64_t { kX = 1, kW, kY, kSums, kFactor };  // also the tensors' ids in a graph

constexpr float kOne = 1;

// Number of plans to try if cuDNN compiles their kernels, for about a second each.
constexpr size_t kMostCompiled = 3;

// Alignment that convolution.h promises for every tensor.
constexpr int64_t kAlignmentBytes = 16;

// The names of a pass's node and its attributes.
struct PassNames {
  cudnnBackendDescriptorType_t node;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

constexpr PassNames NamesOf(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::kBackwardWeights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// Describes a channels-last tensor. cuDNN orders extents as [outer, channels, height, width] in any
// case; the strides say that channels are contiguous.
CudnnDescriptor ChannelsLast(Role role, DType type, int64_t outer, int64_t channels, int64_t height,
                             int64_t width) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{role});
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CudnnType(type));
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignmentBytes);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>{outer, channels, height, width});
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES,
             std::vector<int64_t>{height * width * channels, 1, width * channels, channels});
  return tensor;
}

// Describes a float in host memory, which is read when a plan is submitted.
CudnnDescriptor Scalar(Role role) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{role});
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{alignof(float)});
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>{1, 1, 1, 1});
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, std::vector<int64_t>{1, 1, 1, 1});
  tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  return tensor;
}

CudnnDescriptor SlidingWindow(const Conv2dSpec& spec) {
  const auto both = [](int64_t pixels) { return std::vector<int64_t>{pixels, pixels}; };
  CudnnDescriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  window.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  window.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, both(1));
  window.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, both(spec.stride));
  window.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, both(spec.padding));
  window.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, both(spec.padding));
  return window;
}

// Ways to make a result of its sums: as asked for (kItself), as a weight gradient in the compute
// type (kRounded), or as an fp32 weight gradient by a second node (kTimesOne). On Hopper, cuDNN
// 9.19 has no engine for the fp32 weight gradient of a bf16 convolution. But it compiles some at
// run time if a second node takes the sums, which stay fp32. With the identity as that node, none
// of them splits the sums, and they take three times as long as engines that write bf16.
enum class Result { kItself, kRounded, kTimesOne };

// A finalized graph with the descriptors that it refers to.
struct BuiltGraph {
  CudnnDescriptor x, w, y, window, node;
  CudnnDescriptor sums, factor, multiply, scaling;  // for kTimesOne
  CudnnDescriptor graph;
};

// Builds the node that makes `to` of built->sums, by a multiplication with one.
Error BuildScaling(const CudnnDescriptor& to, BuiltGraph* built) {
  built->factor = Scalar(kFactor);
  RETURN_ERROR(built->factor.Finalize());
  built->multiply = CudnnDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  built->multiply.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_MUL);
  built->multiply.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  RETURN_ERROR(built->multiply.Finalize());
  built->scaling = CudnnDescriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  built->scaling.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, built->multiply);
  built->scaling.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, built->sums);
  built->scaling.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, built->factor);
  built->scaling.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
  return built->scaling.Finalize();
}

// Builds the graph of a pass; kTimesOne is for weight gradients.
Error Build(const PlanTarget& target, const ConvolutionGraph& wanted, Result result,
            BuiltGraph* built) {
  const Conv2dSpec& spec = wanted.spec;
  const auto filter = [&](Role role, DType type) {
    return ChannelsLast(role, type, spec.out_channels, spec.in_channels, spec.kernel, spec.kernel);
  };
  built->x = ChannelsLast(kX, spec.compute, wanted.n, spec.in_channels, spec.height, spec.width);
  const bool is_wide = wanted.pass == Pass::kBackwardWeights && result != Result::kRounded;
  built->w = filter(kW, is_wide ? DType::kF32 : spec.compute);
  built->y = ChannelsLast(kY, spec.compute, wanted.n, spec.out_channels,
                          OutputExtent(spec, spec.height), OutputExtent(spec, spec.width));
  built->window = SlidingWindow(spec);
  RETURN_ERROR(built->x.Finalize());
  RETURN_ERROR(built->w.Finalize());
  RETURN_ERROR(built->y.Finalize());
  RETURN_ERROR(built->window.Finalize());
  if (result == Result::kTimesOne) {
    built->sums = filter(kSums, DType::kF32);
    built->sums.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    RETURN_ERROR(built->sums.Finalize());
    RETURN_ERROR(BuildScaling(built->w, built));
  }

  const PassNames names = NamesOf(wanted.pass);
  built->node = CudnnDescriptor(names.node);
  built->node.Set(names.convolution, built->window);
  built->node.Set(names.x, built->x);
  built->node.Set(names.w, result == Result::kTimesOne ? built->sums : built->w);
  built->node.Set(names.y, built->y);
  built->node.Set(names.alpha, 1.0f);
  built->node.Set(names.beta, 0.0f);
  RETURN_ERROR(built->node.Finalize());

  built->graph = CudnnDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr) {
    built->graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  }
  if (result == Result::kTimesOne) {
    built->graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, {&built->node, &built->scaling});
  } else {
    built->graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, built->node);
  }
  return built->graph.Finalize();
}

// Appends the engine configurations that the heuristics propose, best first.
Error Propose(const PlanTarget& target, const BuiltGraph& built, cudnnBackendHeurMode_t mode,
              std::vector<CudnnDescriptor>* configs) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, built.graph);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.handle == nullptr) {
    heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.description);
  }
  RETURN_ERROR(heuristics.Finalize());
  int64_t count = 0;
  RETURN_ERROR(heuristics.Count(CUDNN_ATTR_ENGINEHEUR_RESULTS, &count));
  if (count <= 0) return Error{};
  for (int64_t i = 0; i < count; ++i) configs->emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  return heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
}

bool IsForbidden(cudnnBackendNumericalNote_t note, const PlanRules& rules) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return rules.tensor_cores == TensorCores::kForbidden;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return rules.deterministic;
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:          // fp32 to fp16
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:  // sums in fp16
    // The transforms of these amplify rounding errors by an order of magnitude; those of the small
    // tile do not.
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      return true;
    default:
      return false;
  }
}

// Gets the numerical notes of the engine of a configuration.
Error Notes(const CudnnDescriptor& config, std::vector<cudnnBackendNumericalNote_t>* notes) {
  std::vector<CudnnDescriptor> engines;
  engines.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  RETURN_ERROR(config.Get(CUDNN_ATTR_ENGINECFG_ENGINE, &engines));
  if (engines.empty()) {
    return MakeError(absl::StatusCode::kInternal, "cuDNN: a configuration without an engine");
  }
  notes->resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return engines[0].Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, notes);
}

// Offers the plan of a configuration; Unimplemented if it does not qualify.
Error MakePlan(const PlanTarget& target, Result result, CudnnDescriptor config,
               const PlanRules& rules, const OfferPlan& offer, bool* is_enough) {
  std::vector<cudnnBackendNumericalNote_t> notes;
  RETURN_ERROR(Notes(config, &notes));
  if (rules.tensor_cores == TensorCores::kRequired &&
      std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) == notes.end()) {
    return MakeError(absl::StatusCode::kUnimplemented, "an engine without tensor cores");
  }
  for (const cudnnBackendNumericalNote_t note : notes) {
    if (IsForbidden(note, rules)) {
      return MakeError(absl::StatusCode::kUnimplemented, "an engine with numerical note %d", note);
    }
  }
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle != nullptr) {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.description);
  }
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  RETURN_ERROR(plan.Finalize());
  std::vector<int64_t> workspace_bytes(1);
  RETURN_ERROR(plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace_bytes));
  if (workspace_bytes.size() != 1 || workspace_bytes[0] > rules.most_workspace_bytes) {
    return MakeError(absl::StatusCode::kUnimplemented, "an engine with too large a workspace");
  }
  *is_enough = offer(ConvolutionPlan(std::move(config), std::move(plan), workspace_bytes[0],
                                     result == Result::kRounded, result == Result::kTimesOne));
  return Error{};
}

Error FindPlansFor(const PlanTarget& target, const ConvolutionGraph& graph, Result result,
                   const PlanRules& rules, size_t most, const OfferPlan& offer) {
  BuiltGraph built;
  RETURN_ERROR(Build(target, graph, result, &built));
  size_t offered = 0;
  Error last = MakeError(absl::StatusCode::kUnimplemented, "cuDNN proposes no engine");
  // The fallback list has what runs nearly anything; without it the "best" ones might all fail.
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<CudnnDescriptor> configs;
    if (const Error error = Propose(target, built, mode, &configs); !error.ok()) {
      last = error;
      continue;
    }
    for (CudnnDescriptor& config : configs) {
      bool is_enough = false;
      const Error error = MakePlan(target, result, std::move(config), rules, offer, &is_enough);
      if (error.ok()) {
        if (is_enough || ++offered >= most) return Error{};
        continue;
      }
      // If this process is short of memory for the moment, another process would choose
      // differently.
      if (IsExhausted(error)) return error;
      last = error;
    }
    // Other modes repeat configurations, which would be compiled again.
    if (result == Result::kTimesOne && offered > 0) break;
  }
  if (offered > 0) return Error{};
  return MakeError(absl::StatusCode::kUnimplemented, "cuDNN has no plan: %s", last.message);
}

}  // namespace

Error ConvolutionPlan::Run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                           void* workspace) const {
  CudnnDescriptor memory(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  std::vector<int64_t> ids = {kX, kW, kY};
  std::vector<void*> pointers = {const_cast<void*>(x), const_cast<void*>(w), const_cast<void*>(y)};
  if (scales_) {
    ids.push_back(kFactor);
    pointers.push_back(const_cast<float*>(&kOne));
  }
  memory.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  memory.SetPointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
  memory.SetPointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {workspace});
  RETURN_ERROR(memory.Finalize());
  CUDNN_RETURN_IF_ERROR(cudnnBackendExecute(handle, plan_.get(), memory.get()));
  return Error{};
}

Error FindPlans(const PlanTarget& target, const ConvolutionGraph& graph, const PlanRules& rules,
                size_t most, const OfferPlan& offer) {
  const bool is_wider = graph.pass == Pass::kBackwardWeights && graph.spec.compute != DType::kF32;
  if (is_wider && rules.rounds) {
    return FindPlansFor(target, graph, Result::kRounded, rules, most, offer);
  }
  const Error error = FindPlansFor(target, graph, Result::kItself, rules, most, offer);
  if (!is_wider || !IsUnimplemented(error)) return error;
  const Error second =
      FindPlansFor(target, graph, Result::kTimesOne, rules, std::min(most, kMostCompiled), offer);
  if (second.ok() || IsUnimplemented(second) || IsExhausted(second)) return second;
  // Another cuDNN may not know such a graph, which is not needed.
  return MakeError(absl::StatusCode::kUnimplemented, "cuDNN takes no graph of two nodes: %s",
                   second.message);
}

}  // namespace thinwire::cuda
