#include "coordinator/fleet/failure.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Returns a rank: the lower, the likelier the cause.
int Rank(const Failure& failure) {
  if (failure.kind == Failure::Kind::kDead) return 0;
  const bool is_away = failure.kind == Failure::Kind::kSilent;
  if (is_away || failure.kind == Failure::Kind::kUnfit) return 1;
  const bool is_overdealt = failure.kind == Failure::Kind::kSpeeds;
  if (is_overdealt && absl::IsResourceExhausted(failure.status)) return 1;
  switch (failure.status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return 3;
    case absl::StatusCode::kUnavailable:
      return 4;
    case absl::StatusCode::kCancelled:
      return 5;
    default:
      return 2;
  }
}

// Sorts by likelihood, the likeliest cause first.
void Sort(std::vector<Failure>* failures) {
  std::stable_sort(failures->begin(), failures->end(),
                   [](const Failure& a, const Failure& b) { return Rank(a) < Rank(b); });
}

}  // namespace

Failure CauseOf(std::vector<Failure> failures) {
  assert(!failures.empty());
  Sort(&failures);
  return failures.front();
}

bool IsLoss(const Failure& cause) {
  if (cause.stage == Failure::kCoordinator) return false;
  return cause.kind != Failure::Kind::kError || absl::IsUnavailable(cause.status) ||
         absl::IsDeadlineExceeded(cause.status) || absl::IsCancelled(cause.status);
}

absl::Status RootCause(std::vector<Failure> failures) {
  assert(!failures.empty());
  Sort(&failures);
  const Failure& cause = failures.front();
  // The stages' failures followed from it.
  if (cause.stage == Failure::kCoordinator) return cause.status;
  std::string message(cause.status.message());
  std::set<int> told = {cause.stage};
  for (const Failure& other : failures) {
    const bool only_cancelled = other.status.code() == absl::StatusCode::kCancelled;
    if (only_cancelled || !told.insert(other.stage).second) continue;
    absl::StrAppend(&message, "\n  also: ", other.status.message());
  }
  return absl::Status(cause.status.code(), message);
}

}  // namespace thinwire
