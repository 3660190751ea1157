// fused_attention.h by cuDNN, with graphs that NVIDIA's cudnn-frontend composes. Without its
// headers (third_party/cuda/repository.bzl) there is none.
#include "nn/cuda/fused_attention.h"

#ifdef THINWIRE_CUDNN_FRONTEND

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nn/cuda/cudnn.h"
#include "nn/cuda/preparation.h"
#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

namespace fe = cudnn_frontend;
using GraphTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Role : int64_t { kQ = 1, kK, kV, kY, kLogSumExp, kDy, kDq, kDk, kDv };

// Everything that a plan depends on: pass, extents and strides.
using Key = std::vector<int64_t>;

Key KeyOf(bool backward, const AttentionOperands& a) {
  Key key = {
      backward, a.log_sum_exp != nullptr, a.causal, a.batch, a.heads, a.kv_heads, a.head_size,
      a.queries};
  for (const HeadRows& rows : {a.q, a.k, a.v, a.y, a.dy, a.dq, a.dk, a.dv}) {
    key.insert(key.end(), {rows.sample, rows.position, rows.head});
  }
  return key;
}

// One pass as a graph, and its plan.
class FusedPass {
 public:
  explicit FusedPass(const AttentionOperands& a) : a_(a) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  void ComposeForward() {
    auto attributes = fe::graph::SDPA_attributes();
    attributes.set_name("forward").set_causal_mask(a_.causal).set_attn_scale(a_.scale);
    attributes.set_generate_stats(a_.log_sum_exp != nullptr);
    const auto [y, sums] = graph_.sdpa(Read(kQ, a_.q), Read(kK, a_.k), Read(kV, a_.v), attributes);
    Write(kY, a_.y, y);
    if (sums != nullptr) Write(kLogSumExp, Sums(), sums);
  }

  void ComposeBackward(bool deterministic) {
    auto attributes = fe::graph::SDPA_backward_attributes();
    attributes.set_name("backward").set_causal_mask(a_.causal).set_attn_scale(a_.scale);
    attributes.set_deterministic_algorithm(deterministic);
    const auto [dq, dk, dv] =
        graph_.sdpa_backward(Read(kQ, a_.q), Read(kK, a_.k), Read(kV, a_.v), Read(kY, a_.y),
                             Read(kDy, a_.dy), Read(kLogSumExp, Sums()), attributes);
    Write(kDq, a_.dq, dq);
    Write(kDk, a_.dk, dk);
    Write(kDv, a_.dv, dv);
  }

  // Returns whether cuDNN has a plan that needs at most `most_workspace_bytes`.
  bool Plan(cudnnHandle_t handle, int64_t most_workspace_bytes) {
    return graph_.validate().is_good() && graph_.build_operation_graph(handle).is_good() &&
           graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_good() &&
           graph_.deselect_workspace_greater_than(most_workspace_bytes).check_support().is_good() &&
           graph_.build_plans().is_good() && graph_.get_workspace_size(workspace_bytes_).is_good();
  }

  Error Run(cudnnHandle_t handle, CudaDevice* device, const AttentionOperands& a) {
    Workspace workspace(device);
    RETURN_ERROR(workspace.Reserve(static_cast<size_t>(workspace_bytes_)));
    std::unordered_map<int64_t, void*> memory = {
        {kQ, a.q.data}, {kK, a.k.data}, {kV, a.v.data}, {kY, a.y.data}};
    if (a.log_sum_exp != nullptr) memory[kLogSumExp] = a.log_sum_exp;
    if (a.dq.data != nullptr) {
      memory.insert({{kDy, a.dy.data}, {kDq, a.dq.data}, {kDk, a.dk.data}, {kDv, a.dv.data}});
    }
    auto status = graph_.execute(handle, memory, workspace.data());
    if (status.is_good()) return Error{};
    return MakeError(absl::StatusCode::kInternal, "attention: cuDNN: %s",
                     status.get_message().c_str());
  }

