#include "nn/layers/attention.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "nn/layers/dropout.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const LayerSpec& spec, const LayerContext& context, std::unique_ptr<Attention> op)
      : name_(spec.name),
        in_(spec.in),
        out_(spec.out),
        heads_(spec.heads),
        kv_heads_(spec.kv_heads == 0 ? spec.heads : spec.kv_heads),
        context_(context),
        op_(std::move(op)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    const int64_t batch = x.shape()[0];
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    if (pass.cache != nullptr) return Continue(x, pass, std::move(y));
    const bool training = pass.mode == Mode::kTrain;
    Tensor log_sum_exp;
    if (training) {
      ASSIGN_OR_RETURN(log_sum_exp,
                       Tensor::Allocate(context_.device, DType::kF32, {batch, heads_, in_[1]}));
    }
    AttentionForward a;
    a.qkv = x.view();
    a.y = y.view();
    a.log_sum_exp = training ? Floats(log_sum_exp) : nullptr;
    a.dropout_key = DropoutKey(context_.dropout_seed, name_, pass.step);
    a.first_sample = pass.first_sample;
    RETURN_IF_ERROR(ToStatus(op_->Forward(a)));
    if (training) {
      saved->Push(std::move(x));
      saved->Push(y);
      saved->Push(std::move(log_sum_exp));
    }
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor log_sum_exp = saved->Pop();
    const Tensor y = saved->Pop();
    const Tensor qkv = saved->Pop();
    ASSIGN_OR_RETURN(Tensor dqkv, context_.NewTensor(qkv.shape()));
    AttentionBackward a;
    a.qkv = qkv.view();
    a.y = y.view();
    a.dy = dy.view();
    a.dqkv = dqkv.view();
    a.log_sum_exp = Floats(log_sum_exp);
    a.dropout_key = DropoutKey(context_.dropout_seed, name_, saved->pass().step);
    a.first_sample = saved->pass().first_sample;
    RETURN_IF_ERROR(ToStatus(op_->Backward(a)));
    return dqkv;
  }

 private:
  absl::StatusOr<Tensor> Continue(const Tensor& x, const Pass& pass, Tensor y) {
    const int64_t batch = x.shape()[0], head_size = out_[2] / heads_;
    ASSIGN_OR_RETURN(const Tensor cache, pass.cache->Of(this, context_.device, context_.compute,
                                                        {batch, 2, in_[1], kv_heads_, head_size}));
    RETURN_IF_ERROR(
        ToStatus(op_->Continue({x.view(), y.view(), cache.view(), pass.first_position})));
    return y;
  }

  const std::string name_;
  const Shape in_, out_;
  const int64_t heads_, kv_heads_;
  const LayerContext context_;
  const std::unique_ptr<Attention> op_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const LayerSpec& spec,
                                                         const LayerContext& context) {
  AttentionSpec attention;
  attention.heads = spec.heads;
  attention.kv_heads = spec.kv_heads == 0 ? spec.heads : spec.kv_heads;
  attention.head_size = HeadSize(spec);
  attention.rope_theta = static_cast<float>(spec.rope_theta);
  attention.dropout = static_cast<float>(spec.dropout);
  attention.compute = context.compute;
  Attention* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewAttention(attention, &op)));
  return std::make_unique<AttentionLayer>(spec, context, std::unique_ptr<Attention>(op));
}

}  // namespace thinwire
