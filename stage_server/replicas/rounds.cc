#include "stage_server/replicas/rounds.h"

namespace thinwire {

std::vector<int> FragmentsSent(const ReplicasSpec& replicas, const StepOfEpoch& step) {
  std::vector<int> fragments;
  for (int fragment = 0; fragment < replicas.fragments; ++fragment) {
    const int64_t turn = fragment * replicas.every / replicas.fragments;
    if (step.is_last() || step.place % replicas.every == turn) fragments.push_back(fragment);
  }
  return fragments;
}

std::vector<int> FragmentsTaken(const ReplicasSpec& replicas, const StepOfEpoch& step) {
  if (step.is_last()) return FragmentsSent(replicas, step);
  if (step.place <= replicas.overlap) return {};
  return FragmentsSent(replicas, {step.place - replicas.overlap, step.steps});
}

}  // namespace thinwire
