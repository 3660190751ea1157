#include "coordinator/tune/cuts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/tune/library.h"

namespace thinwire {
namespace {

std::string Ms(double seconds) { return absl::StrFormat("%.1f ms", 1e3 * seconds); }

// Returns whether a's step and error are no worse than b's, and one of them is better.
bool Dominates(const TuneCandidate& a, const TuneCandidate& b) {
  if (a.step_seconds() > b.step_seconds() || a.gradient_error() > b.gradient_error()) return false;
  return a.step_seconds() < b.step_seconds() || a.gradient_error() < b.gradient_error();
}

}  // namespace

const TuneCandidate& CandidateNamed(const TuneCandidates& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const TuneCandidate& one) { return one.name() == name; });
}

std::vector<TuneCandidate*> StillStanding(TuneCandidates* all) {
  std::vector<TuneCandidate*> standing;
  for (TuneCandidate& one : *all) {
    if (one.name() != kNone && one.fell().empty()) standing.push_back(&one);
  }
  return standing;
}

void CutByPlan(TuneCandidates* all) {
  const double plain = CandidateNamed(*all, kNone).step_seconds();
  const std::vector<TuneCandidate*> before = StillStanding(all);
  for (size_t i = 0; i < before.size(); ++i) {
    TuneCandidate* const one = before[i];
    if (one->step_seconds() >= plain) {
      one->set_fell(absl::StrCat("plan: its step takes ", Ms(one->step_seconds()),
                                 ", that of none ", Ms(plain)));
      continue;
    }
    const auto gentler = std::find_if(before.begin(), before.begin() + i, [&](const auto* other) {
      return !one->family().empty() && other->family() == one->family() &&
             other->step_seconds() <= one->step_seconds();
    });
    if (gentler == before.begin() + i) continue;
    one->set_fell(absl::StrCat("plan: no faster than ", (*gentler)->name(), ", which is gentler"));
  }
}

void CutByError(size_t most, TuneCandidates* all) {
  const std::vector<TuneCandidate*> before = StillStanding(all);
  std::vector<TuneCandidate*> front;
  size_t unknown = 0;
  for (TuneCandidate* const one : before) {
    if (!one->has_gradient_error()) {
      ++unknown;
      continue;
    }
    const auto better = std::find_if(before.begin(), before.end(), [&](const auto* other) {
      return other->has_gradient_error() && Dominates(*other, *one);
    });
    if (better == before.end()) {
      front.push_back(one);
      continue;
    }
    one->set_fell(absl::StrFormat("probe: gradient error %.3f in %s; %s has %.3f in %s",
                                  one->gradient_error(), Ms(one->step_seconds()), (*better)->name(),
                                  (*better)->gradient_error(), Ms((*better)->step_seconds())));
  }
  const size_t places = most > unknown ? most - unknown : 0;
  if (front.size() <= places) return;
  std::stable_sort(front.begin(), front.end(), [](const auto* a, const auto* b) {
    return a->step_seconds() < b->step_seconds();
  });
  std::vector<bool> stays(front.size(), false);
  for (size_t i = 0; i < places; ++i) {
    const double at = places == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(places - 1);
    stays[static_cast<size_t>(std::lround(at * static_cast<double>(front.size() - 1)))] = true;
  }
  for (size_t i = 0; i < front.size(); ++i) {
    if (stays[i]) continue;
    front[i]->set_fell(
        absl::StrCat("probe: between others on the front of step time and gradient error, and "
                     "--candidates is ",
                     most));
  }
}

}  // namespace thinwire