 private:
  // Returns log_sum_exp as rows of one element.
  HeadRows Sums() const { return {a_.log_sum_exp, a_.heads * a_.queries, 1, a_.queries}; }

  void Describe(Role role, const HeadRows& rows, fe::graph::Tensor_attributes* tensor) const {
    const bool is_shared = role == kK || role == kV || role == kDk || role == kDv;
    const int64_t heads = is_shared ? a_.kv_heads : a_.heads;
    const int64_t size = role == kLogSumExp ? 1 : a_.head_size;
    if (role == kLogSumExp) tensor->set_data_type(fe::DataType_t::FLOAT);
    tensor->set_uid(role)
        .set_dim({a_.batch, heads, a_.queries, size})
        .set_stride({rows.sample, rows.head, rows.position, 1});
  }
  GraphTensor Read(Role role, const HeadRows& rows) {
    fe::graph::Tensor_attributes tensor;
    Describe(role, rows, &tensor);
    return graph_.tensor(tensor);
  }
  void Write(Role role, const HeadRows& rows, const GraphTensor& tensor) const {
    Describe(role, rows, tensor.get());
    tensor->set_output(true);
  }

  const AttentionOperands a_;  // addresses are those of the call that made it
  fe::graph::Graph graph_;
  int64_t workspace_bytes_ = 0;
};

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(CudaDevice* device, const OpsOptions& options)
      : cudnn_(device), options_(options) {}
  // Waits, as plans hold kernels that may still run.
  ~CudnnAttention() override { (void)cudnn_.device()->Finish(); }

  Error Forward(const AttentionOperands& a) override { return Run(/*backward=*/false, a); }
  Error Backward(const AttentionOperands& a) override { return Run(/*backward=*/true, a); }

 private:
  Error Run(bool backward, const AttentionOperands& a) {
    cudnnHandle_t handle;
    RETURN_ERROR(cudnn_.Get(&handle));
    auto found = passes_.find(KeyOf(backward, a));
    if (found == passes_.end()) {
      std::unique_ptr<FusedPass> made;
      RETURN_ERROR(Prepare(handle, backward, a, &made));
      found = passes_.emplace(KeyOf(backward, a), std::move(made)).first;
    }
    if (found->second == nullptr) {
      return MakeError(absl::StatusCode::kUnimplemented, "attention: cuDNN has no plan");
    }
    return found->second->Run(handle, cudnn_.device(), a);
  }

  // Leaves *made null if cuDNN has no plan.
  Error Prepare(cudnnHandle_t handle, bool backward, const AttentionOperands& a,
                std::unique_ptr<FusedPass>* made) const {
    RETURN_ERROR(CheckMayPrepare(cudnn_.device(), "attention", a.batch));
    int64_t most_workspace_bytes = 0;
    RETURN_ERROR(MostWorkspaceBytes(cudnn_.device(), &most_workspace_bytes));
    auto pass = std::make_unique<FusedPass>(a);
    if (backward) {
      pass->ComposeBackward(options_.deterministic);
    } else {
      pass->ComposeForward();
    }
    if (pass->Plan(handle, most_workspace_bytes)) *made = std::move(pass);
    return Error{};
  }

  CudnnHandle cudnn_;
  const OpsOptions options_;
  std::map<Key, std::unique_ptr<FusedPass>> passes_;  // null: there is no plan
};

}  // namespace

std::unique_ptr<FusedAttention> NewFusedAttention(CudaDevice* device, const OpsOptions& options) {
  return std::make_unique<CudnnAttention>(device, options);
}

}  // namespace thinwire::cuda

#else

namespace thinwire::cuda {

std::unique_ptr<FusedAttention> NewFusedAttention(CudaDevice*, const OpsOptions&) {
  return nullptr;
}

}  // namespace thinwire::cuda

#endif
