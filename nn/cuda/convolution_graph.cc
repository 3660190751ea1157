#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "nn/cuda/convolution_cudnn.h"
#include "nn/cuda/convolution_plan.h"
#include "nn/cuda/plan_choice.h"
#include "nn/cuda/plan_trial.h"
#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

constexpr size_t kPlansToTry = 3;  // until one runs
constexpr size_t kPlansToTime = 8;

class GraphConvolution final : public Convolution {
 public:
  GraphConvolution(CudnnHandle* cudnn, const OpsOptions& options, const Conv2dSpec& spec)
      : cudnn_(cudnn), options_(options), spec_(spec) {}
  // Waits, as plans hold kernels that may still run.
  ~GraphConvolution() override { (void)cudnn_->device()->Finish(); }

  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    return Run(Pass::kForward, n, x, w, y);
  }
  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    return Run(Pass::kBackwardData, n, dx, w, dy);
  }
  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw, DType* type) override {
    bool is_rounded = false;
    RETURN_ERROR(Run(Pass::kBackwardWeights, n, x, dw, dy, &is_rounded));
    *type = is_rounded ? spec_.compute : DType::kF32;
    return Error{};
  }

 private:
  using Plan = std::optional<ConvolutionPlan>;  // empty: cuDNN has no plan

  Error Run(Pass pass, int64_t n, const void* x, const void* w, const void* y,
            bool* is_rounded = nullptr) {
    cudnnHandle_t handle;
    RETURN_ERROR(cudnn_->Get(&handle));
    auto plan = plans_.find({pass, n});
    if (plan == plans_.end()) {
      Plan chosen;
      RETURN_ERROR(Choose(handle, {pass, spec_, n}, {x, w, y}, &chosen));
      plan = plans_.emplace(std::pair(pass, n), std::move(chosen)).first;
    }
    if (!plan->second.has_value()) {
      return MakeError(absl::StatusCode::kUnimplemented, "conv2d: cuDNN's graph API has no plan");
    }
    Workspace workspace(cudnn_->device());
    RETURN_ERROR(workspace.Reserve(static_cast<size_t>(plan->second->workspace_bytes())));
    if (is_rounded != nullptr) *is_rounded = plan->second->is_rounded();
    return plan->second->Run(handle, x, w, y, workspace.data());
  }

  // Chooses a plan by trying: what cuDNN plans may fail on the device, and there are other ways.
  Error Choose(cudnnHandle_t handle, const ConvolutionGraph& graph, const TrialOperands& operands,
               Plan* chosen) const {
    CudaDevice* const device = cudnn_->device();
    RETURN_ERROR(CheckMayPrepare(device, "conv2d", graph.n));
    const auto attempt = [&](const ConvolutionPlan& plan, float* milliseconds) {
      return options_.deterministic ? TryPlan(device, handle, plan, operands)
                                    : TimePlan(device, handle, plan, operands, milliseconds);
    };
    PlanChoice<ConvolutionPlan> choice(options_.deterministic ? Take::kFirst : Take::kFastest,
                                       attempt);
    RETURN_ERROR(Find(handle, graph, &choice));
    if (choice.chosen().has_value()) {
      *chosen = std::move(choice.chosen());
      return Error{};
    }
    if (choice.IsShortOfMemory()) return choice.error();
    return device->Finish();  // an error here is the device's and stays
  }

  // Offers the candidates; it is no error if there are none.
  Error Find(cudnnHandle_t handle, const ConvolutionGraph& graph,
             PlanChoice<ConvolutionPlan>* choice) const {
    PlanRules rules;
    rules.deterministic = options_.deterministic;
    RETURN_ERROR(MostWorkspaceBytes(cudnn_->device(), &rules.most_workspace_bytes));
    rules.rounds = graph.pass == Pass::kBackwardWeights && spec_.compute != DType::kF32;
    if (rules.rounds) {
      const Error error = FindBy(rules, handle, graph, choice);
      if (choice->chosen().has_value() || choice->IsShortOfMemory()) return Error{};
      if (IsExhausted(error)) return error;
      rules.rounds = false;
    }
    return FindBy(rules, handle, graph, choice);
  }

  // Offers the candidates for `rules`, of which it chooses tensor_cores.
  Error FindBy(PlanRules rules, cudnnHandle_t handle, const ConvolutionGraph& graph,
               PlanChoice<ConvolutionPlan>* choice) const {
    const bool bf16 = spec_.compute != DType::kF32;
    const auto offer = [&](ConvolutionPlan plan) { return choice->Offer(std::move(plan)); };
    const size_t most = options_.deterministic ? kPlansToTry : kPlansToTime;
    if (options_.deterministic && (bf16 || options_.tf32)) {
      // The first plan of all may do without tensor cores, as cuDNN 9.19's for 1 x 1 pixels at
      // stride 2.
      rules.tensor_cores = TensorCores::kRequired;
      const Error error = FindPlans({handle, nullptr}, graph, rules, most, offer);
      if (choice->chosen().has_value() || choice->IsShortOfMemory()) return Error{};
      if (!error.ok() && !IsUnimplemented(error)) return error;
    }
    rules.tensor_cores = options_.tf32 || bf16 ? TensorCores::kAllowed : TensorCores::kForbidden;
    const Error error = FindPlans({handle, nullptr}, graph, rules, most, offer);
    return IsUnimplemented(error) ? Error{} : error;
  }

  CudnnHandle* const cudnn_;
  const OpsOptions options_;
  const Conv2dSpec spec_;
  std::map<std::pair<Pass, int64_t>, Plan> plans_;  // by pass and batch size; recordings use them
};

}  // namespace

std::unique_ptr<Convolution> NewGraphConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                 const Conv2dSpec& spec) {
  return std::make_unique<GraphConvolution>(cudnn, options, spec);
}

}  // namespace thinwire::cuda
