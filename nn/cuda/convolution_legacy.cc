#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "nn/cuda/convolution_cudnn.h"
#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

constexpr int kMostAlgorithms = 16;  // more than any of the three passes has

// Owns one of cuDNN's descriptors.
template <typename Descriptor, cudnnStatus_t (*create)(Descriptor*),
          cudnnStatus_t (*destroy)(Descriptor)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (descriptor_ != nullptr) (void)destroy(descriptor_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  cudnnStatus_t Create() { return create(&descriptor_); }
  Descriptor get() const { return descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
};
using OwnedTensor =
    Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using OwnedFilter =
    Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using OwnedWindow = Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                          cudnnDestroyConvolutionDescriptor>;

template <typename Algorithm>
struct Choice {
  Algorithm algorithm;
  size_t workspace_bytes;
};

// Objects for one batch size. A pass chooses its algorithm when it is first executed.
struct Prepared {
  OwnedTensor x, y;
  OwnedFilter w;
  OwnedWindow window;
  std::optional<Choice<cudnnConvolutionFwdAlgo_t>> forward;
  std::optional<Choice<cudnnConvolutionBwdDataAlgo_t>> backward_data;
  std::optional<Choice<cudnnConvolutionBwdFilterAlgo_t>> backward_weights;
};

constexpr float kOne = 1, kZero = 0;

class LegacyConvolution final : public Convolution {
 public:
  LegacyConvolution(CudnnHandle* cudnn, const OpsOptions& options, const Conv2dSpec& spec)
      : cudnn_(cudnn), options_(options), spec_(spec) {}

  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    cudnnHandle_t handle;
    Prepared* p;
    RETURN_ERROR(Start(n, &handle, &p));
    const auto list = [&](int most, int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
      return cudnnGetConvolutionForwardAlgorithm_v7(handle, p->x.get(), p->w.get(), p->window.get(),
                                                    p->y.get(), most, count, found);
    };
    const auto measure = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionForwardWorkspaceSize(handle, p->x.get(), p->w.get(),
                                                     p->window.get(), p->y.get(), algorithm, bytes);
    };
    RETURN_ERROR(Choose<cudnnConvolutionFwdAlgoPerf_t>(
        list, measure, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, &p->forward));
    Workspace workspace(cudnn_->device());
    RETURN_ERROR(workspace.Reserve(p->forward->workspace_bytes));
    CUDNN_RETURN_IF_ERROR(cudnnConvolutionForward(
        handle, &kOne, p->x.get(), x, p->w.get(), w, p->window.get(), p->forward->algorithm,
        workspace.data(), p->forward->workspace_bytes, &kZero, p->y.get(), y));
    return Error{};
  }

  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    cudnnHandle_t handle;
    Prepared* p;
    RETURN_ERROR(Start(n, &handle, &p));
    const auto list = [&](int most, int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
      return cudnnGetConvolutionBackwardDataAlgorithm_v7(
          handle, p->w.get(), p->y.get(), p->window.get(), p->x.get(), most, count, found);
    };
    const auto measure = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle, p->w.get(), p->y.get(), p->window.get(), p->x.get(), algorithm, bytes);
    };
    RETURN_ERROR(Choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        list, measure, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, &p->backward_data));
    Workspace workspace(cudnn_->device());
    RETURN_ERROR(workspace.Reserve(p->backward_data->workspace_bytes));
    CUDNN_RETURN_IF_ERROR(cudnnConvolutionBackwardData(
        handle, &kOne, p->w.get(), w, p->y.get(), dy, p->window.get(), p->backward_data->algorithm,
        workspace.data(), p->backward_data->workspace_bytes, &kZero, p->x.get(), dx));
    return Error{};
  }

  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw, DType* type) override {
    if (spec_.compute != DType::kF32) {
      return MakeError(absl::StatusCode::kUnimplemented, "conv2d: no fp32 weight gradient of %s",
                       Name(spec_.compute));
    }
    cudnnHandle_t handle;
    Prepared* p;
    RETURN_ERROR(Start(n, &handle, &p));
    const auto list = [&](int most, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
      return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
          handle, p->x.get(), p->y.get(), p->window.get(), p->w.get(), most, count, found);
    };
    const auto measure = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle, p->x.get(), p->y.get(), p->window.get(), p->w.get(), algorithm, bytes);
    };
    RETURN_ERROR(Choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        list, measure, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, &p->backward_weights));
    Workspace workspace(cudnn_->device());
    RETURN_ERROR(workspace.Reserve(p->backward_weights->workspace_bytes));
    CUDNN_RETURN_IF_ERROR(cudnnConvolutionBackwardFilter(
        handle, &kOne, p->x.get(), x, p->y.get(), dy, p->window.get(),
        p->backward_weights->algorithm, workspace.data(), p->backward_weights->workspace_bytes,
        &kZero, p->w.get(), dw));
    *type = DType::kF32;
    return Error{};
  }

 private:
  Error Start(int64_t n, cudnnHandle_t* handle, Prepared** prepared) {
    RETURN_ERROR(cudnn_->Get(handle));
    std::unique_ptr<Prepared>& of_n = prepared_[n];
    if (of_n == nullptr) {
      auto fresh = std::make_unique<Prepared>();
      RETURN_ERROR(Describe(n, fresh.get()));
      of_n = std::move(fresh);
    }
    *prepared = of_n.get();
    return Error{};
  }

  Error Describe(int64_t n, Prepared* p) const {
    const int64_t extents[] = {n,           spec_.in_channels, spec_.out_channels, spec_.height,
                               spec_.width, spec_.kernel,      spec_.stride,       spec_.padding};
    const int64_t greatest = *std::max_element(std::begin(extents), std::end(extents));
    if (greatest > std::numeric_limits<int>::max() / 4) {
      return MakeError(absl::StatusCode::kUnimplemented, "conv2d: an extent of %lld",
                       static_cast<long long>(greatest));
    }
    const auto number = [](int64_t extent) { return static_cast<int>(extent); };
    const int in = number(spec_.in_channels), out = number(spec_.out_channels);
    const int kernel = number(spec_.kernel), stride = number(spec_.stride);
    const int padding = number(spec_.padding);
    const cudnnDataType_t type = CudnnType(spec_.compute);
    CUDNN_RETURN_IF_ERROR(p->x.Create());
    CUDNN_RETURN_IF_ERROR(p->y.Create());
    CUDNN_RETURN_IF_ERROR(p->w.Create());
    CUDNN_RETURN_IF_ERROR(p->window.Create());
    CUDNN_RETURN_IF_ERROR(cudnnSetTensor4dDescriptor(p->x.get(), CUDNN_TENSOR_NHWC, type, number(n),
                                                     in, number(spec_.height),
                                                     number(spec_.width)));
    CUDNN_RETURN_IF_ERROR(cudnnSetTensor4dDescriptor(p->y.get(), CUDNN_TENSOR_NHWC, type, number(n),
                                                     out, number(OutputExtent(spec_, spec_.height)),
                                                     number(OutputExtent(spec_, spec_.width))));
    CUDNN_RETURN_IF_ERROR(
        cudnnSetFilter4dDescriptor(p->w.get(), type, CUDNN_TENSOR_NHWC, out, in, kernel, kernel));
    CUDNN_RETURN_IF_ERROR(cudnnSetConvolution2dDescriptor(
        p->window.get(), padding, padding, stride, stride, /*dilation_h=*/1, /*dilation_w=*/1,
        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CUDNN_RETURN_IF_ERROR(cudnnSetConvolutionMathType(p->window.get(), Math()));
    return Error{};
  }

  // The default would allow TF32 for fp32; FMA forbids all tensor cores.
  cudnnMathType_t Math() const {
    if (spec_.compute != DType::kF32) return CUDNN_TENSOR_OP_MATH;
    return options_.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }

  // Chooses an algorithm. list(most, &count, found) and measure(algorithm, &bytes) ask cuDNN. It
  // never takes `coarse`: the transforms of large Winograd tiles amplify rounding errors
  // (convolution_plan.cc).
  template <typename Performance, typename Algorithm, typename List, typename Measure>
  Error Choose(const List& list, const Measure& measure, Algorithm coarse,
               std::optional<Choice<Algorithm>>* choice) const {
    if (choice->has_value()) return Error{};
    Performance found[kMostAlgorithms];
    int count = 0;
    int64_t most_bytes = 0;
    RETURN_ERROR(MostWorkspaceBytes(cudnn_->device(), &most_bytes));
    if (const cudnnStatus_t status = list(kMostAlgorithms, &count, found);
        status != CUDNN_STATUS_SUCCESS) {
      return CudnnError(status, "cudnnGetConvolution...Algorithm_v7");
    }
    for (int i = 0; i < count; ++i) {
      if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].algo == coarse) continue;
      if (options_.deterministic && found[i].determinism != CUDNN_DETERMINISTIC) continue;
      size_t bytes = 0;
      if (measure(found[i].algo, &bytes) != CUDNN_STATUS_SUCCESS) continue;
      if (bytes > static_cast<size_t>(most_bytes)) continue;
      *choice = {found[i].algo, bytes};
      return Error{};
    }
    return MakeError(absl::StatusCode::kUnimplemented, "conv2d: cuDNN has no algorithm");
  }

  CudnnHandle* const cudnn_;
  const OpsOptions options_;
  const Conv2dSpec spec_;
  std::map<int64_t, std::unique_ptr<Prepared>> prepared_;  // by batch size
};

}  // namespace

std::unique_ptr<Convolution> NewLegacyConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                  const Conv2dSpec& spec) {
  return std::make_unique<LegacyConvolution>(cudnn, options, spec);
}

}  // namespace thinwire::cuda
