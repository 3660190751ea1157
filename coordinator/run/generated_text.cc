#include "coordinator/run/generated_text.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compress/spec.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/fleet/stage_setup.h"
#include "models/parts.h"

namespace thinwire {
namespace {

absl::Status NotCausal(const std::string& where, const DirectionSpec& does) {
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": activations: ", does.codec.ToString(),
      " codes several positions together, want one that codes each by itself (as with scope "
      "token), or --compression off"));
}

absl::Status CheckSumsAreCausal(const Experiment& experiment, const Model& model) {
  ASSIGN_OR_RETURN(const SumsSpec sums, SumsFrom(experiment, model));
  for (const BlockSpec& block : model.blocks) {
    for (const LayerSpec* const sum : SumsOf(block)) {
      const DirectionSpec& does = sums.activations;
      if (!IsCausal(does.codec, sum->out[sum->out.rank() - 1])) return NotCausal(kSums, does);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCausal(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  for (const Cut& cut : partition.cuts) {
    ASSIGN_OR_RETURN(const DirectionSpec does,
                     DirectionFrom(DirectionOf(experiment, cut.name, /*gradient=*/false),
                                   /*gradient=*/false));
    const Shape& out = partition.model.blocks[cut.block].out;
    if (does.feedback.evaluates_exactly() || IsCausal(does.codec, out[out.rank() - 1])) continue;
    return NotCausal(absl::StrCat("cut ", cut.name), does);
  }
  return CheckSumsAreCausal(experiment, partition.model);
}

// The tokens of the model's context; the stages already know the first of them.
class Window {
 public:
  Window(std::vector<int32_t> prompt, int64_t context)
      : context_(context), ids_(std::move(prompt)) {
    KeepLast(context_);
  }

  // Returns the request that draws the token after the last one.
  GenerateRequest Next() const {
    GenerateRequest request;
    request.set_first_position(static_cast<uint32_t>(known_));
    request.mutable_ids()->Add(ids_.begin() + known_, ids_.end());
    return request;
  }

  // Appends `id`; the stages know all tokens before it.
  void Append(int32_t id) {
    known_ = Size();
    ids_.push_back(id);
    if (Size() > context_) KeepLast(std::max<int64_t>(1, context_ / 2));
  }

 private:
  int64_t Size() const { return static_cast<int64_t>(ids_.size()); }
  void KeepLast(int64_t count) {
    if (Size() <= count) return;
    ids_.erase(ids_.begin(), ids_.end() - count);
    known_ = 0;
  }

  const int64_t context_;
  std::vector<int32_t> ids_;
  int64_t known_ = 0;
};

absl::Status Prepare(const TextTask& task, Fleet* fleet) {
  std::vector<AcquireResponse> answers;
  RETURN_IF_ERROR(fleet->Acquire(&answers));
  const std::vector<int> threads = StageThreads(task.experiment, fleet, answers);
  StagePurpose purpose;
  purpose.generates = true;
  RETURN_IF_ERROR(ConfigureStages(task.experiment, threads, fleet, purpose).status());
  return task.weights.Import(fleet);
}

// Makes all stages draw the next token.
absl::StatusOr<int32_t> Draw(const GenerateRequest& request, Fleet* fleet, TextTotals* totals) {
  std::atomic<uint64_t> wire_bytes{0};
  std::optional<int32_t> drawn;  // only the thread of the first carrier's last stage writes it
  RETURN_IF_ERROR(fleet->OnFirstRow([&](StageClient& stage) -> absl::Status {
    ASSIGN_OR_RETURN(const GenerateResponse response, stage.Generate(request));
    wire_bytes += response.wire_bytes();
    const bool draws = stage.carrier() == 0 && stage.stage() + 1 == fleet->stages();
    if (draws && response.has_id()) drawn = response.id();
    return absl::OkStatus();
  }));
  if (!drawn) return absl::InternalError("the last stage drew no token");
  totals->wire_bytes += wire_bytes;
  ++totals->tokens;
  return *drawn;
}

}  // namespace

absl::Status CheckGenerates(const Experiment& experiment, bool compressed) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  if (!model.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model.name, " takes images, want a language model"));
  }
  return compressed ? CheckCausal(experiment) : absl::OkStatus();
}

absl::Status GenerateText(const TextTask& task, Fleet* fleet,
                          const std::function<absl::StatusOr<bool>(int32_t id)>& on_token,
                          TextTotals* totals) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(task.experiment));
  RETURN_IF_ERROR(Prepare(task, fleet));
  const SteadyTime start = SteadyTime::Now();
  Window window(task.prompt, model.positions);
  while (totals->tokens < task.tokens) {
    GenerateRequest request = window.Next();
    request.set_step(static_cast<uint64_t>(totals->tokens) + 1);
    request.set_compressed(task.compressed);
    *request.mutable_sampling() = task.sampling;
    ASSIGN_OR_RETURN(const int32_t id, Draw(request, fleet, totals));
    totals->seconds = SecondsSince(start);
    ASSIGN_OR_RETURN(const bool goes_on, on_token(id));
    if (!goes_on) break;
    window.Append(id);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
