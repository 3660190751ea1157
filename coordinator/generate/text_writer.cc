#include "coordinator/generate/text_writer.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compress/spec.h"
#include "config/kept.h"
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

}  // namespace

absl::Status CheckGenerates(const Experiment& experiment, bool compressed) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  if (!model.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model.name, " takes images, want a language model"));
  }
  return compressed ? CheckCausal(experiment) : absl::OkStatus();
}

void Window::Become(std::vector<int32_t> ids) {
  int64_t same = 0;
  const auto shared = std::min<int64_t>(known_, static_cast<int64_t>(ids.size()) - 1);
  while (same < shared && ids_[same] == ids[same]) ++same;
  ids_ = std::move(ids);
  known_ = same;
  KeepLast(context_);
}

GenerateRequest Window::Next() const {
  GenerateRequest request;
  request.set_first_position(static_cast<uint32_t>(known_));
  request.mutable_ids()->Add(ids_.begin() + known_, ids_.end());
  return request;
}

void Window::Append(int32_t id) {
  known_ = Size();
  ids_.push_back(id);
  if (Size() > context_) KeepLast(std::max<int64_t>(1, context_ / 2));
}

void Window::KeepLast(int64_t count) {
  if (Size() <= count) return;
  ids_.erase(ids_.begin(), ids_.end() - count);
  known_ = 0;
}

absl::StatusOr<TextWriter> TextWriter::Start(const Experiment& experiment,
                                             const ModelShares& weights,
                                             const WriterOptions& options, Fleet* fleet) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  std::vector<AcquireResponse> answers;
  RETURN_IF_ERROR(fleet->Acquire(&answers));
  const std::vector<int> threads = StageThreads(experiment, fleet, answers);
  StagePurpose purpose;
  purpose.generates = true;
  Experiment kept_least = experiment;
  KeepLeast(&kept_least);
  RETURN_IF_ERROR(ConfigureStages(kept_least, threads, fleet, purpose).status());
  RETURN_IF_ERROR(weights.Import(fleet));
  return TextWriter(options, model.positions, fleet);
}

// Makes all stages draw the next token.
absl::StatusOr<int32_t> TextWriter::Draw() {
  const SteadyTime start = SteadyTime::Now();
  GenerateRequest request = window_.Next();
  request.set_step(static_cast<uint64_t>(totals_.tokens) + 1);
  request.set_compressed(options_.compressed);
  *request.mutable_sampling() = options_.sampling;
  std::atomic<uint64_t> wire_bytes{0};
  std::optional<int32_t> drawn;  // only the thread of the first carrier's last stage writes it
  RETURN_IF_ERROR(fleet_.OnFirstRow([&](StageClient& stage) -> absl::Status {
    ASSIGN_OR_RETURN(const GenerateResponse response, stage.Generate(request));
    wire_bytes += response.wire_bytes();
    const bool draws = stage.carrier() == 0 && stage.stage() + 1 == fleet_.stages();
    if (draws && response.has_id()) drawn = response.id();
    return absl::OkStatus();
  }));
  if (!drawn) return absl::InternalError("the last stage drew no token");
  totals_.wire_bytes += wire_bytes;
  ++totals_.tokens;
  totals_.seconds += SecondsSince(start);
  return *drawn;
}

absl::Status TextWriter::Write(std::vector<int32_t> text,
                               const std::function<absl::StatusOr<bool>(int32_t id)>& on_token) {
  window_.Become(std::move(text));
  for (int64_t drawn = 0; drawn < options_.tokens; ++drawn) {
    ASSIGN_OR_RETURN(const int32_t id, Draw());
    window_.Append(id);
    ASSIGN_OR_RETURN(const bool goes_on, on_token(id));
    if (!goes_on) break;
  }
  return absl::OkStatus();
}

}  // namespace thinwire
