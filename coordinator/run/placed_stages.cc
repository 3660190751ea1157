#include "coordinator/run/placed_stages.h"

#include "base/status.h"
#include "coordinator/fleet/metrics_target.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/provenance.h"

namespace thinwire {

absl::StatusOr<PlacedStages> PlaceStages(const Experiment& experiment, const TraceSteps* trace,
                                         Fleet* fleet, Summary* summary) {
  Provenance* provenance = summary->mutable_provenance();
  provenance->clear_stages();
  provenance->clear_devices();
  std::vector<AcquireResponse> answers;
  RETURN_IF_ERROR(fleet->Acquire(&answers));
  const std::vector<int> threads = StageThreads(experiment, fleet, answers);
  provenance->set_microbatches(experiment.pipeline().microbatches());
  RecordBuilds(answers, threads, provenance);
  WarnOfOtherBuilds(*provenance, fleet);
  StagePurpose purpose;
  purpose.trace = trace;
  ASSIGN_OR_RETURN(const Configured configured,
                   ConfigureStages(experiment, threads, fleet, purpose));
  RecordConfigured(configured, summary);
  WarnOfOtherLibraries(*provenance, fleet);
  PlacedStages placed;
  for (int i = 0; i < fleet->size(); ++i) {
    placed.stages.push_back(
        {MetricsTarget(fleet->server(i).address(), answers[i].metrics_address())});
  }
  placed.data = configured.data;
  return placed;
}

}  // namespace thinwire
