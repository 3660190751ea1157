#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/rotary.h"
#include "nn/layers/dropout.h"
#include "nn/layers/kinds.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const LayerSpec& spec, const LayerContext& context, std::unique_ptr<Attention> op)
      : name_(spec.slice.whole.empty() ? spec.name : spec.slice.whole),
        in_(spec.in),
        out_(spec.out),
        heads_(spec.heads),
        kv_heads_(spec.kv_heads == 0 ? spec.heads : spec.kv_heads),
        pad_(spec.pad),
        context_(context),
        op_(std::move(op)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    const int64_t batch = x.shape()[0];
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    const bool training = pass.mode == Mode::kTrain;
    Tensor log_sum_exp;
    if (training) {
      ASSIGN_OR_RETURN(log_sum_exp, Tensor::Allocate(context_.device, DType::kF32,
                                                     {batch, heads_, x.shape()[1]}));
    }
    float* const sums = training ? Floats(log_sum_exp) : nullptr;
    RETURN_IF_ERROR(pass.cache == nullptr ? Whole(x, pass, y, sums) : Continue(x, pass, y, sums));
    if (training) {
      saved->Push(std::move(x));
      saved->Push(y);
      saved->Push(std::move(log_sum_exp), Needed::kExact);
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
    const Pass& pass = saved->pass();
    a.dropout_key = DropoutKey(context_.dropout_seed, name_, pass.step);
    a.first_sample = pass.first_sample;
    a.first_position = pass.first_position;
    ASSIGN_OR_RETURN(const Tensor lengths, LengthsOf(qkv, pass));
    a.lengths = Ints(lengths);
    ASSIGN_OR_RETURN(a.first_key, FirstKeys(qkv, pass));
    if (pass.cache != nullptr) {
      ASSIGN_OR_RETURN(const Tensor cache, CacheOf(qkv, pass));
      ASSIGN_OR_RETURN(const Tensor gradient,
                       pass.cache->GradientOf(this, context_.device, context_.ops, cache.shape()));
      a.cache = cache.view();
      a.dcache = Floats(gradient);
    }
    RETURN_IF_ERROR(ToStatus(op_->Backward(a)));
    return dqkv;
  }

 private:
  // Attends to whole sequences; `log_sum_exp` is null unless in training.
  absl::Status Whole(const Tensor& x, const Pass& pass, const Tensor& y, float* log_sum_exp) {
    AttentionForward a;
    a.qkv = x.view();
    a.y = y.view();
    a.log_sum_exp = log_sum_exp;
    a.dropout_key = DropoutKey(context_.dropout_seed, name_, pass.step);
    a.first_sample = pass.first_sample;
    ASSIGN_OR_RETURN(const Tensor lengths, LengthsOf(x, pass));
    a.lengths = Ints(lengths);
    ASSIGN_OR_RETURN(a.first_key, FirstKeys(x, pass));
    return ToStatus(op_->Forward(a));
  }
  // Returns the first key that each position may see; null if that is the first of all.
  static absl::StatusOr<const int32_t*> FirstKeys(const Tensor& qkv, const Pass& pass) {
    if (pass.documents.empty()) return nullptr;
    RETURN_IF_ERROR(pass.documents.Check(qkv.shape()));
    return Ints(pass.documents.first);
  }
  // Returns the samples' lengths; empty if all positions count.
  absl::StatusOr<Tensor> LengthsOf(const Tensor& qkv, const Pass& pass) const {
    if (pad_ == kNoId) return Tensor();
    RETURN_IF_ERROR(pass.CheckIds(qkv.shape()));
    ASSIGN_OR_RETURN(Tensor lengths,
                     Tensor::Allocate(context_.device, DType::kI32, {qkv.shape()[0]}));
    RETURN_IF_ERROR(ToStatus(context_.ops->CountPositions(
        pass.ids.view(), static_cast<int32_t>(pad_), static_cast<int32_t*>(lengths.data()))));
    return lengths;
  }
  static const int32_t* Ints(const Tensor& tensor) {
    return tensor.empty() ? nullptr : static_cast<const int32_t*>(tensor.data());
  }
  absl::Status Continue(const Tensor& x, const Pass& pass, const Tensor& y, float* log_sum_exp) {
    ASSIGN_OR_RETURN(const Tensor cache, CacheOf(x, pass));
    ASSIGN_OR_RETURN(const int32_t* const first_key, FirstKeys(x, pass));
    return ToStatus(op_->Continue(
        {x.view(), y.view(), cache.view(), pass.first_position, log_sum_exp, first_key}));
  }
  absl::StatusOr<Tensor> CacheOf(const Tensor& qkv, const Pass& pass) const {
    const Shape shape = {qkv.shape()[0], 2, in_[1], kv_heads_, out_[2] / heads_};
    return pass.cache->Of(this, context_.device, context_.compute, shape);
  }

  const std::string name_;
  const Shape in_, out_;
  const int64_t heads_, kv_heads_, pad_;
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
  std::vector<double> frequencies;
  if (spec.rope_theta > 0) {
    frequencies = RotaryFrequencies(spec.rope_theta, spec.rope_scaling, attention.head_size / 2);
    attention.frequencies = frequencies.data();
  }
  attention.dropout = static_cast<float>(spec.dropout);
  attention.causal = spec.causal;
  attention.first_head = spec.slice.first_head;
  attention.window = spec.window;
  attention.compute = context.compute;
  Attention* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewAttention(attention, &op)));
  return std::make_unique<AttentionLayer>(spec, context, std::unique_ptr<Attention>(op));
}

}  // namespace thinwire
