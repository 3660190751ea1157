#include "stage_server/stage/capture.h"

#include <algorithm>
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
  Kept kept;
  kept.step = key.step;
  kept.name = absl::StrCat(cut, "/", is_gradient ? "gradient" : "activation", "/step", key.step,
                           "/microbatch", key.microbatch);
  kept.dtype = x.dtype();
  kept.shape = x.shape();
  kept.bytes.resize(x.bytes());
  RETURN_IF_ERROR(ToStatus(x.device()->CopyToHost(kept.bytes.data(), x.data(), x.bytes())));
  kept_.push_back(std::move(kept));
  return absl::OkStatus();
}

absl::Status Capture::Take(uint64_t step, size_t piece_bytes,
                           const std::function<absl::Status(std::string_view)>& sink) {
  // By name, so that the file is the same in whatever order they were offered.
  std::sort(kept_.begin(), kept_.end(),
            [](const Kept& a, const Kept& b) { return a.name < b.name; });
  Safetensors file;
  for (const Kept& kept : kept_) {
    if (kept.step != step) continue;
    file.tensors.push_back({kept.name,
                            kept.dtype == DType::kBF16 ? "BF16" : "F32",
                            {kept.shape.begin(), kept.shape.end()},
                            kept.bytes});
  }
  RETURN_IF_ERROR(WriteSafetensors(file, piece_bytes, sink));
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(),
                             [&](const Kept& kept) { return kept.step == step; }),
              kept_.end());
  return absl::OkStatus();
}

}  // namespace thinwire
