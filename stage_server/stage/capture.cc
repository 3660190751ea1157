#include "stage_server/stage/capture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "wire/message_kind.h"

namespace thinwire {

absl::Status Capture::Offer(const MessageKey& key, const std::string& cut, const Tensor& x) {
  if (spec_.steps.empty() || !IsTrainingPass(key.phase)) return absl::OkStatus();
  const bool is_gradient = key.direction == DIRECTION_GRADIENT;
  const bool is_wanted = is_gradient ? spec_.gradients : spec_.activations;
  if (!is_wanted || spec_.steps.count(key.step) == 0 || spec_.cuts.count(key.cut) == 0) {
    return absl::OkStatus();
  }
  Kept kept{x.dtype() == DType::kBF16 ? "BF16" : "F32", {x.shape().begin(), x.shape().end()}, {}};
  kept.bytes.resize(x.bytes());
  RETURN_IF_ERROR(ToStatus(x.device()->CopyToHost(kept.bytes.data(), x.data(), x.bytes())));
  kept_[key.step].emplace(absl::StrCat(cut, "/", is_gradient ? "gradient" : "activation", "/step",
                                       key.step, "/microbatch", key.microbatch),
                          std::move(kept));
  return absl::OkStatus();
}

absl::Status Capture::Take(uint64_t step, size_t piece_bytes,
                           const std::function<absl::Status(std::string_view)>& sink) {
  Safetensors file;
  for (const auto& [name, kept] : kept_[step]) {
    file.tensors.push_back({name, kept.dtype, kept.shape, kept.bytes});
  }
  RETURN_IF_ERROR(WriteSafetensors(file, piece_bytes, sink));
  kept_.erase(step);
  return absl::OkStatus();
}

}  // namespace thinwire
