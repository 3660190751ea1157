#include "coordinator/run/kept_state.h"

#include <algorithm>
#include <mutex>

#include "base/status.h"

namespace thinwire {
namespace {

// Returns whether the server's state can be made that after the step.
bool Reaches(const AcquireResponse& answer, int stage, uint64_t step) {
  const StageStanding& standing = answer.standing();
  if (!answer.has_standing() || static_cast<int>(standing.stage()) != stage) return false;
  return standing.step() == step || (standing.step() + 1 == step && standing.is_ready());
}

// Sends a server all that another one of its stage has.
absl::Status CopyState(StageClient* from, uint64_t step, StageClient* to) {
  ASSIGN_OR_RETURN(const TakeSnapshotResponse files,
                   from->TakeSnapshot({/*codec_state=*/false, /*left_out=*/{}, /*shared=*/true}));
  for (int i = 0; i < files.files_size(); ++i) {
    const auto write = [&](const StageClient::Sink& sink) {
      return from->ReadSnapshot(static_cast<uint32_t>(i),
                                [&](const FileChunk& chunk) { return sink(chunk.data()); });
    };
    RETURN_IF_ERROR(to->Restore(files.files(i).part(), step, write));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<StageStanding> CommonStanding(absl::Span<const AcquireResponse> answers, int stages,
                                            const StageStanding& reported) {
  StageStanding common = reported;
  for (const AcquireResponse& answer : answers) {
    if (answer.has_standing() && answer.standing().step() > common.step()) {
      common = answer.standing();
    }
  }
  // Its loss would be missing in the record.
  if (common.step() != reported.step()) return std::nullopt;
  std::vector<bool> are_there(static_cast<size_t>(stages));
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto stage = static_cast<int>(i) % stages;
    if (Reaches(answers[i], stage, common.step())) are_there[static_cast<size_t>(stage)] = true;
  }
  const bool are_all = std::all_of(are_there.begin(), are_there.end(), [](bool is) { return is; });
  return are_all ? std::optional<StageStanding>(common) : std::nullopt;
}

bool HasEachStage(const std::vector<bool>& are_kept, int stages) {
  std::vector<bool> are_there(static_cast<size_t>(stages));
  for (size_t i = 0; i < are_kept.size(); ++i) {
    if (are_kept[i]) are_there[i % static_cast<size_t>(stages)] = true;
  }
  return std::all_of(are_there.begin(), are_there.end(), [](bool is) { return is; });
}

absl::Status SendKeptState(const std::vector<bool>& are_kept, uint64_t step, Fleet* fleet) {
  // One copy of a stage at a time, as its source has room for one.
  std::vector<std::mutex> of_stage(static_cast<size_t>(fleet->stages()));
  return fleet->OnAll([&](StageClient& to) -> absl::Status {
    if (are_kept[static_cast<size_t>(to.server())]) return absl::OkStatus();
    const std::lock_guard<std::mutex> lock(of_stage[static_cast<size_t>(to.stage())]);
    for (int i = to.stage(); i < fleet->size(); i += fleet->stages()) {
      if (are_kept[static_cast<size_t>(i)]) return CopyState(&fleet->server(i), step, &to);
    }
    return absl::InternalError("no server has the state of " + to.Name());
  });
}

}  // namespace thinwire
