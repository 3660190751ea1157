#include "coordinator/run/kept_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns whether the server's state can be made that after the step.
bool Reaches(const AcquireResponse& answer, int stage, uint64_t step) {
  const StageStanding& standing = answer.standing();
  if (!answer.has_standing() || static_cast<int>(standing.stage()) != stage) return false;
  return standing.step() == step || (standing.step() + 1 == step && standing.is_ready());
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

std::vector<int> StateSources(const std::vector<bool>& are_kept, int stages) {
  std::vector<int> sources(are_kept.size(), -1);
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<int> having, lacking;
    for (int i = stage; i < static_cast<int>(are_kept.size()); i += stages) {
      (are_kept[static_cast<size_t>(i)] ? having : lacking).push_back(i);
    }
    for (size_t i = 0; i < lacking.size() && !having.empty(); ++i) {
      sources[static_cast<size_t>(lacking[i])] = having[i % having.size()];
    }
  }
  return sources;
}

absl::Status SpreadKeptState(uint64_t step, Fleet* fleet, std::vector<int>* sources) {
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& source) -> absl::Status {
    const auto first = std::find(sources->begin(), sources->end(), source.server());
    const auto readers = std::count(first, sources->end(), source.server());
    if (readers == 0) return absl::OkStatus();
    const absl::Status held = source.HoldState(step, static_cast<int>(readers));
    if (!absl::IsResourceExhausted(held)) return held;
    // It lacks memory for what others want of it.
    return fleet->OfGuest(static_cast<int>(first - sources->begin()), held);
  }));
  return fleet->OnAll([&](StageClient& to) -> absl::Status {
    int& source = (*sources)[static_cast<size_t>(to.server())];
    if (source < 0 || fleet->Follows(to.server())) return absl::OkStatus();
    return fleet->OfGuest(to.server(), FetchKeptState(std::exchange(source, -1), step, fleet, &to));
  });
}

absl::Status FetchKeptState(int source, uint64_t step, Fleet* fleet, StageClient* to) {
  absl::Status fetched = to->FetchState(fleet->server(source).address(), step,
                                        /*in_background=*/fleet->Follows(to->server()));
  // If both are there, it would fail again and again.
  if (absl::IsUnavailable(fetched) && fleet->Renew(to->server(), Fleet::kAnswer).ok() &&
      fleet->Renew(source, Fleet::kAnswer).ok()) {
    fetched = absl::FailedPreconditionError(
        absl::StrCat(fetched.message(), "; want servers of a stage that reach each other"));
  }
  return fetched;
}

}  // namespace thinwire
